//! What is kept of published images, in one file: `book.json`. Sizes, who is on which layer, and which was used last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::manifest::{Config, Layer};
use super::{ImageError, Resolved};

/// One image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// What it was asked for by.
    pub names: BTreeSet<String>,
    /// The digest that the names point at.
    pub digest: String,
    /// Its platform, such as `linux/amd64`.
    pub platform: String,
    /// Environment and working folder.
    pub config: Config,
    /// Bottom first.
    pub layers: Vec<Layer>,
    /// Whether all of it is there.
    pub whole: bool,
    /// Whether memtrial fetched it: what the user had before is never dropped.
    pub own: bool,
    /// When it was last used, in uses.
    pub used: u64,
    /// Environments built on it, by layer key, with their bytes.
    pub built: BTreeMap<String, u64>,
}

/// Everything that is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Book {
    clock: u64,
    /// By the digest of the platform's manifest.
    pub images: BTreeMap<String, Kept>,
    /// Bytes on disk of the layers that memtrial fetched, by diff id.
    pub layers: BTreeMap<String, u64>,
}

impl Book {
    /// Bytes on disk.
    pub(super) fn total(&self) -> u64 {
        let built = self.images.values().flat_map(|image| image.built.values());
        self.layers.values().chain(built).sum()
    }

    /// Enters an image that is about to be fetched, or used again.
    pub(super) fn enter(&mut self, image: &Resolved, own: bool) -> &mut Kept {
        self.clock += 1;
        let name = image.name.to_string();
        for (key, kept) in &mut self.images {
            if *key != image.key {
                kept.names.remove(&name);
            }
        }
        let kept = self.images.entry(image.key.clone()).or_insert_with(|| Kept {
            names: BTreeSet::new(),
            digest: image.digest.clone(),
            platform: image.platform.clone(),
            config: image.config.clone(),
            layers: image.layers.clone(),
            whole: false,
            own,
            used: 0,
            built: BTreeMap::new(),
        });
        kept.names.insert(name);
        kept.used = self.clock;
        kept
    }

    /// The image that a name, or a digest, means.
    pub(super) fn find(&self, name: &str, digest: Option<&str>, platform: &str) -> Option<(&String, &Kept)> {
        self.images.iter().find(|(key, kept)| match digest {
            Some(digest) => *key == digest || (kept.digest == digest && kept.platform == platform),
            None => kept.names.contains(name) && kept.platform == platform,
        })
    }

    /// Forgets an image; returns it with the layers that nothing needs any more.
    pub(super) fn forget(&mut self, key: &str) -> Option<(Kept, Vec<String>)> {
        let image = self.images.remove(key)?;
        let needed: BTreeSet<&str> = self.diff_ids().collect();
        let ids = image.layers.iter().map(|layer| layer.diff_id.clone());
        let gone: Vec<String> = ids.filter(|id| !needed.contains(id.as_str())).collect();
        for id in &gone {
            self.layers.remove(id);
        }
        Some((image, gone))
    }

    fn diff_ids(&self) -> impl Iterator<Item = &str> {
        self.images.values().flat_map(|image| image.layers.iter().map(|layer| layer.diff_id.as_str()))
    }

    /// Bytes of an image that no other shares, and of all its layers with what is built on it.
    pub(super) fn sizes(&self, key: &str) -> (u64, u64) {
        let Some(image) = self.images.get(key) else { return (0, 0) };
        let mut users: BTreeMap<&str, u64> = BTreeMap::new();
        for id in self.diff_ids() {
            *users.entry(id).or_default() += 1;
        }
        let built: u64 = image.built.values().sum();
        let (mut alone, mut all) = (built, built);
        for id in image.layers.iter().map(|layer| layer.diff_id.as_str()) {
            let bytes = self.layers.get(id).copied().unwrap_or_default();
            all += bytes;
            alone += if users.get(id) == Some(&1) { bytes } else { 0 };
        }
        (alone, all)
    }

    /// The images that may be dropped, the one longest unused first.
    pub(super) fn oldest_first(&self) -> Vec<String> {
        let mut keys: Vec<_> =
            self.images.iter().filter(|(_, image)| image.own || !image.built.is_empty()).collect();
        keys.sort_by_key(|(_, image)| image.used);
        keys.into_iter().map(|(key, _)| key.clone()).collect()
    }
}

