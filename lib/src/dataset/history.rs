//! The causal rule: what one target may learn from.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::date;
use super::error::DatasetError;
use super::store::{HistoryStore, Run, key};
use crate::task::{InstanceId, Task};
use crate::trajectory::{
    Limits, Part, RunPart, RunsReport, StreamReport, Summary, Trajectory, TrajectoryError, read_runs,
    stream_file, summarize_run,
};

/// What "earlier" means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chronology {
    /// The pull request's number: the order of opening, as VibeMemBench defines it.
    #[default]
    Number,
    /// The time of merging: the order in which the repository changed.
    MergedAt,
}

/// When known pull requests were merged. Used by the causal rule alone; dates never reach a solver.
#[derive(Debug, Clone, Default)]
pub struct MergeDates(BTreeMap<(String, u64), (i64, String)>);

impl MergeDates {
    /// The dates that the rows of a task file state; dates that cannot be read count as unknown.
    pub fn from_tasks<'t>(tasks: impl IntoIterator<Item = &'t Task>) -> Self {
        let dated = |task: &Task| {
            let text = task.hidden.merged_at.clone()?;
            Some((key(task.id()), (date::millis(&text.clone().into())?, text)))
        };
        Self(tasks.into_iter().filter_map(dated).collect())
    }

    /// Number of known dates.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no date is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the task of a run was merged, as its row writes it.
    pub fn merged_at(&self, id: &InstanceId) -> Option<&str> {
        self.get(id).map(|(_, text)| text.as_str())
    }

    /// Adds a date in the manner of the rows; one that cannot be read stays unknown.
    pub fn add(&mut self, id: &InstanceId, merged_at: &str) {
        if let Some(millis) = date::millis(&merged_at.into()) {
            self.0.insert(key(id), (millis, merged_at.to_owned()));
        }
    }

    fn get(&self, id: &InstanceId) -> Option<&(i64, String)> {
        self.0.get(&key(id))
    }
}

/// What one target may learn from: runs of earlier tasks of the same repository, in their order.
///
/// [`History::for_target`] is the only way to make one, so whoever takes a `History` cannot be given the target's own
/// run, a later one, or another repository's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct History {
    target: InstanceId,
    chronology: Chronology,
    entries: Vec<Entry>,
    refused: Vec<Refusal>,
    disagreements: Vec<Disagreement>,
}

/// A run that the target may learn from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    id: InstanceId,
    path: PathBuf,
    bytes: u64,
    resolved: Option<bool>,
}

/// A run that the target may not learn from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The task of the run.
    pub id: String,
    /// Why.
    pub reason: Reason,
}

/// Why a run is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It is the target's own.
    Own,
    /// Its number is not below the target's.
    LaterNumber {
        /// The target's.
        target: u64,
    },
    /// It was not merged before the target.
    LaterMerge {
        /// When it was merged.
        merged_at: String,
        /// When the target was.
        target: String,
    },
    /// `merged-at` is asked for and no date is known.
    Undated,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("the target's own run"),
            Self::LaterNumber { target } => write!(f, "its number is not below {target}"),
            Self::LaterMerge { merged_at, target } => write!(f, "merged {merged_at}, not before {target}"),
            Self::Undated => f.write_str("no merge date is known"),
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A run about which number order and merge order disagree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// The task of the run.
    pub id: InstanceId,
    /// Whether its number is below the target's.
    pub earlier_by_number: bool,
    /// Whether it was merged before the target.
    pub earlier_by_merge: bool,
    /// When it was merged.
    pub merged_at: String,
}

/// Why a target may not learn from a run of its repository; `None`: it may. The causal rule.
pub(crate) fn refusal(
    run: &InstanceId,
    target: &InstanceId,
    chronology: Chronology,
    dates: &MergeDates,
) -> Option<Reason> {
    if run.number() == target.number() {
        return Some(Reason::Own);
    }
    match (chronology, dates.get(run).zip(dates.get(target))) {
        (Chronology::Number, _) if run.number() < target.number() => None,
        (Chronology::Number, _) => Some(Reason::LaterNumber { target: target.number() }),
        (Chronology::MergedAt, None) => Some(Reason::Undated),
        (Chronology::MergedAt, Some(((run, _), (target, _)))) if run < target => None,
        (Chronology::MergedAt, Some(((_, merged_at), (_, target)))) => {
            Some(Reason::LaterMerge { merged_at: merged_at.clone(), target: target.clone() })
        }
    }
}

