//! What a run writes down before it uses it: `events.jsonl` (what happened outside the machine) and `messages.jsonl`
//! (the log, a message a line). Both are only ever appended to.

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::{Moment, Observation};
use super::recall::Recalled;
use crate::llm::take_alone;

/// Why a run's own files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("run file {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A complete line does not hold what it should.
    #[error(
        "run file {path}, line {line}: {reason}; the file was changed from outside: start over in another folder"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Another process runs in this folder.
    #[error("another run is writing to {path}; wait for it, or name another folder")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The folder holds a run of something else.
    #[error(
        "{path} belongs to another run (other task, configuration, memory block, solver or seed); name another folder"
    )]
    OtherRun {
        /// The file.
        path: PathBuf,
    },
}

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Entry {
    /// The first line: which run this is.
    Run {
        /// Of everything that the run starts from.
        digest: String,
    },
    /// The machine was started.
    Started { at: Moment },
    /// A model call was answered; the answer is in the model's own journal.
    Replied {
        /// From 1.
        call: u64,
        /// SHA-256 of the message, in hex.
        message: String,
        at: Moment,
    },
    /// A command ended.
    Ran {
        /// From 1.
        number: u64,
        command: String,
        observation: Observation,
        /// The state of the repository after it; none where it is unknown.
        tree: Option<String>,
        at: Moment,
    },
    /// Memory answered while the run went on.
    Recalled { recalled: Box<Recalled>, at: Moment },
}

/// What a run has asked memory so far, as its folder tells; nothing where it has not begun.
///
/// # Errors
/// When its journal cannot be read.
pub fn recalled(folder: &Path) -> Result<Vec<Recalled>, JournalError> {
    let path = folder.join("events.jsonl");
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(JournalError::Io { path, source }),
    };
    let entries = whole_lines::<Entry>(&path, &bytes)?;
    let asked = entries.into_iter().filter_map(|entry| match entry {
        Entry::Recalled { recalled, .. } => Some(*recalled),
        _ => None,
    });
    Ok(asked.collect())
}

/// The values of all lines that have their end.
fn whole_lines<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<VecDeque<T>, JournalError> {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut values = VecDeque::new();
    for (index, line) in bytes[..whole].split(|&byte| byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        values.push_back(serde_json::from_slice(line).map_err(|error| JournalError::Corrupt {
            path: path.to_owned(),
            line: index + 1,
            reason: error.to_string(),
        })?);
    }
    Ok(values)
}

/// An append-only file of JSON lines, and the lines that an earlier process left in it.
#[derive(Debug)]
struct Lines<T> {
    path: PathBuf,
    file: File,
    recorded: VecDeque<T>,
}

impl<T: Serialize + DeserializeOwned> Lines<T> {
    /// Opens or makes the file. A last line without its end (a process was killed under it) is cut off.
    fn open(path: PathBuf, lock: bool) -> Result<Self, JournalError> {
        let io_error = |source| JournalError::Io { path: path.clone(), source };
        let mut file = File::options().read(true).append(true).create(true).open(&path).map_err(io_error)?;
        if lock {
            take_alone(&file).map_err(|error| match error {
                TryLockError::WouldBlock => JournalError::Busy { path: path.clone() },
                TryLockError::Error(source) => io_error(source),
            })?;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io_error)?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(io_error)?;
            file.seek(SeekFrom::End(0)).map_err(io_error)?;
        }
        let recorded = whole_lines(&path, &bytes)?;
        Ok(Self { path, file, recorded })
    }

    /// Writes one line. After a failed write (a full disk) the file is brought back to whole lines.
    fn append(&mut self, item: &T) -> Result<(), JournalError> {
        let write = |file: &mut File| {
            let mut line = serde_json::to_vec(item)?;
            line.push(b'\n');
            let before = file.metadata()?.len();
            file.write_all(&line).inspect_err(|_| {
                let _ = file.set_len(before);
            })
        };
        write(&mut self.file).map_err(|source| JournalError::Io { path: self.path.clone(), source })
    }
}

impl<T> Drop for Lines<T> {
    /// Closing alone would not do: a child process that is just being started holds a copy until it has begun.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Both files of one run. While it is open no other process can open it.
#[derive(Debug)]
pub(super) struct Journal {
    events: Lines<Entry>,
    messages: Lines<Value>,
}

impl Journal {
    /// Opens the journal of the run with this digest, or begins it.
    pub(super) fn open(folder: &Path, digest: &str) -> Result<Self, JournalError> {
        fs_err::create_dir_all(folder)
            .map_err(|source| JournalError::Io { path: folder.to_owned(), source })?;
        let mut events = Lines::open(folder.join("events.jsonl"), true)?;
        let messages = Lines::open(folder.join("messages.jsonl"), false)?;
        let entry = Entry::Run { digest: digest.to_owned() };
        match events.recorded.pop_front() {
            None => events.append(&entry)?,
            Some(first) if first == entry => {}
            Some(_) => return Err(JournalError::OtherRun { path: events.path.clone() }),
        }
        Ok(Self { events, messages })
    }

    /// The next event that an earlier process recorded.
    pub(super) fn recorded(&mut self) -> Option<Entry> {
        self.events.recorded.pop_front()
    }

    /// Whether an earlier process recorded more.
    pub(super) fn replaying(&self) -> bool {
        !self.events.recorded.is_empty()
    }

    /// Writes an event down.
    pub(super) fn event(&mut self, entry: &Entry) -> Result<(), JournalError> {
        self.events.append(entry)
    }

    /// Writes a message down, or checks it against the recorded one: `Ok(false)` where they differ.
    pub(super) fn message(&mut self, message: &Value) -> Result<bool, JournalError> {
        match self.messages.recorded.pop_front() {
            Some(recorded) => Ok(recorded == *message),
            None => self.messages.append(message).map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_torn_last_line_is_cut_off_and_a_changed_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), "d").unwrap();
        let at = Moment { unix: 1.5, elapsed: 0.1 };
        journal.event(&Entry::Started { at }).unwrap();
        assert!(journal.message(&json!({"content": "é"})).unwrap());
        drop(journal);

        let path = folder.path().join("events.jsonl");
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"{\"replied\": {\"call\": 1"].concat()).unwrap();
        let mut journal = Journal::open(folder.path(), "d").unwrap();
        assert_eq!(journal.recorded(), Some(Entry::Started { at }));
        assert_eq!(journal.recorded(), None);
        assert!(!journal.message(&json!({"content": "other"})).unwrap());
        drop(journal);
        assert_eq!(std::fs::read(&path).unwrap(), whole);

        std::fs::write(&path, [&whole[..], b"nonsense\n"].concat()).unwrap();
        let error = Journal::open(folder.path(), "d").unwrap_err().to_string();
        assert!(error.contains("events.jsonl, line 3:"), "{error}");
    }

    #[test]
    fn a_folder_serves_one_run_and_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let first = Journal::open(folder.path(), "d").unwrap();
        assert!(matches!(Journal::open(folder.path(), "d"), Err(JournalError::Busy { .. })));
        drop(first);
        assert!(matches!(Journal::open(folder.path(), "e"), Err(JournalError::OtherRun { .. })));
    }
}
