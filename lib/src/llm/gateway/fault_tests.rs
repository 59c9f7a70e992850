//! What endpoints do wrong, through every way of asking: no answer that the model did not give, nothing counted twice,
//! and words that say what happened.

use memtrial_testkit::{Act, SelfSigned};
use serde_json::{Map, Value, json};

use super::bench::*;
use super::*;
use crate::llm::{Api, Model, Protocol, Request};

/// A way of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    /// The path at the gateway; `None`: the client asks by itself.
    path: Option<&'static str>,
    api: Protocol,
}

const WAYS: [Way; 6] = [
    Way { path: Some("/v1/chat/completions"), api: Protocol::Openai },
    Way { path: Some("/v1/messages"), api: Protocol::Openai },
    Way { path: Some("/v1/responses"), api: Protocol::Openai },
    Way { path: Some("/v1/chat/completions"), api: Protocol::Anthropic },
    Way { path: Some("/v1/messages"), api: Protocol::Anthropic },
    Way { path: None, api: Protocol::Anthropic },
];

/// What an asker saw, and what it cost.
struct Outcome {
    answer: Result<Value, String>,
    cost: Cost,
    requests: usize,
}

fn settings_for(way: Way, fault: &str, server: &memtrial_testkit::FakeServer) -> Endpoint {
    let patience = if fault == "stall" { 300 } else { 20_000 };
    let streams = ["reset", "order", "duplicate"].iter().any(|word| fault.contains(word));
    Endpoint {
        stream: streams,
        request_timeout: Duration::from_millis(patience),
        price: Some(PRICE),
        ..endpoint(server, way.api)
    }
}

async fn ask(way: Way, fault: &str, acts: Vec<Act>) -> Outcome {
    let bench = Bench::with(
        |_: &Value| Act::say("fine"),
        Settings::default(),
        |server| settings_for(way, fault, server),
    );
    let bench = bench.await;
    bench.server.script(acts);
    let Some(path) = way.path else {
        let client = Client::new(settings_for(way, fault, &bench.server)).unwrap();
        let messages = vec![json!({"role": "user", "content": "x"})];
        let request = Request { api: Api::Chat, messages, tools: vec![], params: Map::new(), seed: None };
        let reply = client.complete(&request).await;
        let cost = reply.as_ref().map_or(Cost::ZERO, |reply| reply.cost);
        let answer = reply.map(|reply| reply.message).map_err(|error| error.to_string());
        return Outcome { answer, cost, requests: bench.server.count() };
    };
    let admission = bench.admit("a");
    let got = bench.post(path, admission.token(), &question_for(path, "x")).await;
    let value = got.json();
    let answer = match got.status {
        200 => Ok(value),
        _ => Err(value["error"]["message"].as_str().unwrap().to_owned()),
    };
    let lines = bench.lines("a");
    assert_eq!(lines.len(), 1, "{way:?} {fault}: one call is one line");
    assert_eq!(lines[0]["failure"].is_string(), answer.is_err(), "{way:?} {fault}");
    let cost = admission.finish().await;
    assert_eq!(
        crate::llm::spent(&bench.journal("a"), 0).unwrap(),
        cost,
        "{way:?} {fault}: the file and the books"
    );
    Outcome { answer, cost, requests: bench.server.count() }
}

