//! Anthropic messages.

use serde_json::{Map, Value, json};

use super::{Said, event, same_ids};
use crate::llm::Reply;
use crate::llm::anthropic::input;

type Object = Map<String, Value>;

/// A request as one of chat completions. What has no counterpart there is an error that names it.
pub fn to_chat(body: &Object) -> Result<Object, String> {
    let mut messages = Vec::new();
    if let Some(system) = body.get("system") {
        messages.push(json!({"role": "system", "content": text_of(system, "system")?}));
    }
    let turns = body.get("messages").and_then(Value::as_array).ok_or("messages is no list")?;
    for turn in turns {
        match turn["role"].as_str() {
            Some("user") => user(&turn["content"], &mut messages)?,
            Some("assistant") => messages.push(assistant(&turn["content"])?),
            Some("system") => {
                let content = text_of(&turn["content"], "a system message")?;
                messages.push(json!({"role": "system", "content": content}));
            }
            role => return Err(format!("a message has the role {}", role.unwrap_or("of nobody"))),
        }
    }
    let mut chat = Object::new();
    chat.insert("messages".into(), messages.into());
    for (key, value) in body {
        parameter(key, value, &mut chat)?;
    }
    Ok(chat)
}

/// One of the request's other fields.
fn parameter(key: &str, value: &Value, chat: &mut Object) -> Result<(), String> {
    let mut set = |key: &str, value: Value| drop(chat.insert(key.into(), value));
    match key {
        // A mark for the endpoint's cache is a hint.
        "model" | "messages" | "system" | "cache_control" => {}
        "temperature" | "top_p" | "top_k" => set(key, value.clone()),
        "max_tokens" => set("max_completion_tokens", value.clone()),
        "stop_sequences" => set("stop", value.clone()),
        "tools" => {
            let tools = value.as_array().ok_or("tools is no list")?;
            if !tools.is_empty() {
                set("tools", tools.iter().map(tool).collect::<Result<_, _>>()?);
            }
        }
        "tool_choice" => {
            set(
                "tool_choice",
                match (value["type"].as_str(), &value["name"]) {
                    (Some("auto"), _) => json!("auto"),
                    (Some("any"), _) => json!("required"),
                    (Some("none"), _) => json!("none"),
                    (Some("tool"), name) => json!({"type": "function", "function": {"name": name}}),
                    _ => return Err(format!("tool_choice {value} has no counterpart in chat completions")),
                },
            );
            if value["disable_parallel_tool_use"] == true {
                set("parallel_tool_calls", json!(false));
            }
        }
        "thinking" if value["type"] == "disabled" => {}
        _ => return Err(format!("{key} has no counterpart in chat completions")),
    }
    Ok(())
}

fn tool(tool: &Value) -> Result<Value, String> {
    if !matches!(tool["type"].as_str(), None | Some("custom")) {
        return Err(format!("the tool {} of type {} is the endpoint's own", tool["name"], tool["type"]));
    }
    if tool["defer_loading"] == true {
        return Err(format!("the tool {} is to be searched for by the endpoint", tool["name"]));
    }
    let mut function = json!({"name": tool["name"], "parameters": tool["input_schema"]});
    for key in ["description", "strict"] {
        if let Some(value) = tool.get(key).filter(|value| !value.is_null()) {
            function[key] = value.clone();
        }
    }
    Ok(json!({"type": "function", "function": function}))
}

/// Text, or blocks of text alone.
fn text_of(content: &Value, whose: &str) -> Result<String, String> {
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| block["text"].as_str());
            let texts: Option<Vec<&str>> = texts.collect();
            Ok(texts.ok_or_else(|| format!("{whose} holds something that is no text"))?.join("\n"))
        }
        Value::Null => Ok(String::new()),
        _ => Err(format!("{whose} is neither text nor blocks")),
    }
}

/// A turn of the user: results first, as messages of their own; then what else it says. Chat completions carry no
/// picture in a result, so that pictures follow as the user's.
fn user(content: &Value, messages: &mut Vec<Value>) -> Result<(), String> {
    let Value::Array(blocks) = content else {
        messages.push(json!({"role": "user", "content": text_of(content, "a message")?}));
        return Ok(());
    };
    let mut parts = Vec::new();
    for block in blocks {
        if block["type"] == "tool_result" {
            let id = block["tool_use_id"].as_str().ok_or("a tool_result has no tool_use_id")?;
            let (text, pictures) = result(block)?;
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
            parts.extend(pictures);
        } else {
            parts.push(part(block)?);
        }
    }
    match &parts[..] {
        [] => {}
        [only] if only["type"] == "text" => messages.push(json!({"role": "user", "content": only["text"]})),
        _ => messages.push(json!({"role": "user", "content": parts})),
    }
    Ok(())
}

fn result(block: &Value) -> Result<(String, Vec<Value>), String> {
    let (mut text, mut pictures) = (String::new(), Vec::new());
    match &block["content"] {
        Value::Array(blocks) => {
            for block in blocks {
                match part(block)? {
                    part if part["type"] == "text" => {
                        let more = part["text"].as_str().unwrap_or_default();
                        text = if text.is_empty() { more.to_owned() } else { format!("{text}\n{more}") };
                    }
                    picture => pictures.push(picture),
                }
            }
        }
        content => text = text_of(content, "a tool_result")?,
    }
    if block["is_error"] == true && !text.to_lowercase().contains("error") {
        text = format!("Error: {text}");
    }
    Ok((text, pictures))
}

