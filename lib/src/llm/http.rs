//! One exchange with an endpoint, and what its failure means: try again, give up, or the prompt is too long.

use std::error::Error;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, Url};
use serde_json::Value;

use super::endpoint::label;
use super::{Endpoint, LlmError, Protocol, Secret, anthropic, stream};

/// A longer reply is a fault of the endpoint.
const LONGEST_BODY: usize = 64 << 20;

/// Characters of an endpoint's words that an error keeps.
const LONGEST_REASON: usize = 600;

/// How endpoints say that a prompt does not fit, in code, type or message.
const TOO_LONG: [&str; 11] = [
    "context_length_exceeded",
    "exceed_context_size",
    "model_context_window_exceeded",
    "maximum context length",
    "context window",
    "available context size",
    "maximum model length",
    "prompt is too long",
    "input is too long",
    "too long to fit into the model",
    "maximum number of tokens allowed",
];

/// What a failed try means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The next try may succeed.
    Passing,
    /// No further try can succeed; the HTTP status.
    Final(u16),
    /// The prompt does not fit.
    TooLong,
    /// The settings do not fit the endpoint.
    Setup,
}

/// A failed try.
#[derive(Debug)]
pub(super) struct Failure {
    pub meaning: Meaning,
    /// The endpoint's words or the transport's, without the key.
    pub reason: String,
    /// How long the endpoint asks to be left alone.
    pub retry_after: Option<Duration>,
    /// Whether the endpoint says that it is asked too much at once.
    pub too_much: bool,
    /// The HTTP status of a refusal that may pass.
    pub status: Option<NonZeroU16>,
    /// Whether the model may have worked, and been charged, all the same.
    pub may_be_charged: bool,
    /// The response, where there was a whole one (it may report usage).
    pub response: Option<Value>,
}

impl Failure {
    /// A reply that came with a good status and cannot be used.
    pub fn unusable(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            meaning: Meaning::Passing,
            reason,
            retry_after: None,
            too_much: false,
            status: None,
            may_be_charged: true,
            response: None,
        }
    }

    /// The error that callers see.
    pub fn into_error(self, endpoint: &str, attempts: u32) -> LlmError {
        let (endpoint, reason) = (endpoint.to_owned(), self.reason);
        match self.meaning {
            Meaning::Passing => {
                let status = self.status.map(NonZeroU16::get);
                LlmError::Unreachable { endpoint, reason, attempts, status }
            }
            Meaning::Final(status) => LlmError::Refused { endpoint, status, reason },
            Meaning::TooLong => LlmError::ContextWindowExceeded { reason },
            Meaning::Setup => LlmError::Setup { endpoint, reason },
        }
    }
}

/// An HTTP client for one endpoint.
pub(super) struct Transport {
    client: reqwest::Client,
    api: Protocol,
    base: Url,
    headers: HeaderMap,
    /// The key and whatever else of the address is nobody's business.
    secrets: Vec<Secret>,
    /// The address as errors show it: without credentials and query.
    pub label: String,
}

impl Transport {
    /// Checks the address and the key and prepares TLS. Proxies are taken from the environment as other programs do,
    /// save for an endpoint on this machine.
    pub fn new(endpoint: &Endpoint) -> Result<Self, LlmError> {
        let base = Url::parse(&endpoint.base_url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| setup("(its address)", "base-url must look like https://host/v1"))?;
        let label = label(&endpoint.base_url);
        let headers = headers(endpoint, &label)?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(&base, &label)?)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(endpoint.request_timeout.min(Duration::from_secs(30)))
            .timeout(endpoint.request_timeout)
            .user_agent(concat!("memtrial/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| setup(&label, &words_of(&error)))?;
        let secrets = secrets(endpoint, &base);
        Ok(Self { client, api: endpoint.api, base, headers, secrets, label })
    }

    /// `GET <base>/<path>`.
    pub async fn get(&self, path: &[&str]) -> Result<Value, Failure> {
        self.exchange(self.client.get(self.url(path))).await
    }

    /// `POST <base>/<path>` with a JSON body and, for Anthropic's format, the wanted beta features. An event stream is
    /// joined into the response it stands for.
    pub async fn post(&self, path: &[&str], body: &Value, beta: Option<&str>) -> Result<Value, Failure> {
        let mut request = self.client.post(self.url(path)).json(body);
        if let Some(beta) = beta {
            request = request.header("anthropic-beta", beta);
        }
        self.exchange(request).await
    }

    async fn exchange(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let request = request.headers(self.headers.clone());
        let response = request.send().await.map_err(|error| self.broken(error))?;
        let status = response.status().as_u16();
        if !response.status().is_success() {
            return Err(self.refusal(status, response).await);
        }
        let mut value = self.read(response).await?;
        self.secrets.iter().for_each(|secret| secret.scrub_all(&mut value));
        match value.get("error") {
            None | Some(Value::Null) => Ok(value),
            Some(error) => Err(self.error_in_reply(error, &value)),
        }
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            if self.api == Protocol::Anthropic && !self.base.path().trim_end_matches('/').ends_with("/v1") {
                segments.push("v1");
            }
            segments.extend(path);
        }
        url
    }

