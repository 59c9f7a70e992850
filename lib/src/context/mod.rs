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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Messages in the wire format of OpenAI chat completions: no `extra` keys, no `exit` message.
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

/// A message as it is sent: without the local `extra`; `None` for the `exit` message, which is never sent.
pub fn wire(message: &Value) -> Option<Value> {
    if message.get("role").and_then(Value::as_str) == Some("exit") {
        return None;
    }
    let mut message = message.clone();
    if let Some(object) = message.as_object_mut() {
        object.shift_remove("extra");
    }
    Some(message)
}

/// For each model call of a recorded run, how many messages of the log stood before it.
///
/// A call leaves its assistant message, or a format-error message in its place.
pub fn asked_at(log: &[Value]) -> Vec<usize> {
    let is_turn = |message: &Value| {
        message.get("role") == Some(&json!("assistant"))
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
