//! What the gateway answers over HTTP.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::{get, post};
use futures::stream;
use serde_json::{Value, json};

use super::call::estimated;
use super::front::{self, Front, Incoming, Refusal, Wants};
use super::trial::{Trial, key};
use super::{Gateway, Inner};
use crate::llm::{LlmError, Protocol, Reply};

/// A longer request is a fault of the client.
const LONGEST_BODY: usize = 64 << 20;

/// Every path of the gateway, with and without `/v1`.
pub(super) fn router(gateway: Gateway) -> Router {
    let chat = post(|state, headers, body| answer(Front::Chat, state, headers, body));
    let messages = post(|state, headers, body| answer(Front::Messages, state, headers, body));
    let responses = post(|state, headers, body| answer(Front::Responses, state, headers, body));
    let v1 = Router::new()
        .route("/chat/completions", chat)
        .route("/messages", messages)
        .route("/messages/count_tokens", post(count_tokens))
        .route("/responses", responses)
        .route("/embeddings", post(embeddings))
        .route("/models", get(models))
        .route("/models/{*name}", get(model));
    Router::new()
        .route("/memtrial/costs", get(costs))
        .nest("/v1", v1.clone())
        .merge(v1)
        .fallback(async || {
            let paths = "/v1/chat/completions, /v1/messages, /v1/messages/count_tokens, /v1/responses, \
                         /v1/embeddings, /v1/models";
            refuse(Front::Chat, &Refusal::new(404, format!("the gateway answers {paths} alone")))
        })
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(gateway)
}

/// The trial whose token the client presents.
fn trial(gateway: &Inner, headers: &HeaderMap) -> Result<Arc<Trial>, Refusal> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let presented = [text("x-api-key"), bearer];
    let known = presented.into_iter().flatten().find_map(|token| gateway.trials().get(&key(token)).cloned());
    known.ok_or_else(|| Refusal::new(401, "the API key is no token of a trial that is under way"))
}

fn read(
    front: Front,
    gateway: &Inner,
    trial: &Trial,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Incoming, Refusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::new(400, format!("the request body is no JSON: {error}")))?;
    let beta = headers.get("anthropic-beta").and_then(|value| value.to_str().ok()).map(str::to_owned);
    front.read(&gateway.client, &gateway.settings, &trial.caller, body, beta)
}

type Answer = Pin<Box<dyn Future<Output = Result<Reply, LlmError>> + Send>>;

async fn answer(
    front: Front,
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let inner = gateway.0;
    let incoming =
        trial(&inner, &headers).and_then(|trial| Ok((read(front, &inner, &trial, &headers, &body)?, trial)));
    let (Incoming { ask, wants }, trial) = match incoming {
        Ok(incoming) => incoming,
        Err(refusal) => return refuse(front, &refusal),
    };
    let patience = inner.settings.keep_alive;
    let mut reply: Answer = Box::pin(inner.call(trial, ask));
    if !wants.stream {
        return whole(front, &wants, reply.await);
    }
    // An answer or a refusal that comes soon has its status; one that does not is waited for within the stream.
    match tokio::time::timeout(patience, &mut reply).await {
        Ok(reply) => whole(front, &wants, reply),
        Err(_) => respond(200, "text/event-stream", waiting(front, wants, reply, patience)),
    }
}

/// The response to a call that is over.
fn whole(front: Front, wants: &Wants, reply: Result<Reply, LlmError>) -> Response<Body> {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => return refuse(front, &error.into()),
    };
    let rendered = front.render(wants, &reply);
    let response = if wants.stream {
        respond(200, "text/event-stream", front.events(wants, &rendered))
    } else {
        respond(200, "application/json", rendered.to_string())
    };
    metered(response, &reply)
}

/// The response, saying so where the endpoint did not say what the reply cost.
fn metered(mut response: Response<Body>, reply: &Reply) -> Response<Body> {
    if reply.cost.unmetered_calls > 0 {
        response.headers_mut().insert("memtrial-unmetered", header::HeaderValue::from_static("true"));
    }
    response
}

