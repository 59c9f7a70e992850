//! mini-swe-agent's messages as events.

use std::sync::LazyLock;

use regex::Regex;

use super::Event;
use crate::trajectory::{ActionPattern, Message, Role, issue_text};

/// The frame that mini-swe-agent 1.x puts around an observation.
static FRAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?s)^\s*<returncode>(-?\d+)</returncode>\s*(?:<warning>.*?</warning>\s*)?<output>\n?(.*?)</output>\s*$").ok()
});

/// Turns the messages of a run into events, one message at a time.
#[derive(Debug)]
pub struct MiniEvents {
    pattern: ActionPattern,
    issue_seen: bool,
    /// Commands that have no observation yet.
    pending: usize,
}

impl MiniEvents {
    /// For a run whose text actions stand where `pattern` finds them.
    pub fn new(pattern: ActionPattern) -> Self {
        Self { pattern, issue_seen: false, pending: 0 }
    }

    /// The events of the next message.
    pub fn message(&mut self, message: &Message, on: &mut dyn FnMut(Event)) {
        match message.role() {
            Role::System => {}
            Role::User if !self.issue_seen => {
                self.issue_seen = true;
                on(Event::Issue { text: issue_text(&message.text()).to_owned() });
            }
            Role::Assistant => self.reply(message, on),
            // what memory said is no observation of this run, and no experience of it
            Role::User | Role::Tool if message.extra("memtrial_recall").is_some() => {}
            Role::User | Role::Tool if self.pending > 0 => {
                self.pending -= 1;
                on(observed(message));
            }
            Role::User | Role::Tool => {}
            Role::Exit => {
                let text = |key| message.extra(key).and_then(serde_json::Value::as_str).map(str::to_owned);
                if let Some(patch) = text("submission").filter(|patch| !patch.is_empty()) {
                    on(Event::Submission { patch });
                }
                on(Event::Ended { status: text("exit_status"), resolved: None });
            }
        }
    }

    fn reply(&mut self, message: &Message, on: &mut dyn FnMut(Event)) {
        let said = message.text();
        let said = said.split("```").next().unwrap_or_default().trim();
        let thought = [message.reasoning().unwrap_or_default().trim(), said].join("\n");
        if !thought.trim().is_empty() {
            on(Event::Thought { text: thought.trim().to_owned() });
        }
        let actions = message.actions(&self.pattern);
        self.pending = actions.len();
        for action in actions {
            on(Event::command(action.command));
        }
    }
}

fn observed(message: &Message) -> Event {
    if let Some(seen) = message.observation() {
        return Event::Observation { text: seen.raw_output, exit_code: seen.returncode };
    }
    let text = message.text();
    match FRAME.as_ref().and_then(|frame| frame.captures(&text)) {
        Some(parts) => Event::Observation { text: parts[2].to_owned(), exit_code: parts[1].parse().ok() },
        None => Event::Observation { text: text.into_owned(), exit_code: None },
    }
}
