//! Asks a system about many targets. One store serves all targets of a repository where the system allows that; else each has
//! a store of its own, and what the runs taught is learnt once.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::time::Instant;

use super::{Answer, QualityReport, Reference, Touch};
use crate::dataset::{Chronology, DatasetError, History, HistoryStore, MergeDates};
use crate::memory::host::{Host, Outcome, Setup};
use crate::memory::shelf::{self, Shelf};
use crate::memory::{Budget, LearnsFrom, MemoryError, MemorySystem, Query, Target};
use crate::task::{InstanceId, Task};
use crate::trajectory::Limits;

/// Tokens of each record that a system may deliver.
const TOKENS: u64 = 1024;

/// What is asked.
pub struct Evaluation<'a> {
    /// The system's name in the report.
    pub name: &'a str,
    /// Opens the system, once for each store.
    pub open: &'a (dyn Fn() -> Result<Box<dyn MemorySystem>, MemoryError> + Sync),
    /// The earlier runs.
    pub store: &'a HistoryStore,
    /// Rows, as far as they are known.
    pub tasks: &'a BTreeMap<InstanceId, Task>,
    /// The targets.
    pub targets: &'a [InstanceId],
    /// How many records are looked at; the largest is asked for.
    pub ks: &'a [usize],
}

/// Why a system could not be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// A run cannot be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// No folder can be made for what the system learns.
    #[error("no temporary folder: {0}")]
    Folder(std::io::Error),
    /// The system failed: no abstention.
    #[error("target {target}: {source}")]
    Memory {
        /// The target.
        target: InstanceId,
        /// What happened.
        source: MemoryError,
    },
}

/// What is known of a repository.
struct Repo {
    runs: BTreeMap<InstanceId, Run>,
    /// The store of all its runs, where the system lets one store serve several targets.
    host: Option<Host>,
    shelf: PathBuf,
}

/// What is known of a stored run.
struct Run {
    issue: Option<String>,
    patch: String,
    touch: Touch,
    resolved: Option<bool>,
}

/// Runs a system over the targets and compares what it delivers with their reference patches.
///
/// # Errors
/// Where a run cannot be read or the system fails.
pub async fn evaluate(evaluation: Evaluation<'_>) -> Result<QualityReport, EvaluationError> {
    let started = Instant::now();
    let shelves = tempfile::tempdir().map_err(EvaluationError::Folder)?;
    let mut repos: BTreeMap<String, Repo> = BTreeMap::new();
    let (mut answers, mut without) = (Vec::new(), Vec::new());
    let mut milliseconds = Vec::new();
    for target in evaluation.targets {
        let key = target.repo_key().to_ascii_lowercase();
        let repo = match repos.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let shelf = shelves.path().join(format!("{}.jsonl", place.key()));
                let runs = every_run(evaluation.store, target)?;
                place.insert(Repo { runs, host: None, shelf })
            }
        };
        match evaluation.ask(target, repo, &mut milliseconds).await? {
            Some(answer) => answers.push(answer),
            None => without.push(target.clone()),
        }
    }
    let mut report = QualityReport::of(evaluation.name, &answers, evaluation.ks);
    report.without_reference = without;
    report.seconds = started.elapsed().as_secs_f64();
    report.retrieval_ms = percentiles(milliseconds);
    Ok(report)
}

/// The median and the 95th percentile; `None`: nothing was asked.
fn percentiles(mut milliseconds: Vec<f64>) -> Option<[f64; 2]> {
    milliseconds.sort_by(f64::total_cmp);
    let at = |share: f64| {
        milliseconds.get(((milliseconds.len() as f64 * share) as usize).min(milliseconds.len().max(1) - 1))
    };
    Some([*at(0.5)?, *at(0.95)?])
}

/// Every stored run of a target's repository, whenever it was made: only a reference may come from one that the target
/// cannot learn from.
fn every_run(store: &HistoryStore, target: &InstanceId) -> Result<BTreeMap<InstanceId, Run>, DatasetError> {
    let Ok(last) = InstanceId::parse(&format!("{}-{}", target.repo_key(), u64::MAX)) else {
        return Ok(BTreeMap::new());
    };
    let all = History::for_target(store, &last, Chronology::Number, &MergeDates::default())?;
    let mut runs = BTreeMap::new();
    for (entry, summary) in all.entries().iter().zip(all.summaries(&Limits::default())) {
        let summary = summary?;
        let patch = summary.submission.unwrap_or_default();
        let run = Run { issue: summary.issue, touch: Touch::by(&patch), patch, resolved: entry.resolved() };
        runs.insert(entry.id().clone(), run);
    }
    Ok(runs)
}

