//! A reply that arrives as server-sent events, joined into the response it stands for.
//!
//! Only a stream that said how it ended (a `finish_reason`) becomes a response: one that was cut, however politely, is
//! a failed try and never a short answer. The Responses API repeats the whole response in its last event, which is all
//! that is taken from such a stream.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::http::Join;
use super::sse::Events;

/// Joins the events of one stream.
#[derive(Default)]
pub(super) struct Joiner {
    events: Events,
    /// The fields of the response itself: `id`, `created`, `model`, `usage`, …
    head: Map<String, Value>,
    message: Map<String, Value>,
    /// Tool calls by the index that their deltas carry.
    calls: BTreeMap<u64, Map<String, Value>>,
    finish_reason: Option<Value>,
    /// An error that the endpoint sent in place of a chunk.
    error: Option<Value>,
    /// The response that the last event of a stream of the Responses API holds.
    whole: Option<Value>,
}

impl Join for Joiner {
    fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        let chunks = self.events.push(bytes)?;
        chunks.into_iter().try_for_each(|chunk| self.chunk(chunk))
    }

    fn finish(mut self) -> Result<Value, String> {
        let last = self.events.finish()?;
        last.into_iter().try_for_each(|chunk| self.chunk(chunk))?;
        if let Some(error) = self.error {
            return Ok(json!({ "error": error }));
        }
        if let Some(whole) = self.whole {
            return Ok(whole);
        }
        let Some(finish_reason) = self.finish_reason else {
            return Err("the stream ended in the middle of the reply".into());
        };
        let mut message = self.message;
        message.entry("role").or_insert_with(|| json!("assistant"));
        let no_content = if self.calls.is_empty() { json!("") } else { Value::Null };
        message.entry("content").or_insert(no_content);
        if !self.calls.is_empty() {
            message.insert("tool_calls".into(), self.calls.into_values().map(Value::Object).collect());
        }
        let mut response = self.head;
        response.insert("object".into(), json!("chat.completion"));
        let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason});
        response.insert("choices".into(), json!([choice]));
        Ok(Value::Object(response))
    }
}

impl Joiner {
    fn chunk(&mut self, mut chunk: Map<String, Value>) -> Result<(), String> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            self.error = Some(error.clone());
        }
        // Events of the Responses API are typed, chunks of chat completions are not.
        match chunk.get("type").and_then(Value::as_str) {
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                self.whole = chunk.remove("response");
                return Ok(());
            }
            Some("error") => {
                self.error.get_or_insert(Value::Object(chunk));
                return Ok(());
            }
            Some(_) => return Ok(()),
            None => {}
        }
        if let Some(Value::Array(choices)) = chunk.remove("choices") {
            for choice in choices.iter().filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
                self.choice(choice)?;
            }
        }
        // Usage is a running total where it comes more than once: the last one counts.
        for (key, value) in chunk {
            if !value.is_null() || !self.head.contains_key(&key) {
                self.head.insert(key, value);
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Value) -> Result<(), String> {
        if let Some(delta) = choice["delta"].as_object() {
            if self.finish_reason.is_some() && says_something(delta) {
                return Err("the stream went on after the end of the reply".into());
            }
            for (key, value) in delta {
                match (key.as_str(), value) {
                    ("tool_calls", Value::Array(calls)) => calls.iter().for_each(|call| self.call(call)),
                    ("role", role) => drop(self.message.insert("role".into(), role.clone())),
                    _ => extend(&mut self.message, key, value),
                }
            }
        }
        if self.finish_reason.is_none() && !choice["finish_reason"].is_null() {
            self.finish_reason = Some(choice["finish_reason"].clone());
        }
        Ok(())
    }

    /// One delta of a tool call. Where an endpoint leaves out the index, a new id begins a new call.
    fn call(&mut self, delta: &Value) {
        let last = self.calls.last_key_value();
        let index = delta["index"].as_u64().unwrap_or_else(|| match last {
            None => 0,
            Some((last, call)) if delta["id"].is_null() || call.get("id") == delta.get("id") => *last,
            Some((last, _)) => last + 1,
        });
        let call = self.calls.entry(index).or_default();
        for (key, value) in delta.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("index", _) => {}
                ("function", Value::Object(function)) => {
                    let known =
                        call.entry("function").or_insert_with(|| json!({"name": "", "arguments": ""}));
                    if let (Some(known), Some(text)) = (known.as_object_mut(), function.get("arguments")) {
                        extend(known, "arguments", text);
                    }
                    // Some endpoints repeat the name with every piece of the arguments.
                    let unnamed = known["name"].as_str().is_none_or(str::is_empty);
                    if let (true, Some(name)) =
                        (unnamed, function.get("name").filter(|name| name.is_string()))
                    {
                        known["name"] = name.clone();
                    }
                }
                (_, Value::Null) => {}
                _ => drop(call.insert(key.clone(), value.clone())),
            }
        }
        call.entry("type").or_insert_with(|| json!("function"));
    }
}

fn says_something(delta: &Map<String, Value>) -> bool {
    ["content", "tool_calls"].iter().any(|key| match delta.get(*key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        _ => false,
    })
}

