//! `POST /v1/embeddings`: texts as vectors, in the one format that there is.

use serde_json::{Value, json};

use super::Refusal;
use crate::llm::client::{Ask, Route};
use crate::llm::gateway::{Caps, Inner};
use crate::llm::{LlmError, Protocol};

/// A request as it is to be put to the endpoint.
///
/// Without an endpoint of its own for embeddings, the gateway's endpoint is asked for the model that the client names:
/// the gateway's own model makes answers, not vectors.
pub(in crate::llm::gateway) fn read(gateway: &Inner, caps: &Caps, body: &[u8]) -> Result<Ask, Refusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::new(400, format!("the request body is no JSON: {error}")))?;
    let Value::Object(mut body) = body else {
        return Err(Refusal::new(400, "the request body is no JSON object"));
    };
    let (client, own) = (&gateway.embedder, gateway.settings.embeddings.is_some());
    let endpoint = client.endpoint();
    if endpoint.api == Protocol::Anthropic {
        let reason =
            "Anthropic's format has no embeddings: name an endpoint that has (--embedding-endpoint)".into();
        return Err(client.cannot_carry(reason).into());
    }
    if !matches!(body.get("input"), Some(Value::String(_) | Value::Array(_))) {
        return Err(Refusal::new(400, "input: expected a text or a list of texts"));
    }
    body.retain(|key, _| !gateway.settings.may_drop.contains(key));
    if own {
        body.insert("model".into(), json!(endpoint.model));
    }
    if !body.get("model").is_some_and(Value::is_string) {
        return Err(Refusal::new(400, "model: name the model that is to embed"));
    }
    for (key, value) in &endpoint.params {
        body.insert(key.clone(), value.clone());
    }
    let capped = caps.usd.or(gateway.settings.caps.usd).is_some();
    if capped && endpoint.price.is_none() {
        let reason = format!(
            "money is capped, but the price of {} for embeddings is not known: name the model (--embedding-model) \
             and state its price (--prices)",
            body["model"]
        );
        return Err(LlmError::Capped { reason }.into());
    }
    Ok(Ask { route: Route::Vectors, body, beta: None })
}
