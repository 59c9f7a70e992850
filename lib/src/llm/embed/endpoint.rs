//! Vectors from an OpenAI-compatible endpoint.

use std::fmt;
use std::sync::OnceLock;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value, json};

use super::wire;
use super::{Embedded, Embedder};
use crate::llm::client::{Ask, Route};
use crate::llm::{Client, Cost, Endpoint, Limiter, LlmError, Protocol};

/// Texts of one request; endpoints take 64 to 2048.
const BATCH: usize = 64;

/// Bytes of one request's texts: endpoints bound the tokens of a request as well (300,000 where it is said).
const BATCH_BYTES: usize = 512 << 10;

/// What endpoints get for a text without any character, which they refuse.
const BLANK: &str = " ";

/// A model behind `POST <base>/embeddings`, with the retries, the limits and the prices of a [`Client`].
///
/// ```no_run
/// # use memtrial::llm::{Embedder, Endpoint, EndpointEmbedder};
/// # async fn embed() -> Result<(), memtrial::llm::LlmError> {
/// let embedder = EndpointEmbedder::new(Endpoint::new("http://127.0.0.1:8000/v1", "example-embedder"))?;
/// let embedded = embedder.embed(&["a text".to_owned()]).await?;
/// # drop(embedded);
/// # Ok(())
/// # }
/// ```
pub struct EndpointEmbedder {
    client: Client,
    name: String,
    /// Numbers of a vector, once one is known.
    dimension: OnceLock<usize>,
}

impl fmt::Debug for EndpointEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointEmbedder").field("client", &self.client).finish_non_exhaustive()
    }
}

impl EndpointEmbedder {
    /// An embedder with its own limit of requests under way. Of the endpoint's settings `params` go into every request
    /// (`dimensions`, or `encoding_format = "base64"` for shorter replies), `stream` and `send-seed` mean nothing here.
    ///
    /// # Errors
    /// When the settings cannot work; Anthropic endpoints make no vectors.
    pub fn new(endpoint: Endpoint) -> Result<Self, LlmError> {
        Self::sharing(endpoint, &Limiter::default())
    }

    /// An embedder that shares the limit with the clients of the same address.
    ///
    /// # Errors
    /// As [`EndpointEmbedder::new`].
    pub fn sharing(endpoint: Endpoint, limiter: &Limiter) -> Result<Self, LlmError> {
        let name = name(&endpoint);
        let client = Client::sharing(endpoint, limiter)?;
        if client.endpoint().api == Protocol::Anthropic {
            let reason = "Anthropic's format has no embeddings: name an OpenAI-compatible endpoint".into();
            return Err(LlmError::Setup { endpoint: client.label().to_owned(), reason });
        }
        Ok(Self { client, name, dimension: OnceLock::new() })
    }

    async fn batch(&self, texts: &[String]) -> Result<Embedded, LlmError> {
        let endpoint = self.client.endpoint();
        let input: Vec<&str> = texts.iter().map(|text| if text.is_empty() { BLANK } else { text }).collect();
        let mut body: Map<String, Value> = endpoint.params.clone();
        body.insert("model".into(), json!(endpoint.model));
        body.insert("input".into(), json!(input));
        let ask = Ask { route: Route::Vectors, body, beta: None };
        let reply = self.client.ask(&ask).await.map_err(|unanswered| unanswered.error)?;
        let vectors = wire::vectors(&reply.message, texts.len()).map_err(|reason| self.unusable(reason))?;
        let dimension = vectors.first().map_or(0, Vec::len);
        let first = *self.dimension.get_or_init(|| dimension);
        if dimension != first {
            let words =
                format!("its vectors had {first} numbers and now have {dimension}: was it exchanged?");
            return Err(self.unusable(words));
        }
        Ok(Embedded { vectors, cost: reply.cost })
    }

    fn unusable(&self, reason: String) -> LlmError {
        LlmError::Vectors { name: self.name.clone(), reason }
    }
}

#[async_trait]
impl Embedder for EndpointEmbedder {
    /// Asks in batches, several at once. An empty text is sent as a space.
    async fn embed(&self, texts: &[String]) -> Result<Embedded, LlmError> {
        let asked: Vec<BoxFuture<'_, _>> =
            batches(texts).into_iter().map(|batch| self.batch(batch).boxed()).collect();
        let at_once = self.client.endpoint().max_in_flight.max(1);
        let parts: Vec<Embedded> = stream::iter(asked).buffered(at_once).try_collect().await?;
        let nothing = Embedded { vectors: Vec::with_capacity(texts.len()), cost: Cost::ZERO };
        Ok(parts.into_iter().fold(nothing, |mut all, part| {
            all.vectors.extend(part.vectors);
            Embedded { vectors: all.vectors, cost: all.cost.plus(part.cost) }
        }))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// The model and what of the parameters changes its vectors.
fn name(endpoint: &Endpoint) -> String {
    let mut params = endpoint.params.clone();
    params.remove("encoding_format");
    params.sort_keys();
    match params.is_empty() {
        true => endpoint.model.clone(),
        false => format!("{} {}", endpoint.model, Value::Object(params)),
    }
}

/// Runs of texts that fit one request each; a text too long for any stands alone.
fn batches(mut texts: &[String]) -> Vec<&[String]> {
    let mut found = Vec::new();
    while !texts.is_empty() {
        let mut bytes = 0;
        let fits = texts.iter().take(BATCH).take_while(|text| {
            bytes += text.len();
            bytes <= BATCH_BYTES
        });
        let (batch, rest) = texts.split_at(fits.count().max(1));
        found.push(batch);
        texts = rest;
    }
    found
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
