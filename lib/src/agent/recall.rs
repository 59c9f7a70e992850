//! Who answers a run that asks memory while it goes on, and what is kept of the answers.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asking::{Asking, Question};
use super::message::RECALL;
use super::parse;
use crate::memory::host::{Injection, Outcome, Retrieved};
use crate::memory::{MemoryError, Phase, Query, Target, Turn};

/// Messages that a query shows to systems that look at the run.
const RECENT_MESSAGES: usize = 6;

/// Characters of each of them, from its beginning and its end.
const RECENT_CHARACTERS: usize = 4000;

/// Answers questions about earlier runs: a memory system with a frozen store for the run's target.
#[async_trait]
pub trait Recall: Send + Sync {
    /// Asks it.
    ///
    /// # Errors
    /// Where the system fails; an abstention is no failure.
    async fn recall(&self, query: &Query) -> Result<Retrieved, MemoryError>;
}

/// Memory that a run may ask while it goes on.
#[derive(Clone, Copy)]
pub struct OnDemand<'a> {
    /// When.
    pub asking: Asking,
    /// Whom.
    pub memory: &'a dyn Recall,
    /// What was delivered before the first step; at a phase it is not delivered again.
    pub start: Option<&'a Injection>,
}

/// One question of a run and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recalled {
    /// What was asked.
    pub question: Question,
    /// Model calls that the run had made by then.
    pub step: u64,
    /// What the model read. `None`: nothing; memory abstained at a phase, or said what it had said before.
    pub text: Option<String>,
    /// The answer with its sources and costs.
    pub retrieved: Retrieved,
}

/// What a run has been delivered, so that no phase delivers it again.
#[derive(Debug, Default)]
pub(super) struct Delivered(Vec<String>);

impl Delivered {
    /// Counts what was delivered; whether any of it is new.
    pub(super) fn add(&mut self, injection: &Injection) -> bool {
        let records = injection.records.iter().map(|record| format!("{}\n{}", record.source, record.text));
        let mut keys: Vec<String> = records.collect();
        if keys.is_empty() {
            keys.push(injection.block.clone());
        }
        keys.retain(|key| !self.0.contains(key));
        let new = !keys.is_empty();
        self.0.append(&mut keys);
        new
    }
}

/// What the model reads of an answer.
pub(super) fn shown(question: &Question, outcome: &Outcome, delivered: &mut Delivered) -> Option<String> {
    let Outcome::Injected(injection) = outcome else { return None };
    let new = delivered.add(injection);
    // who asks is answered, also with what it has read before
    (new || matches!(question, Question::Tool(_))).then(|| injection.block.clone())
}

/// The query that a question becomes.
pub(super) fn query(question: &Question, target: Target, log: &[Value]) -> Query {
    let (text, phase) = match question {
        Question::Tool(text) => (Some(text.clone()), Phase::Start),
        Question::Phase(phase) => (None, *phase),
    };
    Query { text, phase, recent: recent(log), ..Query::at_start(target) }
}

/// The latest messages after the task; what memory itself said is none of them.
fn recent(log: &[Value]) -> Vec<Turn> {
    let own = |message: &&Value| message.pointer(&format!("/extra/{RECALL}")).is_none();
    let mut turns: Vec<Turn> = log.iter().skip(2).rev().filter(own).take(RECENT_MESSAGES).map(turn).collect();
    turns.reverse();
    turns
}

fn turn(message: &Value) -> Turn {
    let role = match (message["role"].as_str(), message["object"].as_str(), message["type"].as_str()) {
        (Some(role), ..) => role,
        (None, Some("response"), _) => "assistant",
        _ => "tool",
    };
    let said = message["output"].as_str().map_or_else(|| parse::content_text(message), str::to_owned);
    let actions = message.pointer("/extra/actions").and_then(Value::as_array).into_iter().flatten();
    let commands = actions.filter_map(|action| action["command"].as_str().or(action["query"].as_str()));
    let mut parts = vec![said.as_str()];
    parts.extend(commands.filter(|command| !said.contains(*command)));
    Turn { role: role.to_owned(), text: cut(parts.join("\n").trim()) }
}

/// A long text without its middle.
fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= RECENT_CHARACTERS {
        return text.to_owned();
    }
    let half = RECENT_CHARACTERS / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(length - half).collect();
    format!("{head}\n[…]\n{tail}")
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
