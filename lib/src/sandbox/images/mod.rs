//! Published images: resolved to digests, fetched, kept within a budget of disk, held while they are in use.
//!
//! [`Images`] is the same for every back end; a [`keeper::Keeper`] does what differs: `docker` lets its engine pull,
//! `namespaces` unpacks each layer once into a folder of its own, so that images share layers and a sandbox is an
//! overlay over them.

mod book;
mod error;
pub(in crate::sandbox) mod keeper;
mod manifest;
mod name;
pub(in crate::sandbox) mod registry;
mod resolve;
mod settings;
pub(in crate::sandbox) mod unpack;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Mutex as Turn, Notify, Semaphore};

pub use book::Kept;
pub use error::ImageError;
pub use manifest::{Config, Layer, Platform};
pub use name::{DOCKER_HUB, Reference, is_host};
pub use resolve::Resolved;
pub use settings::{ImageEvent, ImageSettings, Login, Logins, OnImage, Patience};

use super::Image;
use book::{OpenBook, Reserved, Shelf};
use keeper::{Fetch, Grow, Keeper};
use registry::Registry;

pub(in crate::sandbox) use name::hex_of;

/// What a layer takes on disk is estimated as so many times what is transferred, which is compressed.
const FACTOR: u64 = 3;
/// Besides, for small files.
const LEAST: u64 = 64 << 10;
/// Room that fetching leaves on the host's disk.
const RESERVE: u64 = 512 << 20;
/// How often it is looked whether another process made room.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The published images of one back end.
pub struct Images {
    settings: ImageSettings,
    shelf: Shelf,
    keeper: Arc<dyn Keeper>,
    registry: Mutex<Option<Arc<Registry>>>,
    resolved: Mutex<HashMap<String, Arc<Resolved>>>,
    turns: Mutex<HashMap<String, Arc<Turn<()>>>>,
    pulls: Semaphore,
    freed: Arc<Notify>,
}

impl Images {
    /// Keeps its book in this folder.
    pub(in crate::sandbox) fn new(folder: PathBuf, keeper: Arc<dyn Keeper>, settings: ImageSettings) -> Self {
        Self {
            pulls: Semaphore::new(settings.pulls.max(1)),
            settings,
            shelf: Shelf::new(folder),
            keeper,
            registry: Mutex::default(),
            resolved: Mutex::default(),
            turns: Mutex::default(),
            freed: Arc::default(),
        }
    }

    fn registry(&self) -> Result<Arc<Registry>, ImageError> {
        let mut slot = lock(&self.registry);
        if let Some(registry) = slot.as_ref() {
            return Ok(registry.clone());
        }
        let registry = Arc::new(Registry::new(&self.settings)?);
        *slot = Some(registry.clone());
        Ok(registry)
    }

    /// Fetches an image where it is missing, and holds it: it is not dropped while the result lives. Waits for room
    /// where jobs hold what fills the budget.
    ///
    /// # Errors
    /// When it cannot be had, or does not fit.
    pub async fn hold(self: &Arc<Self>, name: &Reference) -> Result<Held, ImageError> {
        let image = self.resolve(name).await?;
        let turn = lock(&self.turns).entry(image.key.clone()).or_default().clone();
        let _turn = turn.lock().await;
        loop {
            let freed = self.freed.clone();
            let freed = freed.notified();
            match self.admit(&image).await? {
                Admitted::Here(lease) => return Ok(self.held(&image, lease)),
                Admitted::Fetch { lease, missing, reserved } => {
                    let fetched = self.fetch(&image, &missing, reserved).await;
                    self.settle(&image, fetched).await?;
                    return Ok(self.held(&image, lease));
                }
                Admitted::Full => {
                    let _ = tokio::time::timeout(LOOK_AGAIN, freed).await;
                }
            }
        }
    }

    fn held(self: &Arc<Self>, image: &Arc<Resolved>, lease: File) -> Held {
        let start = self.keeper.start_on(image);
        Held { image: start, resolved: image.clone(), images: self.clone(), lease: Some(lease) }
    }

    /// Looks whether an image is here, else makes room for it.
    async fn admit(&self, image: &Resolved) -> Result<Admitted, ImageError> {
        let mut open = self.shelf.open().await?;
        let lease = self.shelf.hold(&image.key)?;
        let here = self.keeper.has(image).await?;
        let known = open.book.images.get(&image.key);
        let (own, half) = (known.is_some_and(|kept| kept.own), known.is_some_and(|kept| !kept.whole));
        let unpacked = self.enter_unpacked(&mut open, image);
        if here && !half {
            open.book.enter(image, own || unpacked).whole = true;
            open.save()?;
            return Ok(Admitted::Here(lease));
        }
        open.book.enter(image, true).whole = false;
        let mut missing = image.layers.clone();
        missing.retain(|layer| !open.book.layers.contains_key(&layer.diff_id));
        missing.dedup_by(|one, other| one.diff_id == other.diff_id);
        let need = missing.iter().map(|layer| layer.size * FACTOR + LEAST).sum();
        match self.make_room(&mut open, &image.name.to_string(), Some(&image.key), need).await {
            Ok(true) => {
                let reserved = Arc::new(self.shelf.reserve(need)?);
                open.save()?;
                Ok(Admitted::Fetch { lease, missing, reserved })
            }
            other => {
                open.book.forget(&image.key);
                open.save()?;
                other.map(|_| Admitted::Full)
            }
        }
    }

