//! OpenAI responses, without state: every request holds its whole conversation.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Refusal, Said, event};

type Object = Map<String, Value>;

/// Begins the `encrypted_content` of our reasoning items: what follows is the reasoning as chat completions have it.
const REASONING: &str = "memtrial:";

/// A request as one of chat completions, and the tools whose input is a text. What has no counterpart there is an
/// error that names it.
pub fn to_chat(body: &Object) -> Result<(Object, BTreeSet<String>), String> {
    let mut messages = Vec::new();
    if let Some(text) = body.get("instructions").and_then(Value::as_str) {
        messages.push(json!({"role": "system", "content": text}));
    }
    match body.get("input") {
        Some(Value::String(text)) => messages.push(json!({"role": "user", "content": text})),
        Some(Value::Array(items)) => items.iter().try_for_each(|item| add(item, &mut messages))?,
        _ => return Err("input is neither text nor items".into()),
    }
    let (mut chat, mut free) = (Object::new(), BTreeSet::new());
    chat.insert("messages".into(), messages.into());
    for (key, value) in body {
        parameter(key, value, &mut chat, &mut free)?;
    }
    if !chat.contains_key("tools") {
        chat.remove("parallel_tool_calls");
    }
    Ok((chat, free))
}

/// One of the request's other fields.
fn parameter(key: &str, value: &Value, chat: &mut Object, free: &mut BTreeSet<String>) -> Result<(), String> {
    let mut set = |key: &str, value: Value| drop(chat.insert(key.into(), value));
    match key {
        "model" | "instructions" | "input" => {}
        "temperature" | "top_p" | "parallel_tool_calls" => set(key, value.clone()),
        "max_output_tokens" => set("max_completion_tokens", value.clone()),
        "tools" => {
            let tools = value.as_array().ok_or("tools is no list")?;
            if !tools.is_empty() {
                set("tools", tools.iter().map(|item| tool(item, free)).collect::<Result<_, _>>()?);
            }
        }
        "tool_choice" => match (value.as_str(), value["type"].as_str()) {
            (Some(_), _) => set(key, value.clone()),
            (_, Some("function" | "custom")) => {
                set(key, json!({"type": "function", "function": {"name": value["name"]}}));
            }
            _ => return Err(format!("tool_choice {value} has no counterpart in chat completions")),
        },
        "reasoning" => {
            // How the reasoning is to be summed up is a hint.
            if let Some(effort) = value.get("effort").filter(|effort| !effort.is_null()) {
                set("reasoning_effort", effort.clone());
            }
        }
        "text" => {
            if let Some(verbosity) = value.get("verbosity").filter(|verbosity| !verbosity.is_null()) {
                set("verbosity", verbosity.clone());
            }
            let format = &value["format"];
            match format["type"].as_str() {
                None | Some("text") => {}
                Some("json_object") => set("response_format", format.clone()),
                Some("json_schema") => {
                    let mut schema = format.clone();
                    schema.as_object_mut().map(|schema| schema.remove("type"));
                    set("response_format", json!({"type": "json_schema", "json_schema": schema}));
                }
                Some(other) => return Err(format!("text.format {other} cannot be carried")),
            }
        }
        "include"
            if value
                .as_array()
                .is_some_and(|all| all.iter().all(|it| it == "reasoning.encrypted_content")) => {}
        "truncation" if value == "disabled" => {}
        "background" if value == false => {}
        "top_logprobs" if value == 0 => {}
        "previous_response_id" | "conversation" | "prompt" => {
            return Err(format!("{key}: the gateway keeps no conversations, send the whole input"));
        }
        _ => return Err(format!("{key} has no counterpart in chat completions")),
    }
    Ok(())
}

fn tool(tool: &Value, free: &mut BTreeSet<String>) -> Result<Value, String> {
    let mut function = json!({"name": tool["name"]});
    match tool["type"].as_str() {
        Some("function") => {
            for key in ["description", "parameters", "strict"] {
                if let Some(value) = tool.get(key).filter(|value| !value.is_null()) {
                    function[key] = value.clone();
                }
            }
        }
        Some("custom") => {
            let text = tool["description"].as_str().unwrap_or_default();
            let grammar = tool["format"]["definition"].as_str();
            let grammar =
                grammar.map_or_else(String::new, |it| format!("\n\nThe input has this grammar:\n{it}"));
            function["description"] = json!(format!("{text}{grammar}"));
            function["parameters"] = json!({"type": "object", "properties": {"input": {"type": "string"}},
                "required": ["input"], "additionalProperties": false});
            free.extend(tool["name"].as_str().map(str::to_owned));
        }
        kind => {
            let kind = kind.unwrap_or("none");
            return Err(format!("a tool of type {kind} is the endpoint's own: switch it off in the client"));
        }
    }
    Ok(json!({"type": "function", "function": function}))
}