/// A stream that shows signs of life until the call is over, then holds its answer or its failure.
fn waiting(front: Front, wants: Wants, reply: Answer, patience: std::time::Duration) -> Body {
    let signs = stream::unfold(Some((reply, true)), move |state| {
        let wants = wants.clone();
        async move {
            let (mut reply, first) = state?;
            if first {
                return Some((
                    Ok::<_, Infallible>(Bytes::from_static(front.ping().as_bytes())),
                    Some((reply, false)),
                ));
            }
            match tokio::time::timeout(patience, &mut reply).await {
                Err(_) => Some((Ok(Bytes::from_static(front.ping().as_bytes())), Some((reply, false)))),
                Ok(reply) => {
                    let text = match reply {
                        Ok(reply) => front.events(&wants, &front.render(&wants, &reply)),
                        Err(error) => front.error_event(&wants, &error.into()),
                    };
                    Some((Ok(Bytes::from(text)), None))
                }
            }
        }
    });
    Body::from_stream(signs)
}

/// Requests for vectors pass as they are, save for the model where the settings name one.
async fn embeddings(State(gateway): State<Gateway>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let inner = gateway.0;
    let incoming =
        trial(&inner, &headers).and_then(|trial| Ok((front::vectors(&inner, &trial.caps, &body)?, trial)));
    let (ask, trial) = match incoming {
        Ok(incoming) => incoming,
        Err(refusal) => return refuse(Front::Chat, &refusal),
    };
    match inner.call(trial, ask).await {
        Ok(reply) => metered(respond(200, "application/json", reply.message.to_string()), &reply),
        Err(error) => refuse(Front::Chat, &error.into()),
    }
}

/// Anthropic endpoints count; for others the number is estimated by the length of the texts, and a header says so.
async fn count_tokens(State(gateway): State<Gateway>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let (front, inner) = (Front::Messages, gateway.0);
    let incoming = trial(&inner, &headers).and_then(|trial| read(front, &inner, &trial, &headers, &body));
    let Incoming { ask, .. } = match incoming {
        Ok(incoming) => incoming,
        Err(refusal) => return refuse(front, &refusal),
    };
    if inner.client.endpoint().api == Protocol::Anthropic {
        return match inner.client.count_tokens(&ask).await {
            Ok(tokens) => respond(200, "application/json", json!({"input_tokens": tokens}).to_string()),
            Err(error) => refuse(front, &error.into()),
        };
    }
    let parts = ["messages", "tools"].iter().filter_map(|key| ask.body.get(*key));
    let tokens: u64 = parts.map(estimated).sum();
    let mut response = respond(200, "application/json", json!({"input_tokens": tokens}).to_string());
    response.headers_mut().insert("memtrial-estimate", header::HeaderValue::from_static("true"));
    response
}

/// The one model, in the words of both formats.
fn described(gateway: &Inner) -> Value {
    let name = &gateway.client.endpoint().model;
    json!({"id": name, "object": "model", "type": "model", "created": 0, "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "memtrial", "display_name": name})
}

async fn models(State(gateway): State<Gateway>, headers: HeaderMap) -> Response<Body> {
    if let Err(refusal) = trial(&gateway.0, &headers) {
        return refuse(Front::Chat, &refusal);
    }
    let name = &gateway.0.client.endpoint().model;
    let list = json!({"object": "list", "data": [described(&gateway.0)], "has_more": false, "first_id": name,
        "last_id": name});
    respond(200, "application/json", list.to_string())
}

async fn model(State(gateway): State<Gateway>, headers: HeaderMap) -> Response<Body> {
    match trial(&gateway.0, &headers) {
        // Whatever name is asked for, the one model answers.
        Ok(_) => respond(200, "application/json", described(&gateway.0).to_string()),
        Err(refusal) => refuse(Front::Chat, &refusal),
    }
}

/// What the trial whose token is presented spent.
async fn costs(State(gateway): State<Gateway>, headers: HeaderMap) -> Response<Body> {
    match trial(&gateway.0, &headers) {
        Ok(trial) => {
            let tally = gateway.0.ledger().of(&trial.journal);
            let costs = json!({"spent": tally, "caps": trial.caps});
            respond(200, "application/json", costs.to_string())
        }
        Err(refusal) => refuse(Front::Chat, &refusal),
    }
}

/// The gateway has tried often enough: clients are told not to try again.
fn refuse(front: Front, refusal: &Refusal) -> Response<Body> {
    let mut response = respond(refusal.status, "application/json", front.error(refusal).to_string());
    response.headers_mut().insert("x-should-retry", header::HeaderValue::from_static("false"));
    response
}

fn respond(status: u16, kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
