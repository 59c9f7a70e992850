//! The program inside a sandbox.
#![allow(missing_docs)]
fn main() {}
