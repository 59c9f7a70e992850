//! The grid of trials: what is left of it, in which order, how many at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::bench::Bench;
use super::claims::{Worker, unique_name};
use super::images;
use super::journal::Journal;
use super::shift::Shift;
use super::{StudyError, TrialKey, TrialRecord, layout};
use crate::grade::files::{make_folder, write_json};
use crate::grade::{self, Coding, VerdictClass};
use crate::sandbox::Backend;
use crate::sandbox::environment::Environments;
use crate::task::InstanceId;

/// What happens while a study runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// So much is to do.
    Planned {
        /// Gold patches that are still to be graded.
        gold: usize,
        /// Trials of the grid.
        trials: usize,
        /// Trials that are finished already.
        finished: usize,
    },
    /// A target's gold patch has been graded.
    Gold {
        /// The target.
        target: InstanceId,
        /// The verdict on it.
        verdict: VerdictClass,
        /// Why, where it is not resolved.
        reason: Option<String>,
    },
    /// A trial begins, or is taken up again.
    Started {
        /// Which.
        #[serde(flatten)]
        key: TrialKey,
        /// From 1.
        attempt: u32,
    },
    /// A trial failed by infrastructure, or a resumed run left its record: it is tried again.
    Again {
        /// Which.
        #[serde(flatten)]
        key: TrialKey,
        /// Why.
        reason: String,
    },
    /// A trial is taken over from a worker that gave no sign of life for its lease.
    TakenOver {
        /// Which.
        #[serde(flatten)]
        key: TrialKey,
        /// The worker.
        worker: String,
    },
    /// Another worker has taken a trial over from this one, which was silent for its lease.
    Lost {
        /// Which.
        #[serde(flatten)]
        key: TrialKey,
    },
    /// Another worker has finished a trial.
    Elsewhere {
        /// Which.
        #[serde(flatten)]
        key: TrialKey,
    },
    /// Nothing is left but what other workers are at.
    Waiting {
        /// So many gold checks or trials.
        elsewhere: usize,
    },
    /// A trial is finished.
    Finished {
        /// Its record.
        record: Box<TrialRecord>,
    },
}

/// How a process takes part in a study.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Its name: no other living process on the study has it. Letters, digits, `-`, `_` and dots.
    pub name: String,
    /// After so long without a sign of life its claims may be taken over; a second at least.
    pub lease: Duration,
    /// Whether it stays until the trials that other workers are at are finished, to take over what they lose.
    pub wait: bool,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self { name: unique_name(), lease: Duration::from_secs(60), wait: true }
    }
}

/// Asks a running study to start nothing new.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Lets the trials in flight finish and starts no other.
    pub fn drain(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What came of an invocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    /// Trials of the grid, without those of excluded targets.
    pub trials: usize,
    /// Finished trials, earlier invocations' included.
    pub finished: usize,
    /// Trials whose infrastructure failed, those that were not begun for it included.
    pub missing: usize,
    /// Trials that were not begun because their target's gold patch could not be graded.
    pub blocked: usize,
    /// Trials that other workers were at when this one left. Where there are any, the last of them writes predictions
    /// and report.
    pub elsewhere: usize,
}

impl RunSummary {
    /// Counts a trial: its record's coding, and its target's where that is not to be run.
    pub(super) fn count(&mut self, record: Option<Coding>, unfit: Option<Coding>) {
        if unfit == Some(Coding::Excluded) {
            return;
        }
        self.trials += 1;
        self.finished += usize::from(record.is_some());
        self.blocked += usize::from(record.is_none() && unfit.is_some());
        self.missing += usize::from(record.or(unfit) == Some(Coding::Missing));
    }
}

/// A target that leaves every arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Excluded {
    /// The target.
    pub target: InstanceId,
    /// Why.
    pub reason: String,
}

impl Bench {
    /// Runs what is left of the study, together with whatever other workers do so.
    ///
    /// Trials of one target lie close together in time, arms in an order drawn for each target from the study's seed,
    /// so that no arm has the better hours.
    ///
    /// # Errors
    /// When the worker's name is taken, an input has changed since the study was begun, or its files cannot be written.
    /// What goes wrong in a trial is that trial's verdict.
    pub async fn run(
        &self,
        backend: Arc<dyn Backend>,
        options: &WorkerOptions,
        stop: &Stop,
        on: &(dyn Fn(&Event) + Sync),
    ) -> Result<RunSummary, StudyError> {
        make_folder(self.layout.root())?;
        self.hold_to_lock()?;
        let environments = Environments::new(backend, self.rooms.clone());
        images::hold_to_lock(&self.layout, &environments, self.targets.values().map(|t| &t.task)).await?;
        let worker = Worker::join(&self.layout, &options.name, options.lease)?;
        let journal = Journal::open(self, &options.name)?;
        Shift::new(self, environments, worker, journal, stop, on).work(options.wait).await
    }

