//! One exchange with an endpoint, and what its failure means: try again, give up, or the prompt is too long.

use std::error::Error;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url};
use serde_json::Value;

use super::stream::Joiner;
use super::{Endpoint, LlmError, Secret};

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
}

/// A failed try.
#[derive(Debug)]
pub(super) struct Failure {
    pub meaning: Meaning,
    /// The endpoint's words or the transport's, without the key.
    pub reason: String,
    /// How long the endpoint asks to be left alone.
    pub retry_after: Option<Duration>,
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
        }
    }
}

/// An HTTP client for one endpoint.
pub(super) struct Transport {
    client: reqwest::Client,
    base: Url,
    headers: HeaderMap,
    key: Option<Secret>,
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
        let label = label(&base);
        let mut headers = HeaderMap::new();
        if let Some(key) = &endpoint.api_key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                .map_err(|_| setup(&label, "the API key holds characters that no HTTP header can carry"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
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
        Ok(Self { client, base, headers, key: endpoint.api_key.clone(), label })
    }

    /// `GET <base>/<path>`.
    pub async fn get(&self, path: &[&str]) -> Result<Value, Failure> {
        self.exchange(Method::GET, path, None).await
    }

    /// `POST <base>/<path>` with a JSON body. An event stream is joined into the response it stands for.
    pub async fn post(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        self.exchange(Method::POST, path, Some(body)).await
    }

    async fn exchange(&self, method: Method, path: &[&str], body: Option<&Value>) -> Result<Value, Failure> {
        let mut request = self.client.request(method, self.url(path)).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| self.broken(error))?;
        let status = response.status().as_u16();
        let value = if response.status().is_success() {
            self.read(response).await?
        } else {
            return Err(self.refusal(status, response).await);
        };
        match value.get("error") {
            None | Some(Value::Null) => Ok(value),
            Some(error) => Err(self.error_in_reply(error, &value)),
        }
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    async fn read(&self, mut response: Response) -> Result<Value, Failure> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let mut joiner = Joiner::default();
            while let Some(bytes) = response.chunk().await.map_err(|error| self.broken(error))? {
                joiner.push(&bytes).map_err(Failure::unusable)?;
            }
            return joiner.finish().map_err(Failure::unusable);
        }
        let body = self.body(response, LONGEST_BODY).await?;
        serde_json::from_slice(&body).map_err(|error| {
            let text = self.clean(&String::from_utf8_lossy(&body));
            Failure::unusable(format!("the reply is no JSON ({error}): {text}"))
        })
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
        Failure { may_be_charged, ..Failure::unusable(reason) }
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
        Failure {
            meaning,
            reason,
            retry_after,
            status: NonZeroU16::new(status),
            may_be_charged: false,
            response: None,
        }
    }

    /// Status 200 with an error in the body: a proxy passes on what happened behind it.
    fn error_in_reply(&self, error: &Value, response: &Value) -> Failure {
        let words = words(error).unwrap_or_else(|| error.to_string());
        let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let status = code.filter(|code| (400..600).contains(code)).unwrap_or(500);
        let reason = format!("an error in place of a reply: {}", self.clean(&words));
        let meaning = meaning(status, error, &words);
        Failure { meaning, response: Some(response.clone()), ..Failure::unusable(reason) }
    }

    /// A foreign text as an error may carry it: without the key, and short.
    fn clean(&self, text: &str) -> String {
        let text = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.scrub(text));
        match text.char_indices().nth(LONGEST_REASON) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

fn setup(endpoint: &str, reason: &str) -> LlmError {
    LlmError::Setup { endpoint: endpoint.to_owned(), reason: reason.to_owned() }
}

fn label(base: &Url) -> String {
    let mut shown = base.clone();
    // Both fail only for addresses that cannot have credentials.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
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
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn retry_after_in_all_its_spellings() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let after = |name, value: &str| retry_after(&headers(name, value), now);
        assert_eq!(after("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(after("retry-after", " 0.5 "), Some(Duration::from_millis(500)));
        assert_eq!(after("retry-after", "Sun, 06 Nov 1994 08:50:00 GMT"), Some(Duration::from_secs(23)));
        assert_eq!(after("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(after("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        for absurd in ["-3", "soon", "nan", "1e99", ""] {
            assert_eq!(after("retry-after", absurd), None, "{absurd}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn what_a_status_means() {
        for status in [400, 401, 403, 404, 405, 413, 422, 308] {
            assert_eq!(meaning(status, &json!({}), ""), Meaning::Final(status));
        }
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 529] {
            assert_eq!(meaning(status, &json!({}), ""), Meaning::Passing);
        }
        assert_eq!(meaning(429, &json!({"code": "insufficient_quota"}), "pay"), Meaning::Final(429));
    }

    #[test]
    fn a_prompt_that_does_not_fit_is_told_from_a_rate_limit() {
        let long = "This model's maximum context length is 8192 tokens.";
        for status in [400, 413, 422, 500] {
            assert_eq!(meaning(status, &json!({}), long), Meaning::TooLong);
        }
        assert_eq!(meaning(400, &json!({"code": "context_length_exceeded"}), ""), Meaning::TooLong);
        assert_eq!(meaning(400, &json!({"type": "exceed_context_size_error"}), ""), Meaning::TooLong);
        assert_eq!(meaning(429, &json!({}), "tokens per minute: prompt is too long"), Meaning::Passing);
        assert_eq!(meaning(401, &json!({}), long), Meaning::Final(401));
    }

    #[test]
    fn addresses() {
        let transport = |url: &str| Transport::new(&Endpoint::new(url, "m"));
        let it = transport("http://user:secret@127.0.0.1:9/v1/?api-version=2").ok().unwrap();
        assert_eq!(it.label, "http://127.0.0.1:9/v1/");
        assert_eq!(it.url(&["chat", "completions"]).path(), "/v1/chat/completions");
        assert_eq!(it.url(&["models"]).query(), Some("api-version=2"));
        for bad in ["", "localhost:1", "ftp://h/v1", "/v1", "http://"] {
            let error = transport(bad).err().unwrap().to_string();
            assert!(error.contains("base-url must look like"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_named_and_not_shown() {
        let endpoint = Endpoint::new("http://127.0.0.1:1/v1", "m").with_key(Secret::new("sk-with\nnewline"));
        let error = Transport::new(&endpoint).err().unwrap();
        assert!(
            error.to_string().contains("no HTTP header can carry")
                && !format!("{error:?}").contains("sk-with")
        );
    }
}
