#[test]
fn same_file() {
    panic!("not the one of the other package")
}