impl History {
    /// Applies the causal rule: runs of the target's repository that are strictly earlier than the target, and never
    /// its own. The result is the same whether the target's own run is stored or not, but for [`History::refused`].
    ///
    /// # Errors
    /// When `merged-at` is asked for and the target has no date.
    pub fn for_target(
        store: &HistoryStore,
        target: &InstanceId,
        chronology: Chronology,
        dates: &MergeDates,
    ) -> Result<Self, DatasetError> {
        let target_date = dates.get(target);
        if chronology == Chronology::MergedAt && target_date.is_none() {
            return Err(DatasetError::Undated { id: target.to_string() });
        }
        let mut history = Self {
            target: target.clone(),
            chronology,
            entries: Vec::new(),
            refused: Vec::new(),
            disagreements: Vec::new(),
        };
        let mut runs: Vec<_> = store.runs().iter().filter(|run| run.id.same_repo(target)).collect();
        if chronology == Chronology::MergedAt {
            runs.sort_by_key(|run| (dates.get(&run.id).map(|(millis, _)| *millis), run.id.number()));
        }
        for run in runs {
            let id = run.id.to_string();
            if run.id.number() == target.number() {
                history.refused.push(Refusal { id, reason: Reason::Own });
                continue;
            }
            let date = dates.get(&run.id);
            let by_number = run.id.number() < target.number();
            let by_merge = date.zip(target_date).map(|((run, _), (target, _))| run < target);
            if let (Some(by_merge), Some((_, merged_at))) =
                (by_merge.filter(|by_merge| *by_merge != by_number), date)
            {
                history.disagreements.push(Disagreement {
                    id: run.id.clone(),
                    earlier_by_number: by_number,
                    earlier_by_merge: by_merge,
                    merged_at: merged_at.clone(),
                });
            }
            let reason = refusal(&run.id, target, chronology, dates);
            match reason {
                Some(reason) => history.refused.push(Refusal { id, reason }),
                None => history.entries.push(Entry::of(run, store)),
            }
        }
        Ok(history)
    }

    /// What the task after all stored ones may learn from: every run of a repository that has a place in the order. For
    /// whoever works on the repository today, and for indexes that serve many targets (which apply the rule again).
    ///
    /// # Errors
    /// When no run of the repository is stored.
    pub fn for_next_task(
        store: &HistoryStore,
        repo_key: &str,
        chronology: Chronology,
        dates: &MergeDates,
    ) -> Result<Self, DatasetError> {
        let of_repo = |run: &&Run| run.id.repo_key().eq_ignore_ascii_case(repo_key);
        let last = store.runs().iter().filter(of_repo).map(|run| run.id.number()).max();
        let none = || DatasetError::NoRun { repo: repo_key.to_owned() };
        let next = last.ok_or_else(none)?.saturating_add(1);
        let target = InstanceId::parse(&format!("{repo_key}-{next}")).map_err(|_| none())?;
        let mut dates = dates.clone();
        dates.0.insert(key(&target), (i64::MAX, "(the next task)".to_owned()));
        Self::for_target(store, &target, chronology, &dates)
    }

    /// The target.
    pub fn target(&self) -> &InstanceId {
        &self.target
    }

    /// What "earlier" means here.
    pub fn chronology(&self) -> Chronology {
        self.chronology
    }

    /// The runs that the target may learn from, earliest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Summaries of all entries, in their order, read on all processors.
    pub fn summaries(&self, limits: &Limits) -> Vec<Result<Summary, DatasetError>> {
        let readers = std::thread::available_parallelism().map_or(1, usize::from).min(self.entries.len());
        let next = AtomicUsize::new(0);
        let read = || {
            let mut done = Vec::new();
            while let index = next.fetch_add(1, Ordering::Relaxed)
                && let Some(entry) = self.entries.get(index)
            {
                done.push((index, entry.summary(limits)));
            }
            done
        };
        let mut summaries: Vec<_> = std::thread::scope(|scope| {
            let readers: Vec<_> = (1..readers).map(|_| scope.spawn(read)).collect();
            let own = read();
            let join = |reader: std::thread::ScopedJoinHandle<'_, _>| {
                reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            own.into_iter().chain(readers.into_iter().flat_map(join)).collect()
        });
        summaries.sort_by_key(|(index, _)| *index);
        summaries.into_iter().map(|(_, summary)| summary).collect()
    }

    /// Whether the target may learn from this task's run: hosts ask before they accept a record.
    pub fn contains(&self, id: &InstanceId) -> bool {
        self.entries.iter().any(|entry| key(&entry.id) == key(id))
    }

