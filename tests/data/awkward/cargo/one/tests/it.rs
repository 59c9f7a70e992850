#[test]
fn same_file() {}

#[test]
fn only_in_one() {}