    /// Enters the layers of an image that are there already, whoever unpacked them; whether there are any.
    fn enter_unpacked(&self, open: &mut OpenBook, image: &Resolved) -> bool {
        let found = image.layers.iter().filter_map(|layer| Some((layer, self.keeper.layer(&layer.diff_id)?)));
        let found: Vec<_> = found.map(|(layer, bytes)| (layer.diff_id.clone(), bytes)).collect();
        let any = !found.is_empty();
        open.book.layers.extend(found);
        any
    }

    async fn fetch(
        self: &Arc<Self>,
        image: &Resolved,
        missing: &[Layer],
        reserved: Arc<Reserved>,
    ) -> Result<Vec<(String, u64)>, ImageError> {
        let name = image.name.to_string();
        let _permit = self.pulls.acquire().await;
        let bytes = missing.iter().map(|layer| layer.size).sum();
        let tell = &self.settings.on_event;
        tell(&ImageEvent::Pulling { name: name.clone(), bytes });
        let progress = |done| tell(&ImageEvent::Progress { name: name.clone(), done, bytes });
        let registry = self.registry()?;
        let fetch = Fetch {
            image,
            missing,
            registry: &registry,
            grow: self.grow(image, reserved),
            progress: &progress,
        };
        let deadline = self.settings.patience.deadline;
        let sizes = tokio::time::timeout(deadline, self.keeper.fetch(fetch)).await.map_err(|_| {
            let reason = format!("it has not come within {} s", deadline.as_secs());
            ImageError::Registry { name: name.clone(), reason, tries: 1 }
        })??;
        tell(&ImageEvent::Pulled { name: name.clone() });
        Ok(sizes.into_iter().collect())
    }

    /// Lets a fetch take more than was put aside for it, as long as there is room.
    fn grow(self: &Arc<Self>, image: &Resolved, reserved: Arc<Reserved>) -> Grow {
        let (images, name, key) = (self.clone(), image.name.to_string(), image.key.clone());
        let runtime = tokio::runtime::Handle::current();
        Arc::new(move |bytes| {
            let more = bytes.saturating_sub(reserved.bytes());
            if more == 0 {
                return images.disk_has_room(&name, 0);
            }
            runtime.block_on(async {
                let mut open = images.shelf.open().await?;
                let made = images.make_room(&mut open, &name, Some(&key), more).await?;
                open.save()?;
                if made { reserved.set(bytes) } else { Err(images.over_budget(&name, bytes, 0)) }
            })
        })
    }

    /// Enters what came of a fetch.
    async fn settle(
        &self,
        image: &Resolved,
        fetched: Result<Vec<(String, u64)>, ImageError>,
    ) -> Result<(), ImageError> {
        let mut open = self.shelf.open().await?;
        match fetched {
            Ok(sizes) => {
                open.book.layers.extend(sizes);
                open.book.enter(image, true).whole = true;
                open.save()
            }
            Err(error) => {
                // What passes is tried again: the layers that have come stay, and count.
                let passing = matches!(error, ImageError::Registry { .. } | ImageError::RateLimited { .. });
                if !(passing && self.enter_unpacked(&mut open, image))
                    && let Some((kept, gone)) = open.book.forget(&image.key)
                {
                    let _ = self.keeper.remove(&kept, &gone).await;
                }
                open.save()?;
                self.freed.notify_waiters();
                Err(error)
            }
        }
    }

    /// Drops the images longest unused until so many bytes more fit. `false`: what is left is in use.
    async fn make_room(
        &self,
        open: &mut OpenBook,
        name: &str,
        keep: Option<&str>,
        need: u64,
    ) -> Result<bool, ImageError> {
        loop {
            let used = open.book.total() + self.shelf.reserved();
            let fits = self.settings.disk.is_none_or(|budget| used.saturating_add(need) <= budget);
            if fits && self.disk_has_room(name, need).is_ok() {
                return Ok(true);
            }
            let mut busy = self.shelf.reserved() > 0;
            let mut victim = None;
            for key in open.book.oldest_first() {
                let held = self.shelf.is_held(&key);
                let own = Some(key.as_str()) == keep;
                busy |= held && !own;
                if !held && !own {
                    victim = Some(key);
                    break;
                }
            }
            match victim {
                Some(key) => drop(self.drop_image(open, &key).await?),
                None if busy => return Ok(false),
                None if fits => return self.disk_has_room(name, need).map(|()| true),
                None => return Err(self.over_budget(name, need, used)),
            }
        }
    }

