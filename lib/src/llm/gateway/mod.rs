//! The only way to a model for what is not our own code: a proxy that meters, journals, caches and caps.
//!
//! A [`Gateway`] stands before one endpoint. Whoever may use it is *admitted* and gets a token, which his program
//! presents as its API key; calls made with it are the calls of that trial, and their counts are its costs. In front
//! the gateway speaks chat completions, Anthropic messages and OpenAI responses, streaming or not; behind it whatever
//! the endpoint speaks. What one format cannot carry into the other is refused by name, never left out in silence.

mod cache;
mod call;
mod front;
mod ledger;
mod listen;
mod routes;
mod transcript;
mod trial;

pub use super::journal::Estimate;
pub use ledger::{Caps, Tally};
pub use listen::Listening;
pub use transcript::{Exchange, exchanges, place as transcript_place};
pub use trial::Standing;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::{Client, Cost, Endpoint, Limiter, LlmError, OnRetry};
use ledger::Ledger;
use trial::{Key, Trial};

/// How a gateway works, besides its endpoint.
#[derive(Clone)]
pub struct Settings {
    /// What all trials together may spend.
    pub caps: Caps,
    /// What they spent before this gateway was made, in journals that it will not open.
    pub spent: Cost,
    /// The folder of cached replies; `None`: none are kept.
    pub cache: Option<PathBuf>,
    /// Who answers requests for embeddings, under its own model name; `None`: the gateway's endpoint does, with the
    /// model that the client names and at an unknown price.
    pub embeddings: Option<Endpoint>,
    /// Request fields that may be left out where the endpoint's format cannot carry them.
    pub may_drop: BTreeSet<String>,
    /// How long a client that asked for a stream waits for a sign of life.
    pub keep_alive: Duration,
    /// Whether addresses other than this machine's loopback may be listened on.
    pub beyond_loopback: bool,
    /// Whether what is asked is kept beside each journal ([`exchanges`]), which holds digests of requests alone.
    pub keep_requests: bool,
    /// Hears of every try that failed and is made again.
    pub on_retry: Option<OnRetry>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            caps: Caps::default(),
            spent: Cost::ZERO,
            cache: None,
            embeddings: None,
            may_drop: BTreeSet::new(),
            keep_alive: Duration::from_secs(10),
            beyond_loopback: false,
            keep_requests: false,
            on_retry: None,
        }
    }
}

