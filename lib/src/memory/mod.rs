//! What earlier runs teach: memory systems, the trait they implement, and the host that runs them.
//!
//! A memory system takes in the trajectories that one target may learn from, freezes, and delivers what it thinks
//! useful for that target, or abstains. Nothing outside this module talks to a system directly: [`host`] is the only
//! way to run one, so that causality (law 1), costs (law 7) and budgets hold for every system alike.
//!
//! - [`MemorySystem`]: the trait, of the same shape as the protocol that systems outside this process speak.
//! - [`host`]: ingestion in chronological order, freezing, retrieval, checks, the injected block.
//! - [`open`]: the registry of systems by name; [`describe`] says what each is and what can be set.
//! - `bank/` and `notebook/`: stores of records that each derive from one run, and of one text that all runs shape.
//! - `systems/`: one small module a system; [`plugged`]: systems that are programs of their own, and MCP servers.
//! - `distil/`: what a run is boiled down to, by rules and by a model.
//! - [`shelf`]: what stores learnt, on disk, so that no run is taken in twice; [`index`]: a folder of shelves, one a
//!   repository, for any target; [`serve`]: what an index offers to agents at work.
//! - [`conformance`]: checks that every system must pass, for ours and for third parties'.

pub mod host;
pub mod serve;
pub mod conformance;
pub mod index;
pub mod shelf;
mod bank;
mod block;
mod changes;
mod distil;
mod error;
mod history;
mod intake;
mod notebook;
pub mod plugged;
mod record;
mod redact;
mod registry;
mod systems;
mod tokenize;

use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::llm::Cost;
use crate::task::{InstanceId, SolverView};
use crate::trajectory::Event;

pub use bank::Ranking;
pub use block::{BlockTemplate, DEFAULT_TEMPLATE};
pub use error::MemoryError;
pub use redact::{Redactions, redact};
pub use registry::{About, Needs, Resources, SYSTEMS, Setting, describe, open};

/// A result and what models charged for it. Seconds are measured by the host, not reported by systems.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costed<T> {
    /// The result.
    pub value: T,
    /// What it cost.
    pub cost: Cost,
}

impl<T> Costed<T> {
    /// A result that no model was asked for.
    pub fn free(value: T) -> Self {
        Self { value, cost: Cost::ZERO }
    }
}

/// What a system is, and what must be printed beside its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Its name in study files.
    pub name: String,
    /// Its version; for the built-in systems memtrial's.
    pub version: String,
    /// Whether it learns from earlier runs at all. Without this flag the host reads none.
    pub ingests: bool,
    /// Whether it reads whether an earlier run was resolved. Without this flag the host withholds outcomes.
    pub uses_outcome: bool,
    /// Whether it reads what happened in earlier runs, step by step. Without this flag the host does not load it.
    pub reads_events: bool,
    /// Whether its state mixes trajectories, so that the order of ingestion matters (playbooks, notes, links).
    pub order_sensitive: bool,
    /// Whether the same input gives the same delivery, byte for byte.
    pub deterministic: bool,
    /// Whether one index may serve several targets by [`Query::as_of`]. It may only where each record derives from one
    /// trajectory and results *and scores* equal those of an index rebuilt from the eligible history.
    pub shared_index: bool,
    /// Which runs its deliveries may derive from.
    #[serde(default)]
    pub learns_from: LearnsFrom,
    /// What embeds its records and queries, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
    /// The model that it asks while it learns, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Which runs a system's deliveries may derive from; the host refuses others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearnsFrom {
    /// The target's history.
    #[default]
    History,
    /// Earlier tasks of the target's repository, whether or not the history holds their runs (published records).
    EarlierTasks,
    /// Other repositories alone: a control arm.
    OtherRepositories,
}

impl Description {
    /// A built-in system of this version that learns from issue and patch of each run by itself and is deterministic; the
    /// fields that differ are set by whoever asks.
    pub fn built_in(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ingests: true,
            uses_outcome: false,
            reads_events: false,
            order_sensitive: false,
            deterministic: true,
            shared_index: true,
            learns_from: LearnsFrom::History,
            embedder: None,
            model: None,
        }
    }
}

