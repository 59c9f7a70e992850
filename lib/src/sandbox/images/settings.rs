//! What decides how published images are fetched and kept.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::manifest::Platform;

/// A name and a password (or token) for a registry. Neither is ever printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password or token.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login([redacted])")
    }
}

/// Looks up the login for a registry's host.
pub type Logins = Arc<dyn Fn(&str) -> Option<Login> + Send + Sync>;

/// What is told while images are fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageEvent {
    /// An image is being fetched.
    Pulling {
        /// Its name.
        name: String,
        /// Bytes to transfer, as its manifest says.
        bytes: u64,
    },
    /// Part of it has come.
    Progress {
        /// Its name.
        name: String,
        /// Bytes transferred so far.
        done: u64,
        /// Of so many.
        bytes: u64,
    },
    /// It is there.
    Pulled {
        /// Its name.
        name: String,
    },
    /// The registry is asked again after a pause.
    Waiting {
        /// The image's name.
        name: String,
        /// Why.
        reason: String,
        /// How long.
        wait: Duration,
    },
    /// It was dropped to make room.
    Dropped {
        /// Its name.
        name: String,
    },
}

/// Hears of images.
pub type OnImage = Arc<dyn Fn(&ImageEvent) + Send + Sync>;

/// How often and how patiently a registry is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Tries of one request; waits that a rate limit asks for do not count.
    pub tries: u32,
    /// The first pause; each further one is twice as long.
    pub first: Duration,
    /// The longest pause that is not the registry's own wish.
    pub longest: Duration,
    /// How long rate limits may keep one request waiting, and how long one image may take.
    pub deadline: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            tries: 6,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            deadline: Duration::from_secs(7200),
        }
    }
}

/// How published images are fetched and kept.
#[derive(Clone)]
pub struct ImageSettings {
    /// Asked in Docker Hub's place: `HOST[:PORT]`.
    pub mirror: Option<String>,
    /// Another platform than this machine's.
    pub platform: Option<Platform>,
    /// Bytes on disk that fetched images, and the environments on them, may take; `None`: no bound but the disk's.
    pub disk: Option<u64>,
    /// Images fetched at once.
    pub pulls: usize,
    /// How patiently.
    pub patience: Patience,
    /// Where logins come from.
    pub logins: Logins,
    /// Hears of what is done.
    pub on_event: OnImage,
}

impl Default for ImageSettings {
    fn default() -> Self {
        Self {
            mirror: None,
            platform: None,
            disk: None,
            pulls: 3,
            patience: Patience::default(),
            logins: Arc::new(|_| None),
            on_event: Arc::new(|_| {}),
        }
    }
}

impl fmt::Debug for ImageSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mirror, platform, disk, pulls, patience, .. } = self;
        f.debug_struct("ImageSettings")
            .field("mirror", mirror)
            .field("platform", platform)
            .field("disk", disk)
            .field("pulls", pulls)
            .field("patience", patience)
            .finish_non_exhaustive()
    }
}
