//! What tests of memory systems share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::llm::{LlmError, Model, Reply, Request};

/// A run of `acme/widget` that added a line.
pub(super) fn run(number: u64, issue: &str, added: &str) -> Experience {
    let patch = format!("--- a/src/m.py\n+++ b/src/m.py\n@@ -1 +1,2 @@\n import os\n+{added}\n");
    Experience {
        instance_id: InstanceId::parse(&format!("acme__widget-{number}")).unwrap(),
        issue: issue.into(),
        patch: Some(patch),
        exit_status: Some("Submitted".into()),
        outcome: None,
        events: Vec::new(),
    }
}

pub(super) fn query_of(target: &str, text: &str) -> Query {
    let instance_id = InstanceId::parse(target).unwrap();
    let repo = format!("{}/{}", instance_id.owner(), instance_id.name());
    Query::at_start(Target { instance_id, repo, problem_statement: text.into(), language: None })
}

pub(super) fn query(text: &str) -> Query {
    query_of("acme__widget-99", text)
}

async fn frozen(mut system: Box<dyn MemorySystem>, runs: &[Experience]) -> Box<dyn MemorySystem> {
    for run in runs {
        system.ingest(run).await.unwrap();
    }
    system.freeze().await.unwrap();
    system
}

/// What a system answers that has learnt from `runs`.
pub(super) async fn ask(
    system: Box<dyn MemorySystem>,
    runs: &[Experience],
    text: &str,
    records: usize,
) -> Retrieval {
    let mut system = frozen(system, runs).await;
    system.retrieve(&query(text), Budget { records, tokens: 1000 }).await.unwrap().value
}

/// What a system that learnt nothing answers for a target.
pub(super) async fn ask_for(mut system: Box<dyn MemorySystem>, target: &str, records: usize) -> Retrieval {
    system.freeze().await.unwrap();
    system.retrieve(&query_of(target, "anything"), Budget { records, tokens: 1000 }).await.unwrap().value
}

/// What a system delivers (nothing, where it abstains), and what it holds.
pub(super) async fn deliver(
    system: Box<dyn MemorySystem>,
    runs: &[Experience],
    text: &str,
    records: usize,
) -> (Delivery, Store) {
    let mut system = frozen(system, runs).await;
    let answer = system.retrieve(&query(text), Budget { records, tokens: 1000 }).await.unwrap().value;
    let delivery = match answer {
        Retrieval::Delivery(delivery) => delivery,
        Retrieval::Abstain { .. } => Delivery::default(),
    };
    (delivery, system.store().unwrap())
}

pub(super) fn sources(answer: &Retrieval) -> Vec<u64> {
    match answer {
        Retrieval::Delivery(delivery) => delivery.records.iter().map(|r| r.source.number()).collect(),
        Retrieval::Abstain { .. } => Vec::new(),
    }
}

pub(super) fn reason(answer: Retrieval) -> String {
    match answer {
        Retrieval::Abstain { reason } => reason,
        Retrieval::Delivery(delivery) => panic!("{delivery:?}"),
    }
}

/// A model that says what it is told to, and then fails.
pub(super) struct Scripted {
    replies: Mutex<VecDeque<String>>,
    asked: Mutex<Vec<Value>>,
}

impl Scripted {
    pub fn new(replies: Vec<String>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::new(replies.into()), asked: Mutex::default() })
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// The system messages of all requests.
    pub fn instructions(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|first| first["content"].as_str().unwrap().to_owned()).collect()
    }
}

#[async_trait]
impl Model for Scripted {
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        self.asked.lock().unwrap().push(request.messages[0].clone());
        let said = self.replies.lock().unwrap().pop_front().ok_or(LlmError::Exhausted { number: 0 })?;
        let message = json!({"role": "assistant", "content": said});
        let cost = Cost { calls: 1, ..Cost::ZERO };
        Ok(Reply { message, finish_reason: Some("stop".into()), response: Value::Null, cost })
    }

    fn name(&self) -> &str {
        "scripted"
    }
}