    async fn read(&self, response: Response) -> Result<Value, Failure> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return match self.api {
                Protocol::Openai => self.join(response, stream::Joiner::default()).await,
                Protocol::Anthropic => self.join(response, anthropic::Joiner::default()).await,
            };
        }
        let body = self.body(response, LONGEST_BODY).await?;
        serde_json::from_slice(&body).map_err(|error| {
            let text = self.clean(&String::from_utf8_lossy(&body));
            Failure::unusable(format!("the reply is no JSON ({error}): {text}"))
        })
    }

    async fn join(&self, mut response: Response, mut joiner: impl Join) -> Result<Value, Failure> {
        while let Some(bytes) = response.chunk().await.map_err(|error| self.broken(error))? {
            joiner.push(&bytes).map_err(|reason| self.unusable(&reason))?;
        }
        joiner.finish().map_err(|reason| self.unusable(&reason))
    }

    fn unusable(&self, reason: &str) -> Failure {
        Failure::unusable(self.clean(reason))
    }

    async fn body(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.broken(error))? {
            if body.len() + bytes.len() > limit {
                return Err(Failure::unusable(format!("the reply is longer than {limit} bytes")));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// The request did not get through, or the answer did not come whole.
    fn broken(&self, error: reqwest::Error) -> Failure {
        let may_be_charged = !error.is_connect() && !error.is_builder();
        let reason = self.clean(&words_of(&error.without_url()));
        match tls_hint(&reason) {
            Some(hint) => {
                let (meaning, reason) = (Meaning::Setup, format!("{reason}: {hint}"));
                Failure { meaning, may_be_charged: false, ..Failure::unusable(reason) }
            }
            None => Failure { may_be_charged, ..Failure::unusable(reason) },
        }
    }

    /// The endpoint answered with a status that is no success.
    async fn refusal(&self, status: u16, response: Response) -> Failure {
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let body = self.body(response, LONGEST_BODY).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        let error = value.get("error").unwrap_or(&value);
        let words = words(error).unwrap_or_else(|| text.trim().to_owned());
        let words = if words.is_empty() { "it gave no reason".to_owned() } else { words };
        let meaning = meaning(status, error, &words);
        let mut reason = self.clean(&words);
        if meaning == Meaning::Passing {
            reason = format!("HTTP {status}: {reason}");
        } else if (300..400).contains(&status) {
            reason = format!("{reason} (it points elsewhere: set base-url to where the API lies)");
        }
        let too_much = matches!(status, 429 | 529) || (status == 503 && retry_after.is_some());
        let status = NonZeroU16::new(status);
        Failure { meaning, reason, retry_after, too_much, status, may_be_charged: false, response: None }
    }

    /// Status 200 with an error in the body: a proxy passes on what happened behind it.
    fn error_in_reply(&self, error: &Value, response: &Value) -> Failure {
        let words = words(error).unwrap_or_else(|| error.to_string());
        let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let status = code.filter(|code| (400..600).contains(code)).unwrap_or(500);
        let reason = format!("an error in place of a reply: {}", self.clean(&words));
        let meaning = meaning(status, error, &words);
        let (response, too_much) = (Some(response.clone()), matches!(status, 429 | 529));
        Failure { meaning, response, too_much, ..Failure::unusable(reason) }
    }

    /// A foreign text as an error may carry it: without secrets, and short.
    fn clean(&self, text: &str) -> String {
        let text = self.secrets.iter().fold(text.to_owned(), |text, secret| secret.scrub(&text));
        match text.char_indices().nth(LONGEST_REASON) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

fn setup(endpoint: &str, reason: &str) -> LlmError {
    LlmError::Setup { endpoint: endpoint.to_owned(), reason: reason.to_owned() }
}

/// Joins the events of a stream into the response that it stands for.
pub(super) trait Join {
    /// Takes the next bytes, cut anywhere.
    fn push(&mut self, bytes: &[u8]) -> Result<(), String>;

    /// The response, if the stream came to its end.
    fn finish(self) -> Result<Value, String>;
}

/// The key, as the endpoint's format carries it.
fn headers(endpoint: &Endpoint, label: &str) -> Result<HeaderMap, LlmError> {
    let mut headers = HeaderMap::new();
    if endpoint.api == Protocol::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    let Some(key) = &endpoint.api_key else { return Ok(headers) };
    let (name, text) = match endpoint.api {
        Protocol::Openai => (AUTHORIZATION, format!("Bearer {}", key.expose())),
        Protocol::Anthropic => (HeaderName::from_static("x-api-key"), key.expose().to_owned()),
    };
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| setup(label, "the API key holds characters that no HTTP header can carry"))?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}

/// What must not be shown though an endpoint may echo it: the key, the address's password and its query's values.
fn secrets(endpoint: &Endpoint, base: &Url) -> Vec<Secret> {
    let password = base.password().map(str::to_owned);
    let query = base.query_pairs().map(|(_, value)| value.into_owned());
    let address = password.into_iter().chain(query).map(Secret::new);
    endpoint.api_key.iter().cloned().chain(address).collect()
}

/// What to do where TLS fails for good: no further try can succeed.
fn tls_hint(reason: &str) -> Option<&'static str> {
    if reason.contains("invalid peer certificate") {
        return Some("set SSL_CERT_FILE to a file with its authority's certificate");
    }
    // What rustls says of an answer in plain text.
    let plain = ["InvalidContentType", "wrong version number"].iter().any(|words| reason.contains(words));
    plain.then_some("it does not speak TLS: does its address begin with http://?")
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// TLS on ring with the system's certificates. Where none is needed (plain HTTP) none is looked for, so that a local
/// endpoint works in a bare container.
fn tls(base: &Url, label: &str) -> Result<rustls::ClientConfig, LlmError> {
    let mut roots = rustls::RootCertStore::empty();
    if base.scheme() == "https" {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let reason =
                "this machine has no CA certificates: install them (ca-certificates) or set SSL_CERT_FILE";
            return Err(setup(label, reason));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| setup(label, &error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// An error with its causes, which is where the transport says what happened.
fn words_of(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

/// What the endpoint says in an error object, in the spellings that occur.
fn words(error: &Value) -> Option<String> {
    let message = [error, &error["message"], &error["detail"]].into_iter().find_map(Value::as_str)?;
    Some(match error["metadata"]["raw"].as_str() {
        Some(raw) => format!("{message}: {raw}"),
        None => message.to_owned(),
    })
}

fn meaning(status: u16, error: &Value, words: &str) -> Meaning {
    let label = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    let (code, kind) = (label("code"), label("type"));
    // A rate limit (429) may speak of tokens as well; it passes.
    let said = [&code, &kind, words].map(str::to_lowercase);
    if !matches!(status, 401..=404 | 429)
        && TOO_LONG.iter().any(|phrase| said.iter().any(|s| s.contains(phrase)))
    {
        return Meaning::TooLong;
    }
    match status {
        429 if [code, kind].iter().any(|label| label == "insufficient_quota") => Meaning::Final(status),
        408 | 409 | 425 | 429 | 500.. => Meaning::Passing,
        _ => Meaning::Final(status),
    }
}

/// `Retry-After` in seconds or as a date; `retry-after-ms` where an endpoint is more exact.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str| text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    if let Some(exact) = text("retry-after-ms").and_then(seconds) {
        return Some(exact / 1000);
    }
    let text = text("retry-after")?;
    seconds(text)
        .or_else(|| Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()))
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
