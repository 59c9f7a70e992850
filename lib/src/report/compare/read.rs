//! Reading a graded run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The only schema version that SWE-bench has had since its version 2.
const SUMMARY_SCHEMA: u64 = 2;

/// A graded run: an outcome for each task that it lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The report that was read.
    pub path: PathBuf,
    /// By instance id. Ids are kept as text: SWE-bench Pro's do not end in a number.
    pub outcomes: BTreeMap<String, Outcome>,
}

/// What a summary report says about one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// `resolved_ids`.
    Resolved,
    /// `unresolved_ids`.
    Unresolved,
    /// `empty_patch_ids`.
    EmptyPatch,
    /// `incomplete_ids`: no prediction.
    NoPrediction,
    /// `error_ids` with no further cause, or with one that may be the agent's doing (`ambiguous_failure_ids`).
    Error,
    /// `infra_failure_ids`: the harness failed.
    Infrastructure,
    /// `excluded_ids`, written by `memtrial grade`: no fair verdict is possible, in any run.
    Excluded,
}

impl Outcome {
    /// Its coding; `None`: missing.
    pub fn resolved(self) -> Option<bool> {
        match self {
            Self::Resolved => Some(true),
            Self::Unresolved | Self::EmptyPatch | Self::NoPrediction | Self::Error => Some(false),
            Self::Infrastructure | Self::Excluded => None,
        }
    }

    /// Whether the failure may be the harness's or the operator's, and not the agent's.
    pub fn doubtful(self) -> bool {
        matches!(self, Self::Error | Self::NoPrediction)
    }
}

/// Why a graded run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The path leads to no report.
    #[error(
        "{path}: there is no report.json here; give the --out folder of `memtrial grade` or a summary report of SWE-bench"
    )]
    NoReport {
        /// The folder.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read the report: {0}")]
    Io(#[from] std::io::Error),
    /// The file is no JSON.
    #[error(
        "{path}: line {line}, column {column}: not valid JSON ({reason}); was the file written to its end?"
    )]
    Json {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the parser says.
        reason: String,
    },
    /// A key is absent or holds something else.
    #[error("{path}: key {key:?}: {reason}; {hint}")]
    Key {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
}

/// The lists that an outcome is read from; where an id stands in several, the first of these wins.
const LISTS: [(&str, Outcome); 8] = [
    ("excluded_ids", Outcome::Excluded),
    ("infra_failure_ids", Outcome::Infrastructure),
    ("resolved_ids", Outcome::Resolved),
    ("empty_patch_ids", Outcome::EmptyPatch),
    ("ambiguous_failure_ids", Outcome::Error),
    ("error_ids", Outcome::Error),
    ("unresolved_ids", Outcome::Unresolved),
    ("incomplete_ids", Outcome::NoPrediction),
];

/// Without these a file is no summary report.
const REQUIRED: [&str; 3] = ["resolved_ids", "unresolved_ids", "error_ids"];

const NOT_A_SUMMARY: &str =
    "expected a summary report with schema_version 2, as `memtrial grade` and SWE-bench 4 and 5 write it";
const BROKEN_SUMMARY: &str = "grade the run again, or mend the file";

/// Reads the summary report at `path`, or `report.json` in the folder at `path`.
///
/// # Errors
/// Names the file, the key and what to do.
pub fn read_run(path: &Path) -> Result<Run, ReadError> {
    let path = locate(path)?;
    let bytes = fs_err::read(&path)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| ReadError::Json {
        path: path.clone(),
        line: error.line(),
        column: error.column(),
        reason: error.to_string(),
    })?;
    let outcomes = match value {
        Value::Object(map) => Summary { path: &path, map }.outcomes()?,
        _ => return Err(key_error(&path, "(top level)", "is no object".to_owned(), NOT_A_SUMMARY)),
    };
    Ok(Run { path, outcomes })
}

fn locate(path: &Path) -> Result<PathBuf, ReadError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let report = path.join("report.json");
    if report.is_file() { Ok(report) } else { Err(ReadError::NoReport { path: path.to_owned() }) }
}

fn key_error(path: &Path, key: &str, reason: String, hint: &'static str) -> ReadError {
    ReadError::Key { path: path.to_owned(), key: key.to_owned(), reason, hint }
}

/// A summary report.
struct Summary<'a> {
    path: &'a Path,
    map: Map<String, Value>,
}

impl Summary<'_> {
    fn outcomes(&self) -> Result<BTreeMap<String, Outcome>, ReadError> {
        self.check_schema()?;
        let mut outcomes = BTreeMap::new();
        for (key, outcome) in LISTS {
            for id in self.ids(key)? {
                match outcomes.get(&id) {
                    None => _ = outcomes.insert(id, outcome),
                    Some(first) => self.check_overlap(&id, *first, outcome, key)?,
                }
            }
        }
        // Version 4 lists an instance without a readable report as submitted and nothing else can be said of it.
        for id in self.ids("submitted_ids")?.into_iter().chain(self.ids("completed_ids")?) {
            outcomes.entry(id).or_insert(Outcome::Error);
        }
        Ok(outcomes)
    }

    fn check_schema(&self) -> Result<(), ReadError> {
        let fail = |key, reason| Err(key_error(self.path, key, reason, NOT_A_SUMMARY));
        match self.map.get("schema_version") {
            Some(version) if version.as_u64() != Some(SUMMARY_SCHEMA) => {
                fail("schema_version", format!("is {version}, not {SUMMARY_SCHEMA}"))
            }
            _ => match REQUIRED.into_iter().find(|key| !self.map.contains_key(*key)) {
                Some(key) => fail(key, "is missing".to_owned()),
                None => Ok(()),
            },
        }
    }

    /// Failure lists overlap by design; a resolved task with another outcome is a contradiction.
    fn check_overlap(&self, id: &str, first: Outcome, second: Outcome, key: &str) -> Result<(), ReadError> {
        let contradiction = first == Outcome::Resolved || second == Outcome::Resolved;
        if first == second || !contradiction || first == Outcome::Excluded {
            return Ok(());
        }
        let reason = format!("lists {id}, which another list has as {}", outcome_name(first));
        Err(key_error(self.path, key, reason, BROKEN_SUMMARY))
    }

    /// The ids of a list, each once; an absent key or `null` is an empty list.
    fn ids(&self, key: &str) -> Result<BTreeSet<String>, ReadError> {
        let fail = |reason| Err(key_error(self.path, key, reason, BROKEN_SUMMARY));
        let items = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(BTreeSet::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return fail("is no list of instance ids".to_owned()),
        };
        let mut ids = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(id) if !id.trim().is_empty() => _ = ids.insert(id.to_owned()),
                _ => return fail(format!("item {index} is no instance id: {item}")),
            }
        }
        Ok(ids)
    }
}

/// The name as in JSON.
pub(super) fn outcome_name(outcome: Outcome) -> String {
    match serde_json::to_value(outcome) {
        Ok(Value::String(name)) => name,
        _ => format!("{outcome:?}"),
    }
}
