//! How long a prompt is.

use serde_json::Value;

/// Tokens of a text where no tokenizer is known: a quarter of its code points, rounded up.
pub fn estimate(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// Prompt tokens of a whole log: what the endpoint reported with its last answer, plus an estimate for what came
/// after it. Before the first answer everything is estimated, the tool list included.
pub fn measure(log: &[Value], tools: &[Value]) -> u64 {
    let reported = log.iter().enumerate().rev().find_map(|(index, message)| {
        let usage = message.pointer("/extra/response/usage").or_else(|| message.get("usage"))?;
        let count = |names: [&str; 2]| names.iter().find_map(|name| usage.get(name)?.as_u64());
        let prompt = count(["prompt_tokens", "input_tokens"]).filter(|&tokens| tokens > 0)?;
        let is_reply = message["role"] == "assistant" || message["object"] == "response";
        // The reply itself is part of the next prompt; a reply that could not be parsed is not.
        let reply = if is_reply { count(["completion_tokens", "output_tokens"]) } else { Some(0) };
        Some((prompt + reply?, if is_reply { index + 1 } else { index }))
    });
    let (known, rest) = match reported {
        Some((tokens, from)) => (tokens, &log[from..]),
        None => (tools.iter().map(|tool| estimate(&tool.to_string())).sum(), log),
    };
    known + rest.iter().map(message_tokens).sum::<u64>()
}

/// Role and separators cost a few tokens in every chat template.
const PER_MESSAGE: u64 = 4;

fn message_tokens(message: &Value) -> u64 {
    let said = ["content", "output"].iter().find_map(|key| message.get(key));
    let text = match said {
        Some(Value::String(text)) => estimate(text),
        Some(Value::Null) | None => 0,
        Some(parts) => estimate(&parts.to_string()),
    };
    let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
    PER_MESSAGE + text + calls.map_or(0, |calls| estimate(&calls.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn estimates_code_points_not_bytes() {
        assert_eq!((estimate(""), estimate("abcde"), estimate("éééé")), (0, 2, 1));
    }

    #[test]
    fn reported_usage_replaces_the_estimate_of_what_the_endpoint_has_seen() {
        let usage = json!({"usage": {"prompt_tokens": 900, "completion_tokens": 41}});
        let mut log = vec![
            json!({"role": "user", "content": "x".repeat(4000)}),
            json!({"role": "assistant", "content": "y", "extra": {"response": usage}}),
        ];
        assert_eq!(measure(&log[..1], &[]), 1004);
        assert_eq!(measure(&log, &[]), 941);
        let response =
            json!({"object": "response", "output": [], "usage": {"input_tokens": 900, "output_tokens": 41}});
        assert_eq!(measure(&[log[0].clone(), response], &[]), 941);
        log.push(json!({"role": "tool", "content": "abcdefgh"}));
        assert_eq!(measure(&log, &[]), 941 + PER_MESSAGE + 2);
        log.push(json!({"role": "user", "content": "abcd", "extra":
            {"interrupt_type": "FormatError", "response": {"usage": {"prompt_tokens": 1000, "completion_tokens": 7}}}}));
        assert_eq!(measure(&log, &[]), 1000 + PER_MESSAGE + 1);
    }
}
