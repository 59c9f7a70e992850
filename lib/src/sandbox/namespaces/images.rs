//! Images as folders of unpacked layers: each layer once, whoever shares it.
//!
//! `images/layers/<hex of its diff id>/` holds `root/` and, written last, `bytes`. A layer is unpacked while it is
//! transferred, in a folder of its own that is renamed when both of its digests are right.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use fs_err as fs;
use memtrial_runner::tidy;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex as Turn;
use tokio::sync::mpsc::{Receiver, channel};

use super::layers::Layers;
use super::scratch;
use crate::sandbox::Image;
use crate::sandbox::images::keeper::{Fetch, Grow, Keeper};
use crate::sandbox::images::unpack::{Unpacked, unpack};
use crate::sandbox::images::{ImageError, Kept, Layer, Platform, Reference, Resolved, hex_of};

/// How often a layer is fetched again that came damaged.
const TRANSFERS: usize = 3;

/// The folders of layers.
pub(super) struct Folders {
    folder: PathBuf,
    environments: Layers,
    /// One lock a layer: images that share it wait for one transfer.
    turns: Mutex<HashMap<String, Arc<Turn<()>>>>,
}

impl Folders {
    pub(super) fn new(folder: PathBuf, environments: Layers) -> Self {
        Self { folder, environments, turns: Mutex::default() }
    }

    /// A layer's folder.
    fn of(&self, diff_id: &str) -> PathBuf {
        self.folder.join("layers").join(hex_of(diff_id).unwrap_or("none"))
    }

    /// The layers' folders, bottom first.
    pub(super) fn stack(&self, layers: &[Layer]) -> Vec<PathBuf> {
        layers.iter().map(|layer| self.of(&layer.diff_id)).collect()
    }

    fn turn(&self, diff_id: &str) -> Arc<Turn<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry(diff_id.to_owned()).or_default().clone()
    }

    async fn layer(&self, fetch: &Fetch<'_>, layer: &Layer, before: Before) -> Result<u64, ImageError> {
        let turn = self.turn(&layer.diff_id);
        let _turn = turn.lock().await;
        for transfer in 1.. {
            if let Some(bytes) = Keeper::layer(self, &layer.diff_id) {
                return Ok(bytes);
            }
            match self.transfer(fetch, layer, before).await {
                Err(ImageError::Corrupt { .. }) if transfer < TRANSFERS => {}
                other => return other,
            }
        }
        unreachable!("the loop ends by returning")
    }

    /// Fetches and unpacks one layer.
    async fn transfer(&self, fetch: &Fetch<'_>, layer: &Layer, before: Before) -> Result<u64, ImageError> {
        let partial = self.folder.join("partial");
        let scratch = partial.join(scratch::unique());
        fs::create_dir_all(scratch.join("root")).map_err(ImageError::io(&scratch))?;
        let held = scratch::hold(&scratch).map_err(ImageError::io(&scratch))?;
        let name = fetch.image.name.clone();
        let (send, receive) = channel(16);
        let unpacking = {
            let (folder, grow, layer) = (scratch.join("root"), fetch.grow.clone(), layer.clone());
            let name = name.to_string();
            tokio::task::spawn_blocking(move || {
                receive_layer(receive, &folder, &grow, before.bytes, &layer, &name)
            })
        };
        let sending = async {
            let counted = |done| (fetch.progress)(before.sent + done);
            let sent = fetch.registry.blob(&name, &layer.digest, layer.size, &send, &counted).await;
            drop(send);
            sent
        };
        let (sent, unpacked) = tokio::join!(sending, unpacking);
        let unpacked = unpacked.unwrap_or_else(|error| {
            Err(ImageError::Corrupt { name: name.to_string(), reason: error.to_string() })
        });
        let kept = match (sent, unpacked) {
            (Err(error), _) | (Ok(()), Err(error)) => Err(error),
            (Ok(()), Ok(unpacked)) => self.keep(&scratch, layer, &unpacked).map(|()| unpacked.bytes),
        };
        drop(held);
        if kept.is_err() {
            let _ = tokio::task::spawn_blocking(move || tidy::remove(&scratch)).await;
        }
        kept
    }

    /// Where another process was first, its layer stays: the digest says that it is the same.
    fn keep(&self, scratch: &Path, layer: &Layer, unpacked: &Unpacked) -> Result<(), ImageError> {
        let folder = self.of(&layer.diff_id);
        let renamed = fs::write(scratch.join("bytes"), unpacked.bytes.to_string())
            .and_then(|()| fs::create_dir_all(self.folder.join("layers")))
            .and_then(|()| fs::rename(scratch, &folder));
        match renamed {
            Err(_) if Keeper::layer(self, &layer.diff_id).is_some() => {
                tidy::remove(scratch);
                Ok(())
            }
            other => other.map_err(ImageError::io(folder)),
        }
    }
}

/// What was done before a layer.
#[derive(Clone, Copy, Default)]
struct Before {
    /// Bytes on disk.
    bytes: u64,
    /// Bytes transferred.
    sent: u64,
}

