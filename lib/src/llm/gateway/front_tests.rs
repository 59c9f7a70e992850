//! The formats in front: the same conversation survives in each, before either format behind.

use memtrial_testkit::Act;
use serde_json::{Value, json};

use super::bench::*;
use super::*;
use crate::llm::Protocol;

#[tokio::test]
async fn a_stream_says_the_same_in_every_format() {
    for api in [Protocol::Openai, Protocol::Anthropic] {
        let bench = Bench::with(
            |_: &Value| Act::say("Grüße, 世界!"),
            Settings::default(),
            |server| Endpoint { stream: true, ..endpoint(server, api) },
        );
        let bench = bench.await;
        let admission = bench.admit("a");
        for path in FRONTS {
            let mut body = question_for(path, "x");
            let whole = bench.post(path, admission.token(), &body).await;
            assert_eq!((whole.status, said(path, &whole.json())), (200, "Grüße, 世界!".to_owned()), "{path}");
            body["stream"] = json!(true);
            let streamed = bench.post(path, admission.token(), &body).await;
            assert_eq!(streamed.headers["content-type"], "text/event-stream");
            let events = streamed.events();
            let text: String = events
                .iter()
                .filter_map(|event| match path {
                    "/v1/messages" => event["delta"]["text"].as_str(),
                    "/v1/responses" => event["delta"].as_str(),
                    _ => event["choices"][0]["delta"]["content"].as_str(),
                })
                .collect();
            assert_eq!(text, "Grüße, 世界!", "{path}");
            let last = events.last().unwrap();
            match path {
                "/v1/messages" => assert_eq!(last["type"], "message_stop"),
                "/v1/responses" => assert_eq!(last["response"]["output"], whole.json()["output"]),
                _ => assert!(streamed.text.ends_with("data: [DONE]\n\n"), "{}", streamed.text),
            }
        }
        assert_eq!(bench.server.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_cannot_be_carried_is_refused_by_name_and_dropped_only_where_that_is_allowed() {
    let bench = Bench::new(Protocol::Openai).await;
    let anthropic = Bench::new(Protocol::Anthropic).await;
    let with = |path: &str, key: &str, value: Value| {
        let mut body = question_for(path, "x");
        body[key] = value;
        body
    };
    let messages = "/v1/messages";
    let responses = "/v1/responses";
    let chat = "/v1/chat/completions";
    let document = json!([{"role": "user", "content": [{"type": "document", "source": {}}]}]);
    let hosted = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    for (bench, path, body, words) in [
        (
            &bench,
            messages,
            with(messages, "thinking", json!({"type": "enabled"})),
            "thinking has no counterpart",
        ),
        (&bench, messages, with(messages, "context_management", json!({})), "(--drop context_management)"),
        (&bench, messages, with(messages, "messages", document), "type document cannot be carried"),
        (&bench, messages, with(messages, "tools", hosted), "is the endpoint's own"),
        (&bench, responses, with(responses, "previous_response_id", json!("r")), "keeps no conversations"),
        (
            &bench,
            responses,
            with(responses, "tools", json!([{"type": "web_search"}])),
            "is the endpoint's own",
        ),
        (&bench, chat, with(chat, "n", json!(2)), "one choice a call"),
        (&bench, chat, json!([1]), "no JSON object"),
        (&anthropic, chat, with(chat, "seed", json!(1)), "seed has no counterpart"),
        (&anthropic, chat, with(chat, "logprobs", json!(true)), "logprobs has no counterpart"),
        (
            &anthropic,
            responses,
            with(responses, "reasoning", json!({"effort": "low"})),
            "reasoning_effort has no",
        ),
    ] {
        let admission = bench.admit("a");
        let got = bench.post(path, admission.token(), &body).await;
        let message = got.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(got.status == 400 && message.contains(words), "{path} {}: {}", got.status, got.text);
    }
    assert_eq!(bench.server.count() + anthropic.server.count(), 0);
    let settings = Settings { may_drop: ["thinking".to_owned()].into(), ..Settings::default() };
    let lenient = Bench::with(counting(), settings, |server| endpoint(server, Protocol::Openai)).await;
    let admission = lenient.admit("a");
    let body = with(messages, "thinking", json!({"type": "enabled", "budget_tokens": 9}));
    assert_eq!(lenient.post(messages, admission.token(), &body).await.status, 200);
}

/// The tool in each format.
fn tool_for(path: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
    match path {
        "/v1/messages" => json!({"name": "bash", "description": "d", "input_schema": schema}),
        "/v1/responses" => {
            json!({"type": "function", "name": "bash", "description": "d", "parameters": schema})
        }
        _ => {
            json!({"type": "function", "function": {"name": "bash", "description": "d", "parameters": schema}})
        }
    }
}

/// The next request of a conversation: what was answered, and the results of its two calls.
fn go_on(path: &str, mut body: Value, answer: &Value) -> Value {
    let key = if path == "/v1/responses" { "input" } else { "messages" };
    let mut items = match &body[key] {
        Value::Array(items) => items.clone(),
        text => vec![json!({"role": "user", "content": text})],
    };
    match path {
        "/v1/messages" => {
            let content = &answer["content"];
            let calls = content.as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
            let results: Vec<Value> = calls
                .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": call["input"]["command"],
                    "is_error": true}))
                .collect();
            items.push(json!({"role": "assistant", "content": content}));
            items.push(json!({"role": "user", "content": results}));
        }
        "/v1/responses" => {
            let output = answer["output"].as_array().unwrap();
            items.extend(output.iter().cloned());
            let calls = output.iter().filter(|item| item["type"] == "function_call");
            items.extend(calls.map(
                |call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "done"}),
            ));
        }
        _ => {
            let message = &answer["choices"][0]["message"];
            items.push(message.clone());
            let calls = message["tool_calls"].as_array().unwrap().iter();
            items.extend(
                calls.map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": "done"})),
            );
        }
    }
    body[key] = items.into();
    body
}

