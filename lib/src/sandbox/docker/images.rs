//! Images of an engine: it pulls and removes them itself. They are named by digest, so that no tag of the user's moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::engine::Engine;
use super::layer;
use crate::sandbox::images::keeper::{Fetch, Keeper};
use crate::sandbox::images::{
    Config, ImageError, ImageEvent, ImageSettings, Kept, Platform, Reference, Resolved,
};
use crate::sandbox::{Image, SandboxError};

/// Docker's engine, or Podman.
pub(super) struct Pulls {
    pub engine: Engine,
    pub settings: ImageSettings,
    platform: OnceCell<Platform>,
}

impl Pulls {
    pub(super) fn new(engine: Engine, settings: ImageSettings) -> Arc<Self> {
        Arc::new(Self { engine, settings, platform: OnceCell::new() })
    }

    /// What the engine knows the image by: of the registry that it came from, at its digest.
    fn name(&self, name: &Reference, digest: &str) -> String {
        name.through(self.settings.mirror.as_deref()).at(digest).to_string()
    }

    fn of(&self, image: &Resolved) -> String {
        if image.layers.is_empty() { image.key.clone() } else { self.name(&image.name, &image.digest) }
    }

    async fn size(&self, name: &str) -> u64 {
        let arguments = ["image", "inspect", "--format", "{{.Size}}", name];
        let size = self.engine.run("measure an image", &arguments).await;
        size.ok().and_then(|size| size.parse().ok()).unwrap_or_default()
    }

    /// `docker pull`, again where a rate limit or a fault passes.
    async fn pull(&self, image: &Resolved) -> Result<(), ImageError> {
        let name = self.of(image);
        let patience = self.settings.patience;
        let (began, mut tries) = (Instant::now(), 0);
        let arguments = ["pull", "--quiet", "--platform", &image.platform, &name];
        loop {
            tries += 1;
            let reason = match self.engine.run_for("pull an image", &arguments, patience.deadline).await {
                Ok(_) => return Ok(()),
                Err(SandboxError::Failed { reason, .. }) => reason,
                Err(error) => return Err(error.into()),
            };
            let full = image.name.to_string();
            let limited = is_limit(&reason);
            let named = if limited { named_wait(&reason) } else { None };
            let growing = patience.first.saturating_mul(1 << (tries - 1).min(16)).min(patience.longest);
            let wait = named.unwrap_or(growing);
            let waited = began.elapsed();
            if limited && waited + wait > patience.deadline {
                return Err(ImageError::RateLimited { name: full, reason, waited });
            }
            if !limited && (tries >= patience.tries || is_final(&reason)) {
                return Err(refusal(full, reason, tries));
            }
            (self.settings.on_event)(&ImageEvent::Waiting { name: full, reason, wait });
            tokio::time::sleep(wait).await;
        }
    }
}

fn is_limit(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["toomanyrequests", "too many requests", "rate limit", " 429"].iter().any(|words| reason.contains(words))
}

/// `Retry-After` where the engine repeats it: seconds behind the words.
fn named_wait(reason: &str) -> Option<Duration> {
    let reason = reason.to_lowercase();
    let after = ["retry-after", "retry after"].iter().find_map(|words| reason.split_once(words))?.1;
    let digits: String =
        after.trim_start_matches([':', '=', ' ', '"']).chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().map(Duration::from_secs)
}

fn is_missing(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["manifest unknown", "not found", "name unknown", "manifest for"]
        .iter()
        .any(|words| reason.contains(words))
}

fn is_denied(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["denied", "unauthorized", "authentication required"].iter().any(|words| reason.contains(words))
}

fn is_final(reason: &str) -> bool {
    let full = reason.contains("no space left on device");
    is_missing(reason)
        || is_denied(reason)
        || full
        || reason.contains("does not match the specified platform")
}

