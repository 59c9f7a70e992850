//! Grading many predictions: concurrent, resumable, repeated where asked for.
//!
//! ```text
//! OUT/report.json                       SWE-bench's summary
//! OUT/stability.json                    with --repeat: every verdict of every instance, and its flaky tests
//! OUT/<instance_id>/                    patch.diff · test_output.txt · report.json · verdict.json
//! OUT/<instance_id>/repeat-<k>/         with --repeat: the same of each repeat; the folder above holds the deciding one
//! ```

mod record;
#[cfg(test)]
mod tests;
mod rooms;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::grade::files::{OutDir, OutError, write_json};
use crate::grade::graded::{Graded, Options};
use crate::grade::predictions::Predictions;
use crate::grade::reports::RunReport;
use crate::grade::{Coding, VerdictClass, grade, without_sandbox};
use crate::sandbox::{Place, Sandbox};
use crate::task::{InstanceId, SolverView, Task};

pub use record::{Recorded, Stability};
use record::{copy, earlier, hex, save, stability};

/// The steps of grading, counted up where they change: a verdict of other steps is not reused.
const PROCEDURE: u32 = 3;

/// Where sandboxes with a task's repository at its base commit come from.
#[async_trait]
pub trait Rooms: Send + Sync {
    /// A fresh sandbox, its environment prepared.
    async fn room(&self, task: &SolverView) -> Result<(Box<dyn Sandbox>, Place), RoomError>;

    /// The published image that a task's sandboxes start on, as `NAME@DIGEST`; `None`: they start on none, or it cannot
    /// be had, which [`Rooms::room`] tells.
    async fn image(&self, _task: &SolverView) -> Option<String> {
        None
    }

    /// What decides how the sandboxes behave (back end, limits), in words: verdicts under another one are not
    /// reused.
    fn label(&self) -> String;
}

/// Why there is no sandbox for a task.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct RoomError {
    /// The verdict that it leads to: `Infrastructure`, `HostOutOfMemory`, or `Unparseable` for an unusable
    /// row.
    pub class: VerdictClass,
    /// What happened, where, and what to do.
    pub reason: String,
}

/// What is graded.
#[derive(Debug, Clone)]
pub enum Source {
    /// Predictions of a file.
    Predictions(Predictions),
    /// Every task's gold patch.
    Gold,
    /// No change at all, and the tests run: no task may be resolved.
    Empty,
}

impl Source {
    fn patch<'a>(&'a self, task: &'a Task) -> Option<&'a str> {
        match self {
            Self::Gold => Some(&task.evaluator.patch),
            Self::Empty => Some(""),
            // A prediction without a patch is an empty patch; only an absent one is none.
            Self::Predictions(all) => {
                all.by_id.get(task.id().as_str()).map(|one| one.model_patch.as_deref().unwrap_or_default())
            }
        }
    }
}

/// How a run goes about it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How predictions are graded.
    pub options: Options,
    /// Sandboxes at a time; at least 1.
    pub jobs: usize,
    /// How often each instance is graded; at least 1.
    pub repeat: u32,
    /// How often a verdict of the missing kind (the harness failed) is tried again.
    pub retries: u32,
    /// The pause before the first retry; each further one is twice as long.
    pub retry_pause: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            options: Options::default(),
            jobs: 1,
            repeat: 1,
            retries: 2,
            retry_pause: Duration::from_secs(2),
        }
    }
}

/// What happens in a run, as it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An instance is being graded.
    Started {
        /// Which.
        id: InstanceId,
        /// Which repeat, from 1.
        repeat: u32,
    },
    /// The harness failed; it is tried again.
    Retrying {
        /// Which.
        id: InstanceId,
        /// Why.
        reason: String,
    },
    /// A verdict was reached.
    Finished {
        /// Which.
        id: InstanceId,
        /// Which repeat, from 1.
        repeat: u32,
        /// The verdict.
        class: VerdictClass,
        /// Why.
        reason: Option<String>,
        /// Whether an earlier run had reached it.
        reused: bool,
    },
}

