//! Chat completions.

use serde_json::{Map, Value, json};

use super::{Said, same_ids};
use crate::llm::Reply;

/// The endpoint's own response, each call with an id.
pub fn native(reply: &Reply) -> Value {
    let mut response = reply.response.clone();
    let message = response["choices"].get_mut(0).and_then(|choice| choice.get_mut("message"));
    let calls = message.and_then(|message| message.get_mut("tool_calls")).and_then(Value::as_array_mut);
    same_ids(&reply.message, calls.into_iter().flatten());
    response
}

/// An answer as a chat completion.
pub fn completion(said: &Said<'_>) -> Value {
    let choice =
        json!({"index": 0, "message": said.message, "logprobs": null, "finish_reason": said.finish_reason});
    let mut completion = json!({"id": format!("chatcmpl-{}", said.id), "object": "chat.completion", "created": 0,
        "model": said.model, "choices": [choice]});
    let used = &said.used;
    if used.unmetered_calls == 0 {
        completion["usage"] = json!({"prompt_tokens": used.prompt_tokens, "completion_tokens": used.completion_tokens,
            "total_tokens": used.prompt_tokens + used.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": used.cached_tokens}});
    }
    completion
}

/// A completion as an event stream.
pub fn events(completion: &Value, with_usage: bool) -> String {
    let head: Map<String, Value> = completion
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !matches!(key.as_str(), "choices" | "usage" | "object"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let chunk = |choices: Value, usage: Option<&Value>| {
        let mut chunk = head.clone();
        chunk.insert("object".into(), json!("chat.completion.chunk"));
        chunk.insert("choices".into(), choices);
        if with_usage {
            chunk.insert("usage".into(), usage.cloned().unwrap_or_default());
        }
        format!("data: {}\n\n", Value::Object(chunk))
    };
    let choice = &completion["choices"][0];
    let delta = |delta: Value, end: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": end}]);
    let mut text = chunk(delta(json!({"role": "assistant", "content": ""}), Value::Null), None);
    for (key, value) in choice["message"].as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            ("role", _) | (_, Value::Null) => {}
            ("tool_calls", Value::Array(calls)) => {
                for (index, call) in calls.iter().enumerate() {
                    let mut call = call.clone();
                    call["index"] = json!(index);
                    text += &chunk(delta(json!({"tool_calls": [call]}), Value::Null), None);
                }
            }
            _ => text += &chunk(delta(json!({key: value}), Value::Null), None),
        }
    }
    let mut end = delta(json!({}), choice["finish_reason"].clone());
    end[0]["logprobs"] = choice["logprobs"].clone();
    text += &chunk(end, None);
    if let Some(usage) = completion.get("usage").filter(|usage| with_usage && !usage.is_null()) {
        text += &chunk(json!([]), Some(usage));
    }
    text + "data: [DONE]\n\n"
}
