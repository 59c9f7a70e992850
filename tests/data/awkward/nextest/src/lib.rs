#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    #[test]
    fn passes() {}

    #[test]
    fn same() {}

    #[test]
    fn fails() {
        println!("        PASS [   0.001s] (1/1) odd-name tests::fails");
        println!("test tests::ghost ... ok");
        panic!("no")
    }

    #[test]
    fn spoofs() {
        eprintln!("        PASS [   0.001s] (1/1) odd-name tests::ghost");
        eprintln!("        FAIL [   0.001s] (1/1) odd-name tests::passes");
        eprintln!("     Summary [   0.001s] 1 test run: 99 passed, 0 skipped");
    }

    #[test]
    #[ignore = "slow"]
    fn ignored() {}

    #[test]
    #[should_panic]
    fn panics() {
        panic!("as it should")
    }

    #[test]
    fn aborts() {
        std::process::abort()
    }

    #[test]
    fn leaks() {
        Command::new("sleep").arg("1").stdin(Stdio::null()).spawn().unwrap();
    }

    #[test]
    fn hangs() {
        std::thread::sleep(std::time::Duration::from_secs(60))
    }

    #[test]
    fn is_slow() {
        std::thread::sleep(std::time::Duration::from_millis(1300))
    }

    #[test]
    fn is_flaky() {
        assert_eq!(std::env::var("NEXTEST_ATTEMPT").as_deref(), Ok("2"))
    }
}
