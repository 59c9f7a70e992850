//! A chat completions request as an Anthropic one.

use serde_json::{Map, Value, json};

/// Completion tokens at most, where the request does not say: the format demands a number.
const MAX_TOKENS: u64 = 8192;

/// The endpoint takes no more marks.
const MOST_MARKS: usize = 4;

/// Stands for a text without a character, which the endpoint refuses.
const EMPTY: &str = "(empty)";

/// The request body in Anthropic's format. What has no counterpart there is an error that names it.
///
/// Later `system` messages become texts of the user, since the format knows system texts at the start alone.
pub fn request(chat: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut body = Map::new();
    body.insert("model".into(), chat.get("model").cloned().unwrap_or_default());
    let stated = ["max_completion_tokens", "max_tokens"].iter().find_map(|key| chat.get(*key)?.as_u64());
    body.insert("max_tokens".into(), json!(stated.unwrap_or(MAX_TOKENS)));
    let messages = chat.get("messages").and_then(Value::as_array).ok_or("messages is no list")?;
    let leading = messages.iter().take_while(|message| is_system(message)).count();
    let (system, turns) = messages.split_at(leading);
    let system = system.iter().map(|message| blocks(&message["content"])).collect::<Result<Vec<_>, _>>()?;
    if !system.is_empty() {
        body.insert("system".into(), system.concat().into());
    }
    body.insert("messages".into(), turns_of(turns)?.into());
    if let Some(Value::Array(tools)) = chat.get("tools") {
        body.insert("tools".into(), tools.iter().map(tool).collect::<Result<_, _>>()?);
    }
    for (key, value) in chat.iter().filter(|(_, value)| !value.is_null()) {
        parameter(key, value, &mut body)?;
    }
    mark(&mut body);
    Ok(body)
}

fn is_system(message: &Value) -> bool {
    matches!(message["role"].as_str(), Some("system" | "developer"))
}

/// One of the request's other fields.
fn parameter(key: &str, value: &Value, body: &mut Map<String, Value>) -> Result<(), String> {
    match key {
        "model"
        | "messages"
        | "tools"
        | "max_tokens"
        | "max_completion_tokens"
        | "stream"
        | "stream_options" => {}
        "temperature" | "top_p" | "top_k" => drop(body.insert(key.into(), value.clone())),
        "stop" => {
            let list = if value.is_string() { json!([value]) } else { value.clone() };
            body.insert("stop_sequences".into(), list);
        }
        "tool_choice" => choose(body, tool_choice(value)?),
        "parallel_tool_calls" if value == false => {
            if body.contains_key("tools") {
                choose(body, json!({"disable_parallel_tool_use": true}));
            }
        }
        // What these ask for is what happens anyhow.
        "parallel_tool_calls" if value == true => {}
        "n" if value == 1 => {}
        "logprobs" if value == false => {}
        "frequency_penalty" | "presence_penalty" if value.as_f64() == Some(0.0) => {}
        "response_format" if value["type"] == "text" => {}
        _ => return Err(format!("{key} has no counterpart in Anthropic's messages")),
    }
    Ok(())
}

/// Joins what several fields say of the choice of tools.
fn choose(body: &mut Map<String, Value>, more: Value) {
    let choice = body.entry("tool_choice").or_insert_with(|| json!({"type": "auto"}));
    if let (Value::Object(choice), Value::Object(more)) = (choice, more) {
        choice.extend(more);
    }
}

fn tool_choice(choice: &Value) -> Result<Value, String> {
    match (choice.as_str(), choice["function"]["name"].as_str()) {
        (Some("auto"), _) => Ok(json!({"type": "auto"})),
        (Some("required"), _) => Ok(json!({"type": "any"})),
        (Some("none"), _) => Ok(json!({"type": "none"})),
        (None, Some(name)) => Ok(json!({"type": "tool", "name": name})),
        _ => Err(format!("tool_choice {choice} has no counterpart in Anthropic's messages")),
    }
}

fn tool(tool: &Value) -> Result<Value, String> {
    let function = &tool["function"];
    let name = function["name"].as_str().filter(|_| tool["type"] == "function");
    let name = name.ok_or_else(|| format!("a tool of type {} is no function", tool["type"]))?;
    let mut made = json!({"name": name});
    if let Some(text) = function["description"].as_str().filter(|text| !text.is_empty()) {
        made["description"] = json!(text);
    }
    let schema = &function["parameters"];
    made["input_schema"] =
        if schema.is_null() { json!({"type": "object", "properties": {}}) } else { schema.clone() };
    Ok(made)
}

