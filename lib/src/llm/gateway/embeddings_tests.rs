use memtrial_testkit::{Act, FakeServer};
use serde_json::{Value, json};

use super::bench::*;
use super::*;
use crate::llm::{Embedder, EndpointEmbedder, Price, Protocol, Secret};

const HALF: Price = Price { input: 0.5, cached_input: None, cache_write: None, output: 0.0 };

fn silent(_: &Value) -> Act {
    Act::status(500, "nobody should talk here")
}

/// A gateway whose endpoint embeds with a model of its own, at a price.
async fn embedding(settings: Settings) -> (Bench, FakeServer) {
    let embedder = FakeServer::start(silent).unwrap();
    let own =
        Endpoint { price: Some(HALF), model: "own-embedder".into(), ..endpoint(&embedder, Protocol::Openai) };
    let settings = Settings { embeddings: Some(own), ..settings };
    let priced = |server: &FakeServer| Endpoint { price: Some(PRICE), ..endpoint(server, Protocol::Openai) };
    (Bench::with(silent, settings, priced).await, embedder)
}

#[tokio::test]
async fn embeddings_pass_metered_written_down_and_paid_once() {
    let (bench, embedder) = embedding(Settings { keep_requests: true, ..Settings::default() }).await;
    let admission = bench.admit("a");
    let asked = json!({"model": "whatever", "input": ["fix it", "docs"], "encoding_format": "base64"});
    let got = bench.post("/v1/embeddings", admission.token(), &asked).await;
    let answer = got.json();
    assert_eq!((got.status, answer["data"].as_array().unwrap().len()), (200, 2));
    assert!(answer["data"][0]["embedding"].is_string(), "the encoding is the client's wish");
    let [request] = &embedder.requests()[..] else { panic!() };
    assert_eq!(
        request.body,
        json!({"model": "own-embedder", "input": ["fix it", "docs"], "encoding_format": "base64"})
    );
    assert_eq!((bench.server.count(), request.violations.len()), (0, 0));
    let spent = admission.finish().await;
    // 6 and 4 characters, four a token, at half a dollar for a million
    assert_eq!((spent.calls, spent.prompt_tokens, spent.unmetered_calls), (1, 3, 0));
    assert_eq!((spent.list_usd, bench.gateway.total().usd), (Some(1.5e-6), 1.5e-6));
    let again = bench.admit("a");
    assert_eq!(again.tally().usd, 1.5e-6, "at the embedder's price, not the model's");
    assert_eq!(bench.post("/v1/embeddings", again.token(), &asked).await.json(), answer);
    assert_eq!(embedder.count(), 1, "a reply was paid again");
    let talk = exchanges(&transcript_place(&bench.journal("a"))).unwrap();
    assert_eq!(talk, [], "vectors are no talk");
}

/// Our own embedder before the gateway, and a faulty reply behind it.
#[tokio::test]
async fn an_embedder_works_through_the_gateway_and_faulty_replies_are_asked_again() {
    let (bench, embedder) = embedding(Settings::default()).await;
    let admission = bench.admit("a");
    embedder.script([Act::Json(json!({"data": [], "usage": {"prompt_tokens": 7}}))]);
    let through = Endpoint::new(bench.url("/v1"), "m").with_key(Secret::new(admission.token()));
    let embedded = EndpointEmbedder::new(through).unwrap().embed(&["a text".into()]).await.unwrap();
    assert_eq!((embedded.vectors.len(), embedder.count()), (1, 2));
    assert_eq!(admission.spent().prompt_tokens, 7 + 2);
}

#[tokio::test]
async fn without_a_model_of_its_own_the_clients_is_asked_for_at_an_unknown_price() {
    let priced = |server: &FakeServer| Endpoint { price: Some(PRICE), ..endpoint(server, Protocol::Openai) };
    let bench = Bench::with(silent, Settings::default(), priced).await;
    let admission = bench.admit("a");
    let asked = json!({"model": "named", "input": "x"});
    assert_eq!(bench.post("/embeddings", admission.token(), &asked).await.status, 200);
    assert_eq!(bench.server.requests()[0].body, asked);
    assert_eq!((admission.spent().prompt_tokens, admission.spent().list_usd), (1, None));
    let capped = bench.admit_with("b", Caps { usd: Some(1.0), ..Caps::default() });
    let refusals = [
        (capped.token(), asked, 402, "the price of \"named\" for embeddings is not known"),
        (admission.token(), json!({"model": "named", "input": 1}), 400, "expected a text or a list of texts"),
        (admission.token(), json!({"input": "x"}), 400, "name the model that is to embed"),
        (admission.token(), json!([]), 400, "no JSON object"),
        ("nonsense", json!({}), 401, "no token of a trial"),
    ];
    for (token, body, status, words) in refusals {
        let got = bench.post("/v1/embeddings", token, &body).await;
        let said = got.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(got.status == status && said.contains(words), "{} {said}", got.status);
    }
    assert_eq!(bench.server.count(), 1);
    let claude = Bench::new(Protocol::Anthropic).await;
    let got =
        claude.post("/v1/embeddings", claude.admit("a").token(), &json!({"model": "m", "input": "x"})).await;
    assert_eq!((got.status, claude.server.count()), (400, 0));
    assert!(got.text.contains("has no embeddings"), "{}", got.text);
}
