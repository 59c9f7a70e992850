//! What a back end does with images: the part that differs between an engine and folders of layers.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::book::Kept;
use super::registry::Registry;
use super::{ImageError, Layer, Platform, Reference, Resolved};
use crate::sandbox::Image;

/// Asked with the bytes on disk so far, whether there may be more.
pub(in crate::sandbox) type Grow = Arc<dyn Fn(u64) -> Result<(), ImageError> + Send + Sync>;

/// One image to fetch.
pub(in crate::sandbox) struct Fetch<'a> {
    pub image: &'a Resolved,
    /// The layers that are not there yet, bottom first.
    pub missing: &'a [Layer],
    pub registry: &'a Registry,
    pub grow: Grow,
    /// Told of bytes transferred.
    pub progress: &'a (dyn Fn(u64) + Send + Sync),
}

/// A back end's place for images.
#[async_trait]
pub(in crate::sandbox) trait Keeper: Send + Sync {
    /// Whether an image is there, whole.
    async fn has(&self, image: &Resolved) -> Result<bool, ImageError>;

    /// The bytes of a layer that is there although no book says so.
    fn layer(&self, diff_id: &str) -> Option<u64>;

    /// Fetches what is missing; returns the bytes on disk of each new layer by diff id.
    async fn fetch(&self, fetch: Fetch<'_>) -> Result<BTreeMap<String, u64>, ImageError>;

    /// Removes an image, and the layers that nothing else needs.
    async fn remove(&self, image: &Kept, layers: &[String]) -> Result<(), ImageError>;

    /// Removes an environment that was built on an image.
    async fn remove_built(&self, key: &str) -> Result<(), ImageError>;

    /// The bytes of an environment.
    async fn built_bytes(&self, key: &str) -> u64;

    /// An image that only this engine knows, for example one that was built here.
    async fn local(&self, name: &Reference) -> Result<Option<Resolved>, ImageError>;

    /// What sandboxes start on.
    fn start_on(&self, image: &Resolved) -> Image;

    /// The platform of the machine that sandboxes run on.
    async fn platform(&self) -> Platform;
}
