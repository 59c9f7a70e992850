//! The study's folder: which file lies where.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
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

    /// Held by the process that runs the study.
    pub fn guard(&self) -> PathBuf {
        self.root.join("journal/running.lock")
    }

    /// What happened, one line an event.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal/main.jsonl")
    }

    /// A trial's folder: its attempts lie below it, its record inside it.
    pub fn trial(&self, key: &TrialKey) -> PathBuf {
        self.root
            .join("trials")
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

    /// The grading of a target's gold patch.
    pub fn gold(&self, target: &InstanceId) -> PathBuf {
        self.root.join("gold").join(target.as_str())
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

/// Writes a file whole: to a temporary name beside it, flushed to disk, then renamed.
///
/// # Errors
/// When the folder cannot be made or written; the old file stays then.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StudyError> {
    let io = StudyError::io(path);
    let write = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(io)
}

/// Writes a value as indented JSON, whole.
///
/// # Errors
/// As [`write_whole`].
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), StudyError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| StudyError::io(path)(error.into()))?;
    bytes.push(b'\n');
    write_whole(path, &bytes)
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
    serde_json::from_slice(&bytes).map(Some).map_err(|error| StudyError::Damaged {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}