fn part(block: &Value) -> Result<Value, String> {
    let source = &block["source"];
    match (block["type"].as_str(), source["type"].as_str()) {
        (Some("text"), _) => Ok(json!({"type": "text", "text": block["text"]})),
        (Some("image"), Some("base64")) => {
            let text = |key: &str| source[key].as_str().unwrap_or_default();
            let url = format!("data:{};base64,{}", text("media_type"), text("data"));
            Ok(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        (Some("image"), Some("url")) => Ok(json!({"type": "image_url", "image_url": {"url": source["url"]}})),
        (kind, _) => Err(format!("a block of type {} cannot be carried", kind.unwrap_or("none"))),
    }
}

fn assistant(content: &Value) -> Result<Value, String> {
    let Value::Array(blocks) = content else {
        return Ok(json!({"role": "assistant", "content": text_of(content, "a message")?}));
    };
    let (mut text, mut thought) = (String::new(), String::new());
    let (mut thoughts, mut calls) = (Vec::new(), Vec::new());
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => text += block["text"].as_str().unwrap_or_default(),
            Some("thinking") => {
                thought += block["thinking"].as_str().unwrap_or_default();
                thoughts.push(block.clone());
            }
            Some("redacted_thinking") => thoughts.push(block.clone()),
            Some("tool_use") => calls.push(json!({"id": block["id"], "type": "function",
                "function": {"name": block["name"], "arguments": block["input"].to_string()}})),
            kind => return Err(format!("a block of type {} cannot be carried", kind.unwrap_or("none"))),
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if text.is_empty() && !calls.is_empty() {
        message["content"] = Value::Null;
    }
    if !thought.is_empty() {
        message["reasoning_content"] = json!(thought);
    }
    // Thoughts without a signature are our own rendering of a plain text.
    let signed = |block: &Value| {
        block["type"] != "thinking" || block["signature"].as_str().is_some_and(|s| !s.is_empty())
    };
    if thoughts.iter().any(signed) {
        message["thinking_blocks"] = thoughts.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Ok(message)
}

/// The endpoint's own response, each call with an id.
pub fn native(reply: &Reply) -> Value {
    let mut response = reply.response.clone();
    let blocks = response["content"].as_array_mut().into_iter().flatten();
    same_ids(&reply.message, blocks.filter(|block| block["type"] == "tool_use"));
    response
}

/// An answer as an Anthropic message.
pub fn message(said: &Said<'_>) -> Value {
    let mut content = match said.message["thinking_blocks"].as_array() {
        Some(blocks) => blocks.clone(),
        None if said.reasoning().is_empty() => Vec::new(),
        None => vec![json!({"type": "thinking", "thinking": said.reasoning(), "signature": ""})],
    };
    if !said.text().is_empty() {
        content.push(json!({"type": "text", "text": said.text()}));
    }
    content.extend(said.calls().iter().map(tool_use));
    let used = &said.used;
    json!({"id": format!("msg_{}", said.id), "type": "message", "role": "assistant", "model": said.model,
        "content": content, "stop_reason": stop_reason(said), "stop_sequence": null,
        "usage": {"input_tokens": used.prompt_tokens - used.cached_tokens, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": used.cached_tokens, "output_tokens": used.completion_tokens}})
}

fn tool_use(call: &Value) -> Value {
    let function = &call["function"];
    json!({"type": "tool_use", "id": call["id"], "name": function["name"], "input": input(function)})
}

/// Endpoints do say `stop` with calls and `tool_calls` without: the calls decide.
fn stop_reason(said: &Said<'_>) -> &'static str {
    match said.finish_reason {
        "length" => "max_tokens",
        "content_filter" => "refusal",
        _ if said.calls().is_empty() => "end_turn",
        _ => "tool_use",
    }
}

/// A message as an event stream.
pub fn events(message: &Value) -> String {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["stop_sequence"] = Value::Null;
    start["usage"]["output_tokens"] = json!(0);
    let mut text = event("message_start", &json!({"type": "message_start", "message": start}));
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let (empty, deltas) = pieces(block);
        text += &event(
            "content_block_start",
            &json!({"type": "content_block_start", "index": index, "content_block": empty}),
        );
        for delta in deltas {
            text += &event(
                "content_block_delta",
                &json!({"type": "content_block_delta", "index": index, "delta": delta}),
            );
        }
        text += &event("content_block_stop", &json!({"type": "content_block_stop", "index": index}));
    }
    let end = json!({"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]});
    let end = json!({"type": "message_delta", "delta": end, "usage": message["usage"]});
    text + &event("message_delta", &end) + &event("message_stop", &json!({"type": "message_stop"}))
}

/// A block without its content, and the deltas that fill it.
fn pieces(block: &Value) -> (Value, Vec<Value>) {
    let mut empty = block.clone();
    let mut deltas = Vec::new();
    let mut take = |kind: &str, key: &str, blank: Value, piece: &str, value: Value| {
        empty[key] = blank;
        deltas.push(json!({"type": kind, piece: value}));
    };
    match block["type"].as_str() {
        Some("text") => take("text_delta", "text", json!(""), "text", block["text"].clone()),
        Some("thinking") => {
            take("thinking_delta", "thinking", json!(""), "thinking", block["thinking"].clone());
            take("signature_delta", "signature", json!(""), "signature", block["signature"].clone());
        }
        Some("tool_use") => {
            let input = json!(block["input"].to_string());
            take("input_json_delta", "input", json!({}), "partial_json", input);
        }
        _ => {}
    }
    (empty, deltas)
}
