use std::time::Duration;

use memtrial_testkit::{Act, FakeServer, vectors};

use super::*;
use crate::llm::Price;

fn server() -> FakeServer {
    FakeServer::start(|_: &Value| Act::status(500, "nobody should talk here")).unwrap()
}

fn quick(server: &FakeServer) -> Endpoint {
    Endpoint {
        min_wait: Duration::from_millis(1),
        max_wait: Duration::from_millis(20),
        request_timeout: Duration::from_secs(20),
        max_attempts: 2,
        ..Endpoint::new(server.url(), "fake-embedder")
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn texts_become_unit_vectors_with_their_cost_in_either_encoding() {
    let server = server();
    let price = Some(Price { input: 2.0, cached_input: None, cache_write: None, output: 100.0 });
    let mut endpoint = Endpoint { price, stream: true, ..quick(&server) };
    let asked = texts(&["fix the parser", "THE parser, fix!", "", "docs"]);
    let floats = EndpointEmbedder::new(endpoint.clone()).unwrap().embed(&asked).await.unwrap();
    assert!(floats.vectors.iter().all(|vector| (dot(vector, vector) - 1.0).abs() < 1e-6));
    assert!((dot(&floats.vectors[0], &floats.vectors[1]) - 1.0).abs() < 1e-6);
    assert!(dot(&floats.vectors[0], &floats.vectors[3]).abs() < 0.6);
    // 14, 16, 1 and 4 characters, four a token
    assert_eq!((floats.cost.calls, floats.cost.prompt_tokens, floats.cost.completion_tokens), (1, 10, 0));
    assert_eq!((floats.cost.unmetered_calls, floats.cost.list_usd), (0, Some(20e-6)));
    endpoint.params.insert("encoding_format".into(), json!("base64"));
    let packed = EndpointEmbedder::new(endpoint).unwrap();
    assert_eq!(packed.name(), "fake-embedder");
    assert_eq!(packed.embed(&asked).await.unwrap().vectors, floats.vectors);
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn many_texts_go_in_batches_and_come_back_in_order() {
    let server = server();
    let embedder = EndpointEmbedder::new(quick(&server)).unwrap();
    let mut asked: Vec<String> = (0..150).map(|n| format!("text number {n}")).collect();
    asked.push("x".repeat(BATCH_BYTES + 1));
    let embedded = embedder.embed(&asked).await.unwrap();
    assert_eq!((server.count(), embedded.cost.calls, embedded.vectors.len()), (4, 4, 151));
    for (text, vector) in asked.iter().zip(&embedded.vectors) {
        assert_eq!(*vector, wire::unit(vectors::vector(text, vectors::DIMENSION)).unwrap());
    }
    let nothing = embedder.embed(&[]).await.unwrap();
    assert_eq!((nothing, server.count()), (Embedded { vectors: vec![], cost: Cost::ZERO }, 4));
}

#[tokio::test]
async fn faults_pass_or_are_named() {
    let server = server();
    let embedder = EndpointEmbedder::new(quick(&server)).unwrap();
    let one = texts(&["a"]);
    server.script([Act::status(503, "busy")]);
    embedder.embed(&one).await.unwrap();
    assert_eq!(server.count(), 2);
    let data = |embedding: Value| Act::Json(json!({"data": [{"index": 0, "embedding": embedding}]}));
    for (fault, words) in [
        (data(json!([])), "the vector of text 1 is empty"),
        (Act::Json(json!({"data": []})), "the reply holds 0 vectors for 1 texts"),
        (Act::Bytes(b"{\"data\": [{\"embedding\": [NaN]}]}".to_vec()), "the reply is no JSON"),
    ] {
        server.script([fault.clone(), fault]);
        let error = embedder.embed(&one).await.unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("tried 2 times"), "{error}");
    }
    server.script([data(json!([1.0, 2.0]))]);
    let error = embedder.embed(&one).await.unwrap_err().to_string();
    let words = "embeddings of fake-embedder cannot be used: its vectors had 64 numbers and now have 2: was it exchanged?";
    assert_eq!(error, words);
    server.script([Act::status(400, "This model's maximum context length is 512 tokens")]);
    let error = embedder.embed(&one).await.unwrap_err();
    assert!(matches!(error, LlmError::ContextWindowExceeded { .. }), "{error}");
}

#[test]
fn settings_that_cannot_work_are_refused_and_the_name_tells_spaces_apart() {
    let mut endpoint = Endpoint::new("http://127.0.0.1:9/v1", "m");
    endpoint.params = json!({"encoding_format": "base64", "dimensions": 256}).as_object().unwrap().clone();
    assert_eq!(EndpointEmbedder::new(endpoint.clone()).unwrap().name(), r#"m {"dimensions":256}"#);
    endpoint.api = Protocol::Anthropic;
    let error = EndpointEmbedder::new(endpoint).unwrap_err().to_string();
    assert!(error.contains("Anthropic's format has no embeddings"), "{error}");
}
