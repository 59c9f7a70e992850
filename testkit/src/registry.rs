//! A registry of images on this machine, in this process, that fails in the ways real ones do.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::image::{Image, digest};
use crate::serving::Serving;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// What a request meets instead of its answer.
#[derive(Debug, Clone)]
pub enum Fault {
    /// This status, with `Retry-After` where it is named, and an error in the registry's form.
    Status {
        /// Such as 429.
        code: u16,
        /// Seconds.
        retry_after: Option<u64>,
    },
    /// The answer breaks off after these bytes.
    Broken(usize),
    /// As many other bytes.
    Garbage,
}

/// A registry on a free port of the loopback device. It lives on a thread of its own and ends when it is dropped.
pub struct ImageRegistry {
    serving: Serving,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    blobs: Mutex<BTreeMap<String, Bytes>>,
    /// By `REPOSITORY:TAG` and `REPOSITORY@DIGEST`: media type and content.
    manifests: Mutex<BTreeMap<String, (String, Bytes)>>,
    /// Faults for requests whose path holds the text.
    faults: Mutex<Vec<(String, VecDeque<Fault>)>>,
    requests: Mutex<Vec<String>>,
    /// Where a login is asked for: `Authorization` of the token request.
    login: Mutex<Option<String>>,
}

impl ImageRegistry {
    /// Starts an empty one.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(answer).with_state(shared.clone());
        Ok(Self { serving: Serving::start(0, router)?, shared })
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.serving.address.to_string()
    }

    /// Puts an image under a name; returns the digest of its manifest.
    ///
    /// # Errors
    /// When a layer cannot be compressed.
    pub fn push(&self, repository: &str, tag: &str, image: &Image) -> Result<String> {
        let config = image.config()?;
        let mut layers = Vec::new();
        for layer in &image.layers {
            let layer = layer.sealed()?;
            let (kind, size) = (layer.media_type, layer.bytes.len());
            layers.push(json!({"mediaType": kind, "digest": layer.digest, "size": size}));
            lock(&self.shared.blobs).insert(layer.digest.clone(), layer.bytes.clone());
        }
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": digest(&config),
                "size": config.len(),
            },
            "layers": layers,
        });
        lock(&self.shared.blobs).insert(digest(&config), config.into());
        Ok(self.put(repository, tag, MANIFEST, &manifest))
    }

    /// Puts an index over images of several platforms (`ARCHITECTURE`, digest) under a name; returns its digest.
    pub fn push_index(&self, repository: &str, tag: &str, images: &[(&str, &str)]) -> String {
        let one = |(architecture, digest): &(&str, &str)| {
            let size = self.manifest(&format!("{repository}@{digest}")).map_or(0, |(_, bytes)| bytes.len());
            json!({"mediaType": MANIFEST, "digest": digest, "size": size,
                "platform": {"os": "linux", "architecture": architecture}})
        };
        let manifests: Vec<_> = images.iter().map(one).collect();
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        self.put(repository, tag, INDEX, &index)
    }

    fn put(&self, repository: &str, tag: &str, kind: &str, manifest: &Value) -> String {
        let bytes = Bytes::from(manifest.to_string());
        let digest = digest(&bytes);
        let mut manifests = lock(&self.shared.manifests);
        for name in [format!("{repository}:{tag}"), format!("{repository}@{digest}")] {
            manifests.insert(name, (kind.to_owned(), bytes.clone()));
        }
        digest
    }

    fn manifest(&self, name: &str) -> Option<(String, Bytes)> {
        lock(&self.shared.manifests).get(name).cloned()
    }

    /// Lets the next requests whose path holds `text` meet these faults, one each.
    pub fn fail(&self, text: &str, faults: impl IntoIterator<Item = Fault>) {
        lock(&self.shared.faults).push((text.to_owned(), faults.into_iter().collect()));
    }

    /// From now on asks for a token, and gives one to this login (or to anybody).
    pub fn ask_for_token(&self, authorization: &str) {
        *lock(&self.shared.login) = Some(authorization.to_owned());
    }

    /// `METHOD PATH` of every request so far.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.shared.requests).clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    lock(&shared.requests).push(format!("{method} {path}"));
    let login = lock(&shared.login).clone();
    if let Some(login) = login {
        let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let host =
            request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if path == "/token" {
            let known = given == Some(login.as_str());
            return if known {
                json_answer(200, &json!({"token": "let-me-in"}))
            } else {
                error(401, "UNAUTHORIZED")
            };
        }
        if given != Some("Bearer let-me-in") {
            let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"testkit\"");
            let mut response = error(401, "UNAUTHORIZED");
            if let Ok(value) = challenge.parse() {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
            }
            return response;
        }
    }
    let fault = next_fault(&shared, &path);
    if let Some(Fault::Status { code, retry_after }) = fault {
        let word = if code == 429 { "TOOMANYREQUESTS" } else { "UNAVAILABLE" };
        let mut response = error(code, word);
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        return response;
    }
    let Some((kind, bytes)) = find(&shared, &path) else {
        return if path == "/v2/" { json_answer(200, &json!({})) } else { error(404, "MANIFEST_UNKNOWN") };
    };
    content(&method, request.headers(), &kind, bytes, fault)
}

