//! JSON as the Python tools write it: read leniently, written byte for byte.

mod lenient;
mod python;

pub use lenient::{Counts, Lenient, TextCap};
pub use python::{Spelling, to_bytes};
