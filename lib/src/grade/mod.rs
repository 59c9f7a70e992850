//! Whether the patch works: apply, run, read the log, reach a verdict.
//!
//! [`grade`] does it for one prediction in one sandbox, [`run::GradeRun`] for many.

pub mod expect;
pub mod files;
pub mod logs;
pub mod patch;
pub mod predictions;
pub mod reports;
pub mod run;

mod attempt;
mod execute;
mod explain;
#[cfg(test)]
mod fixture;
mod graded;
mod host;
mod judge;
mod protect;
#[cfg(test)]
mod tests;
mod verdict;

pub use attempt::{grade, of_sandbox_error, without_sandbox};
pub use execute::Ran;
pub use explain::{Difference, Explanation, Line, Reason};
pub use graded::{Flag, Graded, Options, Outcome, Split};
pub use judge::{judge, usable};
pub use verdict::{Coding, VerdictClass};