    /// Runs of the same repository that the target may not learn from, with the reason.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Runs of the same repository about which the two orders disagree, as far as dates are known.
    pub fn disagreements(&self) -> &[Disagreement] {
        &self.disagreements
    }
}

impl Entry {
    pub(super) fn of(run: &Run, store: &HistoryStore) -> Self {
        let Run { id, path, bytes } = run.clone();
        Self { resolved: store.outcome(&id), id, path, bytes }
    }

    /// The task of the run.
    pub fn id(&self) -> &InstanceId {
        &self.id
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.id.number()
    }

    /// The trajectory's file. Read it through [`Entry::stream`], which checks what it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the run resolved its task, where a file of outcomes says so.
    pub fn resolved(&self) -> Option<bool> {
        self.resolved
    }

    /// Streams the messages of one of mini-swe-agent's trajectories at bounded memory; [`Entry::events`] reads all formats.
    ///
    /// # Errors
    /// When it cannot be read, or says that it is the run of another task: what was handed over must be dropped then.
    pub fn stream(
        &self,
        limits: &Limits,
        on: &mut dyn FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> Result<StreamReport, DatasetError> {
        let mut other = None;
        let report = stream_file(&self.path, limits, &mut |part| {
            if let Part::Field { key: "instance_id", value } = &part
                && let Some(stated) = value.as_str().filter(|stated| *stated != self.id.as_str())
            {
                other = Some(stated.to_owned());
                return ControlFlow::Break(());
            }
            on(part)
        })?;
        match other {
            None => Ok(report),
            Some(stated) => Err(self.misnamed(&stated)),
        }
    }

    /// Reads the run as events, whatever its format, at bounded memory.
    ///
    /// # Errors
    /// As [`Entry::stream`]; or when the file holds no run or several.
    pub fn events(
        &self,
        limits: &Limits,
        on: &mut dyn FnMut(RunPart<'_>) -> ControlFlow<()>,
    ) -> Result<RunsReport, DatasetError> {
        let (mut other, mut heads) = (None, 0);
        let report = read_runs(&self.path, limits, &mut |part| {
            if let RunPart::Head(head) = &part {
                heads += 1;
                other = head.instance_id.clone().filter(|stated| stated != self.id.as_str());
                if other.is_some() || heads > 1 {
                    return ControlFlow::Break(());
                }
            }
            on(part)
        })?;
        let wrong =
            |reason: &str| TrajectoryError::Format { path: self.path.clone(), reason: reason.to_owned() };
        match (other, heads) {
            (Some(stated), _) => Err(self.misnamed(&stated)),
            (None, 0) => Err(wrong("holds no run").into()),
            (None, 1) => Ok(report),
            (None, _) => {
                Err(wrong("holds several runs; `memtrial history convert --to mini` gives each its file")
                    .into())
            }
        }
    }

    /// Reads the whole trajectory into memory; prefer [`Entry::stream`] where a file may be large.
    ///
    /// # Errors
    /// As [`Entry::stream`].
    pub fn read(&self) -> Result<Trajectory, DatasetError> {
        let run = Trajectory::read(&self.path)?;
        match run.instance_id().filter(|stated| *stated != self.id.as_str()) {
            None => Ok(run),
            Some(stated) => Err(self.misnamed(stated)),
        }
    }

    fn misnamed(&self, stated: &str) -> DatasetError {
        DatasetError::Trajectory(TrajectoryError::Format {
            path: self.path.clone(),
            reason: format!(
                "says that it is the run of {stated:?}; rename the file or correct its instance_id"
            ),
        })
    }

    /// Summarises the trajectory at bounded memory.
    ///
    /// # Errors
    /// As [`Entry::stream`].
    pub fn summary(&self, limits: &Limits) -> Result<Summary, DatasetError> {
        let summary = summarize_run(&self.path, limits)?;
        match summary.instance_id.as_deref().filter(|stated| *stated != self.id.as_str()) {
            None => Ok(summary),
            Some(stated) => Err(self.misnamed(stated)),
        }
    }

    /// The SHA-256 of the file, in hexadecimal.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn sha256(&self) -> Result<String, DatasetError> {
        let failed = |cause| TrajectoryError::Read { path: self.path.clone(), cause };
        let mut file = std::fs::File::open(&self.path).map_err(failed)?;
        let mut hasher = Sha256::new();
        std::io::copy(&mut file, &mut hasher).map_err(failed)?;
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