/// The empty namespace that a system is given: one target under one condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The condition's name in the study file.
    pub condition: String,
    /// The target that everything ingested will be eligible for.
    pub target: InstanceId,
    /// The replicate's seed, for systems that draw random numbers.
    pub seed: u64,
}

/// One earlier run, as memory systems take it in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experience {
    /// The task that the run attempted.
    pub instance_id: InstanceId,
    /// The issue text that the run was given.
    pub issue: String,
    /// The patch that it submitted; never the gold patch.
    pub patch: Option<String>,
    /// How the agent ended (`Submitted`, `LimitsExceeded`, …), where recorded.
    pub exit_status: Option<String>,
    /// Whether it was resolved, where labels exist and the system declares that it uses them.
    pub outcome: Option<bool>,
    /// What happened, where the system declares that it reads it; long texts are cut by the reader of the history.
    pub events: Vec<Event>,
}

/// One message of the current run, rendered as text (role, text, tool calls).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// `user`, `assistant`, `tool` or `exit`.
    pub role: String,
    /// What was said.
    pub text: String,
}

/// The solver-visible fields of a target that a query may hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// `owner__name-NUMBER`.
    pub instance_id: InstanceId,
    /// `owner/name`.
    pub repo: String,
    /// The issue text.
    pub problem_statement: String,
    /// The programming language, where stated.
    pub language: Option<String>,
}

impl From<&SolverView> for Target {
    fn from(task: &SolverView) -> Self {
        Self {
            instance_id: task.instance_id.clone(),
            repo: task.repo.clone(),
            problem_statement: task.problem_statement.clone(),
            language: task.language.clone(),
        }
    }
}

/// When in a run memory is asked. Systems that know no phases answer each as they answer `Start`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Before the first step.
    #[default]
    Start,
    /// When the agent first changes a file.
    FirstEdit,
    /// When it first runs tests after a change.
    FirstTestAfterEdit,
    /// When it is about to submit.
    BeforeSubmission,
}

/// What a system is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// For which target.
    pub target: Target,
    /// Words to search with in place of the problem statement (a query that the solver wrote).
    pub text: Option<String>,
    /// When.
    pub phase: Phase,
    /// The latest messages of the current run, for systems that look at them; empty at the start.
    pub recent: Vec<Turn>,
    /// The runs that the target may learn from, where the store holds others too; set by the host alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Vec<InstanceId>>,
}

impl Query {
    /// The question before the first step: the problem statement and nothing else.
    pub fn at_start(target: Target) -> Self {
        Self { target, text: None, phase: Phase::Start, recent: Vec::new(), as_of: None }
    }

    /// The words to search with.
    pub fn words(&self) -> &str {
        self.text.as_deref().unwrap_or(&self.target.problem_statement)
    }
}

/// How much a system may deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Records, at most.
    pub records: usize,
    /// Tokens of all record texts (or of the system's own block) together, at most, by [`estimate_tokens`].
    pub tokens: u64,
}

impl Default for Budget {
    /// One record of 1,024 tokens: top-1, as VibeMemBench injects.
    fn default() -> Self {
        Self { records: 1, tokens: 1024 }
    }
}

/// One thing remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name in the store, where the system names its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The run that it derives from.
    pub source: InstanceId,
    /// The system's own measure, higher is better; comparable within one retrieval only.
    pub score: Option<f64>,
    /// Why it was chosen, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What is injected, before quoting.
    pub text: String,
    /// Its length by [`estimate_tokens`]; the host counts again.
    pub tokens: u64,
}

/// A file of a file-style memory, mounted outside the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFile {
    /// Its path below the mount point; relative, without `..`.
    pub path: String,
    /// Its content.
    pub content: String,
}

