//! The host: the only way to run a memory system.
//!
//! It gives a system one target's eligible history in chronological order, takes secrets out, withholds what the system
//! does not declare, freezes the store and watches its digest, checks every delivery (sources, number of records, tokens, paths), renders
//! the block and counts costs. Each target gets a store of its own, made of its own history; what a run taught is taken
//! from a [`Shelf`] where it stands there. One store may serve several targets ([`Host::retarget`]) only where the system
//! says that nothing but eligible records shines through.

use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::intake::Take;
use super::redact::Redactions;
use super::shelf::{Shelf, Taken};
use super::{
    BlockTemplate, Budget, Costed, Delivery, Description, Experience, Feedback, Held, LearnsFrom,
    MemoryError, MemoryFile, MemorySystem, Query, Record, Retrieval, Scope, Store, estimate_tokens,
};
use crate::dataset::{History, OtherRepositories};
use crate::llm::Cost;
use crate::task::InstanceId;

/// The history of one target, as the host reads it. The causal rule has been applied to it; the host checks again what
/// it can check without knowing the rule.
pub(super) trait Experiences: Sync {
    /// The target that this history was made for.
    fn target(&self) -> &InstanceId;

    /// The runs that the target may learn from, in chronological order.
    fn eligible(&self) -> Vec<InstanceId>;

    /// Reads one run; its events only where asked for. Called for as many runs at a time as there are processors, so that
    /// a long history needs the memory of its longest few.
    ///
    /// # Errors
    /// What happened, with the path.
    fn read(&self, id: &InstanceId, with_events: bool) -> Result<Experience, String>;

    /// Hex SHA-256 of what the run is read from, and its outcome, where one is recorded.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn digest(&self, id: &InstanceId) -> Result<(String, Option<bool>), String>;
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

impl Setup {
    /// A retrieval outside a study.
    pub fn plain(budget: Budget) -> Self {
        Self { condition: "memory".into(), seed: 0, budget, template: BlockTemplate::default() }
    }
}

/// A memory system with a frozen store for one target.
pub struct Host {
    system: Box<dyn MemorySystem>,
    about: Description,
    target: InstanceId,
    /// What the store was built from.
    ingested: BTreeSet<InstanceId>,
    eligible: BTreeSet<InstanceId>,
    /// The eligible runs of the present target, where the store holds others too.
    as_of: Option<Vec<InstanceId>>,
    setup: Setup,
    store: Store,
    build: Cost,
    redactions: Redactions,
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
    /// Secrets that were taken out of the runs before the system read them.
    #[serde(default, skip_serializing_if = "Redactions::is_empty")]
    pub redactions: Redactions,
}

impl Injection {
    /// As many records and tokens as this holds: the budget of a control arm that matches it. What has no records (a
    /// system's own text, files) counts as one.
    pub fn dose(&self) -> Budget {
        let tokens = self.records.iter().map(|record| record.tokens).sum();
        match self.records.len() {
            0 => Budget { records: 1, tokens: self.injected_tokens },
            records => Budget { records, tokens },
        }
    }
}

impl Retrieved {
    /// Where no system was asked.
    pub fn abstained(reason: String) -> Self {
        Self {
            outcome: Outcome::Abstained { reason },
            store: Store { digest: String::new(), records: 0, bytes: 0, unusable: 0 },
            eligible: 0,
            build: Cost::ZERO,
            retrieve: Cost::ZERO,
            redactions: Redactions::default(),
        }
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
        Self::build_from(system, history, setup, None).await
    }

    /// As [`Host::build`]; what runs taught is taken from the shelf, or put there.
    ///
    /// # Errors
    /// As [`Host::build`], and where the shelf cannot be used.
    pub async fn build_on(
        shelf: &mut Shelf,
        system: Box<dyn MemorySystem>,
        history: &History,
        setup: Setup,
    ) -> Result<Self, MemoryError> {
        Self::build_from(system, history, setup, Some(shelf)).await
    }

