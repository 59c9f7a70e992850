//! The formats that clients speak.
//!
//! Where client and endpoint speak the same format a request passes as it is, save for the model and what the
//! solver's settings fix. Otherwise it goes by way of chat completions.

mod chat;
mod messages;
mod responses;
mod vectors;

pub(super) use vectors::read as vectors;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::call::HINTS;
use super::{Caller, Settings};
use crate::llm::client::{Ask, Route};
use crate::llm::journal::digest_of;
use crate::llm::price::cost_of;
use crate::llm::{Api, Client, Cost, LlmError, Protocol, Reply, anthropic};

/// A format that clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Front {
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1/messages`
    Messages,
    /// `POST /v1/responses`
    Responses,
}

/// A request as it is to be put to the endpoint, and what its answer must be like.
pub(super) struct Incoming {
    pub ask: Ask,
    pub wants: Wants,
}

/// What the client wants of an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Wants {
    /// An event stream.
    pub stream: bool,
    /// Usage at the end of the stream.
    pub usage: bool,
    /// The response as the endpoint gave it: both speak one format.
    pub native: bool,
    /// Tools whose input is a text, not JSON.
    pub free_tools: BTreeSet<String>,
    /// The model's name.
    pub model: String,
}

/// Why a request gets no answer, in HTTP's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: u16,
    pub message: String,
    /// A code that clients look for.
    pub code: Option<&'static str>,
}

impl Refusal {
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), code: None }
    }
}

impl From<LlmError> for Refusal {
    /// The endpoint's refusals of a request are the client's fault; whatever else fails is not.
    fn from(error: LlmError) -> Self {
        let (status, code) = match &error {
            LlmError::Capped { .. } => (402, Some("cap_reached")),
            LlmError::ContextWindowExceeded { .. } => (400, Some("context_length_exceeded")),
            LlmError::Untranslatable { .. } => (400, None),
            LlmError::Refused { status: status @ (400 | 404 | 413 | 422), .. } => (*status, None),
            LlmError::Refused { .. } | LlmError::Unreachable { .. } | LlmError::Setup { .. } => (502, None),
            _ => (500, None),
        };
        let message = match &error {
            // Clients look for these words to shorten a conversation.
            LlmError::ContextWindowExceeded { reason } => format!("prompt is too long: {reason}"),
            error => error.to_string(),
        };
        Self { status, message, code }
    }
}

/// A request of Anthropic messages as one of chat completions, its messages at least.
pub(super) fn messages_to_chat(body: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let talk =
        ["system", "messages"].iter().filter_map(|key| Some(((*key).to_owned(), body.get(*key)?.clone())));
    messages::to_chat(&talk.collect())
}

impl Front {
    /// Reads a request body and puts it into the endpoint's format.
    pub fn read(
        self,
        client: &Client,
        settings: &Settings,
        caller: &Caller,
        body: Value,
        beta: Option<String>,
    ) -> Result<Incoming, Refusal> {
        let Value::Object(mut body) = body else {
            return Err(Refusal::new(400, "the request body is no JSON object"));
        };
        let endpoint = client.endpoint();
        let native = matches!(
            (self, endpoint.api),
            (Self::Chat, Protocol::Openai) | (Self::Messages, Protocol::Anthropic)
        );
        let mut wants = Wants { native, model: endpoint.model.clone(), ..Wants::default() };
        wants.stream = body.remove("stream").is_some_and(|stream| stream == true);
        wants.usage = body.remove("stream_options").is_some_and(|options| options["include_usage"] == true);
        body.retain(|key, _| !settings.may_drop.contains(key));
        if self == Self::Chat && body.get("n").is_some_and(|n| !n.is_null() && n != 1) {
            return Err(Refusal::new(400, "n: one choice a call is all that the gateway counts"));
        }
        let mut body = if native {
            body
        } else {
            body.retain(|key, value| !HINTS.contains(&key.as_str()) && !value.is_null());
            self.translate(body, &mut wants, endpoint.api)
                .map_err(|reason| Refusal::from(client.cannot_carry(format!("{reason}{}", hint(&reason)))))?
        };
        body.insert("model".into(), json!(endpoint.model));
        // A solver is a model with its sampling parameters: they win over what a client would like.
        for (key, value) in &endpoint.params {
            body.insert(key.clone(), value.clone());
        }
        if endpoint.send_seed && endpoint.api == Protocol::Openai {
            body.insert("seed".into(), json!(caller.replicate));
        }
        let beta = beta.filter(|_| native && self == Self::Messages);
        Ok(Incoming { ask: Ask { route: Route::Answer(Api::Chat), body, beta }, wants })
    }

    fn translate(
        self,
        body: Map<String, Value>,
        wants: &mut Wants,
        api: Protocol,
    ) -> Result<Map<String, Value>, String> {
        let chat = match self {
            Self::Chat => body,
            Self::Messages => messages::to_chat(&body)?,
            Self::Responses => {
                let (chat, free_tools) = responses::to_chat(&body)?;
                wants.free_tools = free_tools;
                chat
            }
        };
        match api {
            Protocol::Openai => Ok(chat),
            Protocol::Anthropic => anthropic::request(&chat),
        }
    }

    /// The answer in the client's format.
    pub fn render(self, wants: &Wants, reply: &Reply) -> Value {
        let said = Said::of(wants, reply);
        match self {
            Self::Chat if wants.native => chat::native(reply),
            Self::Messages if wants.native => messages::native(reply),
            Self::Chat => chat::completion(&said),
            Self::Messages => messages::message(&said),
            Self::Responses => responses::response(&said, &wants.free_tools),
        }
    }

    /// The answer as a whole event stream.
    pub fn events(self, wants: &Wants, rendered: &Value) -> String {
        match self {
            Self::Chat => chat::events(rendered, wants.usage),
            Self::Messages => messages::events(rendered),
            Self::Responses => responses::events(rendered),
        }
    }

    /// A sign of life for a client that waits for its stream.
    pub fn ping(self) -> &'static str {
        match self {
            Self::Messages => "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            Self::Chat | Self::Responses => ": waiting for the model\n\n",
        }
    }

    /// An error as the body of a response.
    pub fn error(self, refusal: &Refusal) -> Value {
        let kind = match (self, refusal.status) {
            (_, 401) => "authentication_error",
            (Self::Messages, 402) => "billing_error",
            (_, 402) => "insufficient_quota",
            (Self::Messages, 404) => "not_found_error",
            (Self::Messages, 413) => "request_too_large",
            (_, 400..500) => "invalid_request_error",
            _ => "api_error",
        };
        match self {
            Self::Messages => {
                json!({"type": "error", "error": {"type": kind, "message": refusal.message}})
            }
            Self::Chat | Self::Responses => json!({"error": {"message": refusal.message, "type": kind,
                "param": null, "code": refusal.code}}),
        }
    }

    /// An error as the end of a stream that has begun.
    pub fn error_event(self, wants: &Wants, refusal: &Refusal) -> String {
        match self {
            Self::Chat => format!("data: {}\n\n", self.error(refusal)),
            Self::Messages => event("error", &self.error(refusal)),
            Self::Responses => responses::failed(&wants.model, refusal),
        }
    }
}

/// How a field that cannot be carried can be left out.
fn hint(reason: &str) -> String {
    let field = reason.split_once(" has no counterpart").map(|(field, _)| field);
    let field = field.filter(|field| field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    field.map_or_else(String::new, |field| {
        format!("; switch it off in the client, or let the gateway drop it (--drop {field})")
    })
}

/// One event of the formats that name their events.
fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// An answer by way of chat completions.
struct Said<'a> {
    /// Distinguishes answers; the same answer has the same.
    id: String,
    model: &'a str,
    message: &'a Value,
    finish_reason: &'a str,
    /// What the response reports; zero tokens where it reports none.
    used: Cost,
}

impl<'a> Said<'a> {
    fn of(wants: &'a Wants, reply: &'a Reply) -> Self {
        let id = digest_of(json!([reply.message, reply.response])).chars().take(24).collect::<String>();
        Self {
            id,
            model: &wants.model,
            message: &reply.message,
            finish_reason: reply.finish_reason.as_deref().unwrap_or("stop"),
            used: cost_of(&reply.response, None),
        }
    }

    fn calls(&self) -> &[Value] {
        self.message["tool_calls"].as_array().map_or(&[], Vec::as_slice)
    }

    /// What it says; a refusal is said as well.
    fn text(&self) -> &str {
        let text = |key: &str| self.message[key].as_str().filter(|text| !text.is_empty());
        text("content").or_else(|| text("refusal")).unwrap_or_default()
    }

    fn reasoning(&self) -> &str {
        let text = |key: &str| self.message[key].as_str().filter(|text| !text.is_empty());
        text("reasoning_content").or_else(|| text("reasoning")).unwrap_or_default()
    }
}

/// Puts the ids of the message's calls into the endpoint's own list of them.
fn same_ids<'a>(message: &Value, own: impl Iterator<Item = &'a mut Value>) {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    for (call, own) in calls.zip(own).filter(|(call, own)| call["id"] != own["id"]) {
        own["id"] = call["id"].clone();
    }
}
