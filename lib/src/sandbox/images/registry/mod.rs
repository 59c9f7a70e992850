//! A client of registries: the pull half of the OCI distribution specification 1.1 (Docker's registry API v2).
//!
//! Requests are tried again with growing pauses; a rate limit (429) holds every request to its registry back until the
//! time that `Retry-After` names. Blobs resume where a connection broke. What comes is checked against its digest.

mod auth;
mod transport;

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_RANGE, HeaderMap, RANGE};
use reqwest::{Method, Response, StatusCode};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::Sender;

use super::manifest;
use super::name::hex_of;
use super::settings::{ImageEvent, ImageSettings};
use super::{ImageError, Reference};
use auth::Tokens;
use transport::{base_url, retry_after, words};

/// The longest index, manifest or configuration that is read.
const MOST_TEXT: u64 = 16 << 20;
/// The pause after a rate limit that names none.
const UNNAMED_LIMIT: Duration = Duration::from_secs(10);

/// A client for every registry.
pub(in crate::sandbox) struct Registry {
    http: reqwest::Client,
    settings: ImageSettings,
    tokens: Tokens,
    /// When a registry may be asked again.
    limited: Mutex<HashMap<String, Instant>>,
}

/// What is asked for.
struct Ask<'a> {
    name: &'a Reference,
    method: Method,
    path: String,
    headers: HeaderMap,
}

/// Why a try failed.
enum Trouble {
    /// Again, after this pause where it is named.
    Limited(Option<Duration>, String),
    Passing(String),
    Final(ImageError),
}

impl Registry {
    pub(super) fn new(settings: &ImageSettings) -> Result<Self, ImageError> {
        Ok(Self {
            http: transport::client()?,
            settings: settings.clone(),
            tokens: Tokens::default(),
            limited: Mutex::default(),
        })
    }

    /// The digest that a name points at now. Docker Hub does not count this question against its limit.
    pub(super) async fn digest(&self, name: &Reference) -> Result<String, ImageError> {
        let response = self.ask(&manifest_ask(name, Method::HEAD, name.target())).await?;
        let header = response.headers().get("docker-content-digest").and_then(|value| value.to_str().ok());
        match header.or(name.digest()).filter(|digest| hex_of(digest).is_some()) {
            Some(digest) => Ok(digest.to_owned()),
            // A registry without the header: the digest is computed.
            None => {
                let ask = manifest_ask(name, Method::GET, name.target());
                Ok(digest_of(&self.text(&ask, None).await?))
            }
        }
    }

    /// An index or a manifest by its digest.
    pub(super) async fn manifest(&self, name: &Reference, digest: &str) -> Result<Vec<u8>, ImageError> {
        self.text(&manifest_ask(name, Method::GET, digest), Some(digest)).await
    }

    /// A small blob: an image's configuration.
    pub(super) async fn small_blob(&self, name: &Reference, digest: &str) -> Result<Vec<u8>, ImageError> {
        self.text(&blob_ask(name, digest), Some(digest)).await
    }

    /// A short answer, with this digest; asked for again where it breaks off or is damaged.
    async fn text(&self, ask: &Ask<'_>, digest: Option<&str>) -> Result<Vec<u8>, ImageError> {
        let name = ask.name.to_string();
        for tries in 1.. {
            let reason = match short(self.ask(ask).await?).await {
                Ok(bytes) if digest.is_none_or(|digest| digest_of(&bytes) == digest) => return Ok(bytes),
                Ok(_) if tries >= self.settings.patience.tries => {
                    let reason = format!("what the registry sends for {} has another digest", ask.path);
                    return Err(ImageError::Corrupt { name, reason });
                }
                Ok(_) => "what came has another digest".to_owned(),
                Err(reason) if tries >= self.settings.patience.tries => {
                    return Err(ImageError::Registry { name, reason, tries });
                }
                Err(reason) => reason,
            };
            self.pause(ask.name, tries, &reason).await;
        }
        unreachable!("the loop ends by returning")
    }

    /// What is asked for an image: a mirror stands in for Docker Hub.
    fn place(&self, name: &Reference) -> Reference {
        name.through(self.settings.mirror.as_deref())
    }