fn next_fault(shared: &Shared, path: &str) -> Option<Fault> {
    let mut faults = lock(&shared.faults);
    faults.iter_mut().filter(|(text, _)| path.contains(text.as_str())).find_map(|(_, acts)| acts.pop_front())
}

/// `/v2/REPOSITORY/manifests/TARGET` or `/v2/REPOSITORY/blobs/DIGEST`.
fn find(shared: &Shared, path: &str) -> Option<(String, Bytes)> {
    let path = path.strip_prefix("/v2/")?;
    if let Some((repository, target)) = path.split_once("/manifests/") {
        let sign = if target.starts_with("sha256:") { '@' } else { ':' };
        return lock(&shared.manifests).get(&format!("{repository}{sign}{target}")).cloned();
    }
    let (_, digest) = path.split_once("/blobs/")?;
    let bytes = lock(&shared.blobs).get(digest).cloned()?;
    Some(("application/octet-stream".to_owned(), bytes))
}

fn content(
    method: &Method,
    headers: &HeaderMap,
    kind: &str,
    bytes: Bytes,
    fault: Option<Fault>,
) -> Response<Body> {
    let whole = bytes.len();
    let start = range(headers).filter(|start| *start < whole);
    let digest = digest(&bytes);
    let part = bytes.slice(start.unwrap_or(0)..);
    let length = part.len();
    let body = match fault {
        _ if *method == Method::HEAD => Body::empty(),
        Some(Fault::Broken(after)) => broken(part.slice(..after.min(length))),
        Some(Fault::Garbage) => Body::from(vec![b'x'; length]),
        _ => Body::from(part),
    };
    let builder = Response::builder()
        .status(if start.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK })
        .header(header::CONTENT_TYPE, kind)
        .header(header::CONTENT_LENGTH, length)
        .header("docker-content-digest", digest)
        .header("docker-distribution-api-version", "registry/2.0");
    let builder = match start {
        Some(start) => builder.header(header::CONTENT_RANGE, format!("bytes {start}-{}/{whole}", whole - 1)),
        None => builder,
    };
    builder.body(body).unwrap_or_default()
}

fn range(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::RANGE)?.to_str().ok()?.strip_prefix("bytes=")?.split('-').next()?.parse().ok()
}

fn broken(bytes: Bytes) -> Body {
    let breaks = stream::once(async {
        // Long enough for the first bytes to be on their way.
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(io::Error::new(io::ErrorKind::ConnectionReset, "the registry breaks the connection"))
    });
    Body::from_stream(stream::iter([Ok(bytes)]).chain(breaks))
}

fn error(code: u16, word: &str) -> Response<Body> {
    json_answer(code, &json!({"errors": [{"code": word, "message": "as told"}]}))
}

fn json_answer(code: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