/// The book's folder: one process at a time changes it.
#[derive(Debug, Clone)]
pub(super) struct Shelf {
    folder: PathBuf,
}

impl Shelf {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the book without waiting for who may be changing it: files are replaced whole.
    pub(super) fn read(&self) -> Result<Book, ImageError> {
        let path = self.folder.join("book.json");
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| ImageError::io(path)(e.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Book::default()),
            Err(error) => Err(ImageError::io(path)(error)),
        }
    }

    /// Opens the book to change it.
    pub(super) async fn open(&self) -> Result<OpenBook, ImageError> {
        let shelf = self.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let path = shelf.folder.join(".lock");
            fs::create_dir_all(&shelf.folder).map_err(ImageError::io(&shelf.folder))?;
            let lock = File::create(&path).map_err(ImageError::io(&path))?;
            lock.lock().map_err(ImageError::io(&path))?;
            Ok(OpenBook { book: shelf.read()?, folder: shelf.folder.clone(), _lock: lock })
        });
        opened.await.map_err(|error| ImageError::io(&self.folder)(std::io::Error::other(error)))?
    }

    /// Holds an image: nobody drops it while the file lives.
    pub(super) fn hold(&self, key: &str) -> Result<File, ImageError> {
        let file = self.mark("held", &key.replace(':', "-"))?;
        file.lock_shared().map_err(ImageError::io(&self.folder))?;
        Ok(file)
    }

    /// Whether a process holds an image.
    pub(super) fn is_held(&self, key: &str) -> bool {
        let path = self.folder.join("held").join(key.replace(':', "-"));
        File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Puts bytes aside for a fetch; they are free again when the file is gone.
    pub(super) fn reserve(&self, bytes: u64) -> Result<Reserved, ImageError> {
        let file = self.mark("reserved", &crate::sandbox::namespaces::unique())?;
        file.lock_shared().map_err(ImageError::io(&self.folder))?;
        let reserved = Reserved { file, bytes: std::sync::Mutex::new(0) };
        reserved.set(bytes)?;
        Ok(reserved)
    }

    /// Bytes put aside by fetches under way; what dead processes left is cleared.
    pub(super) fn reserved(&self) -> u64 {
        let entries = fs::read_dir(self.folder.join("reserved")).into_iter().flatten().flatten();
        let alive = |path: &PathBuf| {
            let held = File::open(path).is_ok_and(|f| matches!(f.try_lock(), Err(TryLockError::WouldBlock)));
            if !held {
                let _ = fs::remove_file(path);
            }
            held
        };
        let paths = entries.map(|entry| entry.path()).filter(alive);
        paths.filter_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()).sum()
    }

    fn mark(&self, kind: &str, name: &str) -> Result<File, ImageError> {
        let path = self.folder.join(kind).join(name);
        fs::create_dir_all(self.folder.join(kind)).map_err(ImageError::io(&self.folder))?;
        let options = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        options.map_err(ImageError::io(path))
    }
}

/// Bytes put aside.
pub(super) struct Reserved {
    file: File,
    bytes: std::sync::Mutex<u64>,
}

impl Reserved {
    pub(super) fn bytes(&self) -> u64 {
        *self.bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn set(&self, bytes: u64) -> Result<(), ImageError> {
        use std::os::unix::fs::FileExt;
        let mut now = self.bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *now = bytes;
        // Blanks cover what a longer number left.
        self.file.write_all_at(format!("{bytes:<20}").as_bytes(), 0).map_err(ImageError::io("reserved"))
    }
}

/// The book while nobody else may change it.
pub(super) struct OpenBook {
    pub book: Book,
    folder: PathBuf,
    _lock: File,
}

impl OpenBook {
    /// Writes it.
    pub(super) fn save(&self) -> Result<(), ImageError> {
        let (path, partial) = (self.folder.join("book.json"), self.folder.join(".book.json"));
        let bytes = serde_json::to_vec_pretty(&self.book).map_err(|e| ImageError::io(&path)(e.into()))?;
        fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, &path)).map_err(ImageError::io(path))
    }
}
