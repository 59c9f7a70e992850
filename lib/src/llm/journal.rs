//! Replies written down before they are used, so that a run killed at any moment never pays for one twice.
//!
//! `calls.jsonl` lies in the trial's folder: one line a call, in order, flushed to the disk before the reply is handed
//! out. A line holds the digest of the request, not the request: the trajectory has that. On resume the same calls are
//! answered from the file; a call that differs from the one recorded means that the run has diverged.

use std::collections::VecDeque;
use std::fs::TryLockError;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use fs_err as fs;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Cost, LlmError, Model, Reply, Request};

/// A line of `calls.jsonl`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The call, from 1.
    pub n: u64,
    /// What was asked, by [`Asked`].
    pub request_sha256: String,
    /// The answer; of a failed call, what it cost alone.
    pub reply: Reply,
    /// What the tokens of unmetered requests may have been, kept apart from what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Whether the answer came from a cache and was not paid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Why there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether it was in a journal already when it was asked for. Never written.
    #[serde(skip)]
    pub replayed: bool,
}

/// Tokens counted by the length of texts, where the endpoint said nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Completion tokens.
    pub completion_tokens: u64,
}

impl Entry {
    /// An answered call; its number is the file's to give.
    pub fn answered(request_sha256: String, reply: Reply) -> Self {
        Self { n: 0, request_sha256, reply, estimate: None, cached: false, failure: None, replayed: false }
    }
}

/// A model whose replies are written down first.
#[derive(Debug)]
pub struct Journaled<M> {
    model: M,
    path: String,
    /// Held for the length of a call: the calls of one trial are a sequence.
    turn: tokio::sync::Mutex<Turn>,
    shelf: Arc<Mutex<Shelf>>,
    recorded: u64,
    torn: u64,
}

/// How far the run has come.
#[derive(Debug, Default)]
struct Turn {
    /// Calls answered.
    n: u64,
    asked: Asked,
}

/// The file, and what it holds beyond the calls made so far.
#[derive(Debug)]
struct Shelf {
    log: Log,
    pending: VecDeque<Entry>,
}

/// The open file, which is this process's alone.
#[derive(Debug)]
pub(super) struct Log {
    file: fs::File,
    lines: u64,
}

/// A journal just opened.
pub(super) struct Opened {
    pub log: Log,
    pub entries: VecDeque<Entry>,
    /// Bytes of a torn last line that were cut off.
    pub torn: u64,
}

impl Log {
    /// Opens or makes the journal, takes it for this process alone, and cuts off a last line that a kill left torn.
    pub fn open(path: &Path) -> Result<Opened, LlmError> {
        let name = path.display().to_string();
        let wrong = |reason: String| LlmError::Journal { path: name.clone(), reason };
        let io = |error: std::io::Error| wrong(error.to_string());
        let mut file = fs::OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io)?;
        match take_alone(file.file()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(wrong("another process is writing it".into())),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let (entries, whole) = parse(&bytes).map_err(wrong)?;
        let torn = (bytes.len() - whole) as u64;
        if torn > 0 {
            file.file().set_len(whole as u64).and_then(|()| file.sync_data()).map_err(io)?;
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            // The file's name must survive a power cut as well.
            fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
        }
        let lines = entries.len() as u64;
        Ok(Opened { log: Self { file, lines }, entries, torn })
    }

    /// Writes an entry through to the disk, with the next number. After a failed write the file is brought back to
    /// whole lines.
    pub fn append(&mut self, entry: Entry) -> std::io::Result<Entry> {
        let entry = Entry { n: self.lines + 1, ..entry };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let before = self.file.metadata()?.len();
        if let Err(error) = self.file.write_all(&line).and_then(|()| self.file.sync_data()) {
            // A full disk still lets a file shrink; if even that fails, the next opening cuts the torn line off.
            let _ = self.file.file().set_len(before);
            return Err(error);
        }
        self.lines += 1;
        Ok(entry)
    }
}

impl<M> Journaled<M> {
    /// Opens or makes the journal, takes it for this process alone, and cuts off a last line that a kill left torn.
    pub fn open(path: &Path, model: M) -> Result<Self, LlmError> {
        let Opened { log, entries: pending, torn } = Log::open(path)?;
        let recorded = pending.len() as u64;
        let shelf = Arc::new(Mutex::new(Shelf { log, pending }));
        let path = path.display().to_string();
        Ok(Self { model, path, turn: tokio::sync::Mutex::default(), shelf, recorded, torn })
    }

    /// How many calls the journal held when it was opened.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Bytes of a torn last line that were cut off when it was opened; 0: there was none.
    pub fn torn(&self) -> u64 {
        self.torn
    }
}

/// Locks a file for this process, where its file system has locks: some that machines share have none.
pub(crate) fn take_alone(file: &std::fs::File) -> Result<(), TryLockError> {
    match file.try_lock() {
        Err(TryLockError::Error(error))
            if error.kind() == std::io::ErrorKind::Unsupported
                || error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error()) =>
        {
            Ok(())
        }
        taken => taken,
    }
}

