//! The messages of a log, as mini-swe-agent writes them.
//!
//! `extra` holds what is never sent to a model. Keys that begin with `memtrial_` are ours.

use serde_json::{Map, Value, json};

use super::config::{Config, Dialect, Mode};
use super::event::{Exception, Moment, Observation};
use super::exit;
use super::parse::{self, Action, Malformed};
use super::text;
use crate::llm::{Api, Cost, Reply};

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Format 1.1, chat completions.
    Chat,
    /// Format 1.1, Responses API: a turn of the model is the response itself.
    Responses,
    /// Format 1: role, text and time alone.
    V1,
}

impl Style {
    pub(super) fn of(config: &Config) -> Self {
        match (config.dialect, config.api, &config.mode) {
            (Dialect::V1, ..) => Self::V1,
            (Dialect::V2, Api::Responses, Mode::Tools) => Self::Responses,
            (Dialect::V2, ..) => Self::Chat,
        }
    }

    /// A message of the system or the task.
    pub(super) fn head(self, role: &str, content: &str, at: Moment) -> Value {
        match self {
            Self::V1 => said(role, content, at),
            Self::Chat | Self::Responses => json!({"role": role, "content": content}),
        }
    }

    /// The model's turn: the endpoint's message object untouched, and what was read from it. Format 1 keeps the text
    /// alone.
    pub(super) fn assistant(self, reply: &Reply, actions: &[Action], at: Moment) -> Value {
        let mut message = match &reply.message {
            Value::Object(message) => message.clone(),
            _ => Map::new(),
        };
        let mut extra = Map::from_iter([
            ("actions".to_owned(), json!(actions)),
            ("response".to_owned(), reply.response.clone()),
            ("cost".to_owned(), json!(usd(&reply.cost))),
            ("timestamp".to_owned(), json!(at.unix)),
            ("memtrial_cost".to_owned(), json!(reply.cost)),
        ]);
        match self {
            Self::Chat => {
                message.entry("role").or_insert_with(|| json!("assistant"));
            }
            Self::Responses => {
                extra.shift_remove("response");
            }
            Self::V1 => {
                let mut message = said("assistant", &parse::content_text(&reply.message), at);
                message["extra"] = json!({"response": response(reply), "memtrial_cost": reply.cost});
                return message;
            }
        }
        message.insert("extra".into(), Value::Object(extra));
        Value::Object(message)
    }

    /// What answers a malformed reply. In format 1.1 the reply itself is kept in `extra` alone; in format 1 it is a
    /// message of its own.
    pub(super) fn format_error(
        self,
        reply: &Reply,
        malformed: &Malformed,
        content: &str,
        at: Moment,
    ) -> Value {
        if self == Self::V1 {
            return said("user", content, at);
        }
        let mut extra = Map::from_iter([("interrupt_type".to_owned(), json!("FormatError"))]);
        if let Some(found) = &malformed.found {
            extra.insert("n_actions".into(), json!(found.len()));
            extra.insert("model_response".into(), json!(parse::content_text(&reply.message)));
        }
        extra.insert("cost".into(), json!(usd(&reply.cost)));
        extra.insert("response".into(), response(reply).clone());
        extra.insert("memtrial_cost".into(), json!(reply.cost));
        match self {
            Self::Responses => user_item(content, extra),
            Self::Chat | Self::V1 => json!({"role": "user", "content": content, "extra": extra}),
        }
    }

    /// What a command left.
    pub(super) fn observation(self, action: &Action, seen: &Observation, content: &str, at: Moment) -> Value {
        if self == Self::V1 {
            return said("user", content, at);
        }
        let mut extra = Map::from_iter([
            ("raw_output".to_owned(), json!(text::universal(&seen.output))),
            ("returncode".to_owned(), json!(seen.returncode)),
            ("timestamp".to_owned(), json!(at.unix)),
            ("exception_info".to_owned(), json!(seen.exception_info())),
        ]);
        if let Some(exception) = &seen.exception {
            extra.insert("exception_type".into(), json!(exception.class));
            extra.insert("exception".into(), json!(exception.text));
        }
        if seen.out_of_memory {
            extra.insert("memtrial_out_of_memory".into(), json!(true));
        }
        self.answer(action, content, extra)
    }

