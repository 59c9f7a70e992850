//! The verdict on one prediction, and how it is coded in statistics.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What grading found, or why it found nothing. A failed harness is never silently "unresolved".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictClass {
    /// Every expected test passed.
    Resolved,
    /// At least one expected test did not pass.
    Unresolved,
    /// The prediction holds no change.
    EmptyPatch,
    /// There is no prediction for the task.
    NoPrediction,
    /// No step of the apply chain took the patch.
    PatchNotApplied,
    /// A command between patch and tests failed, or the tests could not be built.
    BuildFailed,
    /// The agent reached a limit and submitted nothing.
    AgentLimit,
    /// The tests ran out of time; gold does not.
    TestTimeout,
    /// The tests ended, and the log holds no result.
    NoResults,
    /// The sandbox, the disk, the network or the model endpoint failed.
    Infrastructure,
    /// The host ran out of memory.
    HostOutOfMemory,
    /// The gold patch does not resolve the task, or the test patch does not apply.
    GoldFails,
    /// The log cannot be parsed even for gold, or the row is unusable.
    Unparseable,
}

/// How a verdict enters the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coding {
    /// 1.
    One,
    /// 0.
    Zero,
    /// Missing: retried; bounds are reported for what stays missing.
    Missing,
    /// The target leaves every arm.
    Excluded,
}

impl fmt::Display for VerdictClass {
    /// The name that files use: `resolved`, `patch-not-applied`, …
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl VerdictClass {
    /// Its coding.
    pub fn coding(self) -> Coding {
        match self {
            Self::Resolved => Coding::One,
            Self::Unresolved
            | Self::EmptyPatch
            | Self::NoPrediction
            | Self::PatchNotApplied
            | Self::BuildFailed
            | Self::AgentLimit
            | Self::TestTimeout
            | Self::NoResults => Coding::Zero,
            Self::Infrastructure | Self::HostOutOfMemory => Coding::Missing,
            Self::GoldFails | Self::Unparseable => Coding::Excluded,
        }
    }
}