    async fn drop_image(&self, open: &mut OpenBook, key: &str) -> Result<Kept, ImageError> {
        let built: Vec<String> =
            open.book.images.get(key).map(|image| image.built.keys().cloned().collect()).unwrap_or_default();
        for layer in built {
            self.keeper.remove_built(&layer).await?;
        }
        let Some((image, gone)) = open.book.forget(key) else {
            let reason = "it is not kept here".to_owned();
            return Err(ImageError::Missing { name: key.to_owned(), reason });
        };
        // From here on it is not used, even where removing ends half-way.
        open.save()?;
        if image.own {
            self.keeper.remove(&image, &gone).await?;
        }
        let name = image.names.first().cloned().unwrap_or_else(|| image.digest.clone());
        (self.settings.on_event)(&ImageEvent::Dropped { name });
        Ok(image)
    }

    fn over_budget(&self, name: &str, need: u64, used: u64) -> ImageError {
        let budget = self.settings.disk.unwrap_or_default();
        ImageError::Budget { name: name.to_owned(), need, budget, room: budget.saturating_sub(used) }
    }

    fn disk_has_room(&self, name: &str, need: u64) -> Result<(), ImageError> {
        let folder = self.shelf.folder();
        let free = super::free_space(folder).unwrap_or(u64::MAX);
        if free >= need.saturating_add(RESERVE) {
            return Ok(());
        }
        Err(ImageError::DiskFull { name: name.to_owned(), path: folder.to_owned() })
    }

    /// Enters an environment that was built on an image: it is dropped with it.
    pub(in crate::sandbox) async fn built(&self, held: &Held, key: &str) -> Result<(), ImageError> {
        let bytes = self.keeper.built_bytes(key).await;
        let mut open = self.shelf.open().await?;
        if let Some(kept) = open.book.images.get_mut(&held.resolved.key) {
            kept.built.insert(key.to_owned(), bytes);
        }
        let _ = self.make_room(&mut open, &held.resolved.name.to_string(), Some(&held.resolved.key), 0).await;
        open.save()
    }

    /// Everything that is kept.
    ///
    /// # Errors
    /// When the book cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, ImageError> {
        let book = self.shelf.read()?;
        let listed = book.images.iter().map(|(key, image)| {
            let (alone, bytes) = book.sizes(key);
            let in_use = self.shelf.is_held(key);
            Listed { key: key.clone(), image: image.clone(), bytes, alone, in_use }
        });
        Ok(listed.collect())
    }

    /// Bytes on disk of all that memtrial fetched and built on it; each layer counts once.
    ///
    /// # Errors
    /// When the book cannot be read.
    pub fn used(&self) -> Result<u64, ImageError> {
        Ok(self.shelf.read()?.total())
    }

    /// Drops every image that memtrial fetched and no job uses, with the environments on it.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub async fn prune(&self) -> Result<Vec<Kept>, ImageError> {
        let mut open = self.shelf.open().await?;
        let mut dropped = Vec::new();
        for key in open.book.oldest_first() {
            if !self.shelf.is_held(&key) {
                dropped.push(self.drop_image(&mut open, &key).await?);
            }
        }
        Ok(dropped)
    }

    /// Layers of an image that is here, bottom first, by its digest or one of its names, and what holds it.
    pub(in crate::sandbox) async fn layers_of(
        &self,
        name: &str,
    ) -> Result<Option<(Vec<Layer>, File)>, ImageError> {
        let (name, platform) = (Reference::parse(name)?, self.platform().await.to_string());
        let text = name.to_string();
        let book = self.shelf.read()?;
        let Some((key, _)) = book.find(&text, name.digest(), &platform) else { return Ok(None) };
        let lease = self.shelf.hold(key)?;
        // It may have been dropped meanwhile; held, it no longer can be.
        let book = self.shelf.read()?;
        let found = book.find(&text, name.digest(), &platform).filter(|(_, kept)| kept.whole);
        Ok(found.map(|(_, kept)| (kept.layers.clone(), lease)))
    }
}

enum Admitted {
    Here(File),
    Fetch { lease: File, missing: Vec<Layer>, reserved: Arc<Reserved> },
    Full,
}

/// An image as [`Images::list`] shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The digest of the platform's manifest.
    pub key: String,
    /// What is known of it.
    #[serde(flatten)]
    pub image: Kept,
    /// Bytes of its layers and of the environments on it.
    pub bytes: u64,
    /// Of these, what no other image shares.
    pub alone: u64,
    /// Whether a job uses it.
    pub in_use: bool,
}

/// An image that is here and stays while this lives.
pub struct Held {
    /// What sandboxes start on.
    pub image: Image,
    /// What it is.
    pub resolved: Arc<Resolved>,
    images: Arc<Images>,
    lease: Option<File>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.lease.take());
        self.images.freed.notify_waiters();
    }
}

/// An order in which tasks with images that share layers follow one another: shared layers are fetched once and stay
/// while they are needed. Ranks by name.
pub fn order(images: &[Arc<Resolved>]) -> HashMap<String, usize> {
    let chains: BTreeSet<(Vec<&str>, String)> = images
        .iter()
        .map(|image| {
            let chain = image.layers.iter().map(|layer| layer.diff_id.as_str()).collect();
            (chain, image.name.to_string())
        })
        .collect();
    chains.into_iter().enumerate().map(|(rank, (_, name))| (name, rank)).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