/// Whose calls they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caller {
    /// The condition's name.
    pub condition: String,
    /// The target's instance id.
    pub target: String,
    /// The solver's name.
    pub solver: String,
    /// The replicate's number, from 1; sent as `seed` where the endpoint's settings say so.
    pub replicate: u32,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// A proxy before one endpoint; cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    client: Client,
    /// Asks for embeddings.
    embedder: Client,
    settings: Settings,
    ledger: Mutex<Ledger>,
    /// Those who are admitted, by the digest of their token.
    trials: Mutex<BTreeMap<Key, Arc<Trial>>>,
    /// Whether calls that failed are not made again any more.
    closing: AtomicBool,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("client", &self.0.client).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway before this endpoint, sharing the limiter with the other clients of its address.
    ///
    /// # Errors
    /// When the endpoint's settings cannot work, or money is capped and the model's price unknown.
    pub fn new(endpoint: Endpoint, limiter: &Limiter, settings: Settings) -> Result<Self, LlmError> {
        let embedder = settings.embeddings.clone();
        let embedder = embedder.unwrap_or_else(|| Endpoint {
            params: serde_json::Map::new(),
            price: None,
            ..endpoint.clone()
        });
        let mut embedder = Client::sharing(embedder, limiter)?;
        let mut client = Client::sharing(endpoint, limiter)?;
        if let Some(tell) = &settings.on_retry {
            client = client.telling(tell.clone());
            embedder = embedder.telling(tell.clone());
        }
        settings.caps.check(&client)?;
        let ledger = Mutex::new(Ledger::new(settings.caps, settings.spent));
        let (trials, closing) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self(Arc::new(Inner { client, embedder, settings, ledger, trials, closing })))
    }

    /// Makes no call again from here on that has failed: who waits for one is told of its failure at once. Calls under
    /// way are answered.
    pub fn close(&self) {
        self.0.closing.store(true, Ordering::Relaxed);
    }

    /// Lets a trial in. Its calls are written to `journal` before they are answered; what an earlier, killed life of
    /// the same trial wrote there counts as spent and answers the same requests again.
    ///
    /// # Errors
    /// When the journal cannot be used (another process writes it, it is no journal, the disk), or money is capped and
    /// the model's price unknown.
    pub fn admit(&self, caller: Caller, caps: Caps, journal: &Path) -> Result<Admission, LlmError> {
        caps.check(&self.0.client)?;
        let (trial, entries) = Trial::open(caller, caps, journal, self.0.settings.keep_requests)?;
        let tallies = entries.iter().map(|entry| {
            let vectors = super::price::is_vectors(&entry.reply.message);
            Tally::of(entry, self.0.client_for(vectors).endpoint().price.as_ref())
        });
        let recorded = tallies.fold(Tally::default(), Tally::plus);
        self.0.ledger().open(journal, recorded);
        let (token, key) = trial::token().map_err(|error| trial.wrong(error.to_string()))?;
        let trial = Arc::new(trial);
        trial.expect(entries);
        self.0.trials().insert(key, trial.clone());
        Ok(Admission { gateway: self.clone(), trial, token, key })
    }

    /// What all trials together spent.
    pub fn total(&self) -> Tally {
        self.0.ledger().total()
    }

    /// Listens on a Unix socket, made at this path with access for its owner alone.
    ///
    /// # Errors
    /// When the socket cannot be made; a file that lies at the path is never replaced.
    pub async fn listen_unix(&self, path: &Path) -> io::Result<Listening> {
        listen::unix(self.clone(), path).await
    }

    /// Listens on a TCP address (port 0: a free one).
    ///
    /// # Errors
    /// When the address is taken, or is none of this machine's loopback and the settings do not allow that.
    pub async fn listen_tcp(&self, address: SocketAddr) -> io::Result<Listening> {
        listen::tcp(self.clone(), address).await
    }
}

impl Inner {
    /// Who is asked: for vectors of texts, or for answers.
    fn client_for(&self, vectors: bool) -> &Client {
        if vectors { &self.embedder } else { &self.client }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trials(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Trial>>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One trial's right to call, until it is finished or dropped.
pub struct Admission {
    gateway: Gateway,
    trial: Arc<Trial>,
    token: String,
    key: Key,
}

impl fmt::Debug for Admission {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("caller", &self.trial.caller).finish_non_exhaustive()
    }
}

impl Admission {
    /// The key that the caller's program presents: `Authorization: Bearer …` or `x-api-key`.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// What the trial's calls cost so far, those of an earlier life included.
    pub fn spent(&self) -> Cost {
        self.tally().cost
    }

    /// The same, with what is estimated where the endpoint said nothing.
    pub fn tally(&self) -> Tally {
        self.gateway.0.ledger().of(&self.trial.journal)
    }

    /// Answers from another journal as well where the same is asked again: that of an earlier attempt. Such a reply is
    /// no new cost.
    ///
    /// # Errors
    /// When it cannot be read or is no journal.
    pub fn answer_from(&self, journal: &Path) -> Result<(), LlmError> {
        self.trial.expect(super::journal::entries(journal)?);
        Ok(())
    }

    /// How the trial's calls went in this life.
    pub fn standing(&self) -> Standing {
        self.trial.standing()
    }

    /// Ends the trial's right to call, waits for the calls under way (their replies are paid), and says what all cost.
    pub async fn finish(self) -> Cost {
        self.gateway.0.trials().remove(&self.key);
        self.trial.end().await;
        self.spent()
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.gateway.0.trials().remove(&self.key);
    }
}

#[cfg(test)]
mod bench;
#[cfg(test)]
mod embeddings_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod front_tests;
#[cfg(test)]
mod tests;
