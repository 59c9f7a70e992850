//! What the model is shown of the current run: policies, the pinned memory block, the context limit.
//!
//! The log of a run (its messages, in trajectory form) is never rewritten. A [`Policy`] computes from the log alone
//! what the next call shows, so that every view can be recomputed from a trajectory file: [`asked_at`] tells how
//! much of the log each call had before it.
//!
//! The memory block is part of the task message ([`pin`]) from the first view to the last: the head of a log
//! (everything before the first model turn) is what no policy may drop or alter.

mod full;
mod tokens;

pub use full::Full;
pub use tokens::{estimate, measure};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What one call shows to the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Messages in the wire format of the interface that the run uses: no `extra` keys, no `exit` message.
    pub messages: Vec<Value>,
    /// Prompt tokens: as the endpoint reported them for the part that it has seen, estimated for the rest.
    pub tokens: u64,
}

/// The view would be longer than the context limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the context limit of {limit} tokens is exceeded: the next prompt has about {tokens} tokens under the context policy `{policy}`"
)]
pub struct Overflow {
    /// The policy's name.
    pub policy: &'static str,
    /// Tokens of the view.
    pub tokens: u64,
    /// The limit.
    pub limit: u64,
}

/// Decides what the model sees of the current run.
pub trait Policy: Send + Sync {
    /// Its name in study files.
    fn name(&self) -> &'static str;

    /// Its settings, as the trajectory records them.
    fn settings(&self) -> Value;

    /// What the next call shows, given the log so far and the tools that go with the call.
    ///
    /// # Errors
    /// [`Overflow`] when the policy cannot bring the view under its context limit.
    fn view(&self, log: &[Value], tools: &[Value]) -> Result<View, Overflow>;

    /// The same view, made from the one that this policy gave when the log had `seen` messages. A policy that shows
    /// what it showed before saves the work of showing it again.
    ///
    /// # Errors
    /// As [`Policy::view`].
    fn grow(&self, before: View, seen: usize, log: &[Value], tools: &[Value]) -> Result<View, Overflow> {
        drop((before, seen));
        self.view(log, tools)
    }
}

/// The text that memory adds to the task message: an empty line and the block as it is; nothing for no block or a
/// blank one. The block brings its own frame (the memory module's template).
///
/// It is the only difference between two arms that differ in memory alone.
pub fn memory_section(block: Option<&str>) -> String {
    match block {
        Some(block) if !block.trim().is_empty() => format!("\n\n{block}"),
        _ => String::new(),
    }
}

/// The task message with the memory block pinned to its end.
pub fn pin(task_message: &str, block: Option<&str>) -> String {
    format!("{task_message}{}", memory_section(block))
}

/// A message as it is sent: without what is local to the log. A response of the Responses API becomes its items; the
/// `exit` message is never sent.
pub fn wire(message: &Value) -> Vec<Value> {
    let local = |key: &str| key == "extra" || key == "timestamp";
    let sent = |message: &Value| match message {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, _)| !local(key));
            Value::Object(fields.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        other => other.clone(),
    };
    if message["role"] == "exit" {
        return Vec::new();
    }
    match message["output"].as_array().filter(|_| message["object"] == "response") {
        Some(items) => items.iter().map(sent).collect(),
        None => vec![sent(message)],
    }
}

/// For each model call of a recorded run, how many messages of the log stood before it.
///
/// A call leaves its assistant message, or a format-error message in its place.
pub fn asked_at(log: &[Value]) -> Vec<usize> {
    let is_turn = |message: &Value| {
        message.get("role") == Some(&json!("assistant"))
            || message.get("object") == Some(&json!("response"))
            || message.pointer("/extra/interrupt_type") == Some(&json!("FormatError"))
    };
    log.iter().enumerate().filter(|(_, message)| is_turn(message)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_adds_nothing_and_a_block_adds_exactly_its_section() {
        assert_eq!(pin("Fix it.", None), "Fix it.");
        assert_eq!(pin("Fix it.", Some(" \n")), "Fix it.");
        assert_eq!(
            pin("Fix it.", Some("<earlier_work>\n- a\n</earlier_work>\n")),
            "Fix it.\n\n<earlier_work>\n- a\n</earlier_work>\n"
        );
    }

    #[test]
    fn what_is_sent_holds_nothing_local_and_responses_as_items() {
        let call = json!({"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"});
        let turn = json!({"object": "response", "id": "r", "output": [{"type": "reasoning", "id": "s"}, call],
            "usage": {}, "extra": {"cost": 1}});
        assert_eq!(wire(&turn), [json!({"type": "reasoning", "id": "s"}), call]);
        let output = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
        let mut logged = output.clone();
        logged["extra"] = json!({"returncode": 0});
        assert_eq!(wire(&logged), [output]);
        let first = json!({"role": "user", "content": "x", "timestamp": 1.5});
        assert_eq!(wire(&first), [json!({"role": "user", "content": "x"})]);
        assert_eq!(wire(&json!({"role": "exit", "content": ""})), Vec::<Value>::new());
        assert_eq!(asked_at(&[first, turn]), [1]);
    }

    #[test]
    fn calls_are_found_in_a_log_with_format_errors() {
        let log = [
            json!({"role": "system", "content": "s"}),
            json!({"role": "user", "content": "t"}),
            json!({"role": "user", "content": "bad", "extra": {"interrupt_type": "FormatError"}}),
            json!({"role": "assistant", "content": "a"}),
            json!({"role": "tool", "content": "o"}),
            json!({"role": "exit", "content": ""}),
        ];
        assert_eq!(asked_at(&log), [2, 3]);
    }
}
