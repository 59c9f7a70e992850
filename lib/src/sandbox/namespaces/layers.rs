//! Committed layers on disk: `layers/<key>/` holds what was written (`root/`, on the host's base also `usr/`) and
//! `layer.json`, which names what it lies on.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use memtrial_runner::tidy;
use serde::{Deserialize, Serialize};

use crate::sandbox::Image;

/// What a layer lies on.
#[derive(Debug, Serialize, Deserialize)]
struct Meta {
    parent: Image,
}

/// The folder of layers.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    root: PathBuf,
}

/// What a chain of layers ends at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stack {
    /// Neither a layer nor missing.
    pub base: Image,
    /// The layers' folders, topmost first.
    pub layers: Vec<PathBuf>,
}

impl Layers {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Resolves an image down to its base; the error names the layer that is missing.
    pub(super) fn stack(&self, image: &Image) -> Result<Stack, String> {
        let mut layers = Vec::new();
        let mut image = image.clone();
        while let Image::Layer(key) = &image {
            let folder = self.folder(key).map_err(|error| error.to_string())?;
            let meta = self.meta(key).ok_or_else(|| format!("there is no layer {key}"))?;
            layers.push(folder);
            image = meta.parent;
        }
        Ok(Stack { base: image, layers })
    }

    /// Whether a layer is whole, with all that it lies on.
    pub(super) fn has(&self, key: &str) -> bool {
        !self.is_dropped(key) && self.stack(&Image::Layer(key.to_owned())).is_ok()
    }

    /// Makes the folder `scratch` the layer `key`. Where another process was first, its layer stays: the key says that
    /// it is the same.
    pub(super) fn add(&self, scratch: &Path, key: &str, parent: &Image) -> io::Result<()> {
        let folder = self.folder(key)?;
        let _lock = self.lock()?;
        let meta = serde_json::to_vec_pretty(&Meta { parent: parent.clone() })?;
        fs::write(scratch.join("layer.json"), meta)?;
        rustix::fs::syncfs(File::open(scratch)?)?;
        if self.meta(key).is_some() {
            tidy::remove(&folder.join("dropped"));
            tidy::remove(scratch);
            return Ok(());
        }
        tidy::remove(&folder);
        fs::rename(scratch, folder)
    }

    /// Drops a layer: at once where nothing lies on it, else with the last layer that does. From this moment
    /// [`Layers::has`] denies it.
    pub(super) fn drop(&self, key: &str) -> io::Result<()> {
        let folder = self.folder(key)?;
        let _lock = self.lock()?;
        if self.meta(key).is_none() {
            return Ok(());
        }
        fs::write(folder.join("dropped"), "")?;
        let mut key = key.to_owned();
        while self.is_dropped(&key) && !self.is_parent(&key)? {
            let parent = self.meta(&key).map(|meta| meta.parent);
            let gone = self.root.join(format!(".gone-{key}"));
            fs::rename(self.folder(&key)?, &gone)?;
            tidy::remove(&gone);
            match parent {
                Some(Image::Layer(below)) => key = below,
                _ => break,
            }
        }
        Ok(())
    }

    /// Bytes on disk of what a layer holds.
    pub(super) fn bytes(&self, key: &str) -> u64 {
        self.folder(key).map_or(0, |folder| disk_bytes(&folder))
    }

    fn is_dropped(&self, key: &str) -> bool {
        self.folder(key).is_ok_and(|folder| folder.join("dropped").exists())
    }

    fn is_parent(&self, key: &str) -> io::Result<bool> {
        for entry in fs::read_dir(&self.root)? {
            let name = entry?.file_name();
            let meta = name.to_str().and_then(|name| self.meta(name));
            if meta.is_some_and(|meta| meta.parent == Image::Layer(key.to_owned())) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn meta(&self, key: &str) -> Option<Meta> {
        let bytes = fs::read(self.folder(key).ok()?.join("layer.json")).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn folder(&self, key: &str) -> io::Result<PathBuf> {
        check_key(key).map(|()| self.root.join(key))
    }

    /// One process at a time changes layers.
    fn lock(&self) -> io::Result<File> {
        fs::create_dir_all(&self.root)?;
        let file = File::create(self.root.join(".lock"))?;
        file.lock()?;
        Ok(file)
    }
}

fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    let below = if found.is_dir() { fs::read_dir(path).ok() } else { None };
    let below = below.into_iter().flatten().flatten().map(|entry| disk_bytes(&entry.path()));
    found.blocks() * 512 + below.sum::<u64>()
}

/// A key becomes the name of a folder or of an image's tag.
pub(in crate::sandbox) fn check_key(key: &str) -> io::Result<()> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !key.is_empty() && key.len() <= 128 && key.bytes().all(fits) && !key.starts_with('-') {
        return Ok(());
    }
    let reason = format!("{key:?} is no layer key: expected up to 128 letters, digits, `-` and `_`");
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(layers: &Layers, top: &Path, key: &str, parent: &Image) {
        let scratch = top.join("scratch");
        fs::create_dir_all(scratch.join("root")).unwrap();
        layers.add(&scratch, key, parent).unwrap();
        assert!(!scratch.exists());
    }

    fn layer(key: &str) -> Image {
        Image::Layer(key.into())
    }

    #[test]
    fn a_stack_is_resolved_from_top_to_base() {
        let top = tempfile::tempdir().unwrap();
        let layers = Layers::new(top.path().join("layers"));
        add(&layers, top.path(), "a", &Image::Host);
        add(&layers, top.path(), "b", &layer("a"));
        add(&layers, top.path(), "b", &layer("a"));
        let stack = layers.stack(&layer("b")).unwrap();
        assert_eq!(stack.base, Image::Host);
        assert_eq!(stack.layers, ["b", "a"].map(|key| top.path().join("layers").join(key)));
        assert!(layers.has("b") && !layers.has("c"));
        assert_eq!(layers.stack(&layer("c")).unwrap_err(), "there is no layer c");
    }

    #[test]
    fn a_dropped_layer_stays_for_those_on_it_and_goes_with_the_last() {
        let top = tempfile::tempdir().unwrap();
        let layers = Layers::new(top.path().join("layers"));
        add(&layers, top.path(), "a", &Image::Host);
        add(&layers, top.path(), "b", &layer("a"));
        add(&layers, top.path(), "c", &layer("a"));
        layers.drop("a").unwrap();
        assert!(!layers.has("a") && layers.has("b") && layers.has("c"));
        layers.drop("b").unwrap();
        assert!(!layers.has("b") && layers.has("c"));
        layers.drop("c").unwrap();
        let left: Vec<_> =
            fs::read_dir(top.path().join("layers")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, [".lock"]);
        layers.drop("c").unwrap();
    }

    #[test]
    fn a_layer_committed_again_after_it_was_dropped_is_back() {
        let top = tempfile::tempdir().unwrap();
        let layers = Layers::new(top.path().join("layers"));
        add(&layers, top.path(), "a", &Image::Host);
        add(&layers, top.path(), "b", &layer("a"));
        layers.drop("a").unwrap();
        add(&layers, top.path(), "a", &Image::Host);
        assert!(layers.has("a") && layers.has("b"));
    }

    #[test]
    fn a_key_that_is_no_name_is_refused() {
        for key in ["", "..", "a/b", "-a", ".lock", &"x".repeat(129)] {
            assert!(check_key(key).is_err(), "{key}");
        }
        check_key("0af3_x-1").unwrap();
    }
}