/// The conversation, messages of one side joined into turns.
fn turns_of(messages: &[Value]) -> Result<Vec<Value>, String> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match message["role"].as_str() {
            Some("user" | "system" | "developer") => ("user", blocks(&message["content"])?),
            Some("tool") => ("user", vec![tool_result(message)?]),
            Some("assistant") => ("assistant", assistant(message)?),
            role => return Err(format!("a message has the role {}", role.unwrap_or("of nobody"))),
        };
        match turns.last_mut().filter(|(last, _)| *last == role) {
            Some((_, known)) => known.extend(blocks),
            None => turns.push((role, blocks)),
        }
    }
    Ok(turns.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect())
}

fn tool_result(message: &Value) -> Result<Value, String> {
    let id = message["tool_call_id"].as_str().ok_or("a tool message has no tool_call_id")?;
    let content = match &message["content"] {
        Value::Array(_) => blocks(&message["content"])?.into(),
        text => text.clone(),
    };
    Ok(json!({"type": "tool_result", "tool_use_id": plain_id(id), "content": content}))
}

fn assistant(message: &Value) -> Result<Vec<Value>, String> {
    let thinking = message["thinking_blocks"].as_array().cloned().unwrap_or_default();
    let says = match &message["content"] {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        content => blocks(content)?,
    };
    let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
    let calls = calls.iter().map(tool_use).collect::<Result<Vec<_>, _>>()?;
    let said = [thinking, says, calls].concat();
    Ok(if said.is_empty() { vec![text_block(EMPTY)] } else { said })
}

fn tool_use(call: &Value) -> Result<Value, String> {
    let id = call["id"].as_str().ok_or("a tool call has no id")?;
    let function = &call["function"];
    Ok(json!({"type": "tool_use", "id": plain_id(id), "name": function["name"], "input": input(function)}))
}

/// The input that a function's arguments stand for. Arguments that are no JSON object, which the format cannot carry,
/// become one that holds them as a text.
pub fn input(function: &Value) -> Value {
    let text = function["arguments"].as_str().unwrap_or_default();
    match serde_json::from_str(text) {
        Ok(input @ Value::Object(_)) => input,
        _ if text.trim().is_empty() => json!({}),
        _ => json!({ "arguments": text }),
    }
}

/// An id with the characters that the endpoint takes.
fn plain_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": if text.trim().is_empty() { EMPTY } else { text }})
}

/// Text or parts, as blocks.
fn blocks(content: &Value) -> Result<Vec<Value>, String> {
    match content {
        Value::String(text) => Ok(vec![text_block(text)]),
        Value::Array(parts) => parts.iter().map(block).collect(),
        Value::Null => Ok(vec![text_block("")]),
        _ => Err("a message's content is neither text nor parts".into()),
    }
}

fn block(part: &Value) -> Result<Value, String> {
    let mut made = match (part["type"].as_str(), part["text"].as_str(), part["image_url"]["url"].as_str()) {
        (Some("text"), Some(text), _) => text_block(text),
        (Some("image_url"), _, Some(url)) => json!({"type": "image", "source": image(url)?}),
        _ => {
            return Err(format!(
                "a part of type {} has no counterpart in Anthropic's messages",
                part["type"]
            ));
        }
    };
    if let Some(mark) = part.get("cache_control") {
        made["cache_control"] = mark.clone();
    }
    Ok(made)
}

fn image(url: &str) -> Result<Value, String> {
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(json!({"type": "url", "url": url}));
    }
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let (kind, data) = inline.ok_or("an image's address is neither http(s) nor data:…;base64")?;
    Ok(json!({"type": "base64", "media_type": kind, "data": data}))
}

/// Marks what comes again with the next call: the tools, the system text, the last two turns of the user. A request
/// that has marks of its own keeps those alone.
fn mark(body: &mut Map<String, Value>) {
    fn last_block(message: &mut Value) -> Option<&mut Value> {
        message["content"].as_array_mut()?.last_mut()
    }
    if ["system", "messages"].iter().any(|key| body.get(*key).is_some_and(is_marked)) {
        return;
    }
    let mut left = MOST_MARKS;
    let mut mark = |block: Option<&mut Value>| {
        if let Some(block) = block.filter(|_| left > 0) {
            block["cache_control"] = json!({"type": "ephemeral"});
            left -= 1;
        }
    };
    for key in ["tools", "system"] {
        mark(body.get_mut(key).and_then(Value::as_array_mut).and_then(|list| list.last_mut()));
    }
    let turns = body.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    for turn in turns.rev().filter(|turn| turn["role"] == "user").take(2) {
        mark(last_block(turn));
    }
}

fn is_marked(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("cache_control") || map.values().any(is_marked),
        Value::Array(items) => items.iter().any(is_marked),
        _ => false,
    }
}
