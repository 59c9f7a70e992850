use std::time::SystemTime;

use memtrial_testkit::{Act, FakeServer};

use super::*;
use crate::llm::{Price, Secret};

const CANARY: &str = "sk-canary-0123456789";

/// An endpoint with waits short enough for tests.
fn quick(server: &FakeServer) -> Endpoint {
    Endpoint {
        min_wait: Duration::from_millis(1),
        max_wait: Duration::from_millis(20),
        request_timeout: Duration::from_secs(20),
        max_attempts: 3,
        ..Endpoint::new(server.url(), "fake-model")
    }
}

fn request() -> Request {
    Request {
        api: Api::Chat,
        messages: vec![json!({"role": "user", "content": "hello"})],
        tools: vec![],
        params: Map::new(),
        seed: Some(7),
    }
}

/// A server that answers well unless it is told otherwise.
fn server() -> FakeServer {
    FakeServer::start(|_: &Value| Act::say("fine")).unwrap()
}

async fn ask(endpoint: Endpoint) -> Result<Reply, LlmError> {
    Client::new(endpoint).unwrap().complete(&request()).await
}

#[tokio::test]
async fn the_message_and_the_response_come_back_untouched() {
    let message = json!({"role": "assistant", "content": null, "odd": {"b": 1, "a": 2}, "reasoning_content": "r",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{bad"}}]});
    let server = server();
    let usage = json!({"prompt_tokens": 900, "completion_tokens": 41, "prompt_tokens_details": {"cached_tokens": 512},
        "cost": 0.5});
    server.script([Act::Answer {
        message: message.clone(),
        finish_reason: "tool_calls".into(),
        usage: Some(usage.clone()),
    }]);
    let price = Some(Price { input: 1.0, cached_input: None, cache_write: None, output: 2.0 });
    let reply = ask(Endpoint { price, ..quick(&server) }).await.unwrap();
    assert_eq!(reply.message.to_string(), message.to_string());
    assert_eq!(reply.response["usage"], usage);
    assert_eq!(reply.finish_reason.as_deref(), Some("tool_calls"));
    assert_eq!((reply.cost.calls, reply.cost.prompt_tokens, reply.cost.cached_tokens), (1, 900, 512));
    assert_eq!((reply.cost.list_usd, reply.cost.paid_usd), (Some((900.0 + 82.0) / 1e6), Some(0.5)));
    assert!(reply.cost.seconds > 0.0);
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn the_body_holds_what_was_asked_and_nothing_else() {
    let server = server();
    let mut endpoint = quick(&server).with_key(Secret::new(CANARY));
    endpoint.params = json!({"temperature": 0.1, "top_p": 0.9}).as_object().unwrap().clone();
    let tool = json!({"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}});
    let mut asked = Request { tools: vec![tool.clone()], ..request() };
    asked.params = json!({"temperature": 1.0, "model": "other", "messages": []}).as_object().unwrap().clone();
    Client::new(endpoint.clone()).unwrap().complete(&asked).await.unwrap();
    ask(Endpoint { send_seed: false, stream: true, params: Map::new(), ..endpoint }).await.unwrap();
    let [first, second] = &server.requests()[..] else { panic!() };
    let expected = json!({"model": "fake-model", "messages": asked.messages, "tools": [tool], "temperature": 1.0,
        "top_p": 0.9, "seed": 7});
    assert_eq!(first.body, expected);
    assert_eq!(first.headers["authorization"], format!("Bearer {CANARY}"));
    let expected = json!({"model": "fake-model", "messages": asked.messages, "stream": true,
        "stream_options": {"include_usage": true}});
    assert_eq!(second.body, expected);
}

#[tokio::test]
async fn a_stream_gives_the_same_reply() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"ä\"}"}});
    for message in [
        json!({"role": "assistant", "content": "Grüße, 世界!", "reasoning_content": "so so"}),
        json!({"role": "assistant", "content": "x", "tool_calls": [call("a"), call("b")]}),
        json!({"role": "assistant", "content": ""}),
        json!({"role": "assistant", "content": null, "tool_calls": [call("a")]}),
    ] {
        let server = server();
        server.script([Act::message(message.clone(), "stop"), Act::message(message.clone(), "stop")]);
        let whole = ask(quick(&server)).await.unwrap();
        let streamed = ask(Endpoint { stream: true, ..quick(&server) }).await.unwrap();
        assert_eq!((&streamed.message, &streamed.finish_reason), (&message, &whole.finish_reason));
        assert_eq!(streamed.cost.prompt_tokens, whole.cost.prompt_tokens);
        assert_eq!(streamed.response["usage"], whole.response["usage"]);
        assert_eq!(server.count(), 2);
    }
}

#[tokio::test]
async fn the_responses_api_is_asked_with_items_and_answers_with_the_whole_response() {
    let response = json!({"object": "response", "id": "r", "status": "completed", "error": null, "output": [
        {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}],
        "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}});
    let event = |kind: &str, more: Value| {
        let mut event = json!({"type": kind});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("event: {kind}\ndata: {event}\n\n")
    };
    let stream = [
        event("response.created", json!({"response": {"status": "in_progress", "output": []}})),
        event("response.output_text.delta", json!({"delta": "x"})),
        event("response.completed", json!({ "response": response })),
    ];
    let server = server();
    server.script([
        Act::Json(json!({"object": "response", "status": "failed", "output": [],
            "error": {"code": "server_error", "message": "try again"}})),
        Act::Json(response.clone()),
        Act::Events(stream.concat().into_bytes()),
        Act::Events(stream[..2].concat().into_bytes()),
        Act::Json(response.clone()),
    ]);
    let asked = Request { api: Api::Responses, ..request() };
    let model = Client::new(Endpoint { stream: false, ..quick(&server) }).unwrap();
    let whole = model.complete(&asked).await.unwrap();
    assert_eq!((&whole.message, &whole.response), (&response, &Value::Null));
    assert_eq!(whole.finish_reason.as_deref(), Some("completed"));
    assert_eq!((whole.cost.calls, whole.cost.prompt_tokens, whole.cost.completion_tokens), (1, 10, 2));
    // A failed response and a stream without its end are tries that failed.
    let streaming = Client::new(Endpoint { stream: true, ..quick(&server) }).unwrap();
    assert_eq!(streaming.complete(&asked).await.unwrap().message, response);
    assert_eq!(streaming.complete(&asked).await.unwrap().message, response);
    let bodies: Vec<Value> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies[0], json!({"model": "fake-model", "input": asked.messages}));
    assert_eq!(bodies[2], json!({"model": "fake-model", "input": asked.messages, "stream": true}));
    assert_eq!(bodies.len(), 5);
}

/// The same, with a time limit that a stalled server exceeds soon.
fn with_limit(fault: &str, endpoint: Endpoint) -> Endpoint {
    let seconds = if fault == "stall" { 1 } else { 20 };
    Endpoint { request_timeout: Duration::from_secs(seconds), ..endpoint }
}

/// What real endpoints do wrong, and whether the model may have been charged for it.
fn passing_faults() -> Vec<(&'static str, Act, bool)> {
    let chunk = |delta: Value| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]})).into_bytes()
    };
    let half = chunk(json!({"content": "half of"}));
    let good =
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "good"}}]}).to_string();
    let status = |code, name: &'static str, value: &str| Act::Status {
        code,
        headers: vec![(name, value.to_owned())],
        body: json!({"error": {"message": "later"}}),
    };
    let date = httpdate::fmt_http_date(SystemTime::now());
    vec![
        ("500", Act::status(500, "oops"), false),
        ("502 in HTML", Act::Status { code: 502, headers: vec![], body: json!("<html>") }, false),
        ("429 with seconds", status(429, "retry-after", "0"), false),
        ("429 with milliseconds", status(429, "retry-after-ms", "1"), false),
        ("503 with a date", status(503, "retry-after", &date), false),
        ("close before the body", Act::CloseMidBody(vec![]), true),
        ("close in the body", Act::CloseMidBody(good.as_bytes()[..20].to_vec()), true),
        ("close after a whole body", Act::CloseMidBody(good.clone().into_bytes()), true),
        ("close in the stream", Act::CloseMidStream(half.clone()), true),
        ("end in the stream", Act::Events(half.clone()), true),
        ("end mark without an end", Act::Events([&half[..], b"data: [DONE]\n\n"].concat()), true),
        ("garbage in the stream", Act::Events(b"data: {oops\n\n".to_vec()), true),
        ("text after the end", Act::Events([&chunk(json!({})).replace_end()[..], &half].concat()), true),
        ("no UTF-8 in the stream", Act::Events(b"data: \xff\n\n".to_vec()), true),
        ("truncated JSON", Act::Bytes(good.as_bytes()[..good.len() - 3].to_vec()), true),
        ("prose", Act::Bytes(b"I am a teapot".to_vec()), true),
        ("nothing", Act::Bytes(vec![]), true),
        (
            "no UTF-8",
            Act::Bytes(
                good.replace("good", "g\u{1}d")
                    .into_bytes()
                    .iter()
                    .map(|b| if *b == 1 { 0xff } else { *b })
                    .collect(),
            ),
            true,
        ),
        ("no object", Act::Json(json!([])), true),
        ("empty choices", Act::Json(json!({"choices": []})), true),
        ("null choices", Act::Json(json!({"choices": null})), true),
        ("no message", Act::Json(json!({"choices": [{"finish_reason": "stop"}]})), true),
        (
            "error for a choice",
            Act::Json(json!({"choices": [{"finish_reason": "error", "message": {}}]})),
            true,
        ),
        ("error with status 200", Act::Json(json!({"error": {"message": "overloaded", "code": 503}})), true),
        ("error as text", Act::Json(json!({"error": "overloaded"})), true),
        ("stall", Act::Stall(Duration::from_secs(60), Box::new(Act::say("late"))), true),
    ]
}

