//! What one trial leaves: the row that statistics and reports read.

use serde::{Deserialize, Serialize};

use super::recall::Asks;
use crate::audit::memory::LeakScan;
use crate::grade::VerdictClass;
use crate::llm::Cost;
use crate::task::InstanceId;

/// Which trial of the grid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrialKey {
    /// The condition's name in the study file.
    pub condition: String,
    /// The solver's name in the study file.
    pub solver: String,
    /// From 1.
    pub replicate: u32,
    /// The target.
    pub instance_id: InstanceId,
}

/// One finished trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Which.
    #[serde(flatten)]
    pub key: TrialKey,
    /// What grading found.
    pub verdict: VerdictClass,
    /// Why, where the verdict is not resolved.
    pub reason: Option<String>,
    /// The agent's exit status (`Submitted`, `LimitsExceeded`, …).
    pub exit_status: String,
    /// Model calls of the agent.
    pub steps: u64,
    /// What the solver cost, all attempts together.
    pub solver_cost: Cost,
    /// The part of it that went into attempts that were given up.
    pub abandoned_cost: Cost,
    /// What the memory system's retrievals for this trial cost, and its share of the build.
    pub memory_cost: Cost,
    /// What memory delivered.
    pub memory: MemoryNote,
    /// Whether the injected block gives the answer away, found after the run; `None`: nothing was injected, or the record
    /// is of a version that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leak: Option<LeakScan>,
    /// How many attempts it took (1: the first).
    pub attempts: u32,
    /// Wall-clock seconds of the agent and of grading.
    pub agent_seconds: f64,
    /// Wall-clock seconds of grading.
    pub grade_seconds: f64,
}

/// What memory delivered to one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryNote {
    /// Trajectories that the target may learn from.
    pub eligible: usize,
    /// Tokens injected at the start (estimated where no tokenizer is known); 0: nothing was.
    pub injected_tokens: u64,
    /// Why nothing was delivered at the start, where memory was asked and nothing was.
    pub abstained: Option<String>,
    /// The runs that the delivered records derive from.
    pub sources: Vec<InstanceId>,
    /// What the agent asked with the memory tool; `None`: it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Asks>,
    /// What was asked at phases of the run; `None`: nothing is asked there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Asks>,
}
