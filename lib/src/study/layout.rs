//! The study's folder: which file lies where.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{StudyError, TrialKey};
use crate::task::InstanceId;

/// A study's folder.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout under `root`.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The digests of all inputs.
    pub fn lock(&self) -> PathBuf {
        self.root.join("study.lock.json")
    }

    /// What happened, one line an event: one file a worker.
    pub fn journal(&self, worker: &str) -> PathBuf {
        self.root.join("journal").join(format!("{worker}.jsonl"))
    }

    /// Who works on what.
    pub fn claims(&self) -> PathBuf {
        self.root.join("claims")
    }

    /// A trial's folder: its attempts lie below it, its record inside it.
    pub fn trial(&self, key: &TrialKey) -> PathBuf {
        self.root.join(Self::trial_claim(key))
    }

    /// What a trial is called below the folder of claims.
    pub(super) fn trial_claim(key: &TrialKey) -> PathBuf {
        Path::new("trials")
            .join(&key.condition)
            .join(&key.solver)
            .join(key.replicate.to_string())
            .join(key.instance_id.as_str())
    }

    /// The folder of one attempt: the trial's own for the first, `attempt-N` for later ones.
    pub fn attempt(&self, key: &TrialKey, attempt: u32) -> PathBuf {
        match attempt {
            0 | 1 => self.trial(key),
            later => self.trial(key).join(format!("attempt-{later}")),
        }
    }

    /// A finished trial's record: written last, so that a trial is finished exactly when it is there.
    pub fn record(&self, key: &TrialKey) -> PathBuf {
        self.trial(key).join("verdict.json")
    }

    /// What a memory system knew and delivered for one target.
    pub fn memory(&self, condition: &str, target: &InstanceId) -> PathBuf {
        self.root.join("memory").join(condition).join(target.repo_key()).join(target.number().to_string())
    }

    /// What a memory system learnt from a repository's runs, for all its targets.
    pub(super) fn learned(&self, condition: &str, target: &InstanceId) -> PathBuf {
        self.root.join("memory").join(condition).join(target.repo_key()).join("learned.jsonl")
    }

    /// The replies of the model that a memory system asked while it learnt.
    pub(super) fn memory_replies(&self, condition: &str) -> PathBuf {
        self.root.join("memory").join(condition).join("replies")
    }

    /// The grading of a target's gold patch.
    pub fn gold(&self, target: &InstanceId) -> PathBuf {
        self.root.join("gold").join(target.as_str())
    }

    /// The verdict on a target's gold patch.
    pub(super) fn gold_verdict(&self, target: &InstanceId) -> PathBuf {
        self.gold(target).join("graded.json")
    }

    /// SWE-bench predictions of one arm.
    pub fn predictions(&self, condition: &str, solver: &str, replicate: u32) -> PathBuf {
        self.root.join("preds").join(format!("{condition}.{solver}.{replicate}.json"))
    }

    /// The folder of reports.
    pub fn report(&self) -> PathBuf {
        self.root.join("report")
    }
}

/// Reads JSON; `None` where there is no file.
///
/// # Errors
/// When it cannot be read or does not fit; the text says what to do.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StudyError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StudyError::io(path)(error)),
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| StudyError::Damaged { path: path.to_owned(), reason: error.to_string() })
}
