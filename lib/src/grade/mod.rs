//! Whether the patch works: apply, run, read the log, reach a verdict.

pub mod logs;
mod verdict;

pub use verdict::{Coding, VerdictClass};
