//! Whether the patch works: apply, run, read the log, reach a verdict.

mod verdict;

pub use verdict::{Coding, VerdictClass};
