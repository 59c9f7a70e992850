//! What a name stands for: from a tag to a digest, for a platform.

use std::sync::Arc;

use fs_err as fs;
use serde::Serialize;

use super::book::Kept;
use super::manifest::{self, Config, Document, Layer, Platform};
use super::{ImageError, Images, Reference, hex_of, lock, registry};

/// What a name stands for at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// As published.
    #[serde(serialize_with = "as_text")]
    pub name: Reference,
    /// The digest that the name points at: an index's, or a manifest's.
    pub digest: String,
    /// The digest of the manifest for the platform; for an image that only an engine knows, its id.
    pub key: String,
    /// Such as `linux/amd64`.
    pub platform: String,
    /// Environment and working folder.
    pub config: Config,
    /// Bottom first; empty where only an engine knows the image.
    pub layers: Vec<Layer>,
}

fn as_text<S: serde::Serializer>(name: &Reference, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(name)
}

impl Images {
    /// The platform that images are chosen for.
    pub(super) async fn platform(&self) -> Platform {
        match &self.settings.platform {
            Some(platform) => platform.clone(),
            None => self.keeper.platform().await,
        }
    }

    /// Finds out what a name points at: asked of its registry once, with one request that rate limits do not count
    /// where the answer is known already. Where the registry cannot be reached, an image that is here will do.
    ///
    /// # Errors
    /// When there is no such image for the platform, or no answer.
    pub async fn resolve(&self, name: &Reference) -> Result<Arc<Resolved>, ImageError> {
        let text = name.to_string();
        if let Some(known) = lock(&self.resolved).get(&text) {
            return Ok(known.clone());
        }
        let found = match self.ask_registry(name).await {
            Ok(found) => found,
            Err(error) => match self.known_here(name).await? {
                Some(found) => found,
                None => return Err(error),
            },
        };
        let found = Arc::new(found);
        lock(&self.resolved).insert(text, found.clone());
        Ok(found)
    }

    async fn known_here(&self, name: &Reference) -> Result<Option<Resolved>, ImageError> {
        let book = self.shelf.read()?;
        let platform = self.platform().await.to_string();
        let kept = book.find(&name.to_string(), name.digest(), &platform).filter(|(_, kept)| kept.whole);
        match kept {
            Some((key, kept)) => Ok(Some(of_kept(name, key, kept))),
            None => self.keeper.local(name).await,
        }
    }

    async fn ask_registry(&self, name: &Reference) -> Result<Resolved, ImageError> {
        let platform = self.platform().await;
        let registry = self.registry()?;
        let digest = match name.digest() {
            Some(digest) => digest.to_owned(),
            None => registry.digest(name).await?,
        };
        let book = self.shelf.read()?;
        if let Some((key, kept)) = book.find("", Some(&digest), &platform.to_string()) {
            return Ok(of_kept(name, key, kept));
        }
        let full = name.to_string();
        let text = self.cached(&digest, registry.manifest(name, &digest)).await?;
        let (key, document) = match manifest::document(&full, &text)? {
            Document::Index { manifests } => {
                let chosen = manifest::choose(&full, &manifests, &platform)?;
                let text = self.cached(&chosen.digest, registry.manifest(name, &chosen.digest)).await?;
                (chosen.digest.clone(), manifest::document(&full, &text)?)
            }
            document => (digest.clone(), document),
        };
        let Document::Manifest { config, layers } = document else {
            let reason = "its index points at another index".to_owned();
            return Err(ImageError::Corrupt { name: full, reason });
        };
        let text = self.cached(&config.digest, registry.small_blob(name, &config.digest)).await?;
        let (config, layers) = manifest::config(&full, &text, &layers, &platform)?;
        let platform = platform.to_string();
        Ok(Resolved { name: name.clone(), digest, key, platform, config, layers })
    }

    /// Manifests and configurations are kept by digest: rate limits count them.
    async fn cached(
        &self,
        digest: &str,
        get: impl Future<Output = Result<Vec<u8>, ImageError>>,
    ) -> Result<Vec<u8>, ImageError> {
        let folder = self.shelf.folder().join("manifests");
        let path = folder.join(hex_of(digest).unwrap_or("none"));
        if let Ok(bytes) = fs::read(&path)
            && registry::digest_of(&bytes) == digest
        {
            return Ok(bytes);
        }
        let bytes = get.await?;
        let partial = folder.join(format!(".{}", crate::sandbox::namespaces::unique()));
        let written = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&partial, &bytes))
            .and_then(|()| fs::rename(&partial, &path));
        written.map_err(ImageError::io(path))?;
        Ok(bytes)
    }
}

fn of_kept(name: &Reference, key: &str, kept: &Kept) -> Resolved {
    Resolved {
        name: name.clone(),
        digest: kept.digest.clone(),
        key: key.to_owned(),
        platform: kept.platform.clone(),
        config: kept.config.clone(),
        layers: kept.layers.clone(),
    }
}
