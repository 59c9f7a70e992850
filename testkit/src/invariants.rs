//! What every request to a chat endpoint must be like. Strict endpoints refuse anything else, lenient ones answer
//! nonsense; the fake server refuses it with the reason.

use std::collections::BTreeSet;

use serde_json::Value;

/// What is wrong with a request body, a line each; empty: nothing is.
pub fn violations(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model is named".into());
    }
    if body.get("extra").is_some() {
        found.push("the body holds the key extra".into());
    }
    for (key, right) in [
        ("stream", body["stream"].is_boolean()),
        ("seed", body["seed"].is_i64() || body["seed"].is_u64()),
        ("temperature", body["temperature"].is_number()),
        ("max_tokens", body["max_tokens"].is_u64()),
    ] {
        if body.get(key).is_some() && !right {
            found.push(format!("{key} has the wrong type: {}", body[key]));
        }
    }
    tools(body, &mut found);
    let entries = |key: &str| body[key].as_array().filter(|entries| !entries.is_empty());
    match (entries("messages"), entries("input")) {
        (Some(messages), None) => conversation(messages, &mut found),
        (None, Some(items)) => input(items, &mut found),
        (Some(_), Some(_)) => found.push("there are messages and input items".into()),
        (None, None) => found.push("messages is no list with entries".into()),
    }
    found
}

fn tools(body: &Value, found: &mut Vec<String>) {
    let Some(tools) = body.get("tools") else { return };
    let Some(tools) = tools.as_array().filter(|tools| !tools.is_empty()) else {
        return found.push("tools is no list with entries".into());
    };
    let mut names = BTreeSet::new();
    for (n, tool) in tools.iter().enumerate() {
        // The Responses API writes name and parameters beside the type.
        let function = if body.get("input").is_some() { tool } else { &tool["function"] };
        let name = function["name"].as_str().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if tool["type"] != "function" {
            found.push(format!("tools[{n}] has no type function"));
        }
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            found.push(format!("tools[{n}] has no usable name: {name:?}"));
        } else if !names.insert(name) {
            found.push(format!("tools[{n}] has a name twice: {name}"));
        }
        if !function["parameters"].is_null() && function["parameters"]["type"] != "object" {
            found.push(format!("tools[{n}] has parameters that are no object schema"));
        }
    }
}

/// The items of the Responses API: every call is answered once before the next message.
fn input(items: &[Value], found: &mut Vec<String>) {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (n, item) in items.iter().enumerate() {
        let mut wrong = |what: String| found.push(format!("input[{n}]: {what}"));
        if item.get("extra").is_some() {
            wrong("the local key extra is sent".into());
        }
        let id = item["call_id"].as_str().unwrap_or_default();
        match (item["type"].as_str().unwrap_or("message"), item["role"].as_str()) {
            ("function_call", None) if item["arguments"].is_string() && open.insert(id) => {}
            ("function_call_output", None) if item["output"].is_string() && open.remove(id) => {}
            ("reasoning", None) => {}
            ("message", Some("assistant")) => {}
            ("message", Some("system" | "developer" | "user")) if open.is_empty() => {}
            (kind, _) => wrong(format!("is no item that may stand here: {kind}")),
        }
    }
    if !open.is_empty() {
        found.push(format!("the calls {open:?} are not answered"));
    }
}

fn conversation(messages: &[Value], found: &mut Vec<String>) {
    // The calls of the last assistant message that have no answer yet.
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (n, message) in messages.iter().enumerate() {
        let mut wrong = |what: String| found.push(format!("messages[{n}]: {what}"));
        if message.get("extra").is_some() {
            wrong("the local key extra is sent".into());
        }
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            wrong(format!("{role} comes before the calls {open:?} are answered"));
            open.clear();
        }
        match role {
            "system" | "developer" | "user" => content(&message["content"], &mut wrong),
            "tool" => {
                content(&message["content"], &mut wrong);
                match message["tool_call_id"].as_str() {
                    Some(id) if open.remove(id) => {}
                    id => wrong(format!("answers no open call: {}", id.unwrap_or("without tool_call_id"))),
                }
            }
            "assistant" => open = assistant(message, &mut wrong),
            other => wrong(format!("unknown role {other:?}")),
        }
    }
    if !open.is_empty() {
        found.push(format!("the calls {open:?} of the last assistant message are not answered"));
    }
}

/// Checks an assistant message and gives the ids of its calls.
fn assistant<'a>(message: &'a Value, wrong: &mut impl FnMut(String)) -> BTreeSet<&'a str> {
    let mut ids = BTreeSet::new();
    let calls = match &message["tool_calls"] {
        Value::Null => &[],
        Value::Array(calls) if !calls.is_empty() => calls.as_slice(),
        _ => {
            wrong("tool_calls is no list with entries".into());
            &[]
        }
    };
    for call in calls {
        let function = &call["function"];
        match call["id"].as_str().filter(|id| !id.is_empty()) {
            Some(id) if ids.insert(id) => {}
            id => wrong(format!("a call has no id of its own: {}", id.unwrap_or("none"))),
        }
        if call["type"] != "function" || function["name"].as_str().is_none_or(str::is_empty) {
            wrong("a call is no named function".into());
        }
        if !function["arguments"].is_string() {
            wrong("a call's arguments are no string".into());
        }
    }
    if !message["content"].is_null() {
        content(&message["content"], wrong);
    } else if calls.is_empty() {
        wrong("an assistant message has neither content nor calls".into());
    }
    ids
}

