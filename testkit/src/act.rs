//! What the fake server does with one request: answers well, or fails in one of the ways that real endpoints do.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, Response, StatusCode, header};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::messages;

/// What the request speaks, and the answer is to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// OpenAI chat completions.
    Chat,
    /// Anthropic messages.
    Messages,
    /// OpenAI embeddings.
    Vectors,
}

/// Pieces that a streamed text is cut into.
const PIECES: usize = 3;

/// What the server does with one request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Answers with this message; as a stream where the request asks for one.
    Answer {
        /// The assistant message.
        message: Value,
        /// How it ended.
        finish_reason: String,
        /// The usage object; `None`: counted from the texts, four characters a token.
        usage: Option<Value>,
    },
    /// Answers with this status, these headers and this JSON body.
    Status {
        /// The HTTP status.
        code: u16,
        /// Headers besides the content type.
        headers: Vec<(&'static str, String)>,
        /// The body.
        body: Value,
    },
    /// Answers with status 200 and this JSON, whatever it is.
    Json(Value),
    /// Answers with status 200 and these bytes as JSON, whatever they are.
    Bytes(Vec<u8>),
    /// Sends these bytes as an event stream and ends it in good order.
    Events(Vec<u8>),
    /// Sends these bytes as an event stream, then breaks the connection.
    CloseMidStream(Vec<u8>),
    /// Promises a body, sends these bytes of it, then breaks the connection.
    CloseMidBody(Vec<u8>),
    /// Waits, then does the other.
    Stall(Duration, Box<Act>),
}

impl Act {
    /// An answer in prose.
    pub fn say(text: impl Into<String>) -> Self {
        Self::message(json!({"role": "assistant", "content": text.into()}), "stop")
    }

    /// An answer that calls the tool `bash` once. The call's id is made of the number of messages it answers.
    pub fn bash(text: &str, command: &str, messages: usize) -> Self {
        let arguments = json!({ "command": command }).to_string();
        let call = json!({"id": format!("call_{messages}"), "type": "function",
            "function": {"name": "bash", "arguments": arguments}});
        Self::message(json!({"role": "assistant", "content": text, "tool_calls": [call]}), "tool_calls")
    }

    /// An answer with this message.
    pub fn message(message: Value, finish_reason: &str) -> Self {
        Self::Answer { message, finish_reason: finish_reason.into(), usage: None }
    }

    /// A refusal in the wire format's words.
    pub fn status(code: u16, message: &str) -> Self {
        let body = json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}});
        Self::Status { code, headers: Vec::new(), body }
    }

    /// The HTTP response to `request`, in its format.
    pub(crate) async fn perform(self, format: Format, request: &Value) -> Response<Body> {
        match self {
            Self::Answer { message, finish_reason, usage } if format == Format::Messages => {
                let usage = usage.unwrap_or_else(|| messages::counted(request, &message));
                let said = messages::message(request, &message, &finish_reason, &usage);
                if request["stream"] == true {
                    events(messages::streamed(&said, pieces))
                } else {
                    json_response(200, said.to_string())
                }
            }
            Self::Answer { message, finish_reason, usage } => {
                let usage = usage.unwrap_or_else(|| counted(request, &message));
                if request["stream"] == true {
                    events(streamed(request, &message, &finish_reason, &usage))
                } else {
                    json_response(200, completion(request, &message, &finish_reason, &usage).to_string())
                }
            }
            Self::Status { code, headers, body } => {
                let mut response = json_response(code, body.to_string());
                for (name, value) in headers {
                    if let Ok(value) = value.parse() {
                        response.headers_mut().insert(HeaderName::from_static(name), value);
                    }
                }
                response
            }
            Self::Json(value) => json_response(200, value.to_string()),
            Self::Bytes(bytes) => json_response(200, bytes),
            Self::Events(bytes) => events(bytes),
            Self::CloseMidStream(bytes) => response(200, "text/event-stream", broken(bytes)),
            Self::CloseMidBody(bytes) => response(200, "application/json", broken(bytes)),
            Self::Stall(time, act) => {
                tokio::time::sleep(time).await;
                Box::pin(act.perform(format, request)).await
            }
        }
    }
}

/// The chat completion that holds a message.
pub(crate) fn completion(request: &Value, message: &Value, finish_reason: &str, usage: &Value) -> Value {
    json!({
        "id": "chatcmpl-fake", "object": "chat.completion", "created": 1_784_700_000, "model": request["model"],
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason}],
        "usage": usage,
    })
}

/// Four characters a token: deterministic, and about right.
fn counted(request: &Value, message: &Value) -> Value {
    let tokens = |value: &Value| value.to_string().chars().count() / 4;
    let (prompt, completion) = (tokens(&request["messages"]) + tokens(&request["tools"]), tokens(message));
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

/// The message as an event stream: texts and arguments in pieces, then the end, the usage, the mark.
fn streamed(request: &Value, message: &Value, finish_reason: &str, usage: &Value) -> Vec<u8> {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1_784_700_000,
            "model": request["model"], "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let mut text = chunk(choice(json!({"role": "assistant"}), Value::Null), Value::Null);
    for (key, value) in message.as_object().into_iter().flatten().filter(|(key, _)| *key != "role") {
        if let (true, Some(calls)) = (key == "tool_calls", value.as_array()) {
            for (index, call) in calls.iter().enumerate() {
                for delta in call_deltas(index, call) {
                    text += &chunk(choice(json!({ "tool_calls": [delta] }), Value::Null), Value::Null);
                }
            }
        } else if let Some(value) = value.as_str() {
            for piece in pieces(value) {
                text += &chunk(choice(json!({ key: piece }), Value::Null), Value::Null);
            }
        } else {
            text += &chunk(choice(json!({ key: value }), Value::Null), Value::Null);
        }
    }
    text += &chunk(choice(json!({}), json!(finish_reason)), Value::Null);
    if request["stream_options"]["include_usage"] == true {
        text += &chunk(json!([]), usage.clone());
    }
    text += "data: [DONE]\n\n";
    text.into_bytes()
}

fn call_deltas(index: usize, call: &Value) -> Vec<Value> {
    let (name, arguments) =
        (&call["function"]["name"], call["function"]["arguments"].as_str().unwrap_or_default());
    let head = json!({"index": index, "id": call["id"], "type": call["type"],
        "function": {"name": name, "arguments": ""}});
    let rest =
        pieces(arguments).into_iter().map(|piece| json!({"index": index, "function": {"arguments": piece}}));
    std::iter::once(head).chain(rest).collect()
}

fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(PIECES).max(1);
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn events(bytes: Vec<u8>) -> Response<Body> {
    // In odd pieces, so that characters are cut as a network cuts them.
    let pieces: Vec<_> = bytes.chunks(97).map(Bytes::copy_from_slice).map(Ok::<_, Infallible>).collect();
    response(200, "text/event-stream; charset=utf-8", Body::from_stream(stream::iter(pieces)))
}

/// A body that breaks after these bytes.
fn broken(bytes: Vec<u8>) -> Body {
    let sent = stream::iter([Ok(Bytes::from(bytes))]);
    let breaks = stream::once(async {
        // Long enough for the first bytes to be on their way.
        tokio::time::sleep(Duration::from_millis(5)).await;
        Err(io::Error::new(io::ErrorKind::ConnectionReset, "the fake server breaks the connection"))
    });
    Body::from_stream(sent.chain(breaks))
}

fn json_response(code: u16, body: impl Into<Body>) -> Response<Body> {
    response(code, "application/json", body.into())
}

fn response(code: u16, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
