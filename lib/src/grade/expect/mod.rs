//! Finding expected tests among the results of a log.
//!
//! Expected names were recorded by upstream's parsers, which cut ids at blanks, drop packages and files, keep
//! durations, and take files, classes and builds for tests. An expected name is looked for, in this order, as
//! 1. a name of a result: its own, or the one upstream gives it (tests and groups alike);
//! 2. the beginning of names, where its brackets are not closed (datasets hold cut ids);
//! 3. a name that differs in a duration or in blanks around it.
//!
//! All results that a step finds could be meant. Of one test's several results the worst counts. Where several tests
//! could be meant, they decide only if they agree on whether that is a pass; if not, or if more names of the task's
//! lists than tests of the log come to the same name without duration, the answer is [`Found::Ambiguous`].

mod lookup;
mod timing;

pub use lookup::{How, Match, NameDefect, Results, Seen};
pub use timing::without_timing;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::logs::Status;

/// Which list of the task names a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Expected {
    /// `FAIL_TO_PASS`.
    #[serde(rename = "FAIL_TO_PASS")]
    FailToPass,
    /// `PASS_TO_PASS`.
    #[serde(rename = "PASS_TO_PASS")]
    PassToPass,
}

/// What the log says of an expected test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Found {
    /// Its status.
    Seen(Status),
    /// Nothing.
    Missing,
    /// Several tests could be meant, and they do not agree.
    Ambiguous,
}

impl From<String> for Found {
    fn from(text: String) -> Self {
        match text.as_str() {
            "MISSING" => Self::Missing,
            "AMBIGUOUS" => Self::Ambiguous,
            _ => Self::Seen(Status::from(text)),
        }
    }
}

impl From<Found> for String {
    fn from(found: Found) -> Self {
        found.to_string()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seen(status) => status.as_str(),
            Self::Missing => "MISSING",
            Self::Ambiguous => "AMBIGUOUS",
        })
    }
}

/// What counts as passing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolveRule {
    /// SWE-bench 5: PASSED and XFAIL pass; a skipped test fails in `FAIL_TO_PASS` and is maintained in
    /// `PASS_TO_PASS`. XPASS, which SWE-bench never sees, passes as well: the test ran and its runner let it
    /// pass.
    #[default]
    SweBench5,
    /// SWE-rebench V2 and VibeMemBench: PASSED only.
    SweRebench2,
}

impl ResolveRule {
    /// Whether an expected test counts as a success.
    pub fn passes(self, found: &Found, expected: Expected) -> bool {
        let Found::Seen(status) = found else { return false };
        match (self, status) {
            (_, Status::Passed) => true,
            (Self::SweBench5, Status::Xfail | Status::Xpass) => true,
            (Self::SweBench5, Status::Skipped) => expected == Expected::PassToPass,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_differ_on_skipped_and_expected_failures() {
        use Expected::{FailToPass, PassToPass};
        let seen = |status: Status| Found::Seen(status);
        let rules = [ResolveRule::SweBench5, ResolveRule::SweRebench2];
        let both = |status: Status, list| rules.map(|rule| rule.passes(&seen(status.clone()), list));
        assert_eq!(both(Status::Xfail, FailToPass), [true, false]);
        assert_eq!(both(Status::Skipped, PassToPass), [true, false]);
        assert_eq!(both(Status::Skipped, FailToPass), [false, false]);
        assert_eq!(both(Status::Passed, FailToPass), [true, true]);
        assert_eq!(both(Status::Error, PassToPass), [false, false]);
    }
}