fn refusal(name: String, reason: String, tries: u32) -> ImageError {
    if reason.contains("no space left on device") {
        return ImageError::DiskFull { name, path: "the container engine's folder".into() };
    }
    match (is_missing(&reason), is_denied(&reason)) {
        (true, _) => ImageError::Missing { name, reason },
        (_, true) => ImageError::Denied { name, reason },
        _ => ImageError::Registry { name, reason, tries },
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    id: String,
    architecture: String,
    #[serde(default)]
    config: InspectedConfig,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InspectedConfig {
    env: Option<Vec<String>>,
    working_dir: Option<String>,
}

#[async_trait]
impl Keeper for Pulls {
    async fn has(&self, image: &Resolved) -> Result<bool, ImageError> {
        Ok(self.engine.image(&self.of(image)).await?.is_some())
    }

    fn layer(&self, _diff_id: &str) -> Option<u64> {
        None
    }

    async fn fetch(&self, fetch: Fetch<'_>) -> Result<BTreeMap<String, u64>, ImageError> {
        self.pull(fetch.image).await?;
        let sent: u64 = fetch.missing.iter().map(|layer| layer.size).sum();
        (fetch.progress)(sent);
        // An engine tells an image's whole size alone: what is new is shared out by the bytes transferred.
        let whole = self.size(&self.of(fetch.image)).await;
        let share =
            |size: u64| (u128::from(whole) * u128::from(size) / u128::from(all(fetch.image).max(1))) as u64;
        Ok(fetch.missing.iter().map(|layer| (layer.diff_id.clone(), share(layer.size))).collect())
    }

    async fn remove(&self, image: &Kept, _layers: &[String]) -> Result<(), ImageError> {
        for name in image.names.iter().filter_map(|name| Reference::parse(name).ok()) {
            let name = self.name(&name, &image.digest);
            if self.engine.image(&name).await?.is_some() {
                self.engine.run("remove an image", &["rmi", &name]).await?;
            }
        }
        Ok(())
    }

    async fn remove_built(&self, key: &str) -> Result<(), ImageError> {
        let name = layer(key)?;
        if self.engine.image(&name).await?.is_some() {
            self.engine.run("drop a layer", &["rmi", "--force", &name]).await?;
        }
        Ok(())
    }

    async fn built_bytes(&self, key: &str) -> u64 {
        let Ok(name) = layer(key) else { return 0 };
        let arguments = ["history", "--human=false", "--format", "{{.Size}}", &name];
        let sizes = self.engine.run("measure a layer", &arguments).await.unwrap_or_default();
        sizes.lines().next().and_then(|size| size.trim().parse().ok()).unwrap_or_default()
    }

    async fn local(&self, name: &Reference) -> Result<Option<Resolved>, ImageError> {
        let short = name.to_string();
        let arguments = ["image", "inspect", "--format", "{{json .}}", &short];
        let Ok(text) = self.engine.run("look for an image", &arguments).await else { return Ok(None) };
        let found: Inspected = serde_json::from_str(&text).map_err(|error| ImageError::Corrupt {
            name: short,
            reason: format!("the engine's description of it cannot be read: {error}"),
        })?;
        Ok(Some(Resolved {
            name: name.clone(),
            digest: found.id.clone(),
            key: found.id,
            platform: format!("linux/{}", found.architecture),
            config: Config {
                env: found.config.env.unwrap_or_default(),
                workdir: found.config.working_dir.unwrap_or_default(),
            },
            layers: Vec::new(),
        }))
    }

    fn start_on(&self, image: &Resolved) -> Image {
        Image::Container(self.of(image))
    }

    async fn platform(&self) -> Platform {
        let ask = async || {
            let arguments = ["version", "--format", "{{.Server.Os}}/{{.Server.Arch}}"];
            let told = self.engine.run("ask for its platform", &arguments).await.unwrap_or_default();
            Platform::parse(&told).unwrap_or_else(|_| Platform::host())
        };
        self.platform.get_or_init(ask).await.clone()
    }
}

fn all(image: &Resolved) -> u64 {
    image.layers.iter().map(|layer| layer.size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engines_words_are_understood() {
        let limit = "Error response from daemon: toomanyrequests: You have reached your pull rate limit.";
        assert!(is_limit(limit) && !is_final(limit));
        assert_eq!(named_wait(limit), None);
        assert_eq!(named_wait("429 Too Many Requests (Retry-After: 30)"), Some(Duration::from_secs(30)));
        let missing =
            "Error response from daemon: manifest for x:y not found: manifest unknown: manifest unknown";
        assert!(matches!(refusal("x".into(), missing.into(), 1), ImageError::Missing { .. }));
        let denied = "pull access denied for x, repository does not exist or may require 'docker login'";
        assert!(matches!(refusal("x".into(), denied.into(), 1), ImageError::Denied { .. }));
        let full = "failed to register layer: write /x: no space left on device";
        assert!(matches!(refusal("x".into(), full.into(), 1), ImageError::DiskFull { .. }));
        assert!(!is_final("received unexpected HTTP status: 500 Internal Server Error"));
    }
}
