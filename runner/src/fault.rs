//! Errors with what was being done.

use std::fmt;
use std::io;

/// What went wrong, for a person.
#[derive(Debug)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The runner's results.
pub type Result<T> = std::result::Result<T, Fault>;

/// Says what was being done when an error came.
pub trait During<T> {
    /// `action: error`.
    fn during(self, action: impl fmt::Display) -> Result<T>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, action: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Fault(format!("{action}: {error}")))
    }
}

impl<T> During<T> for rustix::io::Result<T> {
    fn during(self, action: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Fault(format!("{action}: {}", io::Error::from(error))))
    }
}
