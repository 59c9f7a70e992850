//! What the gateway's tests stand on: a fake endpoint, a gateway before it, a client of plain HTTP.

use std::path::PathBuf;
use std::time::Duration;

use memtrial_testkit::{Act, FakeServer, Player};
use serde_json::{Value, json};

use super::*;
use crate::llm::{Price, Protocol, Secret};

pub const CANARY: &str = "sk-canary-0123456789";

pub const PRICE: Price = Price { input: 1.0, cached_input: None, cache_write: None, output: 2.0 };

pub struct Bench {
    pub server: FakeServer,
    pub folder: tempfile::TempDir,
    pub gateway: Gateway,
    pub listening: Listening,
}

pub struct Got {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The data of the events, in order.
    pub fn events(&self) -> Vec<Value> {
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

pub fn endpoint(server: &FakeServer, api: Protocol) -> Endpoint {
    Endpoint {
        api,
        min_wait: Duration::from_millis(1),
        max_wait: Duration::from_millis(20),
        request_timeout: Duration::from_secs(20),
        max_attempts: 3,
        send_seed: false,
        ..Endpoint::new(server.url(), "fake-model").with_key(Secret::new(CANARY))
    }
}

pub fn caller(condition: &str, replicate: u32) -> Caller {
    Caller { condition: condition.into(), target: "a__b-1".into(), solver: "s".into(), replicate, attempt: 1 }
}

/// Answers with its number, counted from 1.
pub fn counting() -> impl Player {
    let count = std::sync::atomic::AtomicUsize::new(0);
    move |_: &Value| {
        Act::say(format!("answer {}", count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1))
    }
}

impl Bench {
    pub async fn new(api: Protocol) -> Self {
        Self::with(counting(), Settings::default(), |server| endpoint(server, api)).await
    }

    pub async fn with(
        player: impl Player,
        settings: Settings,
        endpoint: impl Fn(&FakeServer) -> Endpoint,
    ) -> Self {
        let server = FakeServer::start(player).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::new(endpoint(&server), &Limiter::default(), settings).unwrap();
        let listening = gateway.listen_tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
        Self { server, folder, gateway, listening }
    }

    pub fn journal(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.jsonl"))
    }

    pub fn admit(&self, name: &str) -> Admission {
        self.admit_with(name, Caps::default())
    }

    pub fn admit_with(&self, name: &str, caps: Caps) -> Admission {
        self.gateway.admit(caller("off", 1), caps, &self.journal(name)).unwrap()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listening.address().unwrap())
    }

    pub fn request(&self, path: &str, token: &str, body: &Value) -> reqwest::RequestBuilder {
        http().post(self.url(path)).bearer_auth(token).json(body)
    }

    pub async fn post(&self, path: &str, token: &str, body: &Value) -> Got {
        got(self.request(path, token, body)).await
    }

    pub async fn get(&self, path: &str, token: &str) -> Got {
        got(http().get(self.url(path)).header("x-api-key", token)).await
    }

    /// A chat request with this text; gives the status and what was answered.
    pub async fn chat(&self, token: &str, text: &str) -> (u16, String) {
        let got = self.post("/v1/chat/completions", token, &question(text)).await;
        let value = got.json();
        let said = [&value["choices"][0]["message"]["content"], &value["error"]["message"]];
        (got.status, said.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned())
    }

    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs_err::read_to_string(self.journal(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub async fn got(request: reqwest::RequestBuilder) -> Got {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Got { status, headers, text: response.text().await.unwrap() }
}

pub fn http() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let tls = tls.unwrap().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap()
}

pub fn question(text: &str) -> Value {
    json!({"model": "whatever", "messages": [{"role": "user", "content": text}]})
}

/// The same in each of the formats in front.
pub const FRONTS: [&str; 3] = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];

pub fn question_for(path: &str, text: &str) -> Value {
    match path {
        "/v1/messages" => {
            json!({"model": "whatever", "max_tokens": 100, "messages": [{"role": "user", "content": text}]})
        }
        "/v1/responses" => json!({"model": "whatever", "input": text}),
        _ => question(text),
    }
}

/// What an answer says, in whatever format.
pub fn said(path: &str, answer: &Value) -> String {
    let said = match path {
        "/v1/messages" => &answer["content"][0]["text"],
        "/v1/responses" => &answer["output"][0]["content"][0]["text"],
        _ => &answer["choices"][0]["message"]["content"],
    };
    said.as_str().unwrap_or_default().to_owned()
}
