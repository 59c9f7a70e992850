//! What goes wrong with published images. None of it is a task's or a solver's fault.

use std::path::PathBuf;
use std::time::Duration;

use crate::sandbox::SandboxError;

/// Why a published image cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The name is none.
    #[error("image name {name:?}: {reason}")]
    Name {
        /// As written.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// The registry has no such image.
    #[error("image {name} is missing: {reason}; check its name and tag, or leave the task out")]
    Missing {
        /// In full.
        name: String,
        /// The registry's words.
        reason: String,
    },
    /// The registry wants other credentials, or none will do.
    #[error(
        "image {name}: the registry refuses: {reason}; it is private or does not exist (credentials come from `docker \
         login`)"
    )]
    Denied {
        /// In full.
        name: String,
        /// The registry's words.
        reason: String,
    },
    /// The registry's rate limit did not pass in time.
    #[error("image {name}: the registry's rate limit did not pass within {} s: {reason}; log in, or name a mirror with --registry", .waited.as_secs())]
    RateLimited {
        /// In full.
        name: String,
        /// The registry's words.
        reason: String,
        /// How long was waited.
        waited: Duration,
    },
    /// It is not built for the platform that is wanted.
    #[error("image {name} is not for {wanted} (it is for {offered}); {hint}")]
    Platform {
        /// In full.
        name: String,
        /// Such as `linux/arm64`.
        wanted: String,
        /// What there is.
        offered: String,
        /// What to do.
        hint: String,
    },
    /// What came is not what its digest says, or is no image.
    #[error("image {name}: {reason}")]
    Corrupt {
        /// In full.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A layer is damaged or hostile as published: it is the same for everybody.
    #[error("image {name}: its layer {layer} cannot be unpacked: {reason}")]
    Layer {
        /// In full.
        name: String,
        /// Its digest.
        layer: String,
        /// What is wrong.
        reason: String,
    },
    /// The registry cannot be reached or fails, after every retry.
    #[error("image {name}: {reason} ({tries} tries)")]
    Registry {
        /// In full.
        name: String,
        /// What happened last.
        reason: String,
        /// How often it was tried.
        tries: u32,
    },
    /// It does not fit into the budget, even with everything else dropped.
    #[error(
        "image {name} needs about {need} bytes of disk, and the budget of {budget} bytes leaves {room}; raise \
         --image-disk, or free some with `memtrial image prune`"
    )]
    Budget {
        /// In full.
        name: String,
        /// Estimated from its manifest, or counted while it was unpacked.
        need: u64,
        /// The whole budget.
        budget: u64,
        /// What may be had of it.
        room: u64,
    },
    /// The host's disk has no room.
    #[error(
        "no space left for image {name} under {path}: free some, lower --image-disk or name another --cache"
    )]
    DiskFull {
        /// In full.
        name: String,
        /// Where.
        path: PathBuf,
    },
    /// This back end cannot start on published images.
    #[error("sandbox back end {backend} cannot start on published images; use namespaces or docker")]
    Unsupported {
        /// Its name.
        backend: &'static str,
    },
    /// A file of the host cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The container engine failed.
    #[error(transparent)]
    Engine(#[from] SandboxError),
}

impl ImageError {
    /// A file error.
    pub(in crate::sandbox) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
