use memtrial_testkit::Act;
use serde_json::{Value, json};

use super::bench::*;
use super::*;
use crate::llm::Api;

#[tokio::test]
async fn a_call_is_answered_counted_and_written_down_first() {
    let bench = Bench::with(counting(), Settings::default(), |server| Endpoint {
        price: Some(PRICE),
        ..endpoint(server, Api::Openai)
    });
    let bench = bench.await;
    let admission = bench.admit("a");
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}});
    let message = json!({"role": "assistant", "content": "hi", "odd": [1, 2]});
    bench.server.script([Act::Answer {
        message: message.clone(),
        finish_reason: "stop".into(),
        usage: Some(usage.clone()),
    }]);
    let got = bench.post("/v1/chat/completions", admission.token(), &question("x")).await;
    let answer = got.json();
    assert_eq!((got.status, &answer["choices"][0]["message"], &answer["usage"]), (200, &message, &usage));
    let [request] = &bench.server.requests()[..] else { panic!() };
    assert_eq!(request.body["model"], "fake-model");
    assert_eq!(request.headers["authorization"], format!("Bearer {CANARY}"));
    let [line] = &bench.lines("a")[..] else { panic!() };
    assert_eq!((&line["n"], &line["reply"]["message"]), (&json!(1), &message));
    let text = line.to_string();
    assert!(!text.contains(CANARY) && !text.contains(admission.token()));
    let spent = admission.finish().await;
    assert_eq!(
        (spent.calls, spent.prompt_tokens, spent.cached_tokens, spent.completion_tokens),
        (1, 100, 40, 10)
    );
    assert!((spent.list_usd.unwrap() - 120e-6).abs() < 1e-12);
    assert_eq!(bench.gateway.total().cost, spent);
    assert_eq!(crate::llm::spent(&bench.journal("a")).unwrap(), spent);
}

