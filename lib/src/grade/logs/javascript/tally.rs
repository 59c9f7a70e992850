//! Passes counted against a runner's own totals.

use super::super::found::Found;
use super::super::status::Status;

/// Passes since the last total. Where there are more than the runner counts, tests printed some of them.
#[derive(Debug, Default)]
pub(super) struct Tally(usize);

impl Tally {
    pub(super) fn add(&mut self, status: &Status) {
        self.0 += usize::from(*status == Status::Passed);
    }

    /// The runner's total of passes.
    pub(super) fn settle(&mut self, total: usize, found: &mut Found) {
        let seen = std::mem::take(&mut self.0);
        if seen > total {
            found.broken(format!("{seen} lines say that a test passed, the total is {total}"), false);
        }
    }
}