fn text_of(way: Way, answer: &Value) -> String {
    match way.path {
        Some(path) => said(path, answer),
        None => answer["content"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Faults after which the same is asked again: the name, what the endpoint does, whether it may have charged for it,
/// and a word of what is told.
fn passing(api: Protocol) -> Vec<(&'static str, Act, bool, &'static str)> {
    let chat = |chunk: Value| format!("data: {chunk}\n\n").into_bytes();
    let piece = |text: &str| chat(json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
    let end = || chat(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    let start = || chat(json!({"type": "message_start", "message": {"content": [], "usage": {}}}));
    let delta = || {
        chat(json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": "half"}}))
    };
    let open = || {
        chat(json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "text", "text": ""}}))
    };
    let storm =
        |headers| Act::Status { code: 429, headers, body: json!({"error": {"message": "slow down"}}) };
    let openai = api == Protocol::Openai;
    let whole = if openai {
        json!({"choices": [{"message": {"role": "assistant", "content": "good"}, "finish_reason": "stop"}]})
    } else {
        json!({"type": "message", "content": [{"type": "text", "text": "good"}], "stop_reason": "end_turn"})
    };
    let bytes = whole.to_string().into_bytes();
    let mut broken = bytes.clone();
    let at = bytes.windows(4).position(|four| four == b"good").unwrap();
    broken[at] = 0xff;
    let (half, disorder) = if openai {
        (piece("half"), [end(), piece("late")].concat())
    } else {
        ([start(), open(), delta()].concat(), [start(), delta(), open()].concat())
    };
    let empty = if openai {
        json!({"choices": []})
    } else {
        json!({"type": "message", "content": null, "stop_reason": "end_turn"})
    };
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let late = Act::Stall(Duration::from_secs(30), Box::new(Act::say("late")));
    let disorder_words = if openai { "went on after the end" } else { "no open block" };
    vec![
        ("429 with Retry-After", storm(vec![("retry-after", "0".into())]), false, "HTTP 429: slow down"),
        ("429 without", storm(vec![]), false, "HTTP 429: slow down"),
        ("reset in the stream", Act::CloseMidStream(half), true, "body"),
        ("truncated JSON", Act::Bytes(bytes[..bytes.len() - 3].to_vec()), true, "no JSON"),
        ("empty choices", Act::Json(empty), true, "the reply has no"),
        ("200 with an error", Act::Json(overloaded), true, "an error in place of a reply: Overloaded"),
        ("stall", late, true, "timed out"),
        ("chunks out of order", Act::Events(disorder), true, disorder_words),
        ("invalid UTF-8", Act::Bytes(broken), true, "no JSON"),
    ]
}

#[tokio::test]
async fn a_fault_that_passes_costs_one_call_and_gives_the_models_answer() {
    for way in WAYS {
        for (name, act, charged, _) in passing(way.api) {
            let outcome = ask(way, name, vec![act]).await;
            let answer = outcome.answer.unwrap_or_else(|error| panic!("{way:?} {name}: {error}"));
            assert_eq!((text_of(way, &answer).as_str(), outcome.requests), ("fine", 2), "{way:?} {name}");
            let cost = outcome.cost;
            assert_eq!((cost.calls, cost.unmetered_calls), (1, u64::from(charged)), "{way:?} {name}");
            assert!(cost.prompt_tokens > 0, "{way:?} {name}");
        }
    }
}

#[tokio::test]
async fn a_fault_that_stays_is_no_call_and_is_named() {
    for way in WAYS {
        for (name, act, charged, words) in passing(way.api) {
            let outcome = ask(way, name, vec![act; 3]).await;
            let error = outcome.answer.unwrap_err();
            assert!(error.contains(words) && error.contains("tried 3 times"), "{way:?} {name}: {error}");
            assert_eq!((outcome.requests, outcome.cost.calls), (3, 0), "{way:?} {name}");
            if way.path.is_some() {
                assert_eq!(outcome.cost.unmetered_calls, 3 * u64::from(charged), "{way:?} {name}");
            }
        }
    }
}

#[tokio::test]
async fn calls_with_wrong_ids_get_ids_of_their_own() {
    let call =
        |id: Value| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calls = [json!("same"), json!("same"), Value::Null, json!(""), json!(7)].map(call);
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    for way in WAYS {
        let outcome = ask(way, "ids", vec![Act::message(message.clone(), "tool_calls")]).await;
        let answer = outcome.answer.unwrap();
        let (list, key) = match way.path {
            None => (&answer["tool_calls"], "id"),
            Some("/v1/chat/completions") => (&answer["choices"][0]["message"]["tool_calls"], "id"),
            Some("/v1/messages") => (&answer["content"], "id"),
            Some(_) => (&answer["output"], "call_id"),
        };
        let ids: BTreeSet<&str> =
            list.as_array().unwrap().iter().map(|call| call[key].as_str().unwrap()).collect();
        assert!(ids.len() == 5 && ids.contains("same") && !ids.contains(""), "{way:?}: {ids:?}");
        assert_eq!((outcome.requests, outcome.cost.calls), (1, 1), "{way:?}");
    }
}

#[tokio::test]
async fn usage_that_comes_twice_counts_once() {
    let chunk = |chunk: Value| format!("data: {chunk}\n\n");
    let usage = chunk(json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}));
    let end = chunk(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    let text = chunk(json!({"choices": [{"index": 0, "delta": {"content": "fine"}}]}));
    let chat = [text, end.clone(), end, usage.clone(), usage, "data: [DONE]\n\n".repeat(2)].concat();
    let delta = chunk(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 4}}));
    let messages = [
        chunk(
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}),
        ),
        chunk(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "fine"}}),
        ),
        chunk(json!({"type": "content_block_stop", "index": 0})),
        delta.clone(),
        delta,
        chunk(json!({"type": "message_stop"})),
    ];
    let messages = messages.concat();
    for way in WAYS {
        let text = if way.api == Protocol::Openai { &chat } else { &messages };
        let outcome = ask(way, "duplicate chunks", vec![Act::Events(text.clone().into_bytes())]).await;
        assert_eq!(text_of(way, &outcome.answer.unwrap()), "fine", "{way:?}");
        let cost = outcome.cost;
        let counted = (cost.calls, cost.prompt_tokens, cost.completion_tokens, cost.unmetered_calls);
        assert_eq!((outcome.requests, counted), (1, (1, 3, 4, 0)), "{way:?}");
    }
}

