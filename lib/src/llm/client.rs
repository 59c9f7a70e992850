//! The client of OpenAI-compatible endpoints (chat completions and the Responses API): one call, with its tries, its waits and its cost.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::http::{Failure, Meaning, Transport};
use super::price::cost_of;
use super::responses;
use super::{Api, Cost, Endpoint, LlmError, Model, Reply, Request};

/// Body fields that settings may not set: the request decides them.
const RESERVED: [&str; 6] = ["input", "messages", "model", "stream", "stream_options", "tools"];

/// Bounds the requests under way at each address, over all solvers that share it.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<BTreeMap<String, Arc<Semaphore>>>);

impl Limiter {
    /// The slots of this endpoint. Where several solvers share an address, the first one's `max-in-flight` holds.
    fn slots(&self, endpoint: &Endpoint) -> Arc<Semaphore> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = || Arc::new(Semaphore::new(endpoint.max_in_flight.clamp(1, Semaphore::MAX_PERMITS)));
        known.entry(endpoint.base_url.clone()).or_insert_with(slots).clone()
    }
}

/// A model behind an OpenAI-compatible endpoint, asked through the interface that each request names.
///
/// ```no_run
/// # use memtrial::llm::{Api, Endpoint, Model, OpenAi, Request};
/// # async fn ask() -> Result<(), memtrial::llm::LlmError> {
/// let model = OpenAi::new(Endpoint::new("http://127.0.0.1:8000/v1", "example-model"))?;
/// let messages = vec![serde_json::json!({"role": "user", "content": "Hello"})];
/// let request = Request { api: Api::Chat, messages, tools: vec![], params: Default::default(), seed: None };
/// let reply = model.complete(&request).await?;
/// # drop(reply);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OpenAi {
    endpoint: Arc<Endpoint>,
    transport: Arc<Transport>,
    slots: Arc<Semaphore>,
    on_retry: Option<OnRetry>,
}

/// Hears why a try failed, and how long the next one waits.
pub type OnRetry = Arc<dyn Fn(&str, Duration) + Send + Sync>;

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A failed try and what it cost.
struct Try {
    failure: Failure,
    cost: Cost,
}

impl OpenAi {
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
        let slots = limiter.slots(&endpoint);
        Ok(Self { endpoint: Arc::new(endpoint), transport: Arc::new(transport), slots, on_retry: None })
    }

    /// The same client, telling of every try that failed and is made again.
    #[must_use]
    pub fn telling(self, on_retry: OnRetry) -> Self {
        Self { on_retry: Some(on_retry), ..self }
    }

    /// The request body: the model, the messages as given, the tools where there are any, the parameters (the
    /// request's win over the endpoint's), the seed (the Responses API knows none) and the wish for a stream.
    fn body(&self, request: &Request) -> Value {
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
        let params = self.endpoint.params.iter().chain(&request.params);
        for (key, value) in params.filter(|(key, _)| !RESERVED.contains(&key.as_str())) {
            body.insert(key.clone(), value.clone());
        }
        if let Some(seed) = request.seed.filter(|_| self.endpoint.send_seed && request.api == Api::Chat) {
            body.insert("seed".into(), json!(seed));
        }
        if self.endpoint.stream {
            body.insert("stream".into(), json!(true));
            if request.api == Api::Chat {
                body.insert("stream_options".into(), json!({"include_usage": true}));
            }
        }
        Value::Object(body)
    }

    async fn attempt(&self, api: Api, body: &Value) -> Result<Reply, Try> {
        // The semaphore is never closed.
        let _slot = self.slots.acquire().await;
        let begun = Instant::now();
        let path: &[&str] = match api {
            Api::Chat => &["chat", "completions"],
            Api::Responses => &["responses"],
        };
        let exchanged = self.transport.post(path, body).await;
        let seconds = begun.elapsed().as_secs_f64();
        let taken = |cost: Cost| Cost { seconds, ..cost };
        exchanged
            .and_then(|response| {
                let cost = taken(cost_of(&response, self.endpoint.price.as_ref()));
                let (message, finish_reason) = match api {
                    Api::Chat => choice(&response)?,
                    Api::Responses => {
                        let finish_reason = responses::ending(&response)?;
                        return Ok(Reply { message: response, finish_reason, response: Value::Null, cost });
                    }
                };
                Ok(Reply { message, finish_reason, response, cost })
            })
            .map_err(|failure| Try { cost: taken(self.cost_of_failure(&failure)), failure })
    }

    /// A failed try is no call of its own. The tokens it reports are counted; where it reports none and the model may
    /// have worked, that is noted.
    fn cost_of_failure(&self, failure: &Failure) -> Cost {
        let metered =
            failure.response.as_ref().map(|response| cost_of(response, self.endpoint.price.as_ref()));
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
impl Model for OpenAi {
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        let body = self.body(request);
        let (mut attempts, mut spent) = (0, Cost::ZERO);
        let longest = self.endpoint.max_wait;
        let ask = || {
            attempts += 1;
            self.attempt(request.api, &body)
        };
        let outcome = ask
            .retry(self.backoff())
            .when(|failed| failed.failure.meaning == Meaning::Passing)
            .adjust(|failed, wait| wait.map(|wait| failed.failure.retry_after.unwrap_or(wait).min(longest)))
            .notify(|failed: &Try, wait: Duration| {
                spent = spent.plus(failed.cost);
                if let Some(tell) = &self.on_retry {
                    tell(&failed.failure.reason, wait);
                }
            })
            .await;
        match outcome {
            Ok(reply) => Ok(Reply { cost: spent.plus(reply.cost), ..reply }),
            Err(Try { mut failure, .. }) => {
                if body.get("seed").is_some() && failure.reason.contains("seed") {
                    failure.reason.push_str(" (if the endpoint takes no seed, set send-seed = false)");
                }
                Err(failure.into_error(&self.transport.label, attempts))
            }
        }
    }

    fn name(&self) -> &str {
        &self.endpoint.model
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

/// The message and how it ended, of the first choice.
fn choice(response: &Value) -> Result<(Value, Option<String>), Failure> {
    let unusable = |reason: &str| Failure { response: Some(response.clone()), ..Failure::unusable(reason) };
    let choice = response["choices"].get(0).ok_or_else(|| unusable("the reply has no choices"))?;
    let finish_reason = choice["finish_reason"].as_str().map(str::to_owned);
    if finish_reason.as_deref() == Some("error") {
        return Err(unusable("the reply ended in an error (finish_reason is error)"));
    }
    match &choice["message"] {
        message @ Value::Object(_) => Ok((message.clone(), finish_reason)),
        _ => Err(unusable("the reply's first choice has no message")),
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
