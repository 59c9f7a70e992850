//! What a person or a program reads: stdout is data, stderr is for people.

use std::io::{self, Write};

use serde::Serialize;

use crate::exit::Failure;

/// Prints one line of data. A reader that has gone away ends the command quietly.
pub fn data(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Prints a value as indented JSON.
pub fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    data(&serde_json::to_string_pretty(value).map_err(Failure::input)?);
    Ok(())
}

/// Tells a person something.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
