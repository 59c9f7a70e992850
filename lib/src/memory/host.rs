//! The host: the only way to run a memory system.
//!
//! It gives a system one target's eligible history in chronological order, withholds what the system does not declare,
//! freezes the store and watches its digest, checks every delivery (sources, number of records, tokens, paths), renders
//! the block and counts costs. Each target gets a store of its own: sharing one would save few builds (VibeMemBench has
//! 111 targets in 90 repositories) and would need a proof for each system that the future does not shine through.

use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{
    BlockTemplate, Budget, Costed, Delivery, Experience, Feedback, MemoryError, MemoryFile, MemorySystem,
    Query, Record, Retrieval, Scope, Store, estimate_tokens,
};
use crate::dataset::History;
use crate::llm::Cost;
use crate::task::InstanceId;

/// The history of one target, as the host reads it. The causal rule has been applied to it; the host checks again what
/// it can check without knowing the rule.
pub(super) trait Experiences: Sync {
    /// The target that this history was made for.
    fn target(&self) -> &InstanceId;

    /// The runs that the target may learn from, in chronological order.
    fn eligible(&self) -> Vec<InstanceId>;

    /// Reads one run; its events only where asked for. Called for one run at a time, so that a long history needs
    /// the memory of its longest run.
    ///
    /// # Errors
    /// What happened, with the path.
    fn read(&self, id: &InstanceId, with_events: bool) -> Result<Experience, String>;
}

/// How a condition uses its memory system.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The condition's name in the study file.
    pub condition: String,
    /// The replicate's seed.
    pub seed: u64,
    /// What one retrieval may deliver.
    pub budget: Budget,
    /// How records become a block.
    pub template: BlockTemplate,
}

/// A memory system with a frozen store for one target.
pub struct Host {
    system: Box<dyn MemorySystem>,
    name: String,
    target: InstanceId,
    eligible: BTreeSet<InstanceId>,
    setup: Setup,
    store: Store,
    build: Cost,
}

/// What is put before the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Injection {
    /// The text to inject, pinned; empty where only files or tools are delivered.
    pub block: String,
    /// Its tokens by [`estimate_tokens`], the template's words and the quoting included.
    pub injected_tokens: u64,
    /// Files to mount.
    pub files: Vec<MemoryFile>,
    /// Tools to offer.
    pub tools: Vec<serde_json::Value>,
    /// The records of the block, best first.
    pub records: Vec<Record>,
    /// Every run that something delivered derives from, sorted.
    pub sources: Vec<InstanceId>,
}

/// What one retrieval came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Something to inject.
    Injected(Injection),
    /// The system abstained.
    Abstained {
        /// Why.
        reason: String,
    },
}

/// One retrieval with its cost, as `memory.json` of a trial keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retrieved {
    /// What it came to.
    pub outcome: Outcome,
    /// The frozen store that answered.
    pub store: Store,
    /// Runs that the target may learn from.
    pub eligible: usize,
    /// What building the store cost.
    pub build: Cost,
    /// What the retrieval cost.
    pub retrieve: Cost,
}

impl Retrieved {
    /// Of a study that names no history: there was nothing to ask.
    pub fn without_history() -> Self {
        let store = Store { digest: String::new(), records: 0, bytes: 0 };
        let outcome = Outcome::Abstained { reason: "the study names no history".into() };
        Self { outcome, store, eligible: 0, build: Cost::ZERO, retrieve: Cost::ZERO }
    }
}

impl Host {
    /// Builds a frozen store for the target of a history.
    ///
    /// # Errors
    /// Where the history offers a run that the target cannot learn from, a run cannot be read, or the system fails.
    pub async fn build(
        system: Box<dyn MemorySystem>,
        history: &History,
        setup: Setup,
    ) -> Result<Self, MemoryError> {
        Self::build_from(system, history, setup).await
    }