/// Hears of events; called from the run's own task.
pub type OnEvent<'a> = &'a (dyn Fn(Event) + Send + Sync);

/// What a run found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// As written to `report.json`.
    pub report: RunReport,
    /// By instance.
    pub verdicts: BTreeMap<InstanceId, Stability>,
    /// Predictions for tasks that the run does not hold.
    pub unknown: BTreeSet<String>,
    /// Whether it was stopped before all instances were graded.
    pub interrupted: bool,
}

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something could not be written.
    #[error(transparent)]
    Out(#[from] OutError),
    /// Two rows have one id: their folders would be the same.
    #[error("task {0} stands twice among the tasks: remove one of the rows")]
    TwoRows(InstanceId),
}

/// One run over tasks.
#[derive(Clone, Copy)]
pub struct GradeRun<'a> {
    /// Where results go.
    pub out: &'a OutDir,
    /// Where sandboxes come from.
    pub rooms: &'a dyn Rooms,
    /// What is graded.
    pub source: &'a Source,
    /// How.
    pub plan: &'a Plan,
}

impl GradeRun<'_> {
    /// Grades every task and writes the reports. When `cancel` turns true, what is in flight is finished,
    /// nothing new is begun, and the reports tell what there is.
    ///
    /// # Errors
    /// When results cannot be written. Verdicts written before stay and are reused by the next run.
    pub async fn run(
        &self,
        tasks: &[Task],
        on_event: OnEvent<'_>,
        cancel: &watch::Receiver<bool>,
    ) -> Result<Finished, RunError> {
        let mut ids = BTreeSet::new();
        if let Some(task) = tasks.iter().find(|task| !ids.insert(task.id())) {
            return Err(RunError::TwoRows(task.id().clone()));
        }
        let repeats = self.plan.repeat.max(1);
        let work = (1..=repeats).flat_map(|repeat| tasks.iter().map(move |task| (task, repeat)));
        let mut done = futures::stream::iter(work)
            .map(|(task, repeat)| async move {
                if *cancel.borrow() {
                    return Ok(None);
                }
                let recorded = self.one(task, repeat, on_event, cancel).await?;
                Ok::<_, OutError>(Some((repeat, recorded)))
            })
            .buffer_unordered(self.plan.jobs.max(1));
        let mut found: BTreeMap<InstanceId, BTreeMap<u32, Recorded>> = BTreeMap::new();
        let mut interrupted = false;
        while let Some(result) = done.next().await {
            match result? {
                Some((repeat, recorded)) => {
                    found.entry(recorded.instance_id.clone()).or_default().insert(repeat, recorded);
                }
                None => interrupted = true,
            }
        }
        self.report(tasks, found, interrupted)
    }

    fn folder(&self, id: &InstanceId, repeat: u32) -> PathBuf {
        let folder = self.out.path().join(id.as_str());
        if self.plan.repeat > 1 { folder.join(format!("repeat-{repeat}")) } else { folder }
    }

    /// One repeat of one instance: an earlier verdict that still holds, or a new one.
    async fn one(
        &self,
        task: &Task,
        repeat: u32,
        on_event: OnEvent<'_>,
        cancel: &watch::Receiver<bool>,
    ) -> Result<Recorded, OutError> {
        let id = task.id();
        let folder = self.folder(id, repeat);
        let patch = self.source.patch(task);
        let image = self.rooms.image(&task.solver).await;
        let digest = self.digest(task, patch, image.as_deref());
        let told = |recorded: &Recorded, reused| {
            let (class, reason) = (recorded.graded.class, recorded.graded.reason.clone());
            on_event(Event::Finished { id: id.clone(), repeat, class, reason, reused });
        };
        if let Some(recorded) = earlier(&folder, &digest) {
            told(&recorded, true);
            return Ok(recorded);
        }
        on_event(Event::Started { id: id.clone(), repeat });
        let (graded, attempts) = self.retried(task, patch, on_event, cancel).await;
        let graded = if matches!(self.source, Source::Gold) { graded.of_gold() } else { graded };
        let log_sha256 = hex(&Sha256::digest(&graded.log));
        let recorded = Recorded { instance_id: id.clone(), digest, log_sha256, attempts, image, graded };
        save(&folder, patch, &recorded)?;
        told(&recorded, false);
        Ok(recorded)
    }

    async fn retried(
        &self,
        task: &Task,
        patch: Option<&str>,
        on_event: OnEvent<'_>,
        cancel: &watch::Receiver<bool>,
    ) -> (Graded, u32) {
        let mut pause = self.plan.retry_pause;
        for attempt in 1.. {
            let graded = self.graded(task, patch).await;
            let again = graded.class.coding() == Coding::Missing && attempt <= self.plan.retries;
            if !again || *cancel.borrow() {
                return (graded, attempt);
            }
            let reason = graded.reason.unwrap_or_default();
            on_event(Event::Retrying { id: task.id().clone(), reason });
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        unreachable!("the loop ends by returning")
    }

    async fn graded(&self, task: &Task, patch: Option<&str>) -> Graded {
        let run_empty = self.plan.options.run_empty || matches!(self.source, Source::Empty);
        let options = Options { run_empty, ..self.plan.options.clone() };
        if let Some(graded) = without_sandbox(task, patch, &options) {
            return graded;
        }
        match self.rooms.room(&task.solver).await {
            Err(error) => Graded::without_run(error.class, Some(error.reason), &options),
            Ok((mut sandbox, place)) => {
                let graded = grade(sandbox.as_mut(), &place, task, patch, &options).await;
                // The verdict stands; a sandbox that does not close ends with this process.
                let _ = sandbox.close().await;
                graded
            }
        }
    }

    /// What a verdict depends on: one of the same digest is reused.
    fn digest(&self, task: &Task, patch: Option<&str>, image: Option<&str>) -> String {
        let gold = matches!(self.source, Source::Gold);
        let empty = matches!(self.source, Source::Empty);
        let parts = (
            env!("CARGO_PKG_VERSION"),
            PROCEDURE,
            self.rooms.label(),
            (&task.solver, &task.evaluator),
            patch,
            &self.plan.options,
            (gold, empty),
            image,
        );
        // Of plain data: the writer cannot fail on it.
        let bytes = serde_json::to_vec(&parts).unwrap_or_default();
        hex(&Sha256::digest(bytes))
    }

    fn report(
        &self,
        tasks: &[Task],
        found: BTreeMap<InstanceId, BTreeMap<u32, Recorded>>,
        interrupted: bool,
    ) -> Result<Finished, RunError> {
        let mut verdicts = BTreeMap::new();
        for (id, repeats) in found {
            let (decides, stability) = stability(&repeats);
            if self.plan.repeat > 1 {
                copy(&self.folder(&id, decides), &self.out.path().join(id.as_str()))?;
            }
            verdicts.insert(id, stability);
        }
        let known: BTreeSet<String> = tasks.iter().map(|task| task.id().to_string()).collect();
        let submitted: BTreeSet<String> = match self.source {
            Source::Predictions(all) => all.by_id.keys().cloned().collect(),
            Source::Gold | Source::Empty => known.clone(),
        };
        let classes = verdicts.iter().map(|(id, one)| (id.to_string(), one.class)).collect();
        let report = RunReport::new(known.clone(), submitted.clone(), &classes);
        write_json(&self.out.path().join("report.json"), &report)?;
        if self.plan.repeat > 1 {
            write_json(&self.out.path().join("stability.json"), &verdicts)?;
        }
        Ok(Finished { report, verdicts, unknown: &submitted - &known, interrupted })
    }
}