/// Texts and lists grow; anything else is replaced.
fn extend(map: &mut Map<String, Value>, key: &str, value: &Value) {
    match (map.get_mut(key), value) {
        (_, Value::Null) => {}
        (Some(Value::String(known)), Value::String(more)) => known.push_str(more),
        (Some(Value::Array(known)), Value::Array(more)) => known.extend(more.iter().cloned()),
        _ => drop(map.insert(key.to_owned(), value.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(chunk: &Value) -> String {
        format!("data: {chunk}\n\n")
    }

    fn delta(delta: Value) -> Value {
        json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta,
            "finish_reason": null}]})
    }

    fn end(reason: &str) -> Value {
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    }

    fn join(text: &str, cuts: usize) -> Result<Value, String> {
        let mut joiner = Joiner::default();
        for bytes in text.as_bytes().chunks(cuts.max(1)) {
            joiner.push(bytes)?;
        }
        joiner.finish()
    }

    #[test]
    fn text_reasoning_and_usage() {
        let text = [
            ": ping\r\n\r\n".to_owned(),
            event(&delta(json!({"role": "assistant", "content": ""}))),
            event(&delta(json!({"reasoning_content": "hm"}))),
            event(&delta(json!({"reasoning_content": "m"}))),
            event(&delta(json!({"content": "Grüß", "reasoning_details": [{"a": 1}]}))),
            event(&delta(json!({"content": " Gott", "reasoning_details": [{"a": 2}]}))),
            event(&end("stop")),
            event(&json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})),
            "data: [DONE]\n\n".to_owned(),
        ]
        .concat();
        insta::assert_json_snapshot!(join(&text, 1).unwrap(), @r#"
        {
          "id": "c",
          "object": "chat.completion",
          "model": "m",
          "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 4
          },
          "choices": [
            {
              "index": 0,
              "message": {
                "role": "assistant",
                "content": "Grüß Gott",
                "reasoning_content": "hmm",
                "reasoning_details": [
                  {
                    "a": 1
                  },
                  {
                    "a": 2
                  }
                ]
              },
              "finish_reason": "stop"
            }
          ]
        }
        "#);
    }

    #[test]
    fn tool_calls_are_joined_by_index_in_any_order() {
        let call = |index: u64, rest: Value| {
            let mut call = json!({"index": index});
            call.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            event(&delta(json!({ "tool_calls": [call] })))
        };
        let text = [
            call(1, json!({"id": "b", "type": "function", "function": {"name": "bash", "arguments": ""}})),
            call(0, json!({"id": "a", "function": {"name": "bash", "arguments": "{\"x\""}})),
            call(1, json!({"function": {"name": "bash", "arguments": "{}"}})),
            call(0, json!({"id": "a", "function": {"arguments": ":1}"}})),
            event(&end("tool_calls")),
        ]
        .concat();
        let message = join(&text, 7).unwrap()["choices"][0]["message"].clone();
        assert_eq!(message["content"], Value::Null);
        let calls: Vec<_> = message["tool_calls"].as_array().unwrap().iter().collect();
        assert_eq!(calls[0]["id"], "a");
        assert_eq!(calls[0]["function"], json!({"name": "bash", "arguments": "{\"x\":1}"}));
        assert_eq!(calls[0]["type"], "function");
        assert_eq!(calls[1]["function"], json!({"name": "bash", "arguments": "{}"}));
    }

    #[test]
    fn tool_calls_without_an_index_are_told_apart_by_id() {
        let call = |id: Value, arguments: &str| {
            event(&delta(
                json!({"tool_calls": [{"id": id, "function": {"name": "f", "arguments": arguments}}]}),
            ))
        };
        let text = [
            call(json!("a"), "1"),
            call(Value::Null, "2"),
            call(json!("a"), "3"),
            call(json!("b"), "4"),
            event(&end("stop")),
        ];
        let calls = join(&text.concat(), 9).unwrap()["choices"][0]["message"]["tool_calls"].clone();
        assert_eq!(
            (&calls[0]["function"]["arguments"], &calls[1]["function"]["arguments"]),
            (&json!("123"), &json!("4"))
        );
    }

    #[test]
    fn what_is_cut_or_confused_is_no_reply() {
        let half = event(&delta(json!({"content": "half"})));
        for (text, word) in [
            (half.clone(), "ended in the middle"),
            (format!("{half}data: [DONE]\n\n"), "ended in the middle"),
            (format!("{half}data: {{\"choices\": [{{\"delta\": "), "no JSON"),
            (String::new(), "ended in the middle"),
            (format!("{}{half}", event(&end("stop"))), "went on after the end"),
            ("data: [1]\n\n".to_owned(), "no object"),
            ("data: garbage\n\n".to_owned(), "no JSON"),
        ] {
            let error = join(&text, 5).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(Joiner::default().push(b"data: \xff\xfe\n").unwrap_err().contains("no UTF-8"));
    }

    #[test]
    fn an_error_in_the_stream_is_handed_on() {
        let text =
            format!("{}{}", event(&delta(json!({"content": "x"}))), event(&json!({"error": {"code": 502}})));
        assert_eq!(join(&text, 4).unwrap(), json!({"error": {"code": 502}}));
    }

    #[test]
    fn a_repeated_end_and_usage_change_nothing() {
        let usage = event(&json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}));
        let once = [event(&delta(json!({"content": "x"}))), event(&end("stop")), usage.clone()].concat();
        let twice = [once.clone(), event(&end("length")), usage].concat();
        assert_eq!(join(&once, 100).unwrap(), join(&twice, 100).unwrap());
    }

    proptest! {
        #[test]
        fn where_the_network_cuts_does_not_matter(pieces in prop::collection::vec(".{0,8}", 0..6), cut in 1usize..40) {
            let mut text: String = pieces.iter().map(|piece| event(&delta(json!({"content": piece})))).collect();
            text += &event(&end("stop"));
            let joined = join(&text, cut).unwrap();
            prop_assert_eq!(joined["choices"][0]["message"]["content"].as_str().unwrap(), pieces.concat());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut joiner = Joiner::default();
            if joiner.push(&bytes).is_ok() {
                let _ = joiner.finish();
            }
        }
    }
}