fn content(content: &Value, wrong: &mut impl FnMut(String)) {
    let part_is_right = |part: &Value| match part["type"].as_str() {
        Some("text") => part["text"].is_string(),
        Some("image_url") => part["image_url"]["url"].is_string(),
        _ => false,
    };
    match content {
        Value::String(_) => {}
        Value::Array(parts) if !parts.is_empty() && parts.iter().all(part_is_right) => {}
        _ => wrong("content is neither text nor parts".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(messages: Value) -> Value {
        json!({"model": "m", "messages": messages})
    }

    fn call(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}})
    }

    #[test]
    fn a_whole_conversation_is_right() {
        let tool = json!({"type": "function", "function": {"name": "bash", "description": "d",
            "parameters": {"type": "object", "properties": {}}}});
        let mut body = body(json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "t"}]},
            {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")], "reasoning_content": "r"},
            {"role": "tool", "tool_call_id": "b", "content": "1"},
            {"role": "tool", "tool_call_id": "a", "content": ""},
            {"role": "assistant", "content": "text", "tool_calls": null},
            {"role": "user", "content": "again"},
        ]));
        body["tools"] = json!([tool]);
        body["seed"] = json!(1);
        assert_eq!(violations(&body), Vec::<String>::new());
    }

    #[test]
    fn items_of_the_responses_api() {
        let call = json!({"type": "function_call", "call_id": "a", "name": "bash", "arguments": "{}"});
        let output = json!({"type": "function_call_output", "call_id": "a", "output": "x"});
        let user = json!({"role": "user", "content": "x"});
        let tool = json!({"type": "function", "name": "bash", "parameters": {"type": "object"}});
        let right = json!({"model": "m", "input": [user, {"type": "reasoning", "id": "r"}, call, output], "tools": [tool]});
        assert_eq!(violations(&right), Vec::<String>::new());
        for (items, word) in [
            (json!([user, call]), "are not answered"),
            (json!([user, output]), "may stand here: function_call_output"),
            (json!([user, call, user, output]), "may stand here: message"),
            (json!([{"role": "user", "content": "x", "extra": {}}]), "extra is sent"),
            (json!([{"role": "exit", "content": "x"}]), "may stand here: message"),
        ] {
            let found = violations(&json!({"model": "m", "input": items}));
            assert!(found.iter().any(|line| line.contains(word)), "{word}: {found:?}");
        }
    }

    #[test]
    fn every_fault_is_named() {
        let user = json!({"role": "user", "content": "x"});
        let asks = json!({"role": "assistant", "content": null, "tool_calls": [call("a")]});
        let answer = json!({"role": "tool", "tool_call_id": "a", "content": "x"});
        for (body, word) in [
            (json!({"messages": [user]}), "no model"),
            (json!({"model": "m"}), "messages is no list"),
            (body(json!([])), "messages is no list"),
            (json!({"model": "m", "messages": [user], "tools": []}), "tools is no list"),
            (
                json!({"model": "m", "messages": [user], "tools": [{"type": "function", "function": {"name": "a b"}}]}),
                "usable name",
            ),
            (
                json!({"model": "m", "messages": [user], "tools": [{"function": {"name": "a"}}]}),
                "no type function",
            ),
            (json!({"model": "m", "messages": [user], "seed": "1"}), "seed has the wrong type"),
            (json!({"model": "m", "messages": [user], "extra": 1}), "key extra"),
            (body(json!([{"role": "exit", "content": "x"}])), "unknown role"),
            (body(json!([{"role": "user", "content": "x", "extra": {}}])), "extra is sent"),
            (body(json!([{"role": "user", "content": null}])), "neither text nor parts"),
            (body(json!([{"role": "user", "content": [{"type": "text"}]}])), "neither text nor parts"),
            (body(json!([user, {"role": "assistant", "content": null}])), "neither content nor calls"),
            (
                body(json!([user, {"role": "assistant", "content": "x", "tool_calls": []}])),
                "tool_calls is no list",
            ),
            (body(json!([user, asks])), "are not answered"),
            (body(json!([user, asks, user])), "before the calls"),
            (body(json!([user, asks, asks, answer])), "before the calls"),
            (body(json!([user, asks, answer, answer])), "answers no open call: a"),
            (body(json!([user, {"role": "tool", "content": "x"}])), "without tool_call_id"),
            (
                body(
                    json!([user, {"role": "assistant", "content": null, "tool_calls": [call("a"), call("a")]}, answer]),
                ),
                "no id of its own",
            ),
            (
                body(
                    json!([user, {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function",
                    "function": {"name": "bash", "arguments": {}}}]}, answer]),
                ),
                "no string",
            ),
        ] {
            let found = violations(&body);
            assert!(found.iter().any(|line| line.contains(word)), "{word}: {found:?}");
        }
    }
}
