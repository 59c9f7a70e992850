//! The grid of trials: what is left of it, in which order, how many at once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::bench::Bench;
use super::images;
use super::remember::Deliveries;
use super::trial::{Trial, Tried, check_gold};
use super::{StudyError, TrialKey, TrialRecord, layout};
use crate::grade::files::{OutDir, OutError, write_json};
use crate::grade::{self, Coding, VerdictClass};
use crate::llm::{self, Cost};
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
    /// A trial is finished.
    Finished {
        /// Its record.
        record: Box<TrialRecord>,
    },
}

/// Asks a running study to start nothing new.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Lets the trials in flight finish and starts no other.
    pub fn drain(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn asked(&self) -> bool {
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
}

impl RunSummary {
    /// Counts a trial: its record's coding, and its target's where that is not to be run.
    fn count(&mut self, record: Option<Coding>, unfit: Option<Coding>) {
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
    /// Runs what is left of the study.
    ///
    /// Trials of one target lie close together in time, arms in an order drawn for each target from the study's seed,
    /// so that no arm has the better hours.
    ///
    /// # Errors
    /// When another process runs the study, an input has changed since it was begun, or its files cannot be written.
    /// What goes wrong in a trial is that trial's verdict.
    pub async fn run(&self, stop: &Stop, on: &(dyn Fn(&Event) + Sync)) -> Result<RunSummary, StudyError> {
        let _alone = OutDir::open(self.layout.root())?;
        self.hold_to_lock()?;
        images::hold_to_lock(&self.layout, &self.environments, self.targets.values().map(|t| &t.task))
            .await?;
        let journal = Journal::open(self)?;
        let tell = |event: Event| {
            journal.write(&event)?;
            on(&event);
            Ok::<(), StudyError>(())
        };
        let grid = self.grid();
        let records = self.records()?;
        let done = |key: &TrialKey| records.get(key).is_some_and(|r| r.verdict.coding() != Coding::Missing);
        let finished = grid.iter().filter(|key| done(key)).count();
        let graded = |target: &&InstanceId| self.layout.gold(target).join("graded.json").is_file();
        let gold = match self.design.grade.check_gold {
            true => self.targets.keys().filter(|target| !graded(target)).count(),
            false => 0,
        };
        tell(Event::Planned { gold, trials: grid.len(), finished })?;
        let unfit = self.gold(stop, &tell).await?;
        let deliveries = Deliveries::default();
        let wanted = |key: &&TrialKey| !done(key) && !unfit.contains_key(&key.instance_id);
        let mut work = stream::iter(grid.iter().filter(wanted))
            .map(|key| self.trial(key, stop, &deliveries, &tell))
            .buffer_unordered(self.design.budget.jobs);
        while let Some(outcome) = work.next().await {
            outcome?;
        }
        self.write_predictions()?;
        let records = self.records()?;
        let mut summary = RunSummary::default();
        for key in &grid {
            let record = records.get(key).map(|record| record.verdict.coding());
            summary.count(record, unfit.get(&key.instance_id).copied());
        }
        Ok(summary)
    }

    /// Every finished trial of the grid.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn records(&self) -> Result<BTreeMap<TrialKey, TrialRecord>, StudyError> {
        let mut records = BTreeMap::new();
        for key in self.grid() {
            if let Some(record) = layout::read_json::<TrialRecord>(&self.layout.record(&key))? {
                records.insert(key, record);
            }
        }
        Ok(records)
    }

    /// Targets whose gold patch is known to fail.
    ///
    /// # Errors
    /// When a verdict cannot be read.
    pub fn excluded(&self) -> Result<Vec<Excluded>, StudyError> {
        let mut excluded = Vec::new();
        for target in self.targets.keys().filter(|_| self.design.grade.check_gold) {
            let kept = layout::read_json::<grade::Graded>(&self.layout.gold(target).join("graded.json"))?;
            if let Some(gold) = kept.filter(|gold| gold.class.coding() == Coding::Excluded) {
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

    /// What an attempt has spent on model calls so far.
    pub(super) fn spent(&self, key: &TrialKey, attempt: u32) -> Cost {
        // a journal that cannot be read is told of when the attempt opens it
        llm::spent(&self.layout.attempt(key, attempt).join("calls.jsonl")).unwrap_or(Cost::ZERO)
    }

    /// Grades the gold patches. Returns the targets that are not to be run and why: `Excluded` where gold fails (they leave
    /// every arm), `Missing` where no sandbox could be had to grade it (no model is paid for a trial that could not
    /// be graded either).
    async fn gold(
        &self,
        stop: &Stop,
        tell: &(dyn Fn(Event) -> Result<(), StudyError> + Sync),
    ) -> Result<BTreeMap<InstanceId, Coding>, StudyError> {
        let mut unfit = BTreeMap::new();
        if !self.design.grade.check_gold {
            return Ok(unfit);
        }
        let mut work = stream::iter(self.targets.values())
            .map(|target| async move {
                match stop.asked() {
                    true => Ok(None),
                    false => {
                        check_gold(self, target).await.map(|gold| Some((target.task.id().clone(), gold)))
                    }
                }
            })
            .buffer_unordered(self.design.budget.jobs);
        while let Some(outcome) = work.next().await {
            let Some((target, gold)) = outcome? else { continue };
            let coding = gold.class.coding();
            if matches!(coding, Coding::Excluded | Coding::Missing) {
                unfit.insert(target.clone(), coding);
            }
            tell(Event::Gold { target, verdict: gold.class, reason: gold.reason })?;
        }
        Ok(unfit)
    }

    /// One trial with its retries. Nothing is written but the record when it is finished.
    async fn trial(
        &self,
        key: &TrialKey,
        stop: &Stop,
        deliveries: &Deliveries,
        tell: &(dyn Fn(Event) -> Result<(), StudyError> + Sync),
    ) -> Result<(), StudyError> {
        let Some(target) = self.targets.get(&key.instance_id) else { return Ok(()) };
        let mut retries = self.design.budget.retries;
        while !stop.asked() {
            let (attempt, sunk) = self.attempt(key)?;
            tell(Event::Started { key: key.clone(), attempt })?;
            match (Trial { bench: self, deliveries, target, key, attempt, sunk }).run().await? {
                Tried::Diverged(reason) => {
                    let spent = self.spent(key, attempt);
                    let abandoned = Abandoned { reason: reason.clone(), spent };
                    write_json(&self.layout.attempt(key, attempt).join(ABANDONED), &abandoned)?;
                    tell(Event::Again { key: key.clone(), reason })?;
                }
                Tried::Record(record) if record.verdict.coding() == Coding::Missing && retries > 0 => {
                    retries -= 1;
                    tell(Event::Again { key: key.clone(), reason: record.reason.unwrap_or_default() })?;
                }
                Tried::Record(record) => {
                    write_json(&self.layout.record(key), &record)?;
                    return tell(Event::Finished { record });
                }
            }
        }
        Ok(())
    }

    /// The attempt to go on with, and what the abandoned ones before it cost.
    fn attempt(&self, key: &TrialKey) -> Result<(u32, Cost), StudyError> {
        let (mut attempt, mut sunk) = (1, Cost::ZERO);
        while let Some(before) =
            layout::read_json::<Abandoned>(&self.layout.attempt(key, attempt).join(ABANDONED))?
        {
            (attempt, sunk) = (attempt + 1, sunk.plus(before.spent));
        }
        Ok((attempt, sunk))
    }

    /// SWE-bench predictions of every arm, for other harnesses.
    fn write_predictions(&self) -> Result<(), StudyError> {
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

/// The mark of an attempt that is given up.
const ABANDONED: &str = "abandoned.json";

/// An attempt that is given up: its cost is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Abandoned {
    reason: String,
    spent: Cost,
}

/// `journal/main.jsonl`: what happened when.
struct Journal {
    file: Mutex<File>,
    path: std::path::PathBuf,
}

impl Journal {
    fn open(bench: &Bench) -> Result<Self, StudyError> {
        let path = bench.layout.journal();
        let open = || {
            std::fs::create_dir_all(path.parent().unwrap_or(bench.layout.root()))?;
            File::options().create(true).append(true).open(&path)
        };
        let file = open().map_err(|error| OutError::new(&path, error))?;
        Ok(Self { file: Mutex::new(file), path })
    }

    fn write(&self, event: &Event) -> Result<(), StudyError> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let line = format!("{}\n", json!({ "unix": unix, "what": event }));
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(file.write_all(line.as_bytes()).map_err(|error| OutError::new(&self.path, error))?)
    }
}