impl Drop for Log {
    /// Closing alone would keep the lock while a process that was forked meanwhile has not yet replaced itself.
    fn drop(&mut self) {
        let _ = self.file.file().unlock();
    }
}

impl Shelf {
    /// Writes a call down and has it ready for the one who asked.
    fn append(&mut self, entry: Entry) -> std::io::Result<()> {
        let entry = self.log.append(entry)?;
        self.pending.push_back(entry);
        Ok(())
    }
}

#[async_trait]
impl<M: Model> Model for Journaled<M> {
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        let mut turn = self.turn.lock().await;
        let n = turn.n + 1;
        let asked = turn.asked.digest(self.model.name(), request);
        let recorded = lock(&self.shelf).pending.front().map(|entry| entry.request_sha256.clone());
        match recorded {
            Some(recorded) if recorded != asked => {
                return Err(LlmError::Diverged { path: self.path.clone(), number: n });
            }
            Some(_) => {}
            None => {
                let reply = self.model.complete(request).await?;
                self.write(Entry::answered(asked, reply)).await?;
            }
        }
        let entry = lock(&self.shelf).pending.pop_front();
        turn.n = n;
        entry.map(|entry| entry.reply).ok_or_else(|| self.wrong("a reply just written is gone".into()))
    }

    fn name(&self) -> &str {
        self.model.name()
    }
}

impl<M> Journaled<M> {
    /// Writes on a thread that may block. If the caller is dropped meanwhile the entry is written all the same and
    /// answers the next call: the file and the memory agree.
    async fn write(&self, entry: Entry) -> Result<(), LlmError> {
        let shelf = self.shelf.clone();
        match tokio::task::spawn_blocking(move || lock(&shelf).append(entry)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.wrong(error.to_string())),
            Err(error) => Err(self.wrong(error.to_string())),
        }
    }

    fn wrong(&self, reason: String) -> LlmError {
        LlmError::Journal { path: self.path.clone(), reason }
    }
}

fn lock(shelf: &Mutex<Shelf>) -> std::sync::MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the calls of a journal cost, the first `skip` left out; a torn last line is no call, a missing file holds none.
///
/// # Errors
/// When the file cannot be read or is no journal.
pub fn spent(path: &Path, skip: u64) -> Result<Cost, LlmError> {
    let paid = entries(path)?.into_iter().skip(usize::try_from(skip).unwrap_or(usize::MAX));
    Ok(paid.fold(Cost::ZERO, |sum, entry| sum.plus(entry.reply.cost)))
}

/// How many calls a journal holds.
///
/// # Errors
/// As [`spent`].
pub fn recorded(path: &Path) -> Result<u64, LlmError> {
    Ok(entries(path)?.len() as u64)
}

/// The lines of a journal; a torn last one is left out, a missing file holds none.
pub(super) fn entries(path: &Path) -> Result<VecDeque<Entry>, LlmError> {
    let wrong = |reason: String| LlmError::Journal { path: path.display().to_string(), reason };
    match fs::read(path) {
        Ok(bytes) => parse(&bytes).map(|(entries, _)| entries).map_err(wrong),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(VecDeque::new()),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// The entries, and how many bytes they take; a last line beyond that is torn.
fn parse(bytes: &[u8]) -> Result<(VecDeque<Entry>, usize), String> {
    let (mut entries, mut whole) = (VecDeque::new(), 0);
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if !line.ends_with(b"\n") {
            break;
        }
        let entry: Entry = serde_json::from_slice(line)
            .map_err(|error| format!("line {}: {error}: move the file away to start over", index + 1))?;
        if entry.n != index as u64 + 1 {
            return Err(format!(
                "line {} holds call {}: move the file away to start over",
                index + 1,
                entry.n
            ));
        }
        whole += line.len();
        entries.push_back(entry);
    }
    Ok((entries, whole))
}

/// What was asked of whom, as SHA-256 in hex. The order of keys does not matter.
///
/// A conversation repeats itself with each call: only what is new since the last call is hashed.
#[derive(Debug, Default)]
struct Asked {
    head: String,
    messages: Vec<Value>,
    hasher: Sha256,
}

impl Asked {
    fn digest(&mut self, model: &str, request: &Request) -> String {
        let head = canonical(json!({"model": model, "api": request.api, "tools": request.tools,
            "params": request.params, "seed": request.seed}));
        if head != self.head || !request.messages.starts_with(&self.messages) {
            *self = Self { hasher: Sha256::new_with_prefix(&head), head, messages: Vec::new() };
        }
        for message in &request.messages[self.messages.len()..] {
            self.hasher.update(b"\n");
            self.hasher.update(canonical(message.clone()));
            self.messages.push(message.clone());
        }
        self.hasher.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The JSON of a value, keys in order.
fn canonical(mut value: Value) -> String {
    sort(&mut value);
    value.to_string()
}

/// SHA-256 of a JSON value in hex, whatever the order of its keys.
pub(super) fn digest_of(value: Value) -> String {
    Sha256::digest(canonical(value)).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sort(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.sort_keys();
            map.values_mut().for_each(sort);
        }
        Value::Array(items) => items.iter_mut().for_each(sort),
        _ => {}
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
