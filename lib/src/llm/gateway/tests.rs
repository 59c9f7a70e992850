use memtrial_testkit::{Act, FakeServer};
use serde_json::{Value, json};

use super::bench::*;
use super::*;
use crate::llm::Protocol;

#[tokio::test]
async fn a_call_is_answered_counted_and_written_down_first() {
    let bench = Bench::with(counting(), Settings::default(), |server| Endpoint {
        price: Some(PRICE),
        ..endpoint(server, Protocol::Openai)
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
    assert_eq!(crate::llm::spent(&bench.journal("a"), 0).unwrap(), spent);
}

#[tokio::test]
async fn a_resumed_caller_pays_for_nothing_again_whatever_the_order() {
    let bench = Bench::new(Protocol::Openai).await;
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

/// A call that failed is made again only while somebody waits for it and the gateway is to stay.
#[tokio::test]
async fn nothing_is_asked_again_for_nobody() {
    let patient = |server: &FakeServer| Endpoint {
        min_wait: Duration::from_secs(600),
        max_wait: Duration::from_secs(600),
        ..endpoint(server, Protocol::Openai)
    };
    let bench = Bench::with(|_: &Value| Act::status(503, "busy"), Settings::default(), patient).await;
    let admission = bench.admit("a");
    let impatient = bench.request("/v1/chat/completions", admission.token(), &question("x"));
    let cut = impatient.timeout(Duration::from_millis(500)).send().await;
    assert!(cut.unwrap_err().is_timeout());
    let waiting = bench.chat(admission.token(), "y");
    let closing = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        bench.gateway.close();
    };
    let ((status, _), ()) = tokio::join!(waiting, closing);
    assert_eq!(status, 502);
    // waits for the call whose caller has left
    admission.finish().await;
    assert_eq!(bench.server.count(), 2);
}

#[tokio::test]
async fn a_caller_who_hangs_up_finds_the_reply_when_he_asks_again() {
    let slow = |_: &Value| Act::Stall(Duration::from_millis(100), Box::new(Act::say("late")));
    let bench = Bench::with(slow, Settings::default(), |server| endpoint(server, Protocol::Openai)).await;
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
    let bench = Bench::with(slow, Settings::default(), |server| endpoint(server, Protocol::Openai)).await;
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
    let bench = Bench::new(Protocol::Openai).await;
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
    let priced = |server: &_| Endpoint { price: Some(PRICE), ..endpoint(server, Protocol::Openai) };
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
    let blind = Gateway::new(endpoint(&bench.server, Protocol::Openai), &Limiter::default(), settings);
    assert!(blind.unwrap_err().to_string().contains("the price of fake-model is not known"));
}

#[tokio::test]
async fn what_the_endpoint_does_not_count_is_estimated_apart() {
    let bench = Bench::new(Protocol::Openai).await;
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
    let bench = Bench::with(counting(), settings, |server| endpoint(server, Protocol::Openai)).await;
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
        ..endpoint(server, Protocol::Openai)
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
async fn the_solvers_parameters_win_and_its_seed_is_the_replicate() {
    let bench = Bench::with(counting(), Settings::default(), |server| {
        let params = json!({"temperature": 0.5}).as_object().unwrap().clone();
        Endpoint { params, send_seed: true, ..endpoint(server, Protocol::Openai) }
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
    let (bench, anthropic) = (Bench::new(Protocol::Openai).await, Bench::new(Protocol::Anthropic).await);
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
    let bench = Bench::new(Protocol::Openai).await;
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
        Endpoint { base_url, max_attempts: 1, ..endpoint(server, Protocol::Openai) }
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
