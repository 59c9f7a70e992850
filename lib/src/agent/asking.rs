//! Memory in the middle of a run: the tool that the agent calls, and the phases at which it is asked unbidden.
//!
//! What memory says is an ordinary round: a tool's answer, or a message of the user, never pinned. Whether it is asked
//! follows from the log alone, so a resumed run asks at the same places.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::config::{Config, Mode};
use super::event::Effect;
use super::machine::{Phase, SENTINELS, Seen, State, StepError, Turn};
use super::parse::{self, Action};
use crate::context::Policy;
use crate::llm::Api;
use crate::memory;
use crate::trajectory::{edited_files, runs_tests};

/// Calls of the memory tool that a run may make where nobody says.
pub const TOOL_CALLS: u32 = 8;

/// What the tool answers where memory has nothing.
pub const NOTHING_FOUND: &str = "No record of earlier work in this repository was found for this query.";

/// What the model reads in place of a command's output where memory speaks before a submission.
pub const WITHHELD: &str =
    "This command was not run yet: read the note below first, then go on as you see fit.";

/// When a run asks memory while it goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asking {
    /// Calls of the memory tool that the agent may make; `None`: the tool is not offered.
    pub tool_calls: Option<u32>,
    /// Whether it is asked at the first edit, at the first test run after an edit and before a submission.
    pub phases: bool,
}

impl Asking {
    /// Whether memory is never asked in a run.
    pub fn is_never(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an agent of this configuration can ask so.
    ///
    /// # Errors
    /// What cannot be, and what to do.
    pub fn check(&self, config: &Config) -> Result<(), String> {
        match (self.tool_calls, &config.mode) {
            (Some(_), Mode::Text { .. }) => Err("the memory tool needs an agent that calls tools; this \
                 configuration finds one command in the model's text: leave the tool out, or use a configuration \
                 with tool calls"
                .into()),
            _ => Ok(()),
        }
    }
}

/// The memory tool, as the interface wants it written.
pub fn memory_tool(api: Api) -> Value {
    let function = json!({
        "name": "memory",
        "description": "Search records of earlier tasks in this repository. They were kept automatically; they may be \
                        wrong, out of date, or not apply to this task.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, in words"}
            },
            "required": ["query"]
        }
    });
    parse::tool(function, api)
}

/// What memory is asked in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// What the agent looks for.
    Tool(String),
    /// Whatever may help at this phase.
    Phase(memory::Phase),
}

impl Question {
    /// `tool`, or the phase's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Phase(memory::Phase::Start) => "start",
            Self::Phase(memory::Phase::FirstEdit) => "first-edit",
            Self::Phase(memory::Phase::FirstTestAfterEdit) => "first-test-after-edit",
            Self::Phase(memory::Phase::BeforeSubmission) => "before-submission",
        }
    }
}

/// What a run has asked so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    tool_calls: u32,
    edited: bool,
    phases: BTreeSet<memory::Phase>,
}

impl Asked {
    /// Counts a call of the tool; the error is what the model reads where it may make no more.
    pub(super) fn tool(&mut self, action: &Action, asking: &Asking) -> Result<Question, String> {
        let most = asking.tool_calls.unwrap_or(0);
        match action {
            Action::Memory { query, .. } if self.tool_calls < most => {
                self.tool_calls += 1;
                Ok(Question::Tool(query.clone()))
            }
            _ => Err(format!("Memory was not asked: all {most} calls of this run are used up.")),
        }
    }

    /// Whether memory is to be asked before the first submission; at the next it has been.
    pub(super) fn before_submission(&mut self, asking: &Asking) -> bool {
        asking.phases && self.phases.insert(memory::Phase::BeforeSubmission)
    }

    /// The phases that a turn reached.
    pub(super) fn due(&mut self, turn: &Turn, asking: &Asking) -> Vec<memory::Phase> {
        let mut due = Vec::new();
        let commands = turn.actions.iter().zip(&turn.seen).filter_map(|(action, (seen, _))| {
            action.command().and_then(Value::as_str).filter(|_| matches!(seen, Seen::Ran(_)))
        });
        for command in commands.filter(|_| asking.phases) {
            self.edited = self.edited || !edited_files(command).is_empty();
            let reached = [
                (memory::Phase::FirstEdit, self.edited),
                (memory::Phase::FirstTestAfterEdit, self.edited && runs_tests(command)),
            ];
            for (phase, _) in reached.into_iter().filter(|(_, reached)| *reached) {
                if self.phases.insert(phase) {
                    due.push(phase);
                }
            }
        }
        due
    }
}

/// Whether a command is meant to hand in the work.
pub(super) fn submits(command: &str) -> bool {
    SENTINELS.iter().any(|sentinel| command.contains(sentinel))
}

impl State {
    /// Whether the memory tool goes with every call.
    pub(super) fn offers_memory(&self) -> bool {
        self.setup.asking.tool_calls.is_some()
    }

    /// Asks memory.
    pub(super) fn recall(
        &mut self,
        question: Question,
        turn: Turn,
        due: Vec<memory::Phase>,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(Effect::Recall(question.clone()));
        self.phase = Phase::Recalling { question, turn, due };
    }

    /// After a turn: asks memory where a phase was reached, else the model.
    pub(super) fn ask_memory_or_model(
        &mut self,
        mut due: Vec<memory::Phase>,
        policy: &dyn Policy,
        effects: &mut Vec<Effect>,
    ) {
        if due.is_empty() {
            self.ask(policy, effects);
        } else {
            let next = Question::Phase(due.remove(0));
            self.recall(next, Turn::default(), due, effects);
        }
    }

    /// Memory answered.
    pub(super) fn recalled(
        &mut self,
        text: Option<String>,
        policy: &dyn Policy,
        effects: &mut Vec<Effect>,
    ) -> Result<(), StepError> {
        let Phase::Recalling { question, turn, due } = &mut self.phase else { return Ok(()) };
        let (question, due) = (question.clone(), std::mem::take(due));
        let mut turn = std::mem::take(turn);
        match (&question, text) {
            (Question::Tool(_), text) => {
                turn.seen.push((Seen::Recalled(text.unwrap_or_else(|| NOTHING_FOUND.into())), self.now));
                self.phase = Phase::Running(turn);
                self.advance(policy, effects)
            }
            (Question::Phase(memory::Phase::BeforeSubmission), None) => {
                self.phase = Phase::Running(turn);
                self.advance(policy, effects)
            }
            (Question::Phase(memory::Phase::BeforeSubmission), Some(text)) => {
                // the submission and what was to follow it wait: the agent decides again
                turn.seen.resize(turn.actions.len(), (Seen::Withheld, self.now));
                let due = self.asked.due(&turn, &self.setup.asking);
                self.close(&turn, effects)?;
                self.remind(&question, &text, effects);
                self.ask_memory_or_model(due, policy, effects);
                Ok(())
            }
            (Question::Phase(_), text) => {
                if let Some(text) = text {
                    self.remind(&question, &text, effects);
                }
                self.ask_memory_or_model(due, policy, effects);
                Ok(())
            }
        }
    }

    fn remind(&mut self, question: &Question, text: &str, effects: &mut Vec<Effect>) {
        let message = self.style().reminder(question.name(), text, self.now);
        self.append(message, effects);
    }
}
