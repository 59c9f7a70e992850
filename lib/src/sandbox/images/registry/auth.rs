//! Who asks: the token flow of Docker Hub, ghcr.io and their relatives (an answer 401 names a realm; the realm gives a
//! token for one repository), or a plain login.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use reqwest::RequestBuilder;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use serde::Deserialize;

use super::transport::{is_loopback, retry_after, said, words};
use super::{Trouble, lock};
use crate::sandbox::images::settings::{Login, Logins};
use crate::sandbox::images::{ImageError, Reference};

/// What a repository is asked with.
#[derive(Clone)]
enum Pass {
    Bearer(String),
    Basic(Login),
}

/// Passes by registry and repository.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<(String, String), Pass>>);

#[derive(Deserialize)]
struct Token {
    #[serde(alias = "access_token")]
    token: String,
}

impl Tokens {
    /// Adds what is known to a request.
    pub(super) fn authorize(&self, request: RequestBuilder, name: &Reference) -> RequestBuilder {
        match lock(&self.0).get(&key(name)) {
            Some(Pass::Bearer(token)) => request.bearer_auth(token),
            Some(Pass::Basic(login)) => request.basic_auth(&login.user, Some(&login.password)),
            None => request,
        }
    }

    /// Gets what an answer 401 asks for.
    pub(super) async fn renew(
        &self,
        http: &reqwest::Client,
        logins: &Logins,
        name: &Reference,
        headers: &HeaderMap,
    ) -> Result<(), Trouble> {
        let denied = |reason: String| Trouble::Final(ImageError::Denied { name: name.to_string(), reason });
        let login = logins(name.registry());
        let challenge = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let challenge = challenge.filter_map(Challenge::parse).next();
        let pass = match (challenge, login) {
            (Some(Challenge::Bearer(fields)), login) => {
                Pass::Bearer(token(http, name, &fields, login).await?)
            }
            (Some(Challenge::Basic), Some(login)) => Pass::Basic(login),
            _ => return Err(denied(format!("{} answers 401 Unauthorized", name.registry()))),
        };
        lock(&self.0).insert(key(name), pass);
        Ok(())
    }
}

fn key(name: &Reference) -> (String, String) {
    (name.registry().to_owned(), name.repository().to_owned())
}

async fn token(
    http: &reqwest::Client,
    name: &Reference,
    fields: &BTreeMap<String, String>,
    login: Option<Login>,
) -> Result<String, Trouble> {
    let denied = |reason: String| Trouble::Final(ImageError::Denied { name: name.to_string(), reason });
    let realm = fields.get("realm").and_then(|realm| reqwest::Url::parse(realm).ok());
    let mut realm = realm.ok_or_else(|| denied("its answer 401 names no realm".to_owned()))?;
    // A login goes nowhere in the clear but to this machine.
    let safe = realm.scheme() == "https" || realm.host_str().is_some_and(is_loopback);
    if !safe {
        return Err(denied("it asks for a login over plain HTTP".to_owned()));
    }
    let scope = format!("repository:{}:pull", name.repository());
    realm.query_pairs_mut().append_pair("scope", &scope);
    if let Some(service) = fields.get("service") {
        realm.query_pairs_mut().append_pair("service", service);
    }
    let request = http.get(realm);
    let request = match login {
        Some(login) => request.basic_auth(&login.user, Some(&login.password)),
        None => request,
    };
    let response = request.send().await.map_err(|error| Trouble::Passing(words(&error)))?;
    let status = response.status();
    if status.is_success() {
        let broken = |error: reqwest::Error| Trouble::Passing(format!("no token came: {}", words(&error)));
        return Ok(response.json::<Token>().await.map_err(broken)?.token);
    }
    let after = retry_after(response.headers());
    let reason = format!("its realm answers {status}{}", said(response).await);
    Err(match status.as_u16() {
        429 => Trouble::Limited(after, reason),
        408 | 500.. => Trouble::Passing(reason),
        _ => denied(reason),
    })
}

/// What an answer 401 asks for.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Bearer(BTreeMap<String, String>),
    Basic,
}

impl Challenge {
    /// Reads `Bearer realm="…",service="…"` or `Basic …`.
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let mut fields = BTreeMap::new();
        let mut rest = rest.trim_start();
        while let Some((name, value)) = rest.split_once('=') {
            let (value, more) = match value.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => value.split_at(value.find(',').unwrap_or(value.len())),
            };
            fields.insert(name.trim().to_lowercase(), value.to_owned());
            rest = more.trim_start_matches([',', ' ']);
        }
        Some(Self::Bearer(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let text = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#;
        let Some(Challenge::Bearer(fields)) = Challenge::parse(text) else { panic!("{text}") };
        assert_eq!(fields["realm"], "https://auth.docker.io/token");
        assert_eq!(fields["service"], "registry.docker.io");
        assert_eq!(fields["scope"], "repository:a/b:pull,push");
        assert_eq!(Challenge::parse("basic realm=\"x\""), Some(Challenge::Basic));
        for odd in ["", "Negotiate", "Bearer realm=\"unclosed"] {
            assert!(
                !matches!(Challenge::parse(odd), Some(Challenge::Bearer(f)) if f.contains_key("realm")),
                "{odd}"
            );
        }
    }
}
