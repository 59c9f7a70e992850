//! `memtrial-memory/1`: what is said in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::{Budget, Delivery, Experience, Feedback, MemoryFile, Query, Record, Retrieval, Scope};
use crate::task::InstanceId;

/// The protocol's name and version.
pub const PROTOCOL: &str = "memtrial-memory/1";

/// Asks who it is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub protocol: String,
    /// The folder that it may write to.
    pub state: String,
    /// Whether a model can be asked.
    pub model: bool,
}

/// Who it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Greeting {
    pub protocol: String,
    pub name: String,
    pub version: String,
    /// What it must be told to work as its authors mean it.
    #[serde(default)]
    pub needs: Needs,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Needs {
    pub outcome: bool,
    pub events: bool,
    pub model: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prepare<'a> {
    pub scope: std::borrow::Cow<'a, Scope>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ingest<'a> {
    pub experience: std::borrow::Cow<'a, Experience>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Retrieve<'a> {
    pub query: std::borrow::Cow<'a, Query>,
    pub budget: Budget,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Feed<'a> {
    pub feedback: std::borrow::Cow<'a, Feedback>,
}

/// What a program says that a call cost it. Kept beside the gateway's counts, never in their place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SelfReported {
    /// Model calls.
    pub calls: u64,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Completion tokens.
    pub completion_tokens: u64,
    /// Tokens embedded.
    pub embedded_tokens: u64,
    /// US dollars.
    pub usd: f64,
}

impl SelfReported {
    pub(super) fn add(&mut self, more: Self) {
        self.calls = self.calls.saturating_add(more.calls);
        self.prompt_tokens = self.prompt_tokens.saturating_add(more.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(more.completion_tokens);
        self.embedded_tokens = self.embedded_tokens.saturating_add(more.embedded_tokens);
        self.usd += more.usd;
    }
}

/// What every result may hold besides its own.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Done {
    pub usage: SelfReported,
    /// What did not go as it should though the call succeeded: a write kept without the model's part.
    pub degraded: Option<String>,
}

/// What `retrieve` brings: exactly one of the two.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub delivery: Option<Delivered>,
    pub abstain: Option<Abstain>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Abstain {
    pub reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delivered {
    #[serde(default)]
    pub records: Vec<Found>,
    pub block: Option<String>,
    #[serde(default)]
    pub files: Vec<MemoryFile>,
    #[serde(default)]
    pub tools: Vec<Value>,
    #[serde(default)]
    pub sources: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Found {
    pub source: String,
    pub text: String,
    pub score: Option<f64>,
}

impl Answer {
    /// The answer in memtrial's own terms.
    pub fn retrieval(self) -> Result<Retrieval, String> {
        match (self.delivery, self.abstain) {
            (Some(delivery), None) => Ok(Retrieval::Delivery(delivery.checked()?)),
            (None, Some(Abstain { reason })) if reason.trim().is_empty() => {
                Err("it abstains without a reason".into())
            }
            (None, Some(Abstain { reason })) => Ok(Retrieval::Abstain { reason }),
            (Some(_), Some(_)) => Err("it delivers and abstains at once".into()),
            (None, None) => Err("it neither delivers nor abstains".into()),
        }
    }
}

impl Delivered {
    fn checked(self) -> Result<Delivery, String> {
        let record = |found: Found| {
            let source = source(&found.source)?;
            Ok::<_, String>(Record {
                id: None,
                source,
                score: found.score,
                why: None,
                text: found.text,
                tokens: 0,
            })
        };
        Ok(Delivery {
            block: self.block,
            files: self.files,
            tools: self.tools,
            records: self.records.into_iter().map(record).collect::<Result<_, _>>()?,
            sources: self.sources.iter().map(|text| source(text)).collect::<Result<_, _>>()?,
        })
    }
}

/// The run that something derives from.
pub(super) fn source(text: &str) -> Result<InstanceId, String> {
    InstanceId::parse(text).map_err(|error| format!("its source {text:?} is no run's id: {error}"))
}
