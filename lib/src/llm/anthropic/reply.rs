//! An Anthropic response as a message of chat completions.

use serde_json::{Map, Value, json};

/// The assistant message and its `finish_reason`.
pub fn message(response: &Value) -> Result<(Value, Option<String>), &'static str> {
    let blocks = response["content"].as_array().ok_or("the reply has no content")?;
    let reason = response["stop_reason"].as_str().ok_or("the reply does not say how it ended")?;
    let kinds = |kind: &'static str| blocks.iter().filter(move |block| block["type"] == kind);
    let text = |kind, key| -> String { kinds(kind).filter_map(|block| block[key].as_str()).collect() };
    let calls: Vec<Value> = kinds("tool_use").map(call).collect();
    let (says, thinks) = (text("text", "text"), text("thinking", "thinking"));
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    let content = if says.is_empty() && !calls.is_empty() { Value::Null } else { json!(says) };
    message.insert("content".into(), content);
    if !thinks.is_empty() {
        message.insert("reasoning_content".into(), json!(thinks));
    }
    let is_thought =
        |block: &&Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let thoughts: Vec<Value> = blocks.iter().filter(is_thought).cloned().collect();
    if !thoughts.is_empty() {
        message.insert("thinking_blocks".into(), thoughts.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    Ok((Value::Object(message), Some(finish_reason(reason).to_owned())))
}

fn call(block: &Value) -> Value {
    let arguments = if block["input"].is_null() { "{}".into() } else { block["input"].to_string() };
    json!({"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}})
}

/// A `stop_reason` in the words of chat completions; one that nobody knows stays as it is.
pub fn finish_reason(stop_reason: &str) -> &str {
    match stop_reason {
        "end_turn" | "stop_sequence" | "pause_turn" => "stop",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "tool_use" => "tool_calls",
        "refusal" => "content_filter",
        other => other,
    }
}