    /// Sends a blob's bytes in order, going on where a connection broke. The receiver checks the digest; where it has
    /// gone, the rest is not fetched.
    pub(in crate::sandbox) async fn blob(
        &self,
        name: &Reference,
        digest: &str,
        size: u64,
        to: &Sender<Vec<u8>>,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<(), ImageError> {
        let (mut done, mut broken) = (0, 0);
        while done < size {
            let mut ask = blob_ask(name, digest);
            if done > 0
                && let Ok(range) = format!("bytes={done}-").parse()
            {
                ask.headers.insert(RANGE, range);
            }
            let response = self.ask(&ask).await?;
            // A registry that knows no ranges sends everything again.
            let mut skip = if starts_at(&response) == done { 0 } else { done };
            let mut body = response.bytes_stream();
            let before = done;
            let reason = loop {
                match body.next().await {
                    None => break "the transfer ended early".to_owned(),
                    Some(Err(error)) => break words(&error),
                    Some(Ok(piece)) => {
                        let known = piece.len().min(usize::try_from(skip).unwrap_or(usize::MAX));
                        skip -= known as u64;
                        let piece = piece.slice(known..);
                        done += piece.len() as u64;
                        if done > size {
                            let reason = format!("layer {digest} is longer than its manifest says");
                            return Err(ImageError::Corrupt { name: name.to_string(), reason });
                        }
                        progress(done);
                        if !piece.is_empty() && to.send(piece.to_vec()).await.is_err() {
                            return Ok(());
                        }
                    }
                }
            };
            if done < size {
                broken = if done > before { 1 } else { broken + 1 };
                if broken >= self.settings.patience.tries {
                    return Err(ImageError::Registry { name: name.to_string(), reason, tries: broken });
                }
                self.pause(name, broken, &reason).await;
            }
        }
        Ok(())
    }

    /// Asks until there is an answer that counts.
    async fn ask(&self, ask: &Ask<'_>) -> Result<Response, ImageError> {
        let (mut tries, mut limits, began) = (0, 0, Instant::now());
        loop {
            self.until_allowed(ask.name).await;
            match self.once(ask).await {
                Ok(response) => return Ok(response),
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Passing(reason)) => {
                    tries += 1;
                    if tries >= self.settings.patience.tries {
                        return Err(ImageError::Registry { name: ask.name.to_string(), reason, tries });
                    }
                    self.pause(ask.name, tries, &reason).await;
                }
                Err(Trouble::Limited(wait, reason)) => {
                    limits += 1;
                    let (waited, left) = (began.elapsed(), self.settings.patience.deadline);
                    let wait = wait.unwrap_or_else(|| self.backoff(limits).max(self.unnamed()));
                    if waited + wait > left {
                        return Err(ImageError::RateLimited { name: ask.name.to_string(), reason, waited });
                    }
                    let until = Instant::now() + wait;
                    lock(&self.limited).insert(self.place(ask.name).registry().to_owned(), until);
                    (self.settings.on_event)(&ImageEvent::Waiting {
                        name: ask.name.to_string(),
                        reason,
                        wait,
                    });
                }
            }
        }
    }

    async fn once(&self, ask: &Ask<'_>) -> Result<Response, Trouble> {
        let place = self.place(ask.name);
        let address = format!("{}/v2/{}/{}", base_url(place.registry()), place.repository(), ask.path);
        let mut renewed = false;
        loop {
            let request = self.http.request(ask.method.clone(), &address).headers(ask.headers.clone());
            let request = self.tokens.authorize(request, &place);
            let response = request.send().await.map_err(|error| Trouble::Passing(words(&error)))?;
            let status = response.status();
            if status == StatusCode::UNAUTHORIZED && !renewed {
                renewed = true;
                self.tokens.renew(&self.http, &self.settings.logins, &place, response.headers()).await?;
                continue;
            }
            if status.is_success() {
                return Ok(response);
            }
            return Err(self.trouble(ask.name, response).await);
        }
    }

    async fn trouble(&self, name: &Reference, response: Response) -> Trouble {
        let status = response.status();
        let after = retry_after(response.headers());
        let said = transport::said(response).await;
        let reason = format!("{} answers {status}{said}", self.place(name).registry());
        let name = name.to_string();
        match status.as_u16() {
            404 => Trouble::Final(ImageError::Missing { name, reason }),
            401 | 403 => Trouble::Final(ImageError::Denied { name, reason }),
            429 => Trouble::Limited(after, reason),
            503 if after.is_some() => Trouble::Limited(after, reason),
            408 | 425 | 500.. => Trouble::Passing(reason),
            _ => Trouble::Final(ImageError::Registry { name, reason, tries: 1 }),
        }
    }

    /// Waits while the registry's rate limit holds.
    async fn until_allowed(&self, name: &Reference) {
        loop {
            let until = lock(&self.limited).get(self.place(name).registry()).copied();
            match until.and_then(|until| until.checked_duration_since(Instant::now())) {
                Some(wait) if !wait.is_zero() => tokio::time::sleep(wait).await,
                _ => return,
            }
        }
    }

    async fn pause(&self, name: &Reference, tries: u32, reason: &str) {
        let wait = self.backoff(tries);
        let reason = reason.to_owned();
        (self.settings.on_event)(&ImageEvent::Waiting { name: name.to_string(), reason, wait });
        tokio::time::sleep(wait).await;
    }

    fn unnamed(&self) -> Duration {
        UNNAMED_LIMIT.min(self.settings.patience.longest)
    }

    fn backoff(&self, tries: u32) -> Duration {
        let patience = &self.settings.patience;
        patience.first.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(patience.longest)
    }
}

fn blob_ask<'a>(name: &'a Reference, digest: &str) -> Ask<'a> {
    Ask { name, method: Method::GET, path: format!("blobs/{digest}"), headers: HeaderMap::new() }
}

/// The offset of an answer's first byte.
fn starts_at(response: &Response) -> u64 {
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return 0;
    }
    let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let start = range.and_then(|range| range.strip_prefix("bytes ")?.split('-').next()?.parse().ok());
    start.unwrap_or(0)
}

/// The whole of a short answer.
async fn short(response: Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        bytes.extend_from_slice(&piece.map_err(|error| words(&error))?);
        if bytes.len() as u64 > MOST_TEXT {
            return Err(format!("a manifest or configuration longer than {MOST_TEXT} bytes"));
        }
    }
    Ok(bytes)
}

fn manifest_ask<'a>(name: &'a Reference, method: Method, target: &str) -> Ask<'a> {
    let headers =
        HeaderMap::from_iter([(ACCEPT, reqwest::header::HeaderValue::from_static(manifest::ACCEPT))]);
    Ask { name, method, path: format!("manifests/{target}"), headers }
}

pub(super) fn digest_of(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    format!("sha256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
