//! How a model is asked: the client, retry, price, the journal, replay, the gateway.
//!
//! [`Client`] asks an endpoint, [`Replay`] answers from a recorded run, and [`Journaled`] stands before either: it
//! writes every reply down before it lets it be used, so that a killed run resumes without paying again. [`Kept`] does the
//! same by what is asked, for work without an order. What is not our own code asks through the [`gateway`].
//!
//! Messages have the wire format of OpenAI chat completions throughout; endpoints that speak another are translated to.

mod anthropic;
mod client;
mod embed;
mod endpoint;
pub mod gateway;
mod http;
mod journal;
mod kept;
mod limiter;
mod price;
mod probe;
mod replay;
mod responses;
mod sse;
mod stream;

pub use client::{Client, OnRetry};
#[cfg(feature = "minilm")]
pub use embed::MiniLm;
pub use embed::{Embedded, Embedder, EndpointEmbedder};
pub use endpoint::{Endpoint, Protocol, Secret};
pub(crate) use journal::take_alone;
pub use journal::{Journaled, recorded, spent};
pub use kept::Kept;
pub use limiter::Limiter;
pub use price::{Price, Prices};
pub use probe::{Probe, SeedSupport, probe, probe_seed};
pub use replay::{Replay, recorded_run};

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What calls to models cost: counted tokens, money and time. Sums of unknown and known money are unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Model calls.
    pub calls: u64,
    /// Prompt tokens, cached ones included.
    pub prompt_tokens: u64,
    /// Prompt tokens that the endpoint's cache held.
    pub cached_tokens: u64,
    /// Completion tokens, reasoning included.
    pub completion_tokens: u64,
    /// Wall-clock seconds in which requests were under way, retries included, waiting between them not.
    pub seconds: f64,
    /// Requests that may have been charged while the endpoint did not say what they used: where this is not 0, the
    /// token counts are lower bounds and the money is unknown.
    pub unmetered_calls: u64,
    /// US dollars by the price list; `None`: some call's price is unknown.
    pub list_usd: Option<f64>,
    /// US dollars that the endpoint says it charged; `None`: it did not say for some call.
    pub paid_usd: Option<f64>,
}

impl Cost {
    /// Nothing spent: the neutral element of [`Cost::plus`].
    pub const ZERO: Self = Self {
        calls: 0,
        prompt_tokens: 0,
        cached_tokens: 0,
        completion_tokens: 0,
        seconds: 0.0,
        unmetered_calls: 0,
        list_usd: Some(0.0),
        paid_usd: Some(0.0),
    };

    /// What this cost is above another that is part of it.
    #[must_use]
    pub fn minus(self, part: Self) -> Self {
        let rest = |all: Option<f64>, part: Option<f64>| Some((all? - part?).max(0.0));
        Self {
            calls: self.calls.saturating_sub(part.calls),
            prompt_tokens: self.prompt_tokens.saturating_sub(part.prompt_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(part.cached_tokens),
            completion_tokens: self.completion_tokens.saturating_sub(part.completion_tokens),
            seconds: (self.seconds - part.seconds).max(0.0),
            unmetered_calls: self.unmetered_calls.saturating_sub(part.unmetered_calls),
            list_usd: rest(self.list_usd, part.list_usd),
            paid_usd: rest(self.paid_usd, part.paid_usd),
        }
    }

    /// This cost shared equally by `served` trials; counts are rounded up, so that no cost disappears.
    #[must_use]
    pub fn divided(self, served: u64) -> Self {
        let served = served.max(1);
        let share = |usd: Option<f64>| usd.map(|usd| usd / served as f64);
        Self {
            calls: self.calls.div_ceil(served),
            prompt_tokens: self.prompt_tokens.div_ceil(served),
            cached_tokens: self.cached_tokens.div_ceil(served),
            completion_tokens: self.completion_tokens.div_ceil(served),
            seconds: self.seconds / served as f64,
            unmetered_calls: self.unmetered_calls.div_ceil(served),
            list_usd: share(self.list_usd),
            paid_usd: share(self.paid_usd),
        }
    }

    /// The sum of two costs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let money = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        Self {
            calls: self.calls + other.calls,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            cached_tokens: self.cached_tokens + other.cached_tokens,
            completion_tokens: self.completion_tokens + other.completion_tokens,
            seconds: self.seconds + other.seconds,
            unmetered_calls: self.unmetered_calls + other.unmetered_calls,
            list_usd: money(self.list_usd, other.list_usd),
            paid_usd: money(self.paid_usd, other.paid_usd),
        }
    }
}