trait ReplaceEnd {
    fn replace_end(&self) -> Vec<u8>;
}

impl ReplaceEnd for Vec<u8> {
    /// The chunk with a `finish_reason`.
    fn replace_end(&self) -> Vec<u8> {
        String::from_utf8_lossy(self)
            .replace("\"delta\":{}", "\"delta\":{},\"finish_reason\":\"stop\"")
            .into_bytes()
    }
}

#[tokio::test]
async fn passing_faults_are_tried_again() {
    let server = server();
    for (name, fault, charged) in passing_faults() {
        let before = server.count();
        server.script([fault]);
        let reply =
            ask(with_limit(name, quick(&server))).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(reply.message["content"], "fine", "{name}");
        assert_eq!(server.count() - before, 2, "{name}");
        assert_eq!((reply.cost.calls, reply.cost.unmetered_calls), (1, u64::from(charged)), "{name}");
    }
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn passing_faults_that_stay_end_in_an_error_that_names_the_last() {
    let server = server();
    for (name, fault, _) in passing_faults() {
        let before = server.count();
        server.script([fault.clone(), fault]);
        let endpoint = Endpoint { max_attempts: 2, ..quick(&server) };
        let error = ask(with_limit(name, endpoint)).await.unwrap_err();
        let LlmError::Unreachable { endpoint, reason, attempts: 2, .. } = &error else {
            panic!("{name}: {error}")
        };
        assert_eq!((endpoint, server.count() - before), (&server.url(), 2), "{name}");
        assert!(!reason.is_empty() && reason.chars().count() < 800, "{name}: {reason}");
    }
}

#[tokio::test]
async fn what_a_failed_try_used_is_counted() {
    let server = server();
    let used = json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}});
    let usage = Some(json!({"prompt_tokens": 1, "completion_tokens": 2}));
    let message = json!({"role": "assistant", "content": "x"});
    server.script([Act::Json(used), Act::Answer { message, finish_reason: "stop".into(), usage }]);
    let price = Some(Price { input: 1.0, cached_input: None, cache_write: None, output: 1.0 });
    let cost = ask(Endpoint { price, ..quick(&server) }).await.unwrap().cost;
    assert_eq!(
        (cost.calls, cost.prompt_tokens, cost.completion_tokens, cost.unmetered_calls),
        (1, 101, 12, 0)
    );
    assert!((cost.list_usd.unwrap() - 113e-6).abs() < 1e-12);
}