/// Adds an item to the conversation. All that the assistant does in one go becomes one message.
fn add(item: &Value, messages: &mut Vec<Value>) -> Result<(), String> {
    let kind = item["type"].as_str().or(item.get("role").map(|_| "message"));
    match kind {
        Some("message") if item["role"] == "assistant" => {
            let (text, _) = content(&item["content"])?;
            let message = turn(messages);
            let known = message["content"].as_str().unwrap_or_default();
            message["content"] = json!(format!("{known}{text}"));
        }
        Some("message") => {
            let role = match item["role"].as_str() {
                Some("developer" | "system") => "system",
                Some("user") => "user",
                role => return Err(format!("a message has the role {}", role.unwrap_or("of nobody"))),
            };
            messages.push(json!({"role": role, "content": parts(&item["content"])?}));
        }
        Some("reasoning") => {
            let reasoning = reasoning(item)?;
            let message = turn(messages);
            reasoning.into_iter().for_each(|(key, value)| message[key] = value);
        }
        Some("function_call") => call(messages, item, item["arguments"].clone()),
        Some("custom_tool_call") => {
            call(messages, item, json!(json!({"input": item["input"]}).to_string()));
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            let (text, pictures) = content(&item["output"])?;
            let id = item["call_id"].as_str().ok_or("an output has no call_id")?;
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
            if !pictures.is_empty() {
                return Err("a picture as a tool's output cannot be carried".into());
            }
        }
        kind => return Err(format!("an item of type {} cannot be carried", kind.unwrap_or("none"))),
    }
    Ok(())
}

/// The assistant's message that is being made.
fn turn(messages: &mut Vec<Value>) -> &mut Value {
    if messages.last().is_none_or(|last| last["role"] != "assistant") {
        messages.push(json!({"role": "assistant", "content": null}));
    }
    let last = messages.len() - 1;
    &mut messages[last]
}

fn call(messages: &mut Vec<Value>, item: &Value, arguments: Value) {
    let message = turn(messages);
    let call = json!({"id": item["call_id"], "type": "function",
        "function": {"name": item["name"], "arguments": arguments}});
    match message["tool_calls"].as_array_mut() {
        Some(calls) => calls.push(call),
        None => message["tool_calls"] = json!([call]),
    }
}

/// What an earlier answer of ours holds of its reasoning.
fn reasoning(item: &Value) -> Result<Object, String> {
    match item["encrypted_content"].as_str() {
        Some(ours) if ours.starts_with(REASONING) => serde_json::from_str(&ours[REASONING.len()..])
            .map_err(|error| format!("a reasoning item: {error}")),
        Some(_) => Err("a reasoning item holds what another endpoint encrypted".into()),
        None => {
            let texts = item["content"].as_array().into_iter().flatten();
            let text: String = texts.filter_map(|part| part["text"].as_str()).collect();
            let mut known = Object::new();
            if !text.is_empty() {
                known.insert("reasoning_content".into(), json!(text));
            }
            Ok(known)
        }
    }
}

/// Text alone as text, anything else as parts.
fn parts(value: &Value) -> Result<Value, String> {
    let (text, pictures) = content(value)?;
    if pictures.is_empty() {
        return Ok(json!(text));
    }
    let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
    Ok(text.into_iter().chain(pictures).collect())
}

/// The texts, joined, and the pictures of a content.
fn content(content: &Value) -> Result<(String, Vec<Value>), String> {
    let parts = match content {
        Value::String(text) => return Ok((text.clone(), Vec::new())),
        Value::Array(parts) => parts,
        _ => return Err("a content is neither text nor parts".into()),
    };
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    for part in parts {
        match (part["type"].as_str(), part["image_url"].as_str()) {
            (Some("input_text" | "output_text" | "text"), _) => texts.extend(part["text"].as_str()),
            (Some("refusal"), _) => texts.extend(part["refusal"].as_str()),
            (Some("input_image"), Some(url)) => {
                pictures.push(json!({"type": "image_url", "image_url": {"url": url}}));
            }
            (kind, _) => return Err(format!("a part of type {} cannot be carried", kind.unwrap_or("none"))),
        }
    }
    Ok((texts.join("\n"), pictures))
}

/// An answer as a response.
pub fn response(said: &Said<'_>, free: &BTreeSet<String>) -> Value {
    let mut output = Vec::new();
    let thoughts: Object = ["reasoning_content", "thinking_blocks"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), said.message.get(key)?.clone())))
        .collect();
    if !said.reasoning().is_empty() || !thoughts.is_empty() {
        let kept = format!("{REASONING}{}", Value::Object(thoughts));
        output.push(json!({"id": format!("rs_{}", said.id), "type": "reasoning", "summary": [],
            "content": [{"type": "reasoning_text", "text": said.reasoning()}], "encrypted_content": kept}));
    }
    if !said.text().is_empty() || said.calls().is_empty() {
        output.push(json!({"id": format!("msg_{}", said.id), "type": "message", "status": "completed",
            "role": "assistant", "content": [{"type": "output_text", "text": said.text(), "annotations": []}]}));
    }
    for (n, call) in said.calls().iter().enumerate() {
        let (name, arguments) = (&call["function"]["name"], &call["function"]["arguments"]);
        let mut item = json!({"id": format!("fc_{}_{n}", said.id), "status": "completed", "call_id": call["id"],
            "name": name});
        if name.as_str().is_some_and(|name| free.contains(name)) {
            item["type"] = json!("custom_tool_call");
            item["input"] = json!(free_input(arguments.as_str().unwrap_or_default()));
        } else {
            item["type"] = json!("function_call");
            item["arguments"] = arguments.clone();
        }
        output.push(item);
    }
    let why = match said.finish_reason {
        "length" => Some("max_output_tokens"),
        "content_filter" => Some("content_filter"),
        _ => None,
    };
    let used = &said.used;
    let usage = (used.unmetered_calls == 0).then(|| {
        json!({"input_tokens": used.prompt_tokens, "input_tokens_details": {"cached_tokens": used.cached_tokens},
            "output_tokens": used.completion_tokens, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used.prompt_tokens + used.completion_tokens})
    });
    let mut response = blank(&said.id, said.model, if why.is_some() { "incomplete" } else { "completed" });
    response["output"] = output.into();
    response["usage"] = json!(usage);
    response["incomplete_details"] = why.map_or(Value::Null, |why| json!({ "reason": why }));
    response
}

