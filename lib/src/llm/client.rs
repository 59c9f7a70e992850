//! The client of model endpoints: one call, with its tries, its waits and its cost.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use serde_json::{Map, Value, json};

use super::embed::wire;
use super::http::{Failure, Meaning, Transport};
use super::journal::digest_of;
use super::limiter::{Gate, Limiter};
use super::price::cost_of;
use super::{Api, Cost, Endpoint, LlmError, Model, Protocol, Reply, Request, anthropic, responses};

/// Body fields that settings may not set: the request decides them.
const RESERVED: [&str; 6] = ["input", "messages", "model", "stream", "stream_options", "tools"];

/// What an endpoint is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// An answer, by one of the two interfaces.
    Answer(Api),
    /// Vectors of texts, which OpenAI-compatible endpoints alone give.
    Vectors,
}

/// What the client is to send, in the endpoint's own format.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    /// What is asked for.
    pub route: Route,
    /// The request body, without the wish for a stream.
    pub body: Map<String, Value>,
    /// Beta features (`anthropic-beta`), where a caller wants some.
    pub beta: Option<String>,
}

/// A call without an answer, and what its tries cost all the same.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub error: LlmError,
    pub cost: Cost,
}

/// A model behind an endpoint that speaks one of the wire formats of [`Protocol`].
///
/// ```no_run
/// # use memtrial::llm::{Api, Client, Endpoint, Model, Request};
/// # async fn ask() -> Result<(), memtrial::llm::LlmError> {
/// let model = Client::new(Endpoint::new("http://127.0.0.1:8000/v1", "example-model"))?;
/// let messages = vec![serde_json::json!({"role": "user", "content": "Hello"})];
/// let request = Request { api: Api::Chat, messages, tools: vec![], params: Default::default(), seed: None };
/// let reply = model.complete(&request).await?;
/// # drop(reply);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    endpoint: Arc<Endpoint>,
    transport: Arc<Transport>,
    gate: Arc<Gate>,
    on_retry: Option<OnRetry>,
}

/// Hears why a try failed, and how long the next one waits.
pub type OnRetry = Arc<dyn Fn(&str, Duration) + Send + Sync>;

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A failed try and what it cost.
struct Try {
    failure: Failure,
    cost: Cost,
}

impl Client {
    /// A client with its own limit of requests under way.
    pub fn new(endpoint: Endpoint) -> Result<Self, LlmError> {
        Self::sharing(endpoint, &Limiter::default())
    }

    /// A client that shares the limit with the others of the same address.
    pub fn sharing(endpoint: Endpoint, limiter: &Limiter) -> Result<Self, LlmError> {
        let transport = Transport::new(&endpoint)?;
        if let Some(reason) = fault(&endpoint) {
            return Err(LlmError::Setup { endpoint: transport.label, reason });
        }
        let gate = limiter.gate(&transport.label, endpoint.max_in_flight);
        Ok(Self { endpoint: Arc::new(endpoint), transport: Arc::new(transport), gate, on_retry: None })
    }

    /// The same client, telling of every try that failed and is made again.
    #[must_use]
    pub fn telling(self, on_retry: OnRetry) -> Self {
        Self { on_retry: Some(on_retry), ..self }
    }

    /// Its settings.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The endpoint's address, without secrets.
    pub(super) fn label(&self) -> &str {
        &self.transport.label
    }

    /// The request in the endpoint's format: the model, the messages as given, the tools where there are any, the
    /// parameters (the request's win over the endpoint's) and the seed (chat completions alone know one).
    fn ask_for(&self, request: &Request) -> Result<Ask, LlmError> {
        let mut body = Map::new();
        body.insert("model".into(), json!(self.endpoint.model));
        let messages = match request.api {
            Api::Chat => "messages",
            Api::Responses => "input",
        };
        body.insert(messages.into(), Value::Array(request.messages.clone()));
        if !request.tools.is_empty() {
            body.insert("tools".into(), Value::Array(request.tools.clone()));
        }
        if self.endpoint.api == Protocol::Anthropic {
            body = match request.api {
                Api::Chat => anthropic::request(&body),
                Api::Responses => {
                    Err("an Anthropic endpoint has no Responses API: use chat completions".into())
                }
            }
            .map_err(|reason| self.cannot_carry(reason))?;
        }
        let params = self.endpoint.params.iter().chain(&request.params);
        for (key, value) in params.filter(|(key, _)| !RESERVED.contains(&key.as_str())) {
            body.insert(key.clone(), value.clone());
        }
        let takes_seed =
            self.endpoint.send_seed && (self.endpoint.api, request.api) == (Protocol::Openai, Api::Chat);
        if let Some(seed) = request.seed.filter(|_| takes_seed) {
            body.insert("seed".into(), json!(seed));
        }
        Ok(Ask { route: Route::Answer(request.api), body, beta: None })
    }