#[tokio::test]
async fn a_reply_without_usage_is_no_free_reply() {
    let server = server();
    let message = json!({"role": "assistant", "content": "x"});
    server.script([Act::Answer { message, finish_reason: "stop".into(), usage: Some(json!("lots")) }]);
    let price = Some(Price { input: 1.0, cached_input: None, cache_write: None, output: 1.0 });
    let cost = ask(Endpoint { price, ..quick(&server) }).await.unwrap().cost;
    assert_eq!((cost.calls, cost.unmetered_calls, cost.list_usd), (1, 1, None));
}

#[tokio::test]
async fn refusals_are_final() {
    let server = server();
    for status in [400, 401, 403, 404, 422] {
        let before = server.count();
        server.script([Act::status(status, "no way")]);
        let error = ask(quick(&server)).await.unwrap_err().to_string();
        let url = server.url();
        assert_eq!(error, format!("model endpoint {url} refused the request: HTTP {status}: no way"));
        assert_eq!(server.count() - before, 1);
    }
    let quota = json!({"error": {"message": "pay first", "code": "insufficient_quota"}});
    server.script([Act::Status { code: 429, headers: vec![], body: quota }]);
    assert!(matches!(ask(quick(&server)).await, Err(LlmError::Refused { status: 429, .. })));
    server.script([Act::Json(json!({"error": {"message": "no such model", "code": 404}}))]);
    assert!(matches!(ask(quick(&server)).await, Err(LlmError::Refused { status: 404, .. })));
    server.script([Act::Status { code: 403, headers: vec![], body: json!("") }]);
    assert!(ask(quick(&server)).await.unwrap_err().to_string().ends_with("HTTP 403: it gave no reason"));
    server.script([Act::status(400, "unknown parameter: seed")]);
    assert!(ask(quick(&server)).await.unwrap_err().to_string().contains("set send-seed = false"));
    let moved = Act::Status { code: 308, headers: vec![("location", "/v2".into())], body: json!(null) };
    server.script([moved]);
    assert!(ask(quick(&server)).await.unwrap_err().to_string().contains("set base-url to where"));
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_told_apart() {
    let server = server();
    let coded = json!({"error": {"message": "no", "code": "context_length_exceeded"}});
    for act in [
        Act::status(400, "This model's maximum context length is 10 tokens."),
        Act::Status { code: 400, headers: vec![], body: coded.clone() },
        Act::Json(coded),
        Act::status(500, "The prompt is too long to fit into the model"),
    ] {
        let before = server.count();
        server.script([act]);
        assert!(matches!(ask(quick(&server)).await, Err(LlmError::ContextWindowExceeded { .. })));
        assert_eq!(server.count() - before, 1);
    }
}

#[tokio::test]
async fn retry_after_is_honoured_and_bounded() {
    let server = server();
    let later = |after: &str| Act::Status {
        code: 429,
        headers: vec![("retry-after", after.to_owned())],
        body: json!({}),
    };
    let patient = Endpoint { max_wait: Duration::from_secs(2), ..quick(&server) };
    server.script([later("0.3")]);
    let begun = Instant::now();
    ask(patient).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300));
    server.script([later("3600")]);
    let begun = Instant::now();
    ask(quick(&server)).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn an_endpoint_that_is_not_there() {
    // Bound and not listening: nobody else gets the port meanwhile.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/v1", held.local_addr().unwrap());
    let endpoint = Endpoint { base_url: url.clone(), ..quick(&server()) };
    let error = ask(endpoint).await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("model endpoint {url}: ")) && error.contains("tried 3 times"),
        "{error}"
    );
    assert!(error.to_lowercase().contains("refused"), "{error}");
}