    /// As [`Host::build`], from whatever offers experiences: for the conformance checks and tests of this module.
    pub(super) async fn build_from(
        mut system: Box<dyn MemorySystem>,
        history: &dyn Experiences,
        setup: Setup,
    ) -> Result<Self, MemoryError> {
        let about = system.describe();
        let target = history.target().clone();
        let order = history.eligible();
        let eligible = check_history(&target, &order)?;
        let scope = Scope { condition: setup.condition.clone(), target: target.clone(), seed: setup.seed };
        let mut build = Cost::ZERO;
        spend(&mut build, Instant::now(), system.prepare(&scope).await?);
        for origin in order.iter().filter(|_| about.ingests) {
            let started = Instant::now();
            let read = history.read(origin, about.reads_events).and_then(|read| same_run(origin, read));
            let mut experience = read.map_err(|reason| MemoryError::History {
                target: target.clone(),
                origin: origin.clone(),
                reason,
            })?;
            if !about.uses_outcome {
                experience.outcome = None;
            }
            if !about.reads_events {
                experience.events.clear();
            }
            spend(&mut build, started, system.ingest(&experience).await?);
        }
        let started = Instant::now();
        spend(&mut build, started, system.flush().await?);
        let started = Instant::now();
        let store = spend(&mut build, started, system.freeze().await?);
        Ok(Self { system, name: about.name, target, eligible, setup, store, build })
    }

    /// What the frozen store holds.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What building it cost: the system's model calls, and the seconds of reading, ingestion and freezing.
    pub fn build_cost(&self) -> Cost {
        self.build
    }

    /// Asks the system, checks what it delivers and renders the block.
    ///
    /// # Errors
    /// Where the system fails, delivers from a run that is not eligible or more than the budget allows, or changes its
    /// store. An error never becomes an abstention.
    pub async fn retrieve(&mut self, query: &Query) -> Result<Retrieved, MemoryError> {
        let asked = &query.target.instance_id;
        if *asked != self.target {
            return Err(MemoryError::WrongTarget { built_for: self.target.clone(), asked: asked.clone() });
        }
        let started = Instant::now();
        let mut retrieve = Cost::ZERO;
        let answer = spend(&mut retrieve, started, self.system.retrieve(query, self.setup.budget).await?);
        let after = self.system.store()?;
        if after.digest != self.store.digest {
            let (before, after) = (self.store.digest.clone(), after.digest);
            return Err(MemoryError::StoreChanged { system: self.name.clone(), before, after });
        }
        let outcome = match answer {
            Retrieval::Abstain { reason } => Outcome::Abstained { reason },
            Retrieval::Delivery(delivery) => Outcome::Injected(self.accept(delivery)?),
        };
        let (store, eligible) = (self.store.clone(), self.eligible.len());
        Ok(Retrieved { outcome, store, eligible, build: self.build, retrieve })
    }

    /// As [`Host::retrieve`], while a run goes on: what is delivered then must be a text.
    ///
    /// # Errors
    /// As [`Host::retrieve`], and where files or tools alone are delivered: they can only be given at the start.
    pub async fn recall(&mut self, query: &Query) -> Result<Retrieved, MemoryError> {
        let retrieved = self.retrieve(query).await?;
        match &retrieved.outcome {
            Outcome::Injected(injection) if injection.block.trim().is_empty() => Err(MemoryError::Delivery {
                system: self.name.clone(),
                reason: "it holds no text: files and tools can only be given at the start of a run".into(),
            }),
            _ => Ok(retrieved),
        }
    }

    /// What was asked of nobody: the store and its cost, with the reason in place of a delivery.
    pub fn unasked(&self, reason: &str) -> Retrieved {
        Retrieved {
            outcome: Outcome::Abstained { reason: reason.to_owned() },
            store: self.store.clone(),
            eligible: self.eligible.len(),
            build: self.build,
            retrieve: Cost::ZERO,
        }
    }

    /// Tells the system how a run went. Only for studies whose memory learns between runs; never in a frozen one.
    ///
    /// # Errors
    /// Where the system fails.
    pub async fn feedback(&mut self, feedback: &Feedback) -> Result<Cost, MemoryError> {
        let mut cost = Cost::ZERO;
        let started = Instant::now();
        spend(&mut cost, started, self.system.feedback(feedback).await?);
        self.store = self.system.store()?;
        Ok(cost)
    }

    /// Writes what the system knew into `memory/<condition>/<repo>/<snapshot>/`: the system's own files and
    /// `store.json`. The folder appears complete or not at all; one that exists is replaced.
    ///
    /// # Errors
    /// Where the system fails or the folder cannot be written.
    pub async fn snapshot(&mut self, folder: &Path) -> Result<Cost, MemoryError> {
        let started = Instant::now();
        let system = self.name.clone();
        let failed =
            |reason: String| MemoryError::System { system: system.clone(), call: "snapshot", reason };
        let parent = folder.parent().ok_or_else(|| failed(format!("{} has no parent", folder.display())))?;
        fs_err::create_dir_all(parent).map_err(|error| failed(error.to_string()))?;
        let staging = tempfile::Builder::new().prefix(".snapshot-").tempdir_in(parent);
        let staging = staging.map_err(|error| failed(format!("{}: {error}", parent.display())))?;
        let mut cost = Cost::ZERO;
        spend(&mut cost, started, self.system.snapshot(staging.path()).await?);
        let about = serde_json::json!({ "system": self.system.describe(), "target": self.target, "store": self.store });
        let about = serde_json::to_string_pretty(&about).map_err(|error| failed(error.to_string()))?;
        let publish = || {
            fs_err::write(staging.path().join("store.json"), about + "\n")?;
            if folder.exists() {
                fs_err::remove_dir_all(folder)?;
            }
            fs_err::rename(staging.path(), folder)
        };
        publish().map_err(|error| failed(error.to_string()))?;
        Ok(cost)
    }

