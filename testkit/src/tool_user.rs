//! A model that uses the tool it is offered once and says what came of it, in either format.

use serde_json::Value;

use crate::act::Act;

/// Calls `bash` where tools are offered and nothing was run yet; else says what it was told last.
pub fn play(request: &Value) -> Act {
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let last = messages.last().unwrap_or(&Value::Null);
    let result = match last["role"].as_str() {
        Some("tool") => Some(&last["content"]),
        _ => last["content"].as_array().and_then(|blocks| {
            let result = blocks.iter().find(|block| block["type"] == "tool_result")?;
            Some(&result["content"])
        }),
    };
    match result {
        Some(result) => Act::say(format!("The tool says: {}", text(result))),
        None if request["tools"].is_array() => Act::bash("Let me look.", "ls", messages.len()),
        None => Act::say(format!("You said: {}", text(&last["content"]))),
    }
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(request: Value) -> Value {
        match play(&request) {
            Act::Answer { message, .. } => message,
            act => panic!("{act:?}"),
        }
    }

    #[test]
    fn asks_for_the_tool_once_and_repeats_what_it_says() {
        let user = json!({"role": "user", "content": [{"type": "text", "text": "hi"}]});
        assert_eq!(said(json!({"messages": [user]}))["content"], "You said: hi");
        let asked = said(json!({"messages": [user], "tools": [{}]}));
        assert_eq!(asked["tool_calls"][0]["function"]["name"], "bash");
        for result in [
            json!({"role": "tool", "content": "a.py"}),
            json!({"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "a.py"}]}]}),
        ] {
            let request = json!({"messages": [user, result], "tools": [{}]});
            assert_eq!(said(request)["content"], "The tool says: a.py");
        }
    }
}
