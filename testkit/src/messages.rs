//! The fake server's other format: Anthropic messages.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Marks that the endpoint takes in one request.
const MOST_MARKS: usize = 4;

/// What is wrong with a request body, a line each; empty: nothing is.
pub(crate) fn violations(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model is named".into());
    }
    if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        found.push("max_tokens is no number above 0".into());
    }
    let known = [
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "stop_sequences",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "metadata",
    ];
    let unknown = body.as_object().into_iter().flatten().filter(|(key, _)| !known.contains(&key.as_str()));
    found.extend(unknown.map(|(key, _)| format!("{key}: Extra inputs are not permitted")));
    let marks = marks(body);
    if marks > MOST_MARKS {
        found.push(format!("{marks} blocks have cache_control, {MOST_MARKS} may"));
    }
    for (n, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        if tool["name"].as_str().is_none_or(str::is_empty) || tool["input_schema"]["type"] != "object" {
            found.push(format!("tools[{n}] has no name or no object schema"));
        }
    }
    match body["messages"].as_array().filter(|turns| !turns.is_empty()) {
        Some(turns) => conversation(turns, &mut found),
        None => found.push("messages is no list with entries".into()),
    }
    found
}

fn marks(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            usize::from(map.contains_key("cache_control")) + map.values().map(marks).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

fn conversation(turns: &[Value], found: &mut Vec<String>) {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut last = "";
    for (n, turn) in turns.iter().enumerate() {
        let role = turn["role"].as_str().unwrap_or_default();
        let mut wrong = |what: String| found.push(format!("messages[{n}]: {what}"));
        if !matches!(role, "user" | "assistant") {
            wrong(format!("unknown role {role:?}"));
        }
        if role == last {
            wrong(format!("a second turn of {role}"));
        }
        last = role;
        let text = [json!({"type": "text", "text": turn["content"]})];
        let blocks = match &turn["content"] {
            Value::Array(blocks) if !blocks.is_empty() => blocks.as_slice(),
            Value::String(_) => &text,
            _ => {
                wrong("content is neither text nor blocks".into());
                &[]
            }
        };
        let answered: BTreeSet<&str> =
            blocks.iter().filter_map(|block| block["tool_use_id"].as_str()).collect();
        if !open.is_subset(&answered) {
            wrong(format!("the calls {open:?} are not answered at once"));
        }
        for id in answered.difference(&open) {
            wrong(format!("answers no open call: {id}"));
        }
        let mut calls = BTreeSet::new();
        let mut others = false;
        for block in blocks {
            match block["type"].as_str().unwrap_or_default() {
                "text" if block["text"].as_str().is_some_and(|text| !text.trim().is_empty()) => others = true,
                "image" if block["source"].is_object() => others = true,
                "tool_result" if role == "user" && !others => {}
                "tool_use" if role == "assistant" && block["input"].is_object() => {
                    let id = block["id"].as_str().unwrap_or_default();
                    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                    if id.is_empty() || !id.chars().all(plain) {
                        wrong(format!("a call's id is not plain: {id:?}"));
                    }
                    if let Some((id, true)) = block["id"].as_str().map(|id| (id, calls.insert(id))) {
                        others = !id.is_empty();
                    } else {
                        wrong("a call has no id of its own".into());
                    }
                }
                "thinking" if block["signature"].as_str().is_some_and(|s| !s.is_empty()) && !others => {}
                "redacted_thinking" if block["data"].is_string() && !others => {}
                kind => wrong(format!("a block of type {kind:?} is wrong or in a wrong place: {block}")),
            }
        }
        open = calls.into_iter().filter_map(|id| find_id(turn, id)).collect();
    }
    if !open.is_empty() {
        found.push(format!("the calls {open:?} of the last turn are not answered"));
    }
}

/// The id as the turn holds it, which outlives the blocks' borrow.
fn find_id<'a>(turn: &'a Value, id: &str) -> Option<&'a str> {
    turn["content"].as_array()?.iter().filter_map(|block| block["id"].as_str()).find(|known| *known == id)
}

