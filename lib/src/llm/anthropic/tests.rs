use memtrial_testkit::{Act, FakeServer};
use serde_json::{Map, Value, json};

use super::*;
use crate::llm::http::Join;
use crate::llm::{Api, Client, Endpoint, Model, Price, Protocol, Request, Secret};

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}})
}

fn bash() -> Value {
    json!({"type": "function", "function": {"name": "bash", "description": "Runs a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}})
}

fn chat(messages: Value, more: Value) -> Map<String, Value> {
    let mut chat = json!({"model": "m", "messages": messages}).as_object().unwrap().clone();
    chat.extend(more.as_object().unwrap().clone());
    chat
}

#[test]
fn a_whole_conversation() {
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let messages = json!([
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
        {"role": "assistant", "content": "", "reasoning_content": "hm", "thinking_blocks": [thought],
            "tool_calls": [call("call.1", "{\"command\": \"ls\"}"), call("b", "{bad")]},
        {"role": "tool", "tool_call_id": "call.1", "content": "a.py"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": null},
        {"role": "system", "content": "Late word."},
    ]);
    let more = json!({"tools": [bash()], "tool_choice": "required", "parallel_tool_calls": false, "stop": "END",
        "max_tokens": 99, "temperature": 0.5, "n": 1});
    insta::assert_json_snapshot!(request(&chat(messages, more)).unwrap(), @r#"
    {
      "model": "m",
      "max_tokens": 99,
      "system": [
        {
          "type": "text",
          "text": "You are brief.",
          "cache_control": {
            "type": "ephemeral"
          }
        }
      ],
      "messages": [
        {
          "role": "user",
          "content": [
            {
              "type": "text",
              "text": "Look."
            },
            {
              "type": "image",
              "source": {
                "type": "base64",
                "media_type": "image/png",
                "data": "AAAA"
              }
            }
          ]
        },
        {
          "role": "assistant",
          "content": [
            {
              "type": "thinking",
              "thinking": "hm",
              "signature": "s"
            },
            {
              "type": "tool_use",
              "id": "call_1",
              "name": "bash",
              "input": {
                "command": "ls"
              }
            },
            {
              "type": "tool_use",
              "id": "b",
              "name": "bash",
              "input": {
                "arguments": "{bad"
              }
            }
          ]
        },
        {
          "role": "user",
          "content": [
            {
              "type": "tool_result",
              "tool_use_id": "call_1",
              "content": "a.py"
            },
            {
              "type": "tool_result",
              "tool_use_id": "b",
              "content": ""
            },
            {
              "type": "text",
              "text": "(empty)",
              "cache_control": {
                "type": "ephemeral"
              }
            }
          ]
        },
        {
          "role": "assistant",
          "content": [
            {
              "type": "text",
              "text": "(empty)"
            }
          ]
        },
        {
          "role": "user",
          "content": [
            {
              "type": "text",
              "text": "Late word.",
              "cache_control": {
                "type": "ephemeral"
              }
            }
          ]
        }
      ],
      "tools": [
        {
          "name": "bash",
          "description": "Runs a command.",
          "input_schema": {
            "type": "object",
            "properties": {
              "command": {
                "type": "string"
              }
            }
          },
          "cache_control": {
            "type": "ephemeral"
          }
        }
      ],
      "tool_choice": {
        "type": "any",
        "disable_parallel_tool_use": true
      },
      "stop_sequences": [
        "END"
      ],
      "temperature": 0.5
    }
    "#);
}

#[test]
fn no_more_than_four_marks_and_none_where_the_request_has_its_own() {
    let turns: Vec<Value> = (0..9)
        .map(|n| json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": "x"}))
        .collect();
    let with_system = [vec![json!({"role": "system", "content": "s"})], turns].concat();
    let body = request(&chat(with_system.into(), json!({"tools": [bash()]}))).unwrap();
    let marks = |body: &Map<String, Value>| json!(body).to_string().matches("cache_control").count();
    assert_eq!(marks(&body), 4);
    let turns = body["messages"].as_array().unwrap();
    let marked: Vec<usize> =
        (0..turns.len()).filter(|n| turns[*n].to_string().contains("cache_control")).collect();
    assert_eq!(marked, [6, 8], "the last two turns of the user");
    let own = json!([{"role": "user", "content": [{"type": "text", "text": "x",
        "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}]);
    assert_eq!(marks(&request(&chat(own, json!({"tools": [bash()]}))).unwrap()), 1);
}

#[test]
fn what_has_no_counterpart_is_named() {
    let user = json!([{"role": "user", "content": "x"}]);
    let audio = json!([{"role": "user", "content": [{"type": "input_audio"}]}]);
    let image =
        json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///x"}}]}]);
    for (messages, more, words) in [
        (&user, json!({"seed": 1}), "seed has no counterpart"),
        (&user, json!({"logprobs": true}), "logprobs has no counterpart"),
        (&user, json!({"response_format": {"type": "json_object"}}), "response_format has no counterpart"),
        (&user, json!({"tool_choice": {"type": "allowed_tools"}}), "tool_choice"),
        (&user, json!({"tools": [{"type": "web_search"}]}), "is no function"),
        (&audio, json!({}), "input_audio"),
        (&image, json!({}), "neither http(s) nor data:"),
        (&json!([{"role": "critic", "content": "x"}]), json!({}), "the role critic"),
        (&json!([{"role": "tool", "content": "x"}]), json!({}), "no tool_call_id"),
    ] {
        let error = request(&chat(messages.clone(), more)).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn how_a_reply_ended() {
    for (theirs, ours) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("something_new", "something_new"),
    ] {
        let response = json!({"content": [{"type": "text", "text": "x"}], "stop_reason": theirs});
        assert_eq!(message(&response).unwrap().1.as_deref(), Some(ours));
    }
    for (response, words) in [
        (json!({"content": []}), "does not say how it ended"),
        (json!({"stop_reason": "end_turn"}), "no content"),
    ] {
        assert!(message(&response).unwrap_err().contains(words));
    }
}

fn event(data: Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn join(events: &[Value]) -> Result<Value, String> {
    let text: String = events.iter().cloned().map(event).collect();
    let mut joiner = Joiner::default();
    text.as_bytes().chunks(7).try_for_each(|bytes| joiner.push(bytes))?;
    joiner.finish()
}

#[test]
fn a_stream_that_is_cut_or_out_of_order_is_no_reply() {
    let start =
        json!({"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {}}});
    let open =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta =
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}});
    let close = json!({"type": "content_block_stop", "index": 0});
    let end =
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}});
    let stop = json!({"type": "message_stop"});
    let all = [&start, &open, &delta, &close, &end, &stop].map(Value::clone);
    let whole = join(&all).unwrap();
    assert_eq!((&whole["content"][0]["text"], &whole["usage"]["output_tokens"]), (&json!("x"), &json!(2)));
    for cut in 0..all.len() {
        assert!(join(&all[..cut]).unwrap_err().contains("in the middle"), "cut after {cut}");
    }
    let tool = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "input": {}}});
    let json = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": "{\"a\""}});
    for (events, words) in [
        (vec![&open], "begins with content_block_start"),
        (vec![&start, &start], "comes twice"),
        (vec![&start, &delta], "no open block"),
        (vec![&start, &open, &open], "out of order"),
        (vec![&start, &open, &close, &delta], "no open block"),
        (vec![&start, &open, &close, &end, &stop, &delta], "went on after the end"),
        (vec![&start, &tool, &json, &close], "no JSON"),
    ] {
        let events: Vec<Value> = events.into_iter().cloned().collect();
        assert!(join(&events).unwrap_err().contains(words), "{words}");
    }
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(join(&[start, error]).unwrap()["error"]["message"], "Overloaded");
}

fn endpoint(server: &FakeServer) -> Endpoint {
    let price = Some(Price { input: 1.0, cached_input: Some(0.1), cache_write: Some(1.25), output: 2.0 });
    Endpoint { api: Protocol::Anthropic, price, max_attempts: 1, ..Endpoint::new(server.url(), "fake-model") }
}

#[tokio::test]
async fn thinking_and_calls_come_back_and_go_out_unchanged_streamed_or_not() {
    let thoughts = json!([{"type": "thinking", "thinking": "hm, ä", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ"}]);
    let spoken = json!({"role": "assistant", "content": "Look:", "thinking_blocks": thoughts,
        "tool_calls": [call("toolu_1", "{\"command\":\"ls ä\"}")]});
    for stream in [false, true] {
        let server = FakeServer::start(|_: &Value| Act::say("done")).unwrap();
        server.script([Act::message(spoken.clone(), "tool_calls")]);
        let settings = Endpoint { stream, ..endpoint(&server) }.with_key(Secret::new("sk-ant-canary-1"));
        let model = Client::new(settings).unwrap();
        let mut messages =
            vec![json!({"role": "system", "content": "s"}), json!({"role": "user", "content": "x"})];
        let ask = |messages: &[Value]| Request {
            api: Api::Chat,
            messages: messages.to_vec(),
            tools: vec![bash()],
            params: Map::new(),
            seed: Some(1),
        };
        let reply = model.complete(&ask(&messages)).await.unwrap();
        assert_eq!(reply.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!(reply.message["tool_calls"], spoken["tool_calls"]);
        assert_eq!(
            (&reply.message["thinking_blocks"], &reply.message["reasoning_content"]),
            (&thoughts, &json!("hm, ä"))
        );
        assert_eq!(reply.response["type"], "message", "the response is the endpoint's own");
        let cost = reply.cost;
        assert!(
            cost.cached_tokens > 0 && cost.cached_tokens < cost.prompt_tokens && cost.unmetered_calls == 0
        );
        assert!(cost.list_usd.unwrap() > 0.0);
        messages
            .extend([reply.message, json!({"role": "tool", "tool_call_id": "toolu_1", "content": "a.py"})]);
        assert_eq!(model.complete(&ask(&messages)).await.unwrap().message["content"], "done");
        assert_eq!(server.violations(), Vec::<String>::new());
        let [first, second] = &server.requests()[..] else { panic!() };
        assert_eq!(first.headers["x-api-key"], "sk-ant-canary-1");
        assert!(!first.headers.contains_key("authorization") && first.body.get("seed").is_none());
        let turn = &second.body["messages"][1]["content"];
        assert_eq!(
            (&turn[0], &turn[1]),
            (&thoughts[0], &thoughts[1]),
            "thinking is sent back first and unchanged"
        );
    }
}

#[tokio::test]
async fn the_address_may_end_in_v1_or_not_and_settings_are_the_formats_own() {
    let server = FakeServer::start(|_: &Value| Act::say("fine")).unwrap();
    let messages = vec![json!({"role": "user", "content": "x"})];
    let asked = Request { api: Api::Chat, messages, tools: vec![], params: Map::new(), seed: None };
    let params = json!({"max_tokens": 5, "thinking": {"type": "disabled"}}).as_object().unwrap().clone();
    for url in [server.url(), server.url().replace("/v1", ""), server.url().replace("/v1", "/")] {
        let settings = Endpoint { base_url: url, params: params.clone(), ..endpoint(&server) };
        assert_eq!(Client::new(settings).unwrap().complete(&asked).await.unwrap().message["content"], "fine");
    }
    assert_eq!(server.requests()[0].body["max_tokens"], 5);
    assert_eq!((server.count(), server.violations()), (3, Vec::<String>::new()));
}