    pub(super) fn cannot_carry(&self, reason: String) -> LlmError {
        LlmError::Untranslatable { endpoint: self.label().to_owned(), reason }
    }

    /// Asks, with retries. A failed call says what it cost.
    pub(super) async fn ask(&self, ask: &Ask) -> Result<Reply, Unanswered> {
        self.ask_while(ask, Arc::new(|| true)).await
    }

    /// Asks, with retries for as long as the answer is wanted: a try under way is never broken off.
    pub(super) async fn ask_while(&self, ask: &Ask, wanted: Wanted) -> Result<Reply, Unanswered> {
        let mut ask = ask.clone();
        if self.endpoint.stream && ask.route != Route::Vectors {
            ask.body.insert("stream".into(), json!(true));
            if (self.endpoint.api, ask.route) == (Protocol::Openai, Route::Answer(Api::Chat)) {
                ask.body.insert("stream_options".into(), json!({"include_usage": true}));
            }
        }
        let seeded = ask.body.contains_key("seed");
        let body = Value::Object(ask.body);
        let (mut attempts, mut perhaps_paid, mut spent) = (0, 0, Cost::ZERO);
        let mut waits = self.backoff().build();
        loop {
            attempts += 1;
            let Try { mut failure, cost } = match self.attempt(ask.route, &body, ask.beta.as_deref()).await {
                Ok(reply) => return Ok(Reply { cost: spent.plus(reply.cost), ..reply }),
                Err(failed) => failed,
            };
            spent = spent.plus(cost);
            perhaps_paid += u32::from(failure.may_be_charged);
            let again = failure.meaning == Meaning::Passing && perhaps_paid < MOST_PERHAPS_PAID;
            if let Some(wait) = waits.next().filter(|_| again && wanted()) {
                let wait = failure.retry_after.unwrap_or(wait).min(self.endpoint.max_wait);
                if let Some(tell) = &self.on_retry {
                    tell(&failure.reason, wait);
                }
                sleep_while(wait, &wanted).await;
                if wanted() {
                    continue;
                }
            }
            if seeded && failure.reason.contains("seed") {
                failure.reason.push_str(" (if the endpoint takes no seed, set send-seed = false)");
            }
            let error = failure.into_error(self.label(), attempts);
            return Err(Unanswered { error, cost: spent });
        }
    }

    async fn attempt(&self, route: Route, body: &Value, beta: Option<&str>) -> Result<Reply, Try> {
        let pass = self.gate.enter().await;
        let begun = Instant::now();
        let exchanged = self.transport.post(self.path(route), body, beta).await;
        let seconds = begun.elapsed().as_secs_f64();
        match &exchanged {
            Ok(_) => pass.borne(),
            Err(failure) if failure.too_much => {
                pass.too_much(failure.retry_after.map(|wait| wait.min(self.endpoint.max_wait)));
            }
            Err(_) => {}
        }
        let taken = |cost: Cost| Cost { seconds, ..cost };
        exchanged
            .and_then(|response| {
                let cost = taken(self.cost_of(&response));
                match (self.endpoint.api, route) {
                    (Protocol::Openai, Route::Answer(Api::Responses)) => {
                        let finish_reason = responses::ending(&response)?;
                        return Ok(Reply { message: response, finish_reason, response: Value::Null, cost });
                    }
                    (_, Route::Vectors) => {
                        wire::vectors(&response, wire::inputs(body)).map_err(|reason| Failure {
                            response: Some(response.clone()),
                            ..Failure::unusable(reason)
                        })?;
                        let message = response;
                        return Ok(Reply { message, finish_reason: None, response: Value::Null, cost });
                    }
                    (_, Route::Answer(_)) => {}
                }
                let (message, finish_reason) = self.read(&response)?;
                Ok(Reply { message, finish_reason, response, cost })
            })
            .map_err(|failure| Try { cost: taken(self.cost_of_failure(&failure)), failure })
    }

