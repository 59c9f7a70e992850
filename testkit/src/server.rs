//! A model endpoint on this machine, in this process.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::act::{Act, Format};
use crate::serving::Serving;
use crate::{invariants, messages, vectors};

/// What decides the answers.
pub trait Player: Send + Sync + 'static {
    /// What to do with this request body.
    fn play(&self, request: &Value) -> Act;
}

impl<F: Fn(&Value) -> Act + Send + Sync + 'static> Player for F {
    fn play(&self, request: &Value) -> Act {
        self(request)
    }
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body; null where it was no JSON.
    pub body: Value,
    /// What was wrong with it.
    pub violations: Vec<String>,
}

/// A model endpoint on a free port of the loopback device. It lives on a thread of its own, so that tests with and
/// without a runtime can use it, and ends when it is dropped. `GET /stats` says how many requests it had and which were
/// wrong, for tests that run it as a process.
pub struct FakeServer {
    serving: Serving,
    shared: Arc<Shared>,
}

struct Shared {
    player: Box<dyn Player>,
    script: Mutex<VecDeque<Act>>,
    recorded: Mutex<Vec<Recorded>>,
}

impl FakeServer {
    /// Starts on a free port.
    pub fn start(player: impl Player) -> io::Result<Self> {
        Self::start_on(0, player)
    }

    /// Starts on this port (0: a free one).
    pub fn start_on(port: u16, player: impl Player) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            player: Box::new(player),
            script: Mutex::default(),
            recorded: Mutex::default(),
        });
        let router = Router::new()
            .route(
                "/v1/chat/completions",
                post(|shared, headers, body| complete(Format::Chat, shared, headers, body)),
            )
            .route(
                "/v1/messages",
                post(|shared, headers, body| complete(Format::Messages, shared, headers, body)),
            )
            .route("/v1/messages/count_tokens", post(async || axum::Json(json!({"input_tokens": 42}))))
            .route(
                "/v1/responses",
                post(|shared, headers, body| complete(Format::Chat, shared, headers, body)),
            )
            .route(
                "/v1/embeddings",
                post(|shared, headers, body| complete(Format::Vectors, shared, headers, body)),
            )
            .route(
                "/v1/models",
                get(async || axum::Json(json!({"object": "list", "data": [{"id": "fake-model"}]}))),
            )
            .route("/stats", get(stats))
            .with_state(shared.clone());
        Ok(Self { serving: Serving::start(port, router)?, shared })
    }

    /// The base address to give to clients: `http://127.0.0.1:PORT/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.serving.address)
    }

    /// What to do with the next requests, in order, before the player is asked again.
    pub fn script(&self, acts: impl IntoIterator<Item = Act>) {
        lock(&self.shared.script).extend(acts);
    }

    /// All requests for completions and vectors so far.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.recorded).clone()
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        lock(&self.shared.recorded).len()
    }

    /// What was wrong with any of them.
    pub fn violations(&self) -> Vec<String> {
        self.requests().into_iter().flat_map(|request| request.violations).collect()
    }
}

async fn complete(
    format: Format,
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response<Body> {
    let headers: BTreeMap<String, String> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut violations = match format {
        Format::Chat => invariants::violations(&body),
        Format::Messages => messages::violations(&body),
        Format::Vectors => vectors::violations(&body),
    };
    if format == Format::Messages && !headers.contains_key("anthropic-version") {
        violations.push("the header anthropic-version is missing".into());
    }
    if headers.get("content-type").is_none_or(|kind| !kind.starts_with("application/json")) {
        violations.push("the content type is not application/json".into());
    }
    let act = if violations.is_empty() {
        let scripted = lock(&shared.script).pop_front();
        scripted.unwrap_or_else(|| match format {
            Format::Vectors => Act::Json(vectors::reply(&body)),
            Format::Chat | Format::Messages => shared.player.play(&body),
        })
    } else {
        Act::status(400, &format!("this is no valid request: {}", violations.join("; ")))
    };
    lock(&shared.recorded).push(Recorded { headers, body: body.clone(), violations });
    act.perform(format, &body).await
}

async fn stats(State(shared): State<Arc<Shared>>) -> axum::Json<Value> {
    let recorded = lock(&shared.recorded);
    let violations: Vec<_> = recorded.iter().flat_map(|request| &request.violations).collect();
    axum::Json(json!({"requests": recorded.len(), "violations": violations}))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A player that takes its time.
pub struct Slow<P> {
    /// Who answers.
    pub player: P,
    /// How long an answer takes besides.
    pub delay: Duration,
}

impl<P: Player> Player for Slow<P> {
    fn play(&self, request: &Value) -> Act {
        let act = self.player.play(request);
        if self.delay.is_zero() { act } else { Act::Stall(self.delay, Box::new(act)) }
    }
}
