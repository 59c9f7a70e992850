//! One.

/// Doubles.
///
/// ```
/// assert_eq!(one::double(2), 4);
/// ```
///
/// ```should_panic
/// panic!("{}", one::double(2));
/// ```
///
/// ```compile_fail
/// one::treble(2);
/// ```
///
/// ```no_run
/// loop {}
/// ```
///
/// ```
/// assert_eq!(one::double(2), 5);
/// ```
pub fn double(n: i32) -> i32 {
    2 * n
}

#[cfg(test)]
mod tests {
    #[test]
    fn same() {}

    #[test]
    fn prints() {
        println!("test tests::ghost ... ok");
        println!("test tests::fails ... ok");
        println!("test result: ok. 99 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s");
    }

    #[test]
    fn prints_without_line_end() {
        print!("no line end");
    }

    #[test]
    fn prints_ok() {
        println!("ok");
        panic!("not ok");
    }

    #[test]
    fn fails() {
        assert_eq!(super::double(1), 3, "left ... ok");
    }

    #[test]
    #[ignore = "slow, ... ok"]
    fn ignored() {}

    #[test]
    #[should_panic(expected = "boom")]
    fn panics() {
        panic!("boom")
    }

    #[test]
    #[should_panic]
    fn does_not_panic() {}
}
