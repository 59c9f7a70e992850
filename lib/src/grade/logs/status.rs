//! How a test ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How one test ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Status {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// Its set-up or tear-down failed.
    Error,
    /// It did not run.
    Skipped,
    /// It failed as expected.
    Xfail,
    /// It passed where a failure was expected, and the runner lets that pass.
    Xpass,
    /// What an upstream parser takes for a status (`ERROR:`); never under strict rules.
    Other(String),
}

impl Status {
    /// As written in logs and reports.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Passed => "PASSED",
            Self::Failed => "FAILED",
            Self::Error => "ERROR",
            Self::Skipped => "SKIPPED",
            Self::Xfail => "XFAIL",
            Self::Xpass => "XPASS",
            Self::Other(text) => text,
        }
    }

    /// From worst (0) to best: the order in which one of several observations of a test wins.
    fn rank(&self) -> u8 {
        match self {
            Self::Failed => 0,
            Self::Error => 1,
            Self::Other(_) => 2,
            Self::Skipped => 3,
            Self::Xfail => 4,
            Self::Xpass => 5,
            Self::Passed => 6,
        }
    }

    /// The worse of two.
    #[must_use]
    pub fn worse<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.rank() < self.rank() { other } else { self }
    }
}

impl From<String> for Status {
    fn from(text: String) -> Self {
        match text.as_str() {
            "PASSED" => Self::Passed,
            "FAILED" => Self::Failed,
            "ERROR" => Self::Error,
            "SKIPPED" => Self::Skipped,
            "XFAIL" => Self::Xfail,
            "XPASS" => Self::Xpass,
            _ => Self::Other(text),
        }
    }
}

impl From<&str> for Status {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<Status> for String {
    fn from(status: Status) -> Self {
        status.as_str().to_owned()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