#[tokio::test]
async fn the_key_is_in_no_error() {
    let server = server();
    let echo = format!("Incorrect API key provided: {CANARY}.");
    for act in [
        Act::status(401, &echo),
        Act::status(500, &echo),
        Act::Json(json!({"error": {"message": echo, "metadata": {"raw": echo}}})),
        Act::Bytes(echo.clone().into_bytes()),
        Act::Status { code: 403, headers: vec![], body: json!({"detail": echo}) },
        Act::Status { code: 403, headers: vec![], body: json!({"odd": echo}) },
    ] {
        server.script([act]);
        let endpoint = Endpoint { max_attempts: 1, ..quick(&server).with_key(Secret::new(CANARY)) };
        let model = Client::new(endpoint).unwrap();
        let error = model.complete(&request()).await.unwrap_err();
        let shown = format!("{error} {error:?} {model:?}");
        assert!(!shown.contains(CANARY) && shown.contains("[redacted]"), "{shown}");
    }
}

#[test]
fn settings_that_cannot_work_are_named() {
    let endpoint = || Endpoint::new("http://127.0.0.1:1/v1", "m");
    let params = json!({"messages": []}).as_object().unwrap().clone();
    for (endpoint, words) in [
        (Endpoint { model: " ".into(), ..endpoint() }, "no model is named"),
        (
            Endpoint { api_key_env: Some("THE_KEY".into()), ..endpoint() },
            "THE_KEY, which api-key-env names, holds no",
        ),
        (Endpoint { params, ..endpoint() }, "params may not set messages"),
    ] {
        let error = Client::new(endpoint).unwrap_err().to_string();
        assert!(error.starts_with("model endpoint http://127.0.0.1:1/v1 cannot be used: "), "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn requests_under_way_are_bounded_over_all_solvers_of_an_address() {
    let server = server();
    let slow = || Act::Stall(Duration::from_millis(60), Box::new(Act::say("slow")));
    server.script([slow(), slow(), slow(), slow()]);
    let limiter = Limiter::default();
    let solver = || Client::sharing(Endpoint { max_in_flight: 1, ..quick(&server) }, &limiter).unwrap();
    let (one, other) = (solver(), solver());
    let asked = request();
    let begun = Instant::now();
    let replies = futures::join!(
        one.complete(&asked),
        other.complete(&asked),
        one.complete(&asked),
        other.complete(&asked)
    );
    let elapsed = begun.elapsed();
    assert!(elapsed >= Duration::from_millis(240), "{elapsed:?}");
    // Waiting for a slot is no time of the call, so the four add up to no more than passed.
    let replies = [replies.0, replies.1, replies.2, replies.3];
    let seconds: f64 = replies.into_iter().map(|reply| reply.unwrap().cost.seconds).sum();
    assert!(seconds <= elapsed.as_secs_f64(), "{seconds} in {elapsed:?}");
}

#[tokio::test]
async fn what_an_endpoint_bears_is_learnt_by_all_clients_of_its_address() {
    let server = server();
    let limiter = Limiter::default();
    let client = || {
        let endpoint = Endpoint { max_in_flight: 8, max_attempts: 1, ..quick(&server) };
        Client::sharing(endpoint, &limiter).unwrap()
    };
    let (one, other) = (client(), client());
    let overloaded = json!({"error": {"message": "overloaded", "code": 529}});
    let later = Act::Status { code: 503, headers: vec![("retry-after", "0".into())], body: json!({}) };
    server.script([
        Act::status(429, "slow down"),
        Act::status(529, "slow down"),
        Act::Json(overloaded),
        later,
    ]);
    for expected in [4.0, 2.0, 1.0, 1.0] {
        assert!(one.complete(&request()).await.is_err());
        assert_eq!(other.gate.width(), expected);
    }
    one.complete(&request()).await.unwrap();
    assert_eq!(other.gate.width(), 2.0);
    server.script([Act::status(500, "broken"), Act::status(503, "away")]);
    for _ in 0..2 {
        assert!(one.complete(&request()).await.is_err());
    }
    assert_eq!(other.gate.width(), 2.0, "a fault is no sign of too many requests");
}

/// An answer that cannot be used may have been charged: it is not asked for as often as what surely costs nothing.
#[tokio::test]
async fn what_may_be_charged_is_tried_three_times() {
    for (act, tries) in [(Act::Bytes(b"<html>".to_vec()), 3), (Act::status(503, "busy"), 6)] {
        let server = FakeServer::start(move |_: &Value| act.clone()).unwrap();
        let error = ask(Endpoint { max_attempts: 6, ..quick(&server) }).await.unwrap_err();
        let LlmError::Unreachable { attempts, .. } = &error else { panic!("{error}") };
        assert_eq!((*attempts, server.count()), (tries, tries as usize), "{error}");
    }
}
