//! JSON as the Python tools write it: read leniently, written byte for byte.

mod lenient;
mod python;

use std::io::Read;

use serde_json::Value;

pub use lenient::{Counts, Lenient, TextCap, passes};
pub use python::{Spelling, to_bytes};

/// Parses a JSON text leniently; the counts say what was repaired.
///
/// # Errors
/// When it is no valid JSON.
pub fn parse(text: &[u8]) -> serde_json::Result<(Value, Counts)> {
    let mut filter = Lenient::new(text, None);
    let counts = filter.counts();
    let mut clean = Vec::with_capacity(text.len());
    filter.read_to_end(&mut clean).map_err(serde_json::Error::io)?;
    serde_json::from_slice(&clean).map(|value| (value, counts.get()))
}