    /// Every finished trial of the grid.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn records(&self) -> Result<BTreeMap<TrialKey, TrialRecord>, StudyError> {
        let mut records = BTreeMap::new();
        for key in self.grid() {
            if let Some(record) = self.record(&key)? {
                records.insert(key, record);
            }
        }
        Ok(records)
    }

    /// A trial's record. What a worker paid after its trial had been taken over, and the record written, is added.
    pub(super) fn record(&self, key: &TrialKey) -> Result<Option<TrialRecord>, StudyError> {
        let Some(mut record) = layout::read_json::<TrialRecord>(&self.layout.record(key))? else {
            return Ok(None);
        };
        if record.attempts > 1 {
            let abandoned = self.sunk(key, record.attempts)?;
            if abandoned.calls > record.abandoned_cost.calls {
                record.solver_cost = record.solver_cost.plus(abandoned.minus(record.abandoned_cost));
                record.abandoned_cost = abandoned;
            }
        }
        Ok(Some(record))
    }

    /// The verdict on a target's gold patch, where it has been graded.
    pub(super) fn kept_gold(&self, target: &InstanceId) -> Result<Option<grade::Graded>, StudyError> {
        layout::read_json(&self.layout.gold_verdict(target))
    }

    /// Targets whose gold patch is known to fail.
    ///
    /// # Errors
    /// When a verdict cannot be read.
    pub fn excluded(&self) -> Result<Vec<Excluded>, StudyError> {
        let mut excluded = Vec::new();
        for target in self.targets.keys().filter(|_| self.design.grade.check_gold) {
            if let Some(gold) = self.kept_gold(target)?.filter(|gold| gold.class.coding() == Coding::Excluded)
            {
                excluded.push(Excluded { target: target.clone(), reason: gold.reason.unwrap_or_default() });
            }
        }
        Ok(excluded)
    }

    /// Every trial, in the order in which they are begun.
    pub fn grid(&self) -> Vec<TrialKey> {
        let mut grid = Vec::new();
        for target in self.targets.keys() {
            for replicate in 1..=self.design.replicates {
                let mut arms: Vec<TrialKey> = Vec::new();
                for condition in self.design.conditions.keys() {
                    for solver in self.design.solvers.keys() {
                        arms.push(TrialKey {
                            condition: condition.clone(),
                            solver: solver.clone(),
                            replicate,
                            instance_id: target.clone(),
                        });
                    }
                }
                arms.sort_by_cached_key(|key| self.draw(key));
                grid.extend(arms);
            }
        }
        grid
    }

    /// A number drawn for a trial from the study's seed.
    fn draw(&self, key: &TrialKey) -> [u8; 32] {
        let TrialKey { condition, solver, replicate, instance_id } = key;
        Sha256::digest(format!("{} {condition} {solver} {replicate} {instance_id}", self.design.stats.seed))
            .into()
    }

    pub(super) fn grading(&self) -> grade::Options {
        grade::Options {
            timeout: std::time::Duration::from_secs(self.design.grade.timeout),
            ..grade::Options::default()
        }
    }

    /// SWE-bench predictions of every arm, for other harnesses.
    pub(super) fn write_predictions(&self) -> Result<(), StudyError> {
        let mut arms: BTreeMap<_, serde_json::Map<String, serde_json::Value>> = BTreeMap::new();
        for (key, record) in self.records()? {
            let file = self.layout.attempt(&key, record.attempts).join("prediction.json");
            if let Some(prediction) = layout::read_json::<serde_json::Value>(&file)? {
                let arm = self.layout.predictions(&key.condition, &key.solver, key.replicate);
                arms.entry(arm).or_default().insert(key.instance_id.to_string(), prediction);
            }
        }
        for (path, mut predictions) in arms {
            predictions.sort_keys();
            write_json(&path, &predictions)?;
        }
        Ok(())
    }
}
