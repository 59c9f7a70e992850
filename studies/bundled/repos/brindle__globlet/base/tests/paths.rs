use globlet::normalize;

#[test]
fn keeps_plain_paths() {
    assert_eq!(normalize("/usr/lib"), "/usr/lib");
    assert_eq!(normalize("src/lib.rs"), "src/lib.rs");
}

#[test]
fn goes_up() {
    assert_eq!(normalize("a/b/../c"), "a/c");
}
