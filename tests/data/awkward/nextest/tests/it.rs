#[test]
fn same() {}
