//! Rollouts of Codex: lines of `{timestamp, type, payload}`.

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::read::{Session, Sink};
use super::responses;
use super::run::{RunCost, RunFormat, RunHead};
use super::teller::{Teller, text_of};
use crate::trajectory::Usage;
use crate::trajectory::skim::Keep;

pub(super) const LINE: Keep = Keep::Only(&[
    ("timestamp", Keep::All),
    ("type", Keep::All),
    ("ordinal", Keep::All),
    ("payload", Keep::All),
]);

/// What Codex writes into a person's place.
const INJECTED: [&str; 8] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
];

#[derive(Default)]
pub(super) struct Codex {
    head: Option<RunHead>,
    began: bool,
    teller: Teller,
    /// Whether a call was answered since the model spoke: then its next word is a new turn.
    answered: bool,
    steps: u64,
    usage: Option<Usage>,
    status: Option<String>,
    /// Lines before this number are a parent's.
    from: u64,
}

impl Codex {
    fn meta(&mut self, payload: &Value) {
        // a resumed session states its parents' heads again
        if self.head.is_some() || self.began {
            return;
        }
        let text = |at: &str| payload.pointer(at).and_then(Value::as_str);
        let mut head = RunHead::new(RunFormat::Codex);
        head.session = text("/id").map(str::to_owned);
        head.started = text("/timestamp").map(str::to_owned);
        head.repo = text("/git/repository_url").and_then(repo_of);
        if let Some(folder) = text("/cwd") {
            self.teller.place.work_in(folder);
        }
        self.from = payload["subagent_history_start_ordinal"].as_u64().unwrap_or_default();
        self.head = Some(head);
    }

    fn item(&mut self, item: &Value) {
        let kind = item["type"].as_str().unwrap_or_default();
        if kind == "message" && item["role"] == "user" {
            let said = text_of(&item["content"]);
            if !said.trim().is_empty() && !INJECTED.iter().any(|mark| said.trim_start().starts_with(mark)) {
                self.teller.asked(&said);
                self.answered = false;
            }
            return;
        }
        let is_answer = kind.ends_with("_output");
        let speaks = item["role"] == "assistant" || kind.ends_with("_call") || kind == "reasoning";
        if speaks && self.answered {
            self.teller.settle();
        }
        if responses::item(item, &mut self.teller) {
            self.answered = is_answer;
        }
    }

    fn give(&mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        if !self.began {
            self.began = true;
            sink.head(&self.head.take().unwrap_or_else(|| RunHead::new(RunFormat::Codex)))?;
        }
        sink.events(&mut self.teller)
    }
}

impl Session for Codex {
    fn line(&mut self, line: &Map<String, Value>, sink: &mut Sink<'_>) -> ControlFlow<()> {
        let Some(payload) = line.get("payload") else { return ControlFlow::Continue(()) };
        if line.get("ordinal").and_then(Value::as_u64).is_some_and(|ordinal| ordinal < self.from) {
            return ControlFlow::Continue(());
        }
        let kind = payload["type"].as_str().unwrap_or_default();
        match line.get("type").and_then(Value::as_str) {
            Some("session_meta") => {
                self.meta(payload);
                return ControlFlow::Continue(());
            }
            Some("turn_context") => {
                if let Some(head) = &mut self.head {
                    head.model = head.model.take().or_else(|| payload["model"].as_str().map(str::to_owned));
                }
                if let Some(folder) = payload["cwd"].as_str() {
                    self.teller.place.work_in(folder);
                }
                return ControlFlow::Continue(());
            }
            Some("response_item") => {
                self.item(payload);
                // the model is stated before it speaks
                if !self.began && payload["role"] == "user" {
                    return ControlFlow::Continue(());
                }
            }
            Some("event_msg") => match kind {
                "token_count" => {
                    self.steps += u64::from(!payload["info"]["last_token_usage"].is_null());
                    self.usage = usage(&payload["info"]["total_token_usage"]).or(self.usage);
                }
                "task_complete" | "turn_complete" | "turn_aborted" => self.status = Some(kind.to_owned()),
                "task_started" | "turn_started" => self.status = None,
                _ => {}
            },
            _ => {}
        }
        if self.teller.out.is_empty() { ControlFlow::Continue(()) } else { self.give(sink) }
    }

    fn finish(mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        if !self.began && !self.teller.was_asked() {
            return ControlFlow::Continue(());
        }
        let status = self.status.take();
        self.teller.ended(None, status, None);
        self.give(sink)?;
        sink.end(RunCost { steps: self.steps, usage: self.usage })
    }
}

fn usage(total: &Value) -> Option<Usage> {
    let count = |key: &str| total.get(key).and_then(Value::as_u64);
    Some(Usage {
        prompt_tokens: count("input_tokens")?,
        cached_tokens: count("cached_input_tokens").unwrap_or_default(),
        completion_tokens: count("output_tokens").unwrap_or_default(),
    })
}

/// `owner/name` of a git address.
fn repo_of(url: &str) -> Option<String> {
    let path = url.trim_end_matches('/').trim_end_matches(".git");
    let mut parts = path.rsplit(['/', ':']);
    let (name, owner) = (parts.next()?, parts.next()?);
    (!name.is_empty() && !owner.is_empty()).then(|| format!("{owner}/{name}"))
}
