//! What stores learnt from runs, on disk, so that no run is taken in twice: not for another target, not after a crash.
//!
//! A shelf is a file of JSON lines, only ever appended to: one line for what one run taught. Where each record derives
//! from one run, a line is found by the run's content; where the store mixes runs, by the whole chain of runs up to it, so
//! that a state is only ever taken back after exactly the history that made it. A line that a crash cut short is dropped
//! when the shelf is opened.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::redact::Redactions;
use super::{Description, MemoryError};
use crate::llm::Cost;
use crate::task::InstanceId;

/// One line.
#[derive(Serialize, Deserialize)]
struct Line<V> {
    key: String,
    run: InstanceId,
    taken: Taken,
    saved: V,
}

/// What taking a run in came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Taken {
    /// What it cost.
    pub cost: Cost,
    /// The secrets that were taken out of it.
    #[serde(default, skip_serializing_if = "Redactions::is_empty")]
    pub redactions: Redactions,
}

/// An open shelf. One process writes to it at a time: callers see to that.
#[derive(Debug)]
pub struct Shelf {
    path: PathBuf,
    file: File,
    identity: String,
    /// Where each line begins.
    lines: HashMap<String, u64>,
    end: u64,
}

/// The position in a history: what a key is made of.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    mixes: bool,
    so_far: String,
}

impl Chain {
    /// Before the first run; `mixes`: whether the store's state after a run depends on those before it.
    pub fn new(mixes: bool) -> Self {
        Self { mixes, so_far: String::new() }
    }

    /// Goes on with a run, and returns its key. The outcome is part of what a run teaches, where a system is told it.
    pub fn next(&mut self, run: &InstanceId, content: &str, outcome: Option<bool>) -> String {
        let before = if self.mixes { self.so_far.as_str() } else { "" };
        let key = format!("{:x}", Sha256::digest(format!("{before}\n{run}\n{content}\n{outcome:?}")));
        self.so_far.clone_from(&key);
        key
    }
}

/// What a shelf's lines depend on beside the runs: the system, its settings, its model and embedder.
pub fn identity(about: &Description, settings: &Value) -> String {
    let Description { name, version, model, embedder, .. } = about;
    let parts = serde_json::json!([name, version, model, embedder, settings]);
    format!("{:x}", Sha256::digest(parts.to_string()))
}

impl Shelf {
    /// Opens or creates a shelf for one system with one table of settings.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn open(path: &Path, identity: String) -> Result<Self, MemoryError> {
        let fail =
            |error: std::io::Error| MemoryError::Index { path: path.to_owned(), reason: error.to_string() };
        let options = File::options().read(true).append(true).create(true).open(path);
        let file = options.map_err(fail)?;
        let mut shelf = Self { path: path.to_owned(), file, identity, lines: HashMap::new(), end: 0 };
        let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(fail)?);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(fail)? as u64;
            if length == 0 {
                break;
            }
            if line.last() != Some(&b'\n') {
                // cut short by a crash
                shelf.file.set_len(shelf.end).map_err(fail)?;
                break;
            }
            let read: Line<serde::de::IgnoredAny> =
                serde_json::from_slice(&line).map_err(|error| MemoryError::Index {
                    path: path.to_owned(),
                    reason: format!("at byte {}: {error}; delete the file to have it made again", shelf.end),
                })?;
            shelf.lines.insert(read.key, shelf.end);
            shelf.end += length;
        }
        Ok(shelf)
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn full_key(&self, key: &str) -> String {
        format!("{:x}", Sha256::digest(format!("{}\n{key}", self.identity)))
    }

    /// What was put under a key, and what taking it in had come to.
    pub(super) fn get(&self, key: &str) -> Result<Option<(Value, Taken)>, MemoryError> {
        let Some(&at) = self.lines.get(&self.full_key(key)) else { return Ok(None) };
        let fail = |reason: String| MemoryError::Index { path: self.path.clone(), reason };
        let mut file = File::open(&self.path).map_err(|error| fail(error.to_string()))?;
        file.seek(SeekFrom::Start(at)).map_err(|error| fail(error.to_string()))?;
        let mut line = Vec::new();
        BufReader::new(file).read_until(b'\n', &mut line).map_err(|error| fail(error.to_string()))?;
        let line: Line<Value> =
            serde_json::from_slice(&line).map_err(|error| fail(format!("at byte {at}: {error}")))?;
        if line.key != self.full_key(key) {
            return Err(fail(format!("at byte {at} stands another run: another process writes to the file")));
        }
        Ok(Some((line.saved, line.taken)))
    }

    /// Appends what a run taught; on disk when it returns.
    pub(super) fn put(
        &mut self,
        key: &str,
        run: &InstanceId,
        saved: &Value,
        taken: &Taken,
    ) -> Result<(), MemoryError> {
        let fail = |reason: String| MemoryError::Index { path: self.path.clone(), reason };
        let key = self.full_key(key);
        let line = Line { key: key.clone(), run: run.clone(), taken: taken.clone(), saved };
        let mut bytes = serde_json::to_vec(&line).map_err(|error| fail(error.to_string()))?;
        bytes.push(b'\n');
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // half a line must not stay
            let _ = self.file.set_len(self.end);
            return Err(fail(error.to_string()));
        }
        self.lines.insert(key, self.end);
        self.end += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paid() -> Taken {
        Taken { cost: Cost { calls: 2, ..Cost::ZERO }, ..Taken::default() }
    }

    fn id(number: u64) -> InstanceId {
        InstanceId::parse(&format!("acme__widget-{number}")).unwrap()
    }

    #[test]
    fn keeps_what_was_put_and_drops_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shelf.jsonl");
        let mut shelf = Shelf::open(&path, "one".into()).unwrap();
        shelf.put("a", &id(1), &json!({"x": 1}), &paid()).unwrap();
        shelf.put("b", &id(2), &json!("two"), &paid()).unwrap();
        assert_eq!(shelf.get("a").unwrap(), Some((json!({"x": 1}), paid())));
        let whole = fs_err::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs_err::write(&path, &whole[..cut]).unwrap();
            let mut shelf = Shelf::open(&path, "one".into()).unwrap();
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(shelf.len(), lines, "cut at {cut}");
            shelf.put("c", &id(3), &json!(3), &paid()).unwrap();
            let again = Shelf::open(&path, "one".into()).unwrap();
            assert_eq!(
                (again.len(), again.get("c").unwrap()),
                (lines + 1, Some((json!(3), paid()))),
                "cut at {cut}"
            );
        }
        assert_eq!(Shelf::open(&path, "other".into()).unwrap().get("c").unwrap(), None);
        fs_err::write(&path, "no json\n").unwrap();
        let error = Shelf::open(&path, "one".into()).unwrap_err().to_string();
        assert!(error.contains("shelf.jsonl") && error.contains("at byte 0"), "{error}");
    }

    #[test]
    fn keys_tell_histories_apart_where_they_matter() {
        let keys = |mixes: bool, order: [u64; 2]| {
            let mut chain = Chain::new(mixes);
            order.map(|number| chain.next(&id(number), "content", None))
        };
        assert_eq!(keys(false, [1, 2])[1], keys(false, [3, 2])[1]);
        assert_ne!(keys(true, [1, 2])[1], keys(true, [3, 2])[1]);
        assert_eq!(keys(true, [1, 2]), keys(true, [1, 2]));
        let mut chain = Chain::new(false);
        assert_ne!(chain.next(&id(1), "content", Some(true)), chain.next(&id(1), "content", None));
    }
}
