//! Rules of Rust.
