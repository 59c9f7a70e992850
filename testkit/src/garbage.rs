//! A model that never answers well: each way of getting it wrong, in turn.

use serde_json::{Value, json};

use crate::act::Act;

/// An unusable answer. Which one depends on the length of the conversation alone, so that every run sees the same.
pub fn play(request: &Value) -> Act {
    let turn = request["messages"].as_array().map_or(0, Vec::len);
    let ways = if request.get("tools").is_some() { in_tool_calls() } else { in_text() };
    let (message, finish_reason) = ways[turn % ways.len()].clone();
    Act::message(message, finish_reason)
}

fn in_tool_calls() -> Vec<(Value, &'static str)> {
    let calls = |name: &str, arguments: &str| {
        let call =
            json!({"id": "call_x", "type": "function", "function": {"name": name, "arguments": arguments}});
        (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
    };
    vec![
        (json!({"role": "assistant", "content": "I would rather talk about it."}), "stop"),
        calls("bash", "{\"command\": \"ls"),
        calls("bash", "[1, 2]"),
        calls("bash", "{\"cmd\": \"ls\"}"),
        calls("rm_rf", "{\"command\": \"ls\"}"),
        (json!({"role": "assistant", "content": ""}), "stop"),
        (json!({"role": "assistant", "content": null}), "length"),
        (json!({"role": "assistant", "content": "", "tool_calls": []}), "tool_calls"),
    ]
}

fn in_text() -> Vec<(Value, &'static str)> {
    let says = |text: &str, finish_reason| (json!({"role": "assistant", "content": text}), finish_reason);
    vec![
        says("I would rather talk about it.", "stop"),
        says("```mswea_bash_command\nls\n```\n```mswea_bash_command\npwd\n```", "stop"),
        says("```bash\nls\n```", "stop"),
        says("```mswea_bash_command\nls", "length"),
        says("", "stop"),
        (json!({"role": "assistant", "content": null}), "stop"),
    ]
}