#[tokio::test]
async fn conversations_with_tools_and_thinking_survive_every_translation() {
    let call = |id: &str, command: &str| {
        json!({"id": id, "type": "function",
        "function": {"name": "bash", "arguments": json!({"command": command}).to_string()}})
    };
    let signed = json!([{"type": "thinking", "thinking": "so", "signature": "c2ln"}]);
    for api in [Protocol::Openai, Protocol::Anthropic] {
        for path in FRONTS {
            let bench = Bench::new(api).await;
            let admission = bench.admit("a");
            let mut message = json!({"role": "assistant", "content": "Look:", "reasoning_content": "so",
                "tool_calls": [call("toolu_1", "ls"), call("toolu_2", "pwd")]});
            if api == Protocol::Anthropic {
                message["thinking_blocks"] = signed.clone();
            }
            bench.server.script([Act::message(message, "tool_calls")]);
            let mut body = question_for(path, "x");
            body["tools"] = json!([tool_for(path)]);
            let first = bench.post(path, admission.token(), &body).await;
            assert_eq!(first.status, 200, "{api:?} {path}: {}", first.text);
            let second = bench.post(path, admission.token(), &go_on(path, body, &first.json())).await;
            assert_eq!(
                (second.status, bench.server.violations()),
                (200, vec![]),
                "{api:?} {path}: {}",
                second.text
            );
            let sent = &bench.server.requests()[1].body["messages"];
            let text = sent.to_string();
            assert!(text.contains("toolu_1") && text.contains("toolu_2") && text.contains("Look:"), "{text}");
            if api == Protocol::Anthropic {
                assert_eq!(sent[1]["content"][0], signed[0], "{path}");
            } else {
                assert_eq!(sent[1]["reasoning_content"], "so", "{path}: {sent}");
            }
            assert_eq!(admission.finish().await.calls, 2);
        }
    }
}

#[tokio::test]
async fn usage_is_told_in_the_clients_words() {
    let tokens = |answer: &Value, path: &str| {
        let usage = &answer["usage"];
        let keys = match path {
            "/v1/messages" => ["input_tokens", "cache_read_input_tokens", "output_tokens"],
            "/v1/responses" => ["input_tokens", "input_tokens_details", "output_tokens"],
            _ => ["prompt_tokens", "prompt_tokens_details", "completion_tokens"],
        };
        keys.map(|key| usage[key]["cached_tokens"].as_u64().or(usage[key].as_u64()).unwrap())
    };
    let chat = json!({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}});
    let messages = json!({"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 10});
    for (api, usage) in [(Protocol::Openai, chat), (Protocol::Anthropic, messages)] {
        for path in FRONTS {
            let bench = Bench::new(api).await;
            let admission = bench.admit("a");
            let message = json!({"role": "assistant", "content": "x"});
            bench.server.script([Act::Answer {
                message,
                finish_reason: "length".into(),
                usage: Some(usage.clone()),
            }]);
            let answer = bench.post(path, admission.token(), &question_for(path, "x")).await.json();
            let input = if path == "/v1/messages" { 60 } else { 100 };
            assert_eq!(tokens(&answer, path), [input, 40, 10], "{api:?} {path}");
            let ended = [&answer["choices"][0]["finish_reason"], &answer["stop_reason"], &answer["status"]];
            let ended = ended.into_iter().find_map(Value::as_str).unwrap();
            assert!(["length", "max_tokens", "incomplete"].contains(&ended), "{answer}");
            assert_eq!(admission.spent().prompt_tokens, 100);
        }
    }
}

#[tokio::test]
async fn tools_that_take_a_text_come_back_as_such() {
    let bench = Bench::new(Protocol::Openai).await;
    let admission = bench.admit("a");
    let call = json!({"id": "c", "type": "function",
        "function": {"name": "apply_patch", "arguments": "{\"input\": \"*** Begin\"}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    bench.server.script([Act::message(message, "tool_calls")]);
    let tool = json!({"type": "custom", "name": "apply_patch", "description": "d",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}});
    let body = json!({"input": "x", "tools": [tool], "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "session"});
    let events = bench.post("/v1/responses", admission.token(), &body).await.events();
    let kinds: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let numbers: Vec<_> = events.iter().filter_map(|event| event["sequence_number"].as_u64()).collect();
    assert_eq!(numbers, (0..kinds.len() as u64).collect::<Vec<_>>());
    assert_eq!(
        kinds[2..],
        [
            "response.output_item.added",
            "response.custom_tool_call_input.delta",
            "response.custom_tool_call_input.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    let item = events.last().unwrap()["response"]["output"][0].clone();
    assert_eq!((&item["type"], &item["input"]), (&json!("custom_tool_call"), &json!("*** Begin")));
    let sent = &bench.server.requests()[0].body;
    let description = sent["tools"][0]["function"]["description"].as_str().unwrap();
    assert!(description.contains("start: x") && sent.get("prompt_cache_key").is_none());
    let more = json!([{"role": "user", "content": "x"}, item,
        {"type": "custom_tool_call_output", "call_id": "c", "output": "patched"}]);
    assert_eq!(bench.post("/v1/responses", admission.token(), &json!({ "input": more })).await.status, 200);
    assert_eq!(bench.server.violations(), Vec::<String>::new());
}