    /// As [`Host::build`], for a control arm that learns from other repositories alone.
    ///
    /// # Errors
    /// As [`Host::build`]; and where the system learns from the target's own repository.
    pub async fn build_control(
        system: Box<dyn MemorySystem>,
        others: &OtherRepositories,
        setup: Setup,
    ) -> Result<Self, MemoryError> {
        Self::build_from(system, others, setup, None).await
    }

    /// As [`Host::build`], from whatever offers experiences: for the conformance checks and tests of this module.
    pub(super) async fn build_from(
        mut system: Box<dyn MemorySystem>,
        history: &dyn Experiences,
        setup: Setup,
        mut shelf: Option<&mut Shelf>,
    ) -> Result<Self, MemoryError> {
        let about = system.describe();
        let target = history.target().clone();
        let order = history.eligible();
        let eligible = check_history(&target, &order, about.learns_from)?;
        let scope = Scope { condition: setup.condition.clone(), target: target.clone(), seed: setup.seed };
        let (mut build, mut redacted) = (Cost::ZERO, Redactions::default());
        spend(&mut build, Instant::now(), system.prepare(&scope).await?);
        let mut taken = Take::new(&about, history);
        let mut ahead = None;
        let order: &[InstanceId] = if about.ingests { &order } else { &[] };
        let readers = std::thread::available_parallelism().map_or(1, usize::from);
        for some in order.chunks(readers) {
            for found in taken.find(some, shelf.as_deref())? {
                let Taken { cost, redactions } =
                    taken.take_in(found, shelf.as_deref_mut(), system.as_mut(), &mut ahead).await?;
                build = build.plus(cost);
                redacted.add(redactions);
            }
        }
        taken.take_back(system.as_mut(), ahead)?;
        let started = Instant::now();
        spend(&mut build, started, system.flush().await?);
        let started = Instant::now();
        let store = spend(&mut build, started, system.freeze().await?);
        let ingested = eligible.clone();
        Ok(Self {
            system,
            about,
            target,
            ingested,
            eligible,
            as_of: None,
            setup,
            store,
            build,
            redactions: redacted,
        })
    }

    /// Turns to another target whose history the store holds, without building it again.
    ///
    /// # Errors
    /// Where the system does not say that one store may serve several targets, or the history holds a run that was not
    /// taken in.
    pub fn retarget(&mut self, history: &History) -> Result<(), MemoryError> {
        if !self.about.shared_index {
            return Err(MemoryError::NotShared { system: self.about.name.clone() });
        }
        let order = Experiences::eligible(history);
        let eligible = check_history(history.target(), &order, self.about.learns_from)?;
        if let Some(origin) = order.iter().find(|id| !self.ingested.contains(*id)) {
            return Err(MemoryError::History {
                target: history.target().clone(),
                origin: origin.clone(),
                reason: "the store was built without it".into(),
            });
        }
        (self.target, self.eligible, self.as_of) = (history.target().clone(), eligible, Some(order));
        Ok(())
    }

    /// The target that it answers for.
    pub fn target(&self) -> &InstanceId {
        &self.target
    }

    /// What the frozen store holds.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What the store holds of eligible runs, for people.
    pub fn held(&self) -> Vec<Held> {
        let mut held = self.system.held();
        held.retain(|held| held.sources.iter().all(|source| self.eligible.contains(source)));
        held
    }

    /// What building it cost: the system's model calls, and the seconds of reading, ingestion and freezing. What a run
    /// taught that was taken from a shelf counts at what it cost when it was put there: as if the store had been built
    /// for this target alone.
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
        let query = Query { as_of: self.as_of.clone(), ..query.clone() };
        let answer = spend(&mut retrieve, started, self.system.retrieve(&query, self.setup.budget).await?);
        let after = self.system.store()?;
        if after.digest != self.store.digest {
            let (before, after) = (self.store.digest.clone(), after.digest);
            return Err(MemoryError::StoreChanged { system: self.about.name.clone(), before, after });
        }
        let outcome = match answer {
            Retrieval::Abstain { reason } => Outcome::Abstained { reason },
            Retrieval::Delivery(delivery) => Outcome::Injected(self.accept(delivery)?),
        };
        let (store, eligible) = (self.store.clone(), self.eligible.len());
        let redactions = self.redactions.clone();
        Ok(Retrieved { outcome, store, eligible, build: self.build, retrieve, redactions })
    }

