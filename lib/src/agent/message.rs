//! The messages of a log, in mini-swe-agent's format 1.1 (chat completions).
//!
//! `extra` holds what is never sent to a model. Keys that begin with `memtrial_` are ours.

use serde_json::{Map, Value, json};

use super::event::{Exception, Moment, Observation};
use super::exit;
use super::parse::{self, Action, Malformed};
use crate::llm::{Cost, Reply};

/// US dollars of a call: by the price list, else as charged, else nothing.
pub(super) fn usd(cost: &Cost) -> f64 {
    cost.list_usd.or(cost.paid_usd).unwrap_or(0.0)
}

/// The model's turn: the endpoint's message object untouched, and what was read from it.
pub(super) fn assistant(reply: &Reply, actions: &[Action], at: Moment) -> Value {
    let mut message = match &reply.message {
        Value::Object(message) => message.clone(),
        _ => Map::new(),
    };
    message.entry("role").or_insert_with(|| json!("assistant"));
    let extra = json!({
        "actions": actions,
        "response": reply.response,
        "cost": usd(&reply.cost),
        "timestamp": at.unix,
        "memtrial_cost": reply.cost,
    });
    message.insert("extra".into(), extra);
    Value::Object(message)
}

/// What answers a malformed reply; the reply itself is kept in `extra` alone.
pub(super) fn format_error(reply: &Reply, malformed: &Malformed, content: String) -> Value {
    let mut extra = Map::from_iter([("interrupt_type".to_owned(), json!("FormatError"))]);
    if let Some(found) = &malformed.found {
        extra.insert("n_actions".into(), json!(found.len()));
        extra.insert("model_response".into(), json!(parse::content_text(&reply.message)));
    }
    extra.insert("cost".into(), json!(usd(&reply.cost)));
    extra.insert("response".into(), reply.response.clone());
    extra.insert("memtrial_cost".into(), json!(reply.cost));
    json!({"role": "user", "content": content, "extra": extra})
}

/// What a command left.
pub(super) fn observation(action: &Action, seen: &Observation, content: String, at: Moment) -> Value {
    let mut extra = Map::from_iter([
        ("raw_output".to_owned(), json!(seen.output)),
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
    match &action.tool_call_id {
        Some(id) => json!({"content": content, "extra": extra, "tool_call_id": id, "role": "tool"}),
        None => json!({"role": "user", "content": content, "extra": extra}),
    }
}

/// The end of a run that handed in its work.
pub(super) fn submitted(submission: &str) -> Value {
    handed_in(exit::SUBMITTED, submission)
}

/// The end of a run that leaves work to be graded.
pub(super) fn handed_in(exit_status: &str, submission: &str) -> Value {
    json!({
        "role": "exit",
        "content": submission,
        "extra": {"exit_status": exit_status, "submission": submission},
    })
}

/// The end of a run at a limit.
pub(super) fn stopped(exit_status: &str) -> Value {
    json!({
        "role": "exit",
        "content": exit_status,
        "extra": {"exit_status": exit_status, "submission": ""},
    })
}

/// The end of a run that something failed under.
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