    /// Drops the store.
    ///
    /// # Errors
    /// Where the system fails.
    pub async fn cleanup(mut self) -> Result<Cost, MemoryError> {
        let mut cost = Cost::ZERO;
        let started = Instant::now();
        spend(&mut cost, started, self.system.cleanup().await?);
        Ok(cost)
    }

    fn accept(&self, mut delivery: Delivery) -> Result<Injection, MemoryError> {
        let unusable = |reason: String| MemoryError::Delivery { system: self.name.clone(), reason };
        let sources = self.check_sources(&delivery)?;
        for record in &mut delivery.records {
            record.tokens = estimate_tokens(&record.text);
        }
        let tokens = match &delivery.block {
            Some(block) => estimate_tokens(block),
            None => delivery.records.iter().map(|record| record.tokens).sum(),
        };
        self.within("records", delivery.records.len() as u64, self.setup.budget.records as u64)?;
        self.within("tokens", tokens, self.setup.budget.tokens)?;
        if let Some(file) = delivery.files.iter().find(|file| !is_below(&file.path)) {
            return Err(unusable(format!("file path {:?} leaves the mount point", file.path)));
        }
        let block = match delivery.block {
            Some(block) => block,
            None if delivery.records.is_empty() => String::new(),
            None => self.setup.template.render(&delivery.records)?,
        };
        if block.trim().is_empty() && delivery.files.is_empty() && delivery.tools.is_empty() {
            return Err(unusable("it is empty; a system with nothing to say abstains".into()));
        }
        let Delivery { files, tools, records, .. } = delivery;
        Ok(Injection { injected_tokens: estimate_tokens(&block), block, files, tools, records, sources })
    }

    fn check_sources(&self, delivery: &Delivery) -> Result<Vec<InstanceId>, MemoryError> {
        let of_records = delivery.records.iter().map(|record| &record.source);
        let sources: BTreeSet<&InstanceId> = of_records.chain(&delivery.sources).collect();
        match sources.iter().find(|source| !self.eligible.contains(**source)) {
            None => Ok(sources.into_iter().cloned().collect()),
            Some(&origin) => Err(MemoryError::CausalViolation {
                system: self.name.clone(),
                target: self.target.clone(),
                origin: origin.clone(),
            }),
        }
    }

    fn within(&self, unit: &'static str, got: u64, allowed: u64) -> Result<(), MemoryError> {
        if got <= allowed {
            return Ok(());
        }
        Err(MemoryError::OverBudget { system: self.name.clone(), got, allowed, unit })
    }
}

/// Checks a history before anything of it is read.
fn check_history(target: &InstanceId, order: &[InstanceId]) -> Result<BTreeSet<InstanceId>, MemoryError> {
    let mut eligible = BTreeSet::new();
    for origin in order {
        let refuse =
            |reason| MemoryError::NotEligible { target: target.clone(), origin: origin.clone(), reason };
        if !origin.same_repo(target) {
            return Err(refuse("of another repository"));
        }
        if origin.number() == target.number() {
            return Err(refuse("the target's own run"));
        }
        if !eligible.insert(origin.clone()) {
            return Err(refuse("listed twice"));
        }
    }
    Ok(eligible)
}

fn same_run(origin: &InstanceId, read: Experience) -> Result<Experience, String> {
    if read.instance_id == *origin {
        return Ok(read);
    }
    Err(format!("it holds the run of {}", read.instance_id))
}

/// Adds a call's cost, its seconds by the host's clock.
fn spend<T>(total: &mut Cost, started: Instant, result: Costed<T>) -> T {
    let cost = Cost { seconds: started.elapsed().as_secs_f64(), ..result.cost };
    *total = total.plus(cost);
    result.value
}

fn is_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