/// The Anthropic message that says what a message of chat completions says.
pub(crate) fn message(request: &Value, said: &Value, finish_reason: &str, usage: &Value) -> Value {
    let mut content = said["thinking_blocks"].as_array().cloned().unwrap_or_default();
    if let Some(text) = said["content"].as_str().filter(|text| !text.is_empty()) {
        content.push(json!({"type": "text", "text": text}));
    }
    for call in said["tool_calls"].as_array().into_iter().flatten() {
        let arguments = call["function"]["arguments"].as_str().unwrap_or("{}");
        let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        content.push(
            json!({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": input}),
        );
    }
    let stop = match finish_reason {
        "tool_calls" => "tool_use",
        "length" => "max_tokens",
        "content_filter" => "refusal",
        "stop" => "end_turn",
        other => other,
    };
    json!({"id": "msg_fake", "type": "message", "role": "assistant", "model": request["model"], "content": content,
        "stop_reason": stop, "stop_sequence": null, "usage": usage})
}

/// Four characters a token; what stands before the first mark was in the cache already.
pub(crate) fn counted(request: &Value, said: &Value) -> Value {
    let tokens = |value: &Value| value.to_string().chars().count() / 4;
    let system = tokens(&request["system"]) + tokens(&request["tools"]);
    let (cached, input) = if marks(request) > 0 { (system, 0) } else { (0, system) };
    json!({"input_tokens": input + tokens(&request["messages"]), "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0, "output_tokens": tokens(said)})
}

/// A message as an event stream, texts in pieces.
pub(crate) fn streamed(message: &Value, pieces: impl Fn(&str) -> Vec<String>) -> Vec<u8> {
    let event =
        |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut text = event(json!({"type": "message_start", "message": start}));
    text += &event(json!({"type": "ping"}));
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut blank = block.clone();
        let mut deltas = Vec::new();
        for (key, kind) in
            [("text", "text_delta"), ("thinking", "thinking_delta"), ("signature", "signature_delta")]
        {
            if let Some(value) = block[key].as_str() {
                blank[key] = json!("");
                deltas.extend(pieces(value).into_iter().map(|piece| json!({"type": kind, key: piece})));
            }
        }
        if block["type"] == "tool_use" {
            blank["input"] = json!({});
            let json = pieces(&block["input"].to_string()).into_iter();
            deltas.extend(json.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})));
        }
        text += &event(json!({"type": "content_block_start", "index": index, "content_block": blank}));
        for delta in deltas {
            text += &event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        text += &event(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    text += &event(json!({"type": "message_delta", "delta": delta,
        "usage": {"output_tokens": message["usage"]["output_tokens"]}}));
    text += &event(json!({"type": "message_stop"}));
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(messages: Value) -> Value {
        json!({"model": "m", "max_tokens": 10, "messages": messages})
    }

    fn call(id: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "bash", "input": {}})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
    }

    #[test]
    fn a_whole_conversation_is_right() {
        let thought = json!({"type": "thinking", "thinking": "t", "signature": "s"});
        let messages = json!([
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": [thought, {"type": "text", "text": "y"}, call("a"), call("b")]},
            {"role": "user", "content": [result("b"), result("a"), {"type": "text", "text": "z"}]},
        ]);
        assert_eq!(violations(&body(messages)), Vec::<String>::new());
    }

    #[test]
    fn every_fault_is_named() {
        let user = json!({"role": "user", "content": "x"});
        let asks = json!({"role": "assistant", "content": [call("a")]});
        let answers = json!({"role": "user", "content": [result("a")]});
        let mut marked = body(json!([user]));
        marked["system"] = json!(vec![json!({"type": "text", "text": "x", "cache_control": {}}); 5]);
        let mut odd = body(json!([user]));
        odd["seed"] = json!(1);
        for (body, word) in [
            (json!({"model": "m", "messages": [user]}), "max_tokens"),
            (marked, "5 blocks have cache_control"),
            (odd, "seed: Extra inputs"),
            (body(json!([user, user])), "a second turn"),
            (body(json!([user, asks])), "are not answered"),
            (body(json!([user, asks, user])), "not answered at once"),
            (body(json!([answers])), "answers no open call"),
            (body(json!([{"role": "user", "content": [{"type": "text", "text": " "}]}])), "type \"text\""),
            (body(json!([user, {"role": "assistant", "content": [call("a.b")]}])), "not plain"),
        ] {
            let found = violations(&body);
            assert!(found.iter().any(|line| line.contains(word)), "{word}: {found:?}");
        }
    }
}
