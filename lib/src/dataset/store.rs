//! A folder of trajectories of earlier tasks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::DatasetError;
use crate::task::InstanceId;

/// Deeper folders are not searched: `<language>/<owner__repo>/<id>/<id>.traj.json` is four deep.
const MAX_DEPTH: usize = 6;
/// The endings of trajectories: mini-swe-agent's, SWE-agent's, ATIF documents, logs of sessions (Claude Code, Codex).
const ENDINGS: [&str; 4] = [".traj.json", ".traj", ATIF_ENDING, LOG_ENDING];
const ATIF_ENDING: &str = ".atif.json";
const LOG_ENDING: &str = ".jsonl";
const OUTCOMES_ENDING: &str = ".resolved.json";

/// A folder of trajectories. It says which runs there are; their content is reached through a
/// [`History`](super::History) only.
#[derive(Debug, Clone, Default)]
pub struct HistoryStore {
    runs: Vec<Run>,
    nameless: Vec<String>,
    outcomes: BTreeMap<String, bool>,
}

#[derive(Debug, Clone)]
pub(super) struct Run {
    pub id: InstanceId,
    pub path: PathBuf,
    pub bytes: u64,
}

/// The identity of a task for the causal rule: GitHub compares names without case.
pub(super) fn key(id: &InstanceId) -> (String, u64) {
    (id.repo_key().to_ascii_lowercase(), id.number())
}

impl HistoryStore {
    /// Opens a folder: VibeMemBench's `history` (`<language>/<owner__repo>/<id>/<id>.traj.json`) or the folder that
    /// holds it, or any folder of `<id>.traj.json` and `<id>/<id>.traj.json`. Runs of other agents count where
    /// their file is called by the task's id: `<id>.traj`, `<id>.atif.json`, `<id>.jsonl`. Files of outcomes
    /// (`*.resolved.json` in the folder, `<folder>.resolved.json` beside it) are read too.
    ///
    /// # Errors
    /// When the folder cannot be read, a folder's name disagrees with the file in it, or two files are runs of one
    /// task.
    pub fn open(folder: &Path) -> Result<Self, DatasetError> {
        let inner = folder.join("history");
        let root = if inner.is_dir() { inner } else { folder.to_owned() };
        let mut store = Self::default();
        store.walk(&root, &root, 1)?;
        store.runs.sort_by(|a, b| key(&a.id).cmp(&key(&b.id)).then_with(|| a.path.cmp(&b.path)));
        store.nameless.sort();
        if let Some([first, second]) = store.runs.array_windows().find(|[a, b]| key(&a.id) == key(&b.id)) {
            return Err(DatasetError::TwoRuns {
                id: first.id.to_string(),
                first: first.path.clone(),
                second: second.path.clone(),
            });
        }
        for place in [folder, &root] {
            store.read_outcomes(place)?;
        }
        Ok(store)
    }

    /// Every task that a run is stored of, in the order of repository and number.
    pub fn ids(&self) -> impl Iterator<Item = &InstanceId> {
        self.runs.iter().map(|run| &run.id)
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether the folder holds no run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Trajectories whose file name is no instance id: no target may see them, their place in time is unknown.
    pub fn nameless(&self) -> &[String] {
        &self.nameless
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Whether the run of a task resolved it, where a file of outcomes says so.
    pub fn outcome(&self, id: &InstanceId) -> Option<bool> {
        self.outcomes.get(id.as_str()).copied()
    }

    fn walk(&mut self, root: &Path, folder: &Path, depth: usize) -> Result<(), DatasetError> {
        let failed = |cause: io::Error| DatasetError::History { path: folder.to_owned(), cause };
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let meta = std::fs::metadata(&path).map_err(failed)?;
            if meta.is_dir() {
                if depth < MAX_DEPTH {
                    self.walk(root, &path, depth + 1)?;
                }
            } else if let Some((stem, ending)) =
                ENDINGS.iter().find_map(|ending| Some((name.strip_suffix(ending)?, *ending)))
            {
                // other files end so too; and a document beside its run is that run again
                let is_other = ending == LOG_ENDING && InstanceId::parse(stem).is_err();
                let is_again =
                    ending == ATIF_ENDING && path.with_file_name(format!("{stem}.traj.json")).exists();
                if !is_other && !is_again {
                    self.add(root, &path, stem, meta.len())?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, root: &Path, path: &Path, stem: &str, bytes: u64) -> Result<(), DatasetError> {
        let inside = path.strip_prefix(root).ok().and_then(Path::parent).into_iter();
        let mut folders = inside.flat_map(Path::iter).rev().map(OsStr::to_string_lossy);
        let misfiled = |folder: &str, expected: &str| DatasetError::Misfiled {
            path: path.to_owned(),
            folder: folder.to_owned(),
            expected: expected.to_owned(),
        };
        if let Some(folder) = folders.next().filter(|folder| folder != stem) {
            return Err(misfiled(&folder, stem));
        }
        let Ok(id) = InstanceId::parse(stem) else {
            self.nameless.push(stem.to_owned());
            return Ok(());
        };
        // Only a folder that names a repository can name the wrong one.
        let repo = folders.next().filter(|folder| folder.contains("__"));
        if let Some(folder) = repo.filter(|folder| !folder.eq_ignore_ascii_case(id.repo_key())) {
            return Err(misfiled(&folder, id.repo_key()));
        }
        self.runs.push(Run { id, path: path.to_owned(), bytes });
        Ok(())
    }

    fn read_outcomes(&mut self, folder: &Path) -> Result<(), DatasetError> {
        let failed = |cause: io::Error| DatasetError::History { path: folder.to_owned(), cause };
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.to_string_lossy().ends_with(OUTCOMES_ENDING) {
                files.push(path);
            }
        }
        if let (Some(name), Some(parent)) = (folder.file_name(), folder.parent()) {
            let beside = parent.join(format!("{}{OUTCOMES_ENDING}", name.to_string_lossy()));
            files.extend(beside.is_file().then_some(beside));
        }
        files.sort();
        files.iter().try_for_each(|path| self.read_outcome_file(path))
    }

    fn read_outcome_file(&mut self, path: &Path) -> Result<(), DatasetError> {
        let failed = |reason: String| DatasetError::Outcomes { path: path.to_owned(), reason };
        let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let value: Value = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
        let Value::Object(outcomes) = value else { return Err(failed("is no object".to_owned())) };
        for (id, outcome) in outcomes {
            match outcome {
                Value::Bool(resolved) => self.outcomes.insert(id, resolved),
                Value::Null => None,
                other => return Err(failed(format!("{id:?} is {other}"))),
            };
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn of_ids(ids: impl IntoIterator<Item = InstanceId>) -> Self {
        let run = |id: InstanceId| (key(&id), Run { path: PathBuf::from(id.as_str()), bytes: 0, id });
        let runs: BTreeMap<_, _> = ids.into_iter().map(run).collect();
        Self { runs: runs.into_values().collect(), ..Self::default() }
    }
}
