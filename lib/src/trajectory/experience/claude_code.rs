//! Sessions of Claude Code: a line an event of the conversation, a reply split over several lines.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::read::{Session, Sink};
use super::run::{RunCost, RunFormat, RunHead};
use super::teller::{Teller, text_of};
use crate::trajectory::Usage;
use crate::trajectory::skim::Keep;

pub(super) const LINE: Keep = Keep::Only(&[
    ("type", Keep::All),
    ("uuid", Keep::All),
    ("sessionId", Keep::All),
    ("timestamp", Keep::All),
    ("cwd", Keep::All),
    ("isSidechain", Keep::All),
    ("isMeta", Keep::All),
    ("isCompactSummary", Keep::All),
    ("message", Keep::All),
]);

/// What Claude Code writes into a person's place.
const INJECTED: [&str; 8] = [
    "<command-name>",
    "<command-message>",
    "<local-command",
    "<system-reminder>",
    "<bash-",
    "Caveat: The messages below",
    "[Request interrupted",
    "This session is being continued from",
];

pub(super) struct ClaudeCode {
    head: Option<RunHead>,
    began: bool,
    /// A file of a subagent alone is a run of its own.
    is_side: Option<bool>,
    teller: Teller,
    seen: HashSet<String>,
    /// The reply that is being read, of the main chain.
    reply: String,
    /// Calls of subagents, told when they return: their own commands come before.
    subagents: HashMap<String, (String, Value)>,
    usage: HashMap<String, Usage>,
}

impl ClaudeCode {
    pub fn new(first: &Map<String, Value>) -> Self {
        let mut head = RunHead::new(RunFormat::ClaudeCode);
        head.session = first.get("sessionId").and_then(Value::as_str).map(str::to_owned);
        Self {
            head: Some(head),
            began: false,
            is_side: None,
            teller: Teller::default(),
            seen: HashSet::new(),
            reply: String::new(),
            subagents: HashMap::new(),
            usage: HashMap::new(),
        }
    }

    /// Hands over the head, once the model is known, and then what was told.
    fn give(&mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        if let Some(head) = self.head.take() {
            self.began = true;
            sink.head(&head)?;
        }
        sink.events(&mut self.teller)
    }

    fn user(&mut self, message: &Value, is_side: bool) {
        let content = &message["content"];
        let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
        for result in blocks.iter().filter(|block| block["type"] == "tool_result") {
            let id = result["tool_use_id"].as_str();
            if let Some((name, arguments)) = id.and_then(|id| self.subagents.remove(id)) {
                self.teller.call(id, &name, &arguments, None);
            }
            let text = text_of(&result["content"]);
            let (text, code) = exit_code(&text, result["is_error"] == true);
            self.teller.observed(id, text.to_owned(), code);
        }
        let said: Vec<String> = match content {
            Value::String(text) => vec![text.clone()],
            _ => blocks.iter().filter(|block| block["type"] == "text").map(text_of).collect(),
        };
        let is_own = |text: &String| {
            let text = text.trim_start();
            !text.is_empty() && !INJECTED.iter().any(|mark| text.starts_with(mark))
        };
        let said: Vec<String> = said.into_iter().filter(is_own).collect();
        // a subagent's prompt stands in its call
        if !said.is_empty() && !is_side {
            self.teller.asked(&said.join("\n"));
        }
    }

    fn assistant(&mut self, message: &Value, is_side: bool) {
        let id = message["id"].as_str().unwrap_or_default();
        if !is_side && (id.is_empty() || id != self.reply) {
            self.teller.settle();
            id.clone_into(&mut self.reply);
        }
        let key = if id.is_empty() { format!("{}", self.usage.len()) } else { id.to_owned() };
        let usage = usage(&message["usage"]).or_else(|| self.usage.get(&key).copied());
        self.usage.insert(key, usage.unwrap_or_default());
        let content = &message["content"];
        if let Value::String(text) = content {
            self.teller.thought(&[text]);
        }
        for block in content.as_array().map(Vec::as_slice).unwrap_or_default() {
            let text = |key: &str| block[key].as_str().unwrap_or_default();
            match text("type") {
                "text" => self.teller.thought(&[text("text")]),
                "thinking" => self.teller.thought(&[text("thinking")]),
                "tool_use" => {
                    let (id, name) = (text("id"), text("name"));
                    if matches!(name, "Task" | "Agent") && !is_side {
                        self.subagents.insert(id.to_owned(), (name.to_owned(), block["input"].clone()));
                    } else {
                        self.teller.call(Some(id), name, &block["input"], None);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Session for ClaudeCode {
    fn line(&mut self, line: &Map<String, Value>, sink: &mut Sink<'_>) -> ControlFlow<()> {
        let text = |key: &str| line.get(key).and_then(Value::as_str);
        let is = |key: &str| line.get(key).and_then(Value::as_bool) == Some(true);
        let (Some(kind @ ("user" | "assistant")), Some(message)) = (text("type"), line.get("message")) else {
            return ControlFlow::Continue(());
        };
        if !message.is_object() || is("isMeta") || is("isCompactSummary") {
            return ControlFlow::Continue(());
        }
        // after a compaction or a resumption lines come again
        if text("uuid").is_some_and(|uuid| !self.seen.insert(uuid.to_owned())) {
            return ControlFlow::Continue(());
        }
        if let Some(folder) = text("cwd") {
            self.teller.place.work_in(folder);
        }
        let side = is("isSidechain");
        let is_side = side != *self.is_side.get_or_insert(side);
        if let Some(head) = &mut self.head {
            head.session = head.session.take().or_else(|| text("sessionId").map(str::to_owned));
            head.started = head.started.take().or_else(|| text("timestamp").map(str::to_owned));
            if kind == "assistant" {
                head.model = message["model"].as_str().map(str::to_owned);
            }
        }
        if kind == "user" {
            self.user(message, is_side);
            if self.head.is_some() {
                return ControlFlow::Continue(());
            }
        } else {
            self.assistant(message, is_side);
        }
        self.give(sink)
    }

    fn finish(mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        if !self.began && !self.teller.was_asked() {
            return ControlFlow::Continue(());
        }
        for (id, (name, arguments)) in std::mem::take(&mut self.subagents) {
            self.teller.call(Some(&id), &name, &arguments, None);
        }
        self.teller.ended(None, None, None);
        self.give(sink)?;
        let steps = self.usage.len() as u64;
        let sum = self.usage.into_values().fold(Usage::default(), Usage::plus);
        sink.end(RunCost { steps, usage: (sum != Usage::default()).then_some(sum) })
    }
}

/// The exit code that the result of a failed command begins with, and the rest.
fn exit_code(text: &str, is_error: bool) -> (&str, Option<i64>) {
    let stated = is_error.then(|| {
        let rest = text.strip_prefix("Error: ").unwrap_or(text).strip_prefix("Exit code ")?;
        let (code, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        Some((rest, Some(code.trim().parse().ok()?)))
    });
    stated.flatten().unwrap_or((text, None))
}

fn usage(usage: &Value) -> Option<Usage> {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let cached = count("cache_read_input_tokens").unwrap_or_default();
    let prompt = count("input_tokens")?;
    Some(Usage {
        prompt_tokens: prompt
            .saturating_add(cached)
            .saturating_add(count("cache_creation_input_tokens").unwrap_or_default()),
        cached_tokens: cached,
        completion_tokens: count("output_tokens").unwrap_or_default(),
    })
}