#[tokio::test]
async fn a_stream_says_the_same_in_every_format() {
    for api in [Api::Openai, Api::Anthropic] {
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
async fn a_resumed_caller_pays_for_nothing_again_whatever_the_order() {
    let bench = Bench::new(Api::Openai).await;
    let admission = bench.admit("a");
    let mut answers = Vec::new();
    for text in ["x", "y", "x"] {
        answers.push(bench.chat(admission.token(), text).await.1);
    }
    let spent = admission.finish().await;
    let again = bench.admit("a");
    assert_eq!(again.spent(), spent, "what an earlier life spent counts");
    // The session's name is no part of the request.
    let mut other = question("y");
    other["user"] = json!("another session");
    let y = bench.post("/v1/chat/completions", again.token(), &other).await.json();
    assert_eq!(said("", &y), answers[1]);
    assert_eq!(bench.chat(again.token(), "x").await.1, answers[0]);
    assert_eq!(bench.chat(again.token(), "x").await.1, answers[2]);
    assert_eq!(bench.server.count(), 3, "a reply was paid again");
    assert_eq!(bench.chat(again.token(), "x").await.1, "answer 4");
    assert_eq!(again.spent().calls, 4);
    assert_eq!(bench.gateway.total().cost.calls, 4, "an account is counted once");
}

#[tokio::test]
async fn a_caller_who_hangs_up_finds_the_reply_when_he_asks_again() {
    let slow = |_: &Value| Act::Stall(Duration::from_millis(100), Box::new(Act::say("late")));
    let bench = Bench::with(slow, Settings::default(), |server| endpoint(server, Api::Openai)).await;
    let admission = bench.admit("a");
    let body = question("x");
    let impatient = bench.request("/v1/chat/completions", admission.token(), &body);
    let cut = impatient.timeout(Duration::from_millis(20)).send().await;
    assert!(cut.unwrap_err().is_timeout());
    assert_eq!(bench.chat(admission.token(), "x").await, (200, "late".to_owned()));
    assert_eq!((bench.server.count(), admission.finish().await.calls), (1, 1));
}

#[tokio::test]
async fn the_end_waits_for_what_is_under_way_and_lets_nothing_in() {
    let slow = |_: &Value| Act::Stall(Duration::from_millis(100), Box::new(Act::say("late")));
    let bench = Bench::with(slow, Settings::default(), |server| endpoint(server, Api::Openai)).await;
    let (admission, other) = (bench.admit("a"), bench.admit("b"));
    let token = admission.token().to_owned();
    let (body, stranger) = (question("x"), "memtrial-stranger");
    let cut = bench.request("/v1/chat/completions", &token, &body).timeout(Duration::from_millis(20));
    assert!(cut.send().await.is_err());
    assert_eq!(admission.finish().await.calls, 1, "a call under way is paid");
    for token in [token.as_str(), stranger, ""] {
        for path in FRONTS {
            let got = bench.post(path, token, &question_for(path, "x")).await;
            assert_eq!((got.status, &got.headers["x-should-retry"]), (401, &"false".parse().unwrap()));
            assert_eq!(got.json()["error"]["type"], "authentication_error");
        }
        assert_eq!(bench.get("/v1/models", token).await.status, 401);
        assert_eq!(bench.get("/memtrial/costs", token).await.status, 401);
    }
    assert_eq!((bench.server.count(), other.spent().calls), (1, 0));
}

#[tokio::test]
async fn caps_are_held_by_any_number_of_calls_at_once_and_named() {
    let bench = Bench::new(Api::Openai).await;
    let admission = bench.admit_with("a", Caps { calls: Some(3), ..Caps::default() });
    let texts: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    let got = futures::future::join_all(texts.iter().map(|text| bench.chat(admission.token(), text))).await;
    let refused: Vec<_> = got.iter().filter(|(status, _)| *status == 402).collect();
    assert_eq!((refused.len(), bench.server.count(), admission.spent().calls), (7, 3, 3));
    assert!(refused[0].1.starts_with("cap reached: this trial may make 3 calls"), "{refused:?}");
    for (path, kind) in FRONTS.iter().zip(["insufficient_quota", "billing_error", "insufficient_quota"]) {
        let got = bench.post(path, admission.token(), &question_for(path, "more")).await;
        assert_eq!((got.status, &got.json()["error"]["type"]), (402, &json!(kind)));
        assert_eq!(got.headers["x-should-retry"], "false");
    }
    assert_eq!(bench.lines("a").len(), 3, "a refused call is none");
}

#[tokio::test]
async fn the_studys_caps_hold_over_trials_and_money_needs_a_price() {
    let usd = |usd| Caps { usd: Some(usd), ..Caps::default() };
    let settings = Settings { caps: usd(130e-6), ..Settings::default() };
    let priced = |server: &_| Endpoint { price: Some(PRICE), ..endpoint(server, Api::Openai) };
    let bench = Bench::with(counting(), settings.clone(), priced).await;
    let usage = Some(json!({"prompt_tokens": 100, "completion_tokens": 10}));
    let message = json!({"role": "assistant", "content": "x"});
    bench.server.script([Act::Answer { message, finish_reason: "stop".into(), usage }]);
    let (one, other) = (bench.admit("a"), bench.admit("b"));
    let mut small = question("x");
    small["max_tokens"] = json!(5);
    assert_eq!(bench.post("/v1/chat/completions", one.token(), &small).await.status, 200);
    let got = bench.post("/v1/chat/completions", other.token(), &small).await;
    let words = got.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(words.contains("all trials together may spend $0.00013; $0.000120 are spent"), "{words}");
    let blind = Gateway::new(endpoint(&bench.server, Api::Openai), &Limiter::default(), settings);
    assert!(blind.unwrap_err().to_string().contains("the price of fake-model is not known"));
}

#[tokio::test]
async fn what_the_endpoint_does_not_count_is_estimated_apart() {
    let bench = Bench::new(Api::Openai).await;
    let admission = bench.admit_with("a", Caps { tokens: Some(60), ..Caps::default() });
    let message = json!({"role": "assistant", "content": "x".repeat(100)});
    bench.server.script([Act::Answer { message, finish_reason: "stop".into(), usage: Some(Value::Null) }]);
    let mut body = question("hello");
    body["max_tokens"] = json!(30);
    let got = bench.post("/v1/chat/completions", admission.token(), &body).await;
    assert_eq!((got.status, &got.headers["memtrial-unmetered"]), (200, &"true".parse().unwrap()));
    let tally = admission.tally();
    assert_eq!((tally.cost.unmetered_calls, tally.cost.prompt_tokens, tally.cost.list_usd), (1, 0, None));
    // [{"role":"user","content":"hello"}] has 35 characters, the message 133
    assert_eq!((tally.estimate.prompt_tokens, tally.estimate.completion_tokens), (9, 34));
    assert_eq!(bench.lines("a")[0]["estimate"], json!({"prompt_tokens": 9, "completion_tokens": 34}));
    let refused = bench.post("/v1/chat/completions", admission.token(), &body).await;
    assert_eq!(refused.status, 402, "estimates count against caps");
    let costs = bench.get("/memtrial/costs", admission.token()).await.json();
    assert_eq!(costs["spent"]["estimate"]["completion_tokens"], 34);
    assert_eq!(costs["caps"]["tokens"], 60);
}

#[tokio::test]
async fn a_cached_reply_never_crosses_conditions_replicates_or_steps() {
    let cache = tempfile::tempdir().unwrap();
    let settings = Settings { cache: Some(cache.path().join("replies")), ..Settings::default() };
    let bench = Bench::with(counting(), settings, |server| endpoint(server, Api::Openai)).await;
    let admit =
        |name: &str, caller| bench.gateway.admit(caller, Caps::default(), &bench.journal(name)).unwrap();
    let first = admit("a", caller("off", 1));
    assert_eq!(bench.chat(first.token(), "x").await.1, "answer 1");
    assert_eq!(bench.chat(first.token(), "x").await.1, "answer 2", "another step");
    for (name, caller) in [("b", caller("bm25", 1)), ("c", caller("off", 2))] {
        let other = admit(name, caller);
        let answer = bench.chat(other.token(), "x").await.1;
        assert!(!["answer 1", "answer 2"].contains(&answer.as_str()), "{name} got a reply of another");
    }
    let again = admit("d", caller("off", 1));
    assert_eq!(bench.chat(again.token(), "x").await.1, "answer 1");
    assert_eq!(bench.chat(again.token(), "x").await.1, "answer 2");
    let spent = again.spent();
    assert_eq!((spent.calls, spent.prompt_tokens, spent.list_usd), (2, 0, Some(0.0)));
    assert_eq!((bench.server.count(), &bench.lines("d")[0]["cached"]), (4, &json!(true)));
}

#[tokio::test]
async fn who_waits_for_a_stream_gets_signs_of_life_then_the_answer_or_the_failure() {
    let settings = Settings { keep_alive: Duration::from_millis(20), ..Settings::default() };
    let bench = Bench::with(counting(), settings, |server| Endpoint {
        max_attempts: 1,
        ..endpoint(server, Api::Openai)
    });
    let bench = bench.await;
    let admission = bench.admit("a");
    for path in FRONTS {
        let mut body = question_for(path, path);
        body["stream"] = json!(true);
        let stall = |act| Act::Stall(Duration::from_millis(150), Box::new(act));
        bench.server.script([stall(Act::status(500, "broken")), stall(Act::say("there"))]);
        let failed = bench.post(path, admission.token(), &body).await;
        let answered = bench.post(path, admission.token(), &body).await;
        let sign = if path == "/v1/messages" { "event: ping\n" } else { ": waiting" };
        for got in [&failed, &answered] {
            assert_eq!(got.status, 200);
            assert!(got.text.starts_with(sign), "{}", got.text);
        }
        let end = failed.events().pop().unwrap();
        let error = if path == "/v1/responses" { &end["response"]["error"] } else { &end["error"] };
        assert!(error["message"].as_str().unwrap().contains("HTTP 500: broken"), "{end}");
        assert!(answered.text.contains("there") && !failed.text.contains("[DONE]"));
    }
    let lines = bench.lines("a");
    assert_eq!(lines.iter().filter(|line| line["failure"].is_string()).count(), 3);
    assert_eq!(admission.spent().calls, 3);
}

#[tokio::test]
async fn what_cannot_be_carried_is_refused_by_name_and_dropped_only_where_that_is_allowed() {
    let bench = Bench::new(Api::Openai).await;
    let anthropic = Bench::new(Api::Anthropic).await;
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
    let lenient = Bench::with(counting(), settings, |server| endpoint(server, Api::Openai)).await;
    let admission = lenient.admit("a");
    let body = with(messages, "thinking", json!({"type": "enabled", "budget_tokens": 9}));
    assert_eq!(lenient.post(messages, admission.token(), &body).await.status, 200);
}

#[tokio::test]
async fn the_solvers_parameters_win_and_its_seed_is_the_replicate() {
    let bench = Bench::with(counting(), Settings::default(), |server| {
        let params = json!({"temperature": 0.5}).as_object().unwrap().clone();
        Endpoint { params, send_seed: true, ..endpoint(server, Api::Openai) }
    });
    let bench = bench.await;
    let admission = bench.gateway.admit(caller("off", 7), Caps::default(), &bench.journal("a")).unwrap();
    let mut body = question("x");
    body["temperature"] = json!(1.0);
    body["top_p"] = json!(0.9);
    bench.post("/v1/chat/completions", admission.token(), &body).await;
    let sent = &bench.server.requests()[0].body;
    assert_eq!((&sent["temperature"], &sent["top_p"], &sent["seed"]), (&json!(0.5), &json!(0.9), &json!(7)));
}

#[tokio::test]
async fn models_and_token_counts() {
    let (bench, anthropic) = (Bench::new(Api::Openai).await, Bench::new(Api::Anthropic).await);
    let (admission, other) = (bench.admit("a"), anthropic.admit("a"));
    assert_eq!(bench.get("/v1/models", admission.token()).await.json()["data"][0]["id"], "fake-model");
    assert_eq!(bench.get("/v1/models/any/name", admission.token()).await.json()["type"], "model");
    let body = question_for("/v1/messages", "hello");
    let counted = bench.post("/v1/messages/count_tokens", admission.token(), &body).await;
    assert_eq!(
        (&counted.json()["input_tokens"], counted.headers.contains_key("memtrial-estimate")),
        (&json!(9), true)
    );
    let counted = anthropic.post("/v1/messages/count_tokens", other.token(), &body).await;
    assert_eq!(
        (&counted.json()["input_tokens"], counted.headers.contains_key("memtrial-estimate")),
        (&json!(42), false)
    );
    assert_eq!((admission.spent().calls, other.spent().calls), (0, 0));
    assert_eq!(bench.get("/v2/x", admission.token()).await.status, 404);
}

#[tokio::test]
async fn it_listens_on_loopback_and_sockets_and_stops_when_dropped() {
    let bench = Bench::new(Api::Openai).await;
    let outside = bench.gateway.listen_tcp("0.0.0.0:0".parse().unwrap()).await.unwrap_err();
    assert!(outside.to_string().contains("can be reached from outside"), "{outside}");
    let path = bench.folder.path().join("gateway.sock");
    let listening = bench.gateway.listen_unix(&path).await.unwrap();
    assert!(bench.gateway.listen_unix(&path).await.is_err(), "a socket was replaced");
    let admission = bench.admit("a");
    let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    let request = format!("GET /v1/models HTTP/1.0\r\nx-api-key: {}\r\n\r\n", admission.token());
    let (mut reader, mut writer) = stream.into_split();
    tokio::io::AsyncWriteExt::write_all(&mut writer, request.as_bytes()).await.unwrap();
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut reader, &mut text).await.unwrap();
    assert!(text.contains("200 OK") && text.contains("fake-model"), "{text}");
    drop(listening);
    assert!(!path.exists() && tokio::net::UnixStream::connect(&path).await.is_err());
}

#[tokio::test]
async fn no_secret_is_shown_anywhere() {
    let password = "password-canary-1";
    let bench = Bench::with(counting(), Settings::default(), |server| {
        let address = server.url().replace("http://", &format!("http://user:{password}@"));
        let base_url = format!("{address}?key=query-canary-1");
        Endpoint { base_url, max_attempts: 1, ..endpoint(server, Api::Openai) }
    });
    let bench = bench.await;
    let admission = bench.admit("a");
    let echo = format!("bad {CANARY} for user:{password} and query-canary-1");
    let headers = || vec![("x-echo", echo.clone())];
    let error = || json!({"error": {"message": echo, "code": echo}});
    let acts = [
        Act::Status { code: 401, headers: headers(), body: error() },
        Act::Status { code: 500, headers: headers(), body: error() },
        Act::Status { code: 429, headers: headers(), body: json!(echo) },
        Act::Json(error()),
        Act::Bytes(echo.clone().into_bytes()),
        Act::Events(format!("data: {echo}\n\n").into_bytes()),
        Act::say(&echo),
        Act::CloseMidBody(vec![]),
    ];
    let count = acts.len();
    bench.server.script(acts);
    let mut shown = format!("{:?} {admission:?} {:?}", bench.gateway, bench.listening);
    for n in 0..count {
        let path = FRONTS[n % FRONTS.len()];
        let got = bench.post(path, admission.token(), &question_for(path, &n.to_string())).await;
        shown += &format!("{}{:?}{}", got.status, got.headers, got.text);
    }
    shown += &fs_err::read_to_string(bench.journal("a")).unwrap();
    assert_eq!(bench.server.count(), count);
    for secret in [CANARY, password, "query-canary-1", admission.token()] {
        assert!(!shown.contains(secret), "{secret} is shown in {shown}");
    }
    assert!(shown.contains("[redacted]"));
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
    for api in [Api::Openai, Api::Anthropic] {
        for path in FRONTS {
            let bench = Bench::new(api).await;
            let admission = bench.admit("a");
            let mut message = json!({"role": "assistant", "content": "Look:", "reasoning_content": "so",
                "tool_calls": [call("toolu_1", "ls"), call("toolu_2", "pwd")]});
            if api == Api::Anthropic {
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
            if api == Api::Anthropic {
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
    for (api, usage) in [(Api::Openai, chat), (Api::Anthropic, messages)] {
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
    let bench = Bench::new(Api::Openai).await;
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
