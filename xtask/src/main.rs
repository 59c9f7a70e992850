//! Checks and generated files of the workspace.
fn main() {}
