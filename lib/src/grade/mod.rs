//! Whether the patch works: apply, run, read the log, reach a verdict.

pub mod expect;
pub mod logs;
pub mod patch;
mod verdict;

pub use verdict::{Coding, VerdictClass};