/// Which of OpenAI's two interfaces a request is written for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// Chat completions: `/chat/completions`.
    #[default]
    Chat,
    /// The Responses API, used without state on the server: `/responses`.
    Responses,
}

/// One answer to ask for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// The interface that messages and tools are written for.
    pub api: Api,
    /// Messages in the wire format of chat completions, or the `input` items of the Responses API.
    pub messages: Vec<Value>,
    /// Tools in the same format; empty: none are sent.
    pub tools: Vec<Value>,
    /// Sampling parameters and whatever else the endpoint takes, merged into the request body.
    pub params: Map<String, Value>,
    /// The replicate's number, where it is to be sent.
    pub seed: Option<u64>,
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The assistant message as chat completions have it (`choices[0].message`), untouched save that every call has an
    /// id of its own; of the Responses API the whole response.
    pub message: Value,
    /// How it ended, in the words of chat completions; of the Responses API `length` where the reply hit its limit of
    /// tokens, else the response's `status`.
    pub finish_reason: Option<String>,
    /// The whole response, untouched; null where it is the message.
    pub response: Value,
    /// What it cost.
    pub cost: Cost,
}

/// Why a model gave no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LlmError {
    /// The settings do not make a usable client.
    #[error("model endpoint {endpoint} cannot be used: {reason}")]
    Setup {
        /// Its address, without secrets.
        endpoint: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A price list cannot be read.
    #[error("price list {path}: {reason}")]
    Prices {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The endpoint cannot be reached, closed the connection, or kept failing after all retries.
    #[error("model endpoint {endpoint}: {reason} (tried {attempts} times)")]
    Unreachable {
        /// Its address, without secrets.
        endpoint: String,
        /// The last failure.
        reason: String,
        /// How often it was tried.
        attempts: u32,
        /// The HTTP status of the last failure; `None`: the connection failed, or the reply could not be used.
        status: Option<u16>,
    },
    /// The endpoint refused the request for good (authentication, unknown model, bad parameter).
    #[error("model endpoint {endpoint} refused the request: HTTP {status}: {reason}")]
    Refused {
        /// Its address, without secrets.
        endpoint: String,
        /// The HTTP status.
        status: u16,
        /// Its words.
        reason: String,
    },
    /// The prompt is longer than the model's context window.
    #[error("the prompt is longer than the context window of the model: {reason}")]
    ContextWindowExceeded {
        /// The endpoint's words.
        reason: String,
    },
    /// The request holds something that the endpoint's wire format cannot carry.
    #[error("the request cannot be put to the model endpoint {endpoint}: {reason}")]
    Untranslatable {
        /// Its address, without secrets.
        endpoint: String,
        /// What cannot be carried, and what to do.
        reason: String,
    },
    /// The cache of replies cannot be read or written.
    #[error("reply cache {path}: {reason}")]
    Cache {
        /// The file.
        path: String,
        /// What happened.
        reason: String,
    },
    /// A call could exceed what may be spent; it was not made.
    #[error("{reason}")]
    Capped {
        /// Which cap, how high it is, and what is spent of it.
        reason: String,
    },
    /// Vectors of texts cannot be used.
    #[error("embeddings of {name} cannot be used: {reason}")]
    Vectors {
        /// The model that makes them.
        name: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A recorded run cannot be read.
    #[error("recorded run {path}: {reason}")]
    Recording {
        /// The trajectory file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A recorded run holds no further answer.
    #[error("the recorded trajectory holds no answer number {number}")]
    Exhausted {
        /// The call that found none, from 1.
        number: u64,
    },
    /// The journal cannot be written or does not fit the run.
    #[error("call journal {path}: {reason}")]
    Journal {
        /// The file.
        path: String,
        /// What happened.
        reason: String,
    },
    /// The run asks something else than it asked when the journal was written.
    #[error("call {number} is not the one recorded in {path}: the run has diverged, start a new attempt")]
    Diverged {
        /// The journal.
        path: String,
        /// The call, from 1.
        number: u64,
    },
}

/// Something that answers.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks once (retries inside).
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError>;

    /// The model's name, as predictions carry it.
    fn name(&self) -> &str;
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        (**self).complete(request).await
    }

    fn name(&self) -> &str {
        (**self).name()
    }
}