/// The input of a tool that takes a text; arguments that are not what was asked for are handed on as they are.
fn free_input(arguments: &str) -> String {
    let parsed: Value = serde_json::from_str(arguments).unwrap_or_default();
    parsed["input"].as_str().map_or_else(|| arguments.to_owned(), str::to_owned)
}

fn blank(id: &str, model: &str, status: &str) -> Value {
    json!({"id": format!("resp_{id}"), "object": "response", "created_at": 0, "status": status, "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "model": model, "output": [],
        "parallel_tool_calls": true, "store": false, "temperature": null, "tool_choice": "auto", "tools": [],
        "top_p": null, "usage": null})
}

/// A stream's events, numbered.
struct Numbered {
    text: String,
    next: u64,
}

impl Numbered {
    fn push(&mut self, name: &str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.next);
        self.next += 1;
        self.text += &event(name, &data);
    }
}

/// A response as an event stream.
pub fn events(response: &Value) -> String {
    let mut stream = Numbered { text: String::new(), next: 0 };
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    begun["incomplete_details"] = Value::Null;
    stream.push("response.created", json!({"response": begun}));
    stream.push("response.in_progress", json!({"response": begun}));
    for (index, item) in response["output"].as_array().into_iter().flatten().enumerate() {
        item_events(&mut stream, index, item);
    }
    let end = if response["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    stream.push(end, json!({"response": response}));
    stream.text
}

fn item_events(stream: &mut Numbered, index: usize, item: &Value) {
    let id = &item["id"];
    let mut begun = item.clone();
    let blank = |begun: &mut Value, key: &str, value: Value| begun[key] = value;
    match item["type"].as_str() {
        Some("function_call") => blank(&mut begun, "arguments", json!("")),
        Some("custom_tool_call") => blank(&mut begun, "input", json!("")),
        _ => blank(&mut begun, "content", json!([])),
    }
    if item.get("status").is_some() {
        begun["status"] = json!("in_progress");
    }
    stream.push("response.output_item.added", json!({"output_index": index, "item": begun}));
    let at = |more: Value| {
        let mut data = json!({"item_id": id, "output_index": index});
        if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
            data.extend(more);
        }
        data
    };
    match item["type"].as_str() {
        Some("message") => {
            let part = &item["content"][0];
            let empty = json!({"type": "output_text", "text": "", "annotations": []});
            stream.push("response.content_part.added", at(json!({"content_index": 0, "part": empty})));
            let delta = json!({"content_index": 0, "delta": part["text"], "logprobs": []});
            stream.push("response.output_text.delta", at(delta));
            let done = json!({"content_index": 0, "text": part["text"], "logprobs": []});
            stream.push("response.output_text.done", at(done));
            stream.push("response.content_part.done", at(json!({"content_index": 0, "part": part})));
        }
        Some("reasoning") => {
            let text = &item["content"][0]["text"];
            let delta = json!({"content_index": 0, "delta": text});
            stream.push("response.reasoning_text.delta", at(delta));
            stream.push("response.reasoning_text.done", at(json!({"content_index": 0, "text": text})));
        }
        Some("function_call") => {
            let text = &item["arguments"];
            stream.push("response.function_call_arguments.delta", at(json!({"delta": text})));
            let done = json!({"name": item["name"], "arguments": text});
            stream.push("response.function_call_arguments.done", at(done));
        }
        Some("custom_tool_call") => {
            let text = &item["input"];
            stream.push("response.custom_tool_call_input.delta", at(json!({"delta": text})));
            stream.push("response.custom_tool_call_input.done", at(json!({"input": text})));
        }
        _ => {}
    }
    stream.push("response.output_item.done", json!({"output_index": index, "item": item}));
}

/// The end of a stream whose answer failed.
pub fn failed(model: &str, refusal: &Refusal) -> String {
    let mut response = blank("failed", model, "failed");
    let code = refusal.code.unwrap_or("server_error");
    response["error"] = json!({"code": code, "message": refusal.message});
    let mut stream = Numbered { text: String::new(), next: 0 };
    stream.push("response.failed", json!({"response": response}));
    stream.text
}
