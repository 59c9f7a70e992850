//! What can go wrong with a study as a whole.

use std::path::{Path, PathBuf};

use crate::grade::files::OutError;

/// Why a study cannot go on. What goes wrong in one trial is that trial's verdict instead.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The study file is wrong.
    #[error("{path}: {reason}")]
    Design {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the study's folder is damaged.
    #[error("{path}: {reason}; remove the file to have it made again")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Nothing of the study has been run.
    #[error(
        "{path} holds no study that has been begun: run it with `memtrial study run`, or name its folder with --out"
    )]
    NotBegun {
        /// The study's folder.
        path: PathBuf,
    },
    /// An input has changed since the study was begun.
    #[error(
        "the study in {path} was begun with other inputs: {changes}; restore them, or begin a new study in another \
         folder with --out"
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// What differs.
        changes: String,
    },
    /// The process cannot take part in the study.
    #[error("{reason}")]
    Worker {
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The study's folder cannot be written.
    #[error(transparent)]
    Out(#[from] OutError),
    /// Published images of targets cannot be had: nothing is begun.
    #[error("not every target's published image can be had:\n{0}")]
    Images(String),
    /// The tasks cannot be read.
    #[error(transparent)]
    Dataset(#[from] crate::dataset::DatasetError),
    /// A target is not in the task files.
    #[error("target {target} is in none of the task files: {files}")]
    UnknownTarget {
        /// The target.
        target: String,
        /// Where it was looked for.
        files: String,
    },
    /// The agent's configuration is wrong.
    #[error("{0}")]
    Agent(String),
    /// A memory system or its settings are wrong.
    #[error("condition {condition}: {reason}")]
    Memory {
        /// The condition.
        condition: String,
        /// What is wrong.
        reason: String,
    },
    /// A solver's settings are wrong.
    #[error("solver {solver}: {reason}")]
    Solver {
        /// The solver.
        solver: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl StudyError {
    /// For `map_err`: an I/O error at `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }
}