/// Unpacks what arrives and checks it.
fn receive_layer(
    from: Receiver<Vec<u8>>,
    folder: &Path,
    grow: &Grow,
    before: u64,
    layer: &Layer,
    name: &str,
) -> Result<Unpacked, ImageError> {
    let corrupt = |reason: String| ImageError::Corrupt { name: name.to_owned(), reason };
    let mut arriving = Arriving { from, piece: Vec::new(), at: 0, hash: Sha256::new() };
    let mut refused = None;
    let unpacked = unpack(&mut arriving, folder, &mut |bytes| {
        grow(before + bytes).map_err(|error| {
            refused = Some(error);
            io::Error::other("refused")
        })
    });
    if let Some(error) = refused {
        return Err(error);
    }
    if let Err(error) = &unpacked
        && error.kind() == io::ErrorKind::StorageFull
    {
        return Err(ImageError::DiskFull { name: name.to_owned(), path: folder.to_owned() });
    }
    let drained = io::copy(&mut arriving, &mut io::sink());
    drained.map_err(|error| corrupt(format!("layer {}: {error}", layer.digest)))?;
    let hash = arriving.hash.finalize();
    let digest = format!("sha256:{}", hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    if digest != layer.digest {
        return Err(corrupt(format!("what came for layer {} has the digest {digest}", layer.digest)));
    }
    let unpacked = unpacked.map_err(|error| ImageError::Layer {
        name: name.to_owned(),
        layer: layer.digest.clone(),
        reason: error.to_string(),
    })?;
    if unpacked.diff_id != layer.diff_id {
        let reason = format!("it unpacks to {} and not to {}", unpacked.diff_id, layer.diff_id);
        return Err(ImageError::Layer { name: name.to_owned(), layer: layer.digest.clone(), reason });
    }
    Ok(unpacked)
}

/// The bytes of a blob as they arrive.
struct Arriving {
    from: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
    hash: Sha256,
}

impl Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            match self.from.blocking_recv() {
                Some(piece) => (self.piece, self.at) = (piece, 0),
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.piece.len() - self.at);
        buffer[..length].copy_from_slice(&self.piece[self.at..self.at + length]);
        self.hash.update(&buffer[..length]);
        self.at += length;
        Ok(length)
    }
}

#[async_trait]
impl Keeper for Folders {
    async fn has(&self, image: &Resolved) -> Result<bool, ImageError> {
        Ok(image.layers.iter().all(|layer| Keeper::layer(self, &layer.diff_id).is_some()))
    }

    fn layer(&self, diff_id: &str) -> Option<u64> {
        fs::read_to_string(self.of(diff_id).join("bytes")).ok()?.trim().parse().ok()
    }

    async fn fetch(&self, fetch: Fetch<'_>) -> Result<BTreeMap<String, u64>, ImageError> {
        scratch::clear_stale(&self.folder.join("partial"));
        let (mut sizes, mut before) = (BTreeMap::new(), Before::default());
        for layer in fetch.missing {
            let bytes = self.layer(&fetch, layer, before).await?;
            before = Before { bytes: before.bytes + bytes, sent: before.sent + layer.size };
            sizes.insert(layer.diff_id.clone(), bytes);
        }
        Ok(sizes)
    }

    async fn remove(&self, _image: &Kept, layers: &[String]) -> Result<(), ImageError> {
        let folders: Vec<PathBuf> = layers.iter().map(|diff_id| self.of(diff_id)).collect();
        let partial = self.folder.join("partial");
        let removing = tokio::task::spawn_blocking(move || {
            for folder in folders.iter().filter(|folder| folder.exists()) {
                fs::create_dir_all(&partial).map_err(ImageError::io(&partial))?;
                // Out of the way at once: from here on it is no layer.
                let gone = partial.join(scratch::unique());
                fs::rename(folder, &gone).map_err(ImageError::io(folder))?;
                tidy::remove(&gone);
            }
            Ok(())
        });
        removing.await.map_err(|error| ImageError::io(&self.folder)(io::Error::other(error)))?
    }

    async fn remove_built(&self, key: &str) -> Result<(), ImageError> {
        let (layers, key) = (self.environments.clone(), key.to_owned());
        let dropping = tokio::task::spawn_blocking(move || layers.drop(&key));
        let dropped = dropping.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        dropped.map_err(ImageError::io(&self.folder))
    }

    async fn built_bytes(&self, key: &str) -> u64 {
        let (layers, key) = (self.environments.clone(), key.to_owned());
        tokio::task::spawn_blocking(move || layers.bytes(&key)).await.unwrap_or_default()
    }

    async fn local(&self, _name: &Reference) -> Result<Option<Resolved>, ImageError> {
        Ok(None)
    }

    fn start_on(&self, image: &Resolved) -> Image {
        Image::Container(image.name.at(&image.key).to_string())
    }

    async fn platform(&self) -> Platform {
        Platform::host()
    }
}