    /// As [`Host::retrieve`], while a run goes on: what is delivered then must be a text.
    ///
    /// # Errors
    /// As [`Host::retrieve`], and where files or tools alone are delivered: they can only be given at the start.
    pub async fn recall(&mut self, query: &Query) -> Result<Retrieved, MemoryError> {
        let retrieved = self.retrieve(query).await?;
        match &retrieved.outcome {
            Outcome::Injected(injection) if injection.block.trim().is_empty() => Err(MemoryError::Delivery {
                system: self.about.name.clone(),
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
            redactions: self.redactions.clone(),
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
        let system = self.about.name.clone();
        let failed =
            |reason: String| MemoryError::System { system: system.clone(), call: "snapshot", reason };
        let parent = folder.parent().ok_or_else(|| failed(format!("{} has no parent", folder.display())))?;
        fs_err::create_dir_all(parent).map_err(|error| failed(error.to_string()))?;
        let staging = tempfile::Builder::new().prefix(".snapshot-").tempdir_in(parent);
        let staging = staging.map_err(|error| failed(format!("{}: {error}", parent.display())))?;
        let mut cost = Cost::ZERO;
        spend(&mut cost, started, self.system.snapshot(staging.path()).await?);
        let about = serde_json::json!({ "system": self.system.describe(), "target": self.target, "store": self.store,
            "redactions": self.redactions });
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
        let unusable = |reason: String| MemoryError::Delivery { system: self.about.name.clone(), reason };
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
        let allowed = |source: &InstanceId| match self.about.learns_from {
            LearnsFrom::History => self.eligible.contains(source),
            LearnsFrom::EarlierTasks => {
                source.same_repo(&self.target) && source.number() < self.target.number()
            }
            LearnsFrom::OtherRepositories => !source.same_repo(&self.target),
        };
        match sources.iter().find(|source| !allowed(source)) {
            None => Ok(sources.into_iter().cloned().collect()),
            Some(&origin) => Err(MemoryError::CausalViolation {
                system: self.about.name.as_str().into(),
                target: self.target.clone(),
                origin: origin.clone(),
            }),
        }
    }

    fn within(&self, unit: &'static str, got: u64, allowed: u64) -> Result<(), MemoryError> {
        if got <= allowed {
            return Ok(());
        }
        Err(MemoryError::OverBudget { system: self.about.name.clone(), got, allowed, unit })
    }
}

/// Checks a history before anything of it is read.
fn check_history(
    target: &InstanceId,
    order: &[InstanceId],
    learns_from: LearnsFrom,
) -> Result<BTreeSet<InstanceId>, MemoryError> {
    let mut eligible = BTreeSet::new();
    for origin in order {
        let refuse =
            |reason| MemoryError::NotEligible { target: target.clone(), origin: origin.clone(), reason };
        match (learns_from, origin.same_repo(target)) {
            (LearnsFrom::OtherRepositories, true) => return Err(refuse("of the target's own repository")),
            (LearnsFrom::History | LearnsFrom::EarlierTasks, false) => {
                return Err(refuse("of another repository"));
            }
            _ => {}
        }
        if origin.same_repo(target) && origin.number() == target.number() {
            return Err(refuse("the target's own run"));
        }
        if !eligible.insert(origin.clone()) {
            return Err(refuse("listed twice"));
        }
    }
    Ok(eligible)
}

/// Adds a call's cost, its seconds by the host's clock.
pub(super) fn spend<T>(total: &mut Cost, started: Instant, result: Costed<T>) -> T {
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