#[tokio::test]
async fn absurd_usage_is_never_counted_and_never_free() {
    for absurd in [json!(-5), json!(1_000_000_000_000_000_000_u64), json!("12"), json!(1.5), Value::Null] {
        for way in WAYS {
            let key = if way.api == Protocol::Openai { "prompt_tokens" } else { "input_tokens" };
            let other = if way.api == Protocol::Openai { "completion_tokens" } else { "output_tokens" };
            let usage = Some(json!({key: absurd, other: 3}));
            let message = json!({"role": "assistant", "content": "fine"});
            let act = Act::Answer { message, finish_reason: "stop".into(), usage };
            let outcome = ask(way, "absurd usage", vec![act]).await;
            assert_eq!(text_of(way, &outcome.answer.unwrap()), "fine", "{way:?} {absurd}");
            let cost = outcome.cost;
            let counted = (cost.calls, cost.prompt_tokens, cost.unmetered_calls, cost.list_usd);
            assert_eq!(counted, (1, 0, 1, None), "{way:?} {absurd}");
        }
    }
}

#[tokio::test]
async fn tls_that_cannot_be_trusted_or_spoken_is_told_at_once() {
    let stranger = SelfSigned::start().await.unwrap();
    for api in [Protocol::Openai, Protocol::Anthropic] {
        let bench = Bench::new(api).await;
        let plain = bench.server.url().replace("http://", "https://");
        for (url, words) in
            [(stranger.url(), "set SSL_CERT_FILE"), (plain, "does its address begin with http://?")]
        {
            let settings = Endpoint { base_url: url, ..endpoint(&bench.server, api) };
            let gateway = Gateway::new(settings, &Limiter::default(), Settings::default()).unwrap();
            let admission = gateway.admit(caller("off", 1), Caps::default(), &bench.journal("a")).unwrap();
            let listening = gateway.listen_tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
            let address = format!("http://{}/v1/messages", listening.address().unwrap());
            let body = question_for("/v1/messages", "x");
            let got = got(http().post(address).bearer_auth(admission.token()).json(&body)).await;
            let error = got.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(got.status == 502 && error.contains(words), "{error}");
            let cost = admission.finish().await;
            assert_eq!((cost.calls, cost.unmetered_calls, cost.list_usd), (0, 0, Some(0.0)));
        }
        assert_eq!(bench.server.count(), 0);
    }
}
