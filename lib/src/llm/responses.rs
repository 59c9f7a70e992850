//! What differs in the Responses API: how a response ended, and what chat completions become there.

use serde_json::{Value, json};

use super::http::Failure;

/// How a response ended, as mini-swe-agent's templates call it: `length` where it hit its limit of tokens, else its
/// `status`.
///
/// # Errors
/// When it is no finished response.
pub(super) fn ending(response: &Value) -> Result<Option<String>, Failure> {
    let unusable = |reason: &str| Failure { response: Some(response.clone()), ..Failure::unusable(reason) };
    if !response["output"].is_array() {
        return Err(unusable("the reply has no list `output`: it is no response of the Responses API"));
    }
    let status = response["status"].as_str();
    match status {
        Some("failed" | "cancelled" | "queued" | "in_progress") => {
            Err(unusable(&format!("the response is no finished one: its status is {}", response["status"])))
        }
        Some("incomplete") if response["incomplete_details"]["reason"] == "max_output_tokens" => {
            Ok(Some("length".into()))
        }
        _ => Ok(status.map(str::to_owned)),
    }
}

/// A message of chat completions as the response that says the same, for a recorded run that is replayed through the
/// other interface. A response stays as it is.
pub(super) fn from_chat(message: Value) -> Value {
    if message["object"] == "response" {
        return message;
    }
    let text = message["content"].as_str().filter(|text| !text.is_empty());
    let said = text.map(|text| {
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
    });
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        json!({"type": "function_call", "call_id": call["id"], "name": call["function"]["name"],
            "arguments": call["function"]["arguments"]})
    });
    let output: Vec<Value> = said.into_iter().chain(calls).collect();
    json!({"object": "response", "status": "completed", "output": output})
}

/// A response as the message of chat completions that says the same. A message stays as it is.
pub(super) fn to_chat(response: Value) -> Value {
    if response["object"] != "response" {
        return response;
    }
    let items = || response["output"].as_array().into_iter().flatten();
    let parts =
        items().filter(|item| item["type"] == "message").filter_map(|item| item["content"].as_array());
    let text: Vec<&str> = parts.flatten().filter_map(|part| part["text"].as_str()).collect();
    let calls: Vec<Value> = items()
        .filter(|item| item["type"] == "function_call")
        .map(|call| {
            json!({"id": call["call_id"], "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]}})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": text.join("\n")});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_have_the_names_that_templates_know() {
        let ended = |response: Value| ending(&response).map_err(|failure| failure.reason);
        assert_eq!(ended(json!({"output": [], "status": "completed"})), Ok(Some("completed".into())));
        let cut = json!({"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}});
        assert_eq!(ended(cut), Ok(Some("length".into())));
        let filtered =
            json!({"output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}});
        assert_eq!(ended(filtered), Ok(Some("incomplete".into())));
        assert_eq!(ended(json!({"output": []})), Ok(None));
        assert!(ended(json!({"output": [], "status": "failed"})).unwrap_err().contains("\"failed\""));
        assert!(ended(json!({"choices": []})).unwrap_err().contains("no list `output`"));
    }

    #[test]
    fn recorded_replies_change_their_interface_and_back() {
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}});
        let message = json!({"role": "assistant", "content": "Look.", "tool_calls": [call("a"), call("b")]});
        let response = from_chat(message.clone());
        assert_eq!(response["output"][2]["call_id"], "b");
        assert_eq!(from_chat(response.clone()), response);
        assert_eq!(to_chat(response), message);
        assert_eq!(to_chat(message.clone()), message);
        assert_eq!(from_chat(json!({"role": "assistant", "content": null}))["output"], json!([]));
    }
}