    fn path(&self, route: Route) -> &'static [&'static str] {
        match (self.endpoint.api, route) {
            (_, Route::Vectors) => &["embeddings"],
            (Protocol::Openai, Route::Answer(Api::Chat)) => &["chat", "completions"],
            (Protocol::Openai, Route::Answer(Api::Responses)) => &["responses"],
            (Protocol::Anthropic, Route::Answer(_)) => &["messages"],
        }
    }

    /// How many tokens an Anthropic endpoint says that a request holds.
    pub(super) async fn count_tokens(&self, ask: &Ask) -> Result<u64, LlmError> {
        let (path, body) = (["messages", "count_tokens"], Value::Object(ask.body.clone()));
        let counted = self.transport.post(&path, &body, ask.beta.as_deref()).await;
        let counted = counted.map_err(|failure| failure.into_error(self.label(), 1))?;
        counted["input_tokens"]
            .as_u64()
            .ok_or_else(|| Failure::unusable("the reply holds no input_tokens").into_error(self.label(), 1))
    }

    /// The message of a response, as chat completions have it, and how it ended.
    fn read(&self, response: &Value) -> Result<(Value, Option<String>), Failure> {
        let read = match self.endpoint.api {
            Protocol::Openai => choice(response),
            Protocol::Anthropic => anthropic::message(response),
        };
        let (mut message, finish_reason) =
            read.map_err(|reason| Failure { response: Some(response.clone()), ..Failure::unusable(reason) })?;
        name_calls(&mut message, response);
        Ok((message, finish_reason))
    }

    fn cost_of(&self, response: &Value) -> Cost {
        cost_of(response, self.endpoint.price.as_ref())
    }

    /// A failed try is no call of its own. The tokens it reports are counted; where it reports none and the model may
    /// have worked, that is noted.
    fn cost_of_failure(&self, failure: &Failure) -> Cost {
        let metered = failure.response.as_ref().map(|response| self.cost_of(response));
        match metered.filter(|cost| cost.unmetered_calls == 0) {
            Some(cost) => Cost { calls: 0, ..cost },
            None => Cost { unmetered_calls: u64::from(failure.may_be_charged), ..Cost::ZERO },
        }
    }

    fn backoff(&self) -> ExponentialBuilder {
        ExponentialBuilder::default()
            .with_min_delay(self.endpoint.min_wait)
            .with_max_delay(self.endpoint.max_wait)
            .with_max_times(self.endpoint.max_attempts.saturating_sub(1) as usize)
            .with_jitter()
    }
}

#[async_trait]
impl Model for Client {
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        self.ask(&self.ask_for(request)?).await.map_err(|unanswered| unanswered.error)
    }

    fn name(&self) -> &str {
        &self.endpoint.model
    }
}

/// Says whether an answer is still wanted.
pub(super) type Wanted = Arc<dyn Fn() -> bool + Send + Sync>;

/// Tries of one call after which the model may have worked, and been charged, for an answer that cannot be used.
const MOST_PERHAPS_PAID: u32 = 3;

/// Waits, at most for as long as the answer is wanted.
async fn sleep_while(wait: Duration, wanted: &Wanted) {
    const LOOK: Duration = Duration::from_millis(200);
    let until = tokio::time::Instant::now() + wait;
    while wanted() && tokio::time::Instant::now() < until {
        tokio::time::sleep_until(until.min(tokio::time::Instant::now() + LOOK)).await;
    }
}

/// What is wrong with the settings, where something is.
fn fault(endpoint: &Endpoint) -> Option<String> {
    if endpoint.model.trim().is_empty() {
        return Some("no model is named".into());
    }
    if let (Some(name), None) = (&endpoint.api_key_env, &endpoint.api_key) {
        return Some(format!("the environment variable {name}, which api-key-env names, holds no key"));
    }
    let reserved = RESERVED.iter().find(|key| endpoint.params.contains_key(**key))?;
    Some(format!("params may not set {reserved}: it is decided elsewhere"))
}

/// The message and how it ended, of the first choice of a chat completion.
fn choice(response: &Value) -> Result<(Value, Option<String>), &'static str> {
    let choice = response["choices"].get(0).ok_or("the reply has no choices")?;
    let finish_reason = choice["finish_reason"].as_str().map(str::to_owned);
    if finish_reason.as_deref() == Some("error") {
        return Err("the reply ended in an error (finish_reason is error)");
    }
    match &choice["message"] {
        message @ Value::Object(_) => Ok((message.clone(), finish_reason)),
        _ => Err("the reply's first choice has no message"),
    }
}

/// Gives every call an id of its own where the endpoint gave none or one twice: nobody could say which call a result
/// belongs to otherwise.
fn name_calls(message: &mut Value, response: &Value) {
    let mut known = BTreeSet::new();
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (n, call) in calls.into_iter().flatten().enumerate() {
        let id = call["id"].as_str().filter(|id| !id.is_empty() && !known.contains(*id)).map(str::to_owned);
        let id = id.unwrap_or_else(|| {
            let answer: String = digest_of(response.clone()).chars().take(16).collect();
            let id = format!("call_{answer}_{n}");
            call["id"] = json!(id);
            id
        });
        known.insert(id);
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
