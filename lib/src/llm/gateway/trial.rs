//! One admitted trial: its token, its journal, and the replies that nobody has taken yet.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use tokio::sync::{Mutex as Turn, OwnedRwLockReadGuard, RwLock};

use super::transcript::{self, Transcript};
use super::{Caller, Caps};
use crate::llm::client::{Ask, Route};
use crate::llm::journal::{Entry, Log, Opened};
use crate::llm::{LlmError, Protocol};

/// What is known of a token: looking up a digest tells nothing of the token by the time it takes.
pub(super) type Key = [u8; 32];

/// A new token and its key.
pub(super) fn token() -> io::Result<(String, Key)> {
    let mut random = [0; 32];
    let mut filled = 0;
    while filled < random.len() {
        filled += rustix::rand::getrandom(&mut random[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let token = format!("memtrial-{digits}");
    let key = key(&token);
    Ok((token, key))
}

/// The key of a token.
pub(super) fn key(token: &str) -> Key {
    Sha256::digest(token).into()
}

/// How a trial's calls went since it was admitted.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// Calls that were answered.
    pub answered: u64,
    /// Those of them whose reply had been paid for before.
    pub replayed: u64,
    /// The first call that a cap forbade.
    pub capped: Option<LlmError>,
    /// Why the last call failed, where it did (caps aside).
    pub failed: Option<LlmError>,
}

/// An admitted trial.
pub(super) struct Trial {
    pub caller: Caller,
    pub caps: Caps,
    pub journal: PathBuf,
    log: Arc<Mutex<Log>>,
    /// Replies by the digest of their request, oldest first: from an earlier life, or left by a caller who hung up.
    unclaimed: Mutex<BTreeMap<String, VecDeque<Entry>>>,
    /// Equal requests wait for one another, so that one who hung up and asks again finds the reply already paid for.
    turns: Mutex<BTreeMap<String, Arc<Turn<()>>>>,
    step: AtomicU64,
    standing: Mutex<Standing>,
    transcript: Option<Arc<Mutex<Transcript>>>,
    /// Whether the trial has ended; held shared by the calls under way.
    ended: Arc<RwLock<bool>>,
}

impl Trial {
    /// Opens the journal; gives what it holds as well.
    pub fn open(
        caller: Caller,
        caps: Caps,
        journal: &Path,
        keep_requests: bool,
    ) -> Result<(Self, VecDeque<Entry>), LlmError> {
        let Opened { log, entries, .. } = Log::open(journal)?;
        let transcript = keep_requests.then(|| Transcript::begin(journal)).transpose();
        let transcript = transcript.map_err(|error| LlmError::Journal {
            path: transcript::place(journal).display().to_string(),
            reason: error.to_string(),
        })?;
        let trial = Self {
            caller,
            caps,
            journal: journal.to_owned(),
            log: Arc::new(Mutex::new(log)),
            unclaimed: Mutex::default(),
            turns: Mutex::default(),
            step: AtomicU64::new(0),
            standing: Mutex::default(),
            transcript: transcript.map(|transcript| Arc::new(Mutex::new(transcript))),
            ended: Arc::default(),
        };
        Ok((trial, entries))
    }

    /// Answers from these lines, where the same is asked again.
    pub fn expect(&self, entries: impl IntoIterator<Item = Entry>) {
        let answered = entries.into_iter().filter(|entry| entry.failure.is_none());
        answered.for_each(|entry| self.put_back(entry));
    }

    /// The number of the next call, from 1.
    pub fn next_step(&self) -> u64 {
        self.step.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Keeps the trial from ending for the length of a call; `None`: it has ended.
    pub async fn enter(&self) -> Option<OwnedRwLockReadGuard<bool>> {
        let ended = self.ended.clone().read_owned().await;
        (!*ended).then_some(ended)
    }

    /// Lets no call in any more and waits until none is under way.
    pub async fn end(&self) {
        *self.ended.write().await = true;
    }

    /// The turn of all requests with this digest.
    pub fn turn(&self, digest: &str) -> Arc<Turn<()>> {
        lock(&self.turns).entry(digest.to_owned()).or_default().clone()
    }

    /// The oldest reply to this request that nobody has taken.
    pub fn claim(&self, digest: &str) -> Option<Entry> {
        lock(&self.unclaimed).get_mut(digest)?.pop_front()
    }

    /// Keeps a reply for whoever asks the same next.
    pub fn put_back(&self, entry: Entry) {
        lock(&self.unclaimed).entry(entry.request_sha256.clone()).or_default().push_back(entry);
    }

    /// Writes a call down, on a thread that may block.
    pub async fn write(&self, entry: Entry) -> Result<Entry, LlmError> {
        let log = self.log.clone();
        match tokio::task::spawn_blocking(move || lock(&log).append(entry)).await {
            Ok(Ok(entry)) => Ok(entry),
            Ok(Err(error)) => Err(self.wrong(error.to_string())),
            Err(error) => Err(self.wrong(error.to_string())),
        }
    }

    /// How its calls went so far.
    pub fn standing(&self) -> Standing {
        lock(&self.standing).clone()
    }

    /// Notes how a call went, and what was asked, where that is kept.
    pub async fn noted(
        &self,
        protocol: Protocol,
        ask: Ask,
        outcome: Result<Entry, LlmError>,
    ) -> Result<Entry, LlmError> {
        let entry = match outcome {
            Ok(entry) => self.told(protocol, ask, entry).await?,
            Err(error) => {
                let mut standing = lock(&self.standing);
                match &error {
                    LlmError::Capped { .. } => drop(standing.capped.get_or_insert(error.clone())),
                    other => standing.failed = Some(other.clone()),
                }
                return Err(error);
            }
        };
        let mut standing = lock(&self.standing);
        standing.answered += 1;
        standing.replayed += u64::from(entry.replayed);
        standing.failed = None;
        Ok(entry)
    }

    async fn told(&self, protocol: Protocol, ask: Ask, entry: Entry) -> Result<Entry, LlmError> {
        // Vectors are no talk.
        let transcript = self.transcript.clone().filter(|_| ask.route != Route::Vectors);
        let Some(transcript) = transcript else { return Ok(entry) };
        let told = tokio::task::spawn_blocking(move || {
            lock(&transcript).add(protocol, &ask.body, &entry.reply, entry.replayed).map(|()| entry)
        });
        match told.await {
            Ok(told) => told.map_err(|error| self.wrong(error.to_string())),
            Err(error) => Err(self.wrong(error.to_string())),
        }
    }

    pub fn wrong(&self, reason: String) -> LlmError {
        LlmError::Journal { path: self.journal.display().to_string(), reason }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