impl Evaluation<'_> {
    /// `None`: there is no reference, or no issue to ask with.
    async fn ask(
        &self,
        target: &InstanceId,
        repo: &mut Repo,
        milliseconds: &mut Vec<f64>,
    ) -> Result<Option<Answer>, EvaluationError> {
        let runs = &repo.runs;
        let (task, own) = (self.tasks.get(target), runs.get(target));
        let gold = task.map(|task| task.evaluator.patch.as_str()).filter(|patch| !patch.trim().is_empty());
        let resolved = own.filter(|run| run.resolved == Some(true)).map(|run| run.patch.as_str());
        let reference = match (gold, resolved) {
            (Some(patch), _) => Some((Reference::GoldPatch, patch)),
            (None, Some(patch)) => Some((Reference::ResolvedRun, patch)),
            (None, None) => None,
        };
        let issue = task.map(|task| task.solver.problem_statement.clone());
        let issue = issue.or_else(|| own?.issue.clone());
        let (Some((reference, patch)), Some(issue)) = (reference, issue) else { return Ok(None) };
        let history = History::for_target(self.store, target, Chronology::Number, &MergeDates::default())?;
        let records = self.ks.iter().copied().max().unwrap_or(1);
        let setup = || Setup::plain(Budget { records, tokens: TOKENS.saturating_mul(records as u64) });
        let query = Query::at_start(Target {
            instance_id: target.clone(),
            repo: format!("{}/{}", target.owner(), target.name()),
            problem_statement: issue,
            language: task.and_then(|task| task.solver.language.clone()),
        });
        let failed = |source| EvaluationError::Memory { target: target.clone(), source };
        let system = (self.open)().map_err(failed)?;
        let about = system.describe();
        let mut own = None;
        let host = if about.shared_index && about.learns_from == LearnsFrom::History {
            if repo.host.is_none() {
                let all = History::for_next_task(
                    self.store,
                    target.repo_key(),
                    Chronology::Number,
                    &MergeDates::default(),
                );
                // a repository without runs has nothing to share
                if let Ok(all) = all {
                    repo.host = Some(Host::build(system, &all, setup()).await.map_err(failed)?);
                }
            }
            repo.host.as_mut()
        } else {
            let identity = shelf::identity(&about, &serde_json::Value::Null);
            let mut shelf = Shelf::open(&repo.shelf, identity).map_err(failed)?;
            let built = Host::build_on(&mut shelf, system, &history, setup()).await.map_err(failed)?;
            Some(own.insert(built))
        };
        let outcome = match host {
            None => Outcome::Abstained { reason: "no run of the repository is stored".into() },
            Some(host) => {
                if about.shared_index {
                    host.retarget(&history).map_err(failed)?;
                }
                let started = Instant::now();
                let retrieved = host.retrieve(&query).await.map_err(failed)?;
                milliseconds.push(started.elapsed().as_secs_f64() * 1e3);
                retrieved.outcome
            }
        };
        if let Some(own) = own {
            own.cleanup().await.map_err(failed)?;
        }
        let ranked = match outcome {
            Outcome::Abstained { .. } => None,
            // a block of the system's own has sources without an order
            Outcome::Injected(injection) if injection.records.is_empty() => Some(injection.sources),
            Outcome::Injected(injection) => {
                Some(injection.records.into_iter().map(|record| record.source).collect())
            }
        };
        let entries = history.entries().iter().map(|entry| entry.id());
        let touch = |id: &InstanceId| runs.get(id).map(|run| run.touch.clone()).unwrap_or_default();
        Ok(Some(Answer {
            target: target.clone(),
            reference,
            gold: Touch::by(patch),
            eligible: entries.map(|id| (id.clone(), touch(id))).collect(),
            ranked,
        }))
    }
}
