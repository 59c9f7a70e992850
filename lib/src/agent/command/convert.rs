//! From what a program asked and was answered to a trajectory in mini-swe-agent's format 1.1.
//!
//! Every answered call is in it, in order. Programs hold several conversations at once (a title, a helper of their own) and
//! rewrite their past: a message that belongs to another conversation than the first says so in `extra.memtrial_talk`,
//! and the first message after a shared start in `extra.memtrial_after`.

use serde_json::{Map, Value, json};

use crate::agent::message;
use crate::llm::Cost;
use crate::llm::gateway::Exchange;

/// The messages of a run, without its end.
pub(super) fn messages(exchanges: &[Exchange]) -> Vec<Value> {
    let mut log = Vec::new();
    for exchange in exchanges {
        let branched = exchange.from != exchange.talk;
        for (n, message) in exchange.messages.iter().enumerate() {
            let mut extra = place(exchange);
            if branched && n == 0 {
                extra.insert(
                    "memtrial_after".into(),
                    json!({"talk": exchange.from, "messages": exchange.shared}),
                );
            }
            log.push(with(message, extra));
        }
        log.push(answer(exchange));
    }
    log
}

fn place(exchange: &Exchange) -> Map<String, Value> {
    let mut extra = Map::from_iter([("timestamp".to_owned(), json!(exchange.at))]);
    if exchange.talk > 0 {
        extra.insert("memtrial_talk".into(), json!(exchange.talk));
    }
    extra
}

fn answer(exchange: &Exchange) -> Value {
    let cost = if exchange.replayed { Cost { calls: 1, ..Cost::ZERO } } else { exchange.cost };
    let mut extra = place(exchange);
    extra.insert("actions".into(), actions(&exchange.reply).into());
    extra.insert("cost".into(), json!(message::usd(&cost)));
    extra.insert("memtrial_cost".into(), json!(cost));
    extra.insert("memtrial_finish_reason".into(), json!(exchange.finish_reason));
    if exchange.replayed {
        extra.insert("memtrial_replayed".into(), json!(true));
    }
    with(&exchange.reply, extra)
}

/// The commands that an answer calls for: programs name the tool and its argument as they like.
pub(super) fn actions(reply: &Value) -> Vec<Value> {
    let calls = reply["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
    let action = |call: &Value| {
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str()?).ok()?;
        let command = ["command", "cmd", "script"].iter().find_map(|key| command(&arguments[*key]))?;
        Some(json!({"command": command, "tool_call_id": call["id"]}))
    };
    calls.iter().filter_map(action).collect()
}

/// A command as a text: given as one, or word by word.
fn command(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [] => None,
                // A shell that is given its command: the command is meant.
                [shell, flag, command] if shell.ends_with("sh") && flag.starts_with('-') => {
                    Some((*command).to_owned())
                }
                words => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}

fn with(message: &Value, extra: Map<String, Value>) -> Value {
    let mut message = message.as_object().cloned().unwrap_or_default();
    message.insert("extra".into(), extra.into());
    message.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(talk: usize, from: usize, shared: usize, messages: Value, reply: Value) -> Exchange {
        Exchange {
            at: 1.5,
            talk,
            from,
            shared,
            messages: messages.as_array().cloned().unwrap(),
            reply,
            finish_reason: Some("stop".into()),
            cost: Cost { calls: 1, list_usd: Some(0.25), ..Cost::ZERO },
            replayed: false,
        }
    }

    #[test]
    fn every_answer_is_told_once_with_its_cost_and_commands() {
        let call = |arguments: &str| {
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "shell", "arguments": arguments}}]})
        };
        let log = messages(&[
            exchange(
                0,
                0,
                0,
                json!([{"role": "user", "content": "fix"}]),
                call(r#"{"command":["bash","-lc","ls"]}"#),
            ),
            exchange(
                1,
                1,
                0,
                json!([{"role": "user", "content": "title?"}]),
                json!({"role": "assistant", "content": "t"}),
            ),
            exchange(0, 0, 2, json!([{"role": "tool", "tool_call_id": "c1", "content": "a"}]), call("{}")),
            exchange(
                2,
                0,
                1,
                json!([{"role": "user", "content": "again"}]),
                json!({"role": "assistant", "content": "x"}),
            ),
        ]);
        let roles: Vec<_> = log.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles.join(" "), "user assistant user assistant tool assistant user assistant");
        assert_eq!(log[1]["extra"]["actions"], json!([{"command": "ls", "tool_call_id": "c1"}]));
        assert_eq!(log[3]["extra"]["memtrial_talk"], 1);
        assert_eq!(log[5]["extra"]["actions"], json!([]));
        assert_eq!(log[6]["extra"]["memtrial_after"], json!({"talk": 0, "messages": 1}));
        let cost: f64 = log.iter().filter_map(|message| message["extra"]["cost"].as_f64()).sum();
        assert!((cost - 1.0).abs() < 1e-9, "{cost}");
    }
}
