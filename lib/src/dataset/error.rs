//! Why a data set cannot be read, and what is wrong with its rows.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use crate::trajectory::TrajectoryError;

/// Why a task file or a history folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file cannot be opened or read to its end; a damaged or cut archive ends up here.
    #[error("{}: cannot be read{}: {cause}", path.display(), after(*rows))]
    Read {
        /// The file.
        path: PathBuf,
        /// Rows that were read before.
        rows: u64,
        /// The system's or the decompressor's words.
        cause: io::Error,
    },
    /// A folder was given where a file of rows is expected.
    #[error("{}: is a folder; name the .json, .jsonl or .parquet file in it", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The file holds nothing.
    #[error("{}: the file is empty; expected rows as JSON, JSONL (plain, gzip or zstd) or parquet", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is no valid JSON; nothing after this place could be read.
    #[error("{}:{line}:{column}: no valid JSON{}: {reason}; if the file was cut, get it again", path.display(), after(*rows))]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// Rows that were read before.
        rows: u64,
        /// The parser's words.
        reason: String,
    },
    /// The file is no parquet file that memtrial can read.
    #[error("{}: parquet{}: {reason}", path.display(), after(*rows))]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Rows that were read before.
        rows: u64,
        /// The parser's words.
        reason: String,
    },
    /// A row is wrong, and the caller asked for all rows.
    #[error(transparent)]
    Row(#[from] Box<RowError>),
    /// The history folder cannot be walked.
    #[error("{}: cannot be read as a history: {cause}", path.display())]
    History {
        /// The folder.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// A trajectory lies in a folder that names something else: memtrial cannot know which task it is of.
    #[error("{}: the folder is called {folder:?}, the file says {expected:?}; rename the one that is wrong", path.display())]
    Misfiled {
        /// The trajectory.
        path: PathBuf,
        /// The folder's name.
        folder: String,
        /// What it should be by the file's name.
        expected: String,
    },
    /// Two trajectories of one task.
    #[error("{} and {}: two trajectories of {id}; keep one", first.display(), second.display())]
    TwoRuns {
        /// The task.
        id: String,
        /// The first.
        first: PathBuf,
        /// The second.
        second: PathBuf,
    },
    /// The target's place in the chronology is unknown.
    #[error(
        "{id}: no merge date is known, so `merged-at` cannot order its history; give a task file whose rows state meta.merged_at, or use --chronology number"
    )]
    Undated {
        /// The target.
        id: String,
    },
    /// A repository of which no run is stored.
    #[error("no stored run is of the repository {repo}")]
    NoRun {
        /// `owner__name`.
        repo: String,
    },
    /// A file of outcomes is no object of `id: true or false`.
    #[error("{}: {reason}; expected an object of instance id → true or false", path.display())]
    Outcomes {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A trajectory of the history cannot be read.
    #[error(transparent)]
    Trajectory(#[from] TrajectoryError),
}

fn after(rows: u64) -> String {
    match rows {
        0 => String::new(),
        1 => " after 1 row".to_owned(),
        _ => format!(" after {rows} rows"),
    }
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct RowError {
    /// The file.
    pub file: PathBuf,
    /// The line of a JSONL file, else the row's place in the file; from 1.
    pub row: u64,
    /// The row's id, where it could be read.
    pub instance_id: Option<String>,
    /// The column; `None`: the row as a whole.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file.display(), self.row)?;
        if let Some(field) = &self.field {
            write!(f, "field {field}: ")?;
        }
        write!(f, "{}; {}", self.message, self.hint)
    }
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The row cannot serve as a task.
    Error,
    /// The row can be used; look at it.
    Warning,
}

/// Something to look at in a task file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// A short name of this sort of problem, for grouping and filtering.
    pub kind: &'static str,
    /// Where it is, what it is, and what to do.
    #[serde(flatten)]
    pub at: RowError,
}