/// What a system delivers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// A text of the system's own (a playbook) to inject. `None`: the host renders the records with its template.
    pub block: Option<String>,
    /// Files to mount for the agent to browse.
    pub files: Vec<MemoryFile>,
    /// Tools to offer, in the wire format of OpenAI chat completions.
    pub tools: Vec<Value>,
    /// The records, best first.
    pub records: Vec<Record>,
    /// The runs that `block` and `files` derive from; the host checks them as it checks the records' sources.
    pub sources: Vec<InstanceId>,
}

/// A system's answer. A failure is neither: it is a [`MemoryError`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retrieval {
    /// This may help.
    Delivery(Delivery),
    /// Nothing to say.
    Abstain {
        /// Why.
        reason: String,
    },
}

/// What a frozen store holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Store {
    /// Hex SHA-256 over the content in a fixed order; equal for equal content, whatever files hold it.
    pub digest: String,
    /// Records held.
    pub records: u64,
    /// Bytes of text held.
    pub bytes: u64,
    /// Runs from which nothing could be kept because a model's replies were unusable.
    #[serde(default)]
    pub unusable: u64,
}

/// Something that a store holds, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its name in the store.
    pub id: String,
    /// The runs that it derives from.
    pub sources: Vec<InstanceId>,
    /// What would be injected of it.
    pub text: String,
}

/// What a finished run says about what was delivered to it. The host never sends it in a frozen study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    /// The target that was attempted.
    pub target: InstanceId,
    /// The records that it was given.
    pub delivered: Vec<InstanceId>,
    /// Whether it was resolved, where known.
    pub resolved: Option<bool>,
}

/// A memory system. Calls come in this order: `prepare`, `ingest` for each run in chronological order, `flush`,
/// `freeze`, any number of `retrieve` and `store`, `snapshot`, `cleanup`; `prepare` again starts anew, also after a
/// run that was killed in the middle.
///
/// The calls that a system may have no use for do nothing by themselves.
///
/// An error never stands for "nothing found": that is [`Retrieval::Abstain`].
#[async_trait]
pub trait MemorySystem: Send {
    /// What it is.
    fn describe(&self) -> Description;

    /// Starts an empty namespace; whatever was left in it is dropped.
    async fn prepare(&mut self, _scope: &Scope) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    /// Takes in one earlier run.
    async fn ingest(&mut self, _experience: &Experience) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    /// What the store keeps of a run that was just ingested: the records that derive from it, or the state after it.
    /// `None`: the system cannot say, and ingests again where it would have been loaded.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    fn saved(&self, _run: &InstanceId) -> Result<Option<Value>, MemoryError> {
        Ok(None)
    }

    /// Takes back, in place of ingesting the run, what [`saved`](Self::saved) gave for it.
    ///
    /// # Errors
    /// When it is not what this system saves.
    fn load(&mut self, run: &InstanceId, _saved: Value) -> Result<(), MemoryError> {
        let reason = format!("it cannot take back what it knew of {run}");
        Err(MemoryError::System { system: self.describe().name, call: "load", reason })
    }

    /// What the store holds, for people; empty: the system cannot say.
    fn held(&self) -> Vec<Held> {
        Vec::new()
    }

    /// Returns when all that was ingested can be found.
    async fn flush(&mut self) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    /// Ends writing: `ingest` fails from here on.
    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        self.store().map(Costed::free)
    }

    /// What the frozen store holds now. The host compares it around retrievals.
    fn store(&self) -> Result<Store, MemoryError>;

    /// Answers a query within the budget.
    async fn retrieve(&mut self, query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError>;

    /// Hears how a run went that it delivered to. The default does nothing.
    async fn feedback(&mut self, _feedback: &Feedback) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    /// Writes what it knows into an existing empty folder, for people and for the study's record.
    async fn snapshot(&mut self, _folder: &Path) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    /// Drops the namespace.
    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }
}

/// Where files of file-style memories lie in a sandbox: outside the repository, so that they are no part of any patch.
pub const MEMORY_FOLDER: &str = "/mnt/memory";

/// Tokens of a text where no tokenizer is known: a quarter of its characters, rounded up.
pub fn estimate_tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

#[cfg(test)]
mod tests;
