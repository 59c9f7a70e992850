//! What `doctor` asks an endpoint: does it answer, which models has it, does it honour a seed?

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, json};

use super::http::Transport;
use super::{Api, Client, Cost, Endpoint, LlmError, Model, Reply, Request, Secret};

/// How long a probe waits for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What an endpoint says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// The models it lists, sorted.
    pub models: Vec<String>,
    /// How long it took to answer.
    pub seconds: f64,
}

/// Whether an endpoint honours `seed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeedSupport {
    /// The same seed gave the same text, another seed another text.
    Honoured,
    /// The same seed gave two texts.
    NotHonoured,
    /// All texts were the same, whatever the seed: nothing can be told.
    Undecided,
    /// A request with a seed is refused, one without is answered.
    Rejected,
}

/// Asks an endpoint once for its models (`GET <base>/models`).
pub async fn probe(base_url: &str, key: Option<&Secret>) -> Result<Probe, LlmError> {
    let mut endpoint = Endpoint::new(base_url, "");
    endpoint.api_key = key.cloned();
    endpoint.request_timeout = PATIENCE;
    let transport = Transport::new(&endpoint)?;
    let begun = Instant::now();
    let list = transport.get(&["models"]).await.map_err(|failure| failure.into_error(&transport.label, 1))?;
    let items = list["data"].as_array().or(list.as_array()).map_or(&[][..], Vec::as_slice);
    let mut models: Vec<String> =
        items.iter().filter_map(|item| item["id"].as_str().map(str::to_owned)).collect();
    models.sort();
    Ok(Probe { models, seconds: begun.elapsed().as_secs_f64() })
}

/// Asks a model for random words: twice with one seed and once with another. Says what it cost as well.
pub async fn probe_seed(endpoint: &Endpoint) -> Result<(SeedSupport, Cost), LlmError> {
    let model = Client::new(Endpoint { send_seed: true, ..endpoint.clone() })?;
    let first = match model.complete(&random_words(Some(1))).await {
        Ok(reply) => reply,
        Err(LlmError::Refused { status: 400 | 422, .. }) => {
            let unseeded = model.complete(&random_words(None)).await?;
            return Ok((SeedSupport::Rejected, unseeded.cost));
        }
        Err(error) => return Err(error),
    };
    let second = model.complete(&random_words(Some(1))).await?;
    let other = model.complete(&random_words(Some(2))).await?;
    let same = |a: &Reply, b: &Reply| a.message["content"] == b.message["content"];
    let support = match (same(&first, &second), same(&first, &other)) {
        (true, false) => SeedSupport::Honoured,
        (true, true) => SeedSupport::Undecided,
        (false, _) => SeedSupport::NotHonoured,
    };
    Ok((support, first.cost.plus(second.cost).plus(other.cost)))
}

fn random_words(seed: Option<u64>) -> Request {
    let prompt = "Write ten random English words on one line, separated by spaces. Write nothing else.";
    let mut params = Map::new();
    params.insert("temperature".into(), json!(1.0));
    Request {
        api: Api::Chat,
        messages: vec![json!({"role": "user", "content": prompt})],
        tools: Vec::new(),
        params,
        seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memtrial_testkit::{Act, FakeServer};
    use serde_json::Value;

    fn endpoint(server: &FakeServer) -> Endpoint {
        Endpoint { max_attempts: 1, ..Endpoint::new(server.url(), "fake-model") }
    }

    #[tokio::test]
    async fn an_endpoint_lists_its_models() {
        let server = FakeServer::start(|_: &Value| Act::say("x")).unwrap();
        assert_eq!(probe(&server.url(), None).await.unwrap().models, ["fake-model"]);
    }

    #[tokio::test]
    async fn an_endpoint_that_is_not_there_is_named() {
        // Bound and not listening: nobody else gets the port meanwhile.
        let held = tokio::net::TcpSocket::new_v4().unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("http://{}/v1", held.local_addr().unwrap());
        let error = probe(&url, None).await.unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("model endpoint {url}: ")) && error.contains("tried 1 times"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn seeds() {
        let seed = |request: &Value| request["seed"].as_u64();
        let honours = move |request: &Value| Act::say(format!("words {:?}", seed(request)));
        let constant = |_: &Value| Act::say("words");
        let count = std::sync::atomic::AtomicUsize::new(0);
        let ignores =
            move |_: &Value| Act::say(count.fetch_add(1, std::sync::atomic::Ordering::SeqCst).to_string());
        let rejects = move |request: &Value| match seed(request) {
            Some(_) => Act::status(400, "unknown parameter: seed"),
            None => Act::say("words"),
        };
        let servers = [
            (FakeServer::start(honours).unwrap(), SeedSupport::Honoured, 3),
            (FakeServer::start(constant).unwrap(), SeedSupport::Undecided, 3),
            (FakeServer::start(ignores).unwrap(), SeedSupport::NotHonoured, 3),
            (FakeServer::start(rejects).unwrap(), SeedSupport::Rejected, 1),
        ];
        for (server, expected, calls) in servers {
            let (support, cost) = probe_seed(&endpoint(&server)).await.unwrap();
            assert_eq!((support, cost.calls), (expected, calls));
        }
    }
}