    /// What answers an action.
    fn answer(self, action: &Action, content: &str, extra: Map<String, Value>) -> Value {
        match (action.tool_call_id(), self) {
            (Some(id), Self::Responses) => {
                json!({"extra": extra, "type": "function_call_output", "call_id": id, "output": content})
            }
            (Some(id), _) => json!({"content": content, "extra": extra, "tool_call_id": id, "role": "tool"}),
            (None, _) => json!({"role": "user", "content": content, "extra": extra}),
        }
    }

    /// What the memory tool answered.
    pub(super) fn recalled(self, action: &Action, content: &str, at: Moment) -> Value {
        self.answer(action, content, recall_extra("tool", at))
    }

    /// What memory has to say at a phase, in a message of its own.
    pub(super) fn reminder(self, phase: &str, content: &str, at: Moment) -> Value {
        let extra = recall_extra(phase, at);
        match self {
            Self::V1 => {
                let mut message = said("user", content, at);
                message["extra"] = json!({ RECALL: phase });
                message
            }
            Self::Chat => json!({"role": "user", "content": content, "extra": extra}),
            Self::Responses => user_item(content, extra),
        }
    }

    /// The end of a run that handed in its work.
    pub(super) fn submitted(self, submission: &str, at: Moment) -> Value {
        match self {
            Self::V1 => said("user", submission, at),
            Self::Chat | Self::Responses => handed_in(exit::SUBMITTED, submission),
        }
    }

    /// The end of a run at a limit.
    pub(super) fn stopped(self, exit_status: &str, at: Moment) -> Value {
        match self {
            Self::V1 => said("user", "", at),
            Self::Chat | Self::Responses => stopped(exit_status),
        }
    }

    /// The end of a run that something failed under; format 1 has no message for it.
    pub(super) fn crash(self, exception: &Exception) -> Option<Value> {
        (self != Self::V1).then(|| crash(exception))
    }
}

/// The mark of what memory said while the run went on; its value: at which phase, or `tool`.
pub(super) const RECALL: &str = "memtrial_recall";

fn recall_extra(why: &str, at: Moment) -> Map<String, Value> {
    Map::from_iter([(RECALL.to_owned(), json!(why)), ("timestamp".to_owned(), json!(at.unix))])
}

/// A message of the user as an item of the Responses API.
fn user_item(content: &str, extra: Map<String, Value>) -> Value {
    let content = json!([{"type": "input_text", "text": content}]);
    json!({"type": "message", "role": "user", "content": content, "extra": extra})
}

/// A message of format 1.
fn said(role: &str, content: &str, at: Moment) -> Value {
    json!({"role": role, "content": content, "timestamp": at.unix})
}

/// The whole response that a reply is part of, or is.
fn response(reply: &Reply) -> &Value {
    if reply.response.is_null() { &reply.message } else { &reply.response }
}

/// US dollars of a call: by the price list, else as charged, else nothing.
pub(super) fn usd(cost: &Cost) -> f64 {
    cost.list_usd.or(cost.paid_usd).unwrap_or(0.0)
}

/// The end of a run that leaves work to be graded, in format 1.1.
pub(super) fn handed_in(exit_status: &str, submission: &str) -> Value {
    json!({
        "role": "exit",
        "content": submission,
        "extra": {"exit_status": exit_status, "submission": submission},
    })
}

/// The end of a run at a limit, in format 1.1.
pub(super) fn stopped(exit_status: &str) -> Value {
    json!({
        "role": "exit",
        "content": exit_status,
        "extra": {"exit_status": exit_status, "submission": ""},
    })
}

/// The end of a run that something failed under, in format 1.1.
pub(super) fn crash(exception: &Exception) -> Value {
    json!({
        "role": "exit",
        "content": exception.text,
        "extra": {
            "exit_status": exception.class,
            "submission": "",
            "exception_str": exception.text,
            "traceback": format!("{}: {}", exception.class, exception.text),
        },
    })
}
