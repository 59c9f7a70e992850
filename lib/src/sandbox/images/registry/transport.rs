//! HTTP to registries: addresses, TLS, what their answers say.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::StreamExt;
use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::sandbox::images::ImageError;
use crate::sandbox::images::name::DOCKER_HUB;

/// How much of an error's body is read.
const MOST_WORDS: usize = 4096;

/// Where a registry's API lies. As for Docker, registries on this machine are spoken to in plain HTTP.
pub(super) fn base_url(registry: &str) -> String {
    let host = if registry == DOCKER_HUB { "registry-1.docker.io" } else { registry };
    let scheme = if is_loopback(host) { "http" } else { "https" };
    format!("{scheme}://{host}")
}

/// Whether a host (with or without a port) is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// A client with the system's certificates; a transfer that stands still is given up.
pub(super) fn client() -> Result<reqwest::Client, ImageError> {
    let failed = |reason: String| ImageError::Registry { name: "(any)".to_owned(), reason, tries: 0 };
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("memtrial/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(30))
        .read_timeout(Duration::from_secs(60))
        .build()
        .map_err(|error| failed(words(&error)))
}

/// `Retry-After` in seconds or as a date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(SystemTime::now()).unwrap_or_default())
}

/// What an answer's body says of its error: `: CODE: message`, or nothing.
pub(super) async fn said(response: Response) -> String {
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(Ok(piece)) = body.next().await {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MOST_WORDS {
            break;
        }
    }
    let parsed: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
    let first = parsed.as_ref().and_then(|value| value["errors"].get(0));
    let word = |key: &str| first.and_then(|error| error[key].as_str()).filter(|word| !word.is_empty());
    match (word("code"), word("message")) {
        (Some(code), Some(message)) => format!(": {code}: {message}"),
        (Some(word), None) | (None, Some(word)) => format!(": {word}"),
        (None, None) => String::new(),
    }
}

/// An error with its causes; the address, which may hold a signature, left out.
pub(super) fn words(error: &reqwest::Error) -> String {
    let mut words = match (error.is_timeout(), error.is_connect()) {
        (true, _) => "no answer in time".to_owned(),
        (_, true) => "cannot connect".to_owned(),
        _ => "the transfer broke".to_owned(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_spoken_to_in_the_clear() {
        assert_eq!(base_url("docker.io"), "https://registry-1.docker.io");
        assert_eq!(base_url("ghcr.io"), "https://ghcr.io");
        for host in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.3.2.1", "[::1]:5000"] {
            assert_eq!(base_url(host), format!("http://{host}"));
        }
        for host in ["127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1:5000"] {
            assert_eq!(base_url(host), format!("https://{host}"));
        }
    }

    #[test]
    fn retry_after_in_seconds_and_as_a_date() {
        let headers = |text: &str| HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
        assert_eq!(retry_after(&headers("7")), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&headers("Thu, 01 Jan 1970 00:00:00 GMT")), Some(Duration::ZERO));
        assert_eq!(retry_after(&headers("soon")), None);
    }
}
