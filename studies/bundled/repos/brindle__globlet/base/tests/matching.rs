use globlet::matches;

#[test]
fn literals() {
    assert!(matches("a.txt", "a.txt"));
    assert!(!matches("a.txt", "b.txt"));
}

#[test]
fn star_takes_any_run() {
    assert!(matches("*.txt", "notes.txt"));
    assert!(matches("a*", "a"));
}

#[test]
fn question_mark_takes_one() {
    assert!(matches("a?c", "abc"));
    assert!(!matches("a?c", "ac"));
}

#[test]
fn class_takes_one_of_its_set() {
    assert!(matches("[abc].rs", "b.rs"));
    assert!(!matches("[abc].rs", "d.rs"));
}
