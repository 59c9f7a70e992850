//! Small container images, made in memory: what [`crate::ImageRegistry`] serves.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use axum::body::Bytes;
use serde_json::json;
use sha2::{Digest, Sha256};

/// How a layer is compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compression {
    /// As Docker does.
    #[default]
    Gzip,
    /// As newer builders do.
    Zstd,
    /// Not at all.
    None,
}

/// One layer: a tar archive.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    tar: Vec<u8>,
    compression: Compression,
    /// Made once; clones share it.
    sealed: Arc<OnceLock<Sealed>>,
}

/// A layer as it is sent.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) bytes: Bytes,
    pub(crate) media_type: &'static str,
    pub(crate) digest: String,
    pub(crate) diff_id: String,
}

impl Layer {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compressed in this way.
    #[must_use]
    pub fn compressed(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self.sealed = Arc::default();
        self
    }

    /// A folder.
    #[must_use]
    pub fn folder(self, path: &str) -> Self {
        self.entry(path, tar::EntryType::Directory, 0o755, b"", None)
    }

    /// A file.
    #[must_use]
    pub fn file(self, path: &str, bytes: &[u8], mode: u32) -> Self {
        self.entry(path, tar::EntryType::Regular, mode, bytes, None)
    }

    /// A symbolic link.
    #[must_use]
    pub fn symlink(self, path: &str, target: &str) -> Self {
        self.entry(path, tar::EntryType::Symlink, 0o777, b"", Some(target))
    }

    /// A hard link.
    #[must_use]
    pub fn hard_link(self, path: &str, target: &str) -> Self {
        self.entry(path, tar::EntryType::Link, 0o644, b"", Some(target))
    }

    /// Any entry. The path is written as it is, `..` and leading slashes included; it may have 100 bytes.
    #[must_use]
    pub fn entry(
        mut self,
        path: &str,
        kind: tar::EntryType,
        mode: u32,
        bytes: &[u8],
        target: Option<&str>,
    ) -> Self {
        self.sealed = Arc::default();
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        if let Some(target) = target {
            header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        }
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(1_700_000_000);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        self.tar.extend_from_slice(header.as_bytes());
        self.tar.extend_from_slice(bytes);
        self.tar.resize(self.tar.len().next_multiple_of(512), 0);
        self
    }

    /// A folder of the host with all that is in it, below this path.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn tree(mut self, host: &Path, at: &str) -> Result<Self> {
        self.sealed = Arc::default();
        let mut builder = tar::Builder::new(Vec::new());
        builder.follow_symlinks(false);
        builder.append_dir_all(at.trim_start_matches('/'), host).context("cannot read the folder")?;
        let mut bytes = builder.into_inner()?;
        // Without the two empty blocks at its end: more follows.
        bytes.truncate(bytes.len() - 1024);
        self.tar.extend_from_slice(&bytes);
        Ok(self)
    }

    /// The archive.
    pub fn archive(&self) -> Vec<u8> {
        let mut tar = self.tar.clone();
        tar.extend_from_slice(&[0; 1024]);
        tar
    }

    pub(crate) fn sealed(&self) -> Result<&Sealed> {
        if let Some(sealed) = self.sealed.get() {
            return Ok(sealed);
        }
        let (bytes, media_type) = self.blob()?;
        let (digest, diff_id) = (digest(&bytes), digest(&self.archive()));
        Ok(self.sealed.get_or_init(|| Sealed { bytes: bytes.into(), media_type, digest, diff_id }))
    }

    /// As it is sent, with its media type.
    ///
    /// # Errors
    /// When it cannot be compressed.
    pub fn blob(&self) -> Result<(Vec<u8>, &'static str)> {
        let tar = self.archive();
        Ok(match self.compression {
            Compression::Gzip => {
                let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gzip.write_all(&tar)?;
                (gzip.finish()?, "application/vnd.oci.image.layer.v1.tar+gzip")
            }
            Compression::Zstd => {
                (zstd::encode_all(tar.as_slice(), 1)?, "application/vnd.oci.image.layer.v1.tar+zstd")
            }
            Compression::None => (tar, "application/vnd.oci.image.layer.v1.tar"),
        })
    }
}

/// An image: layers from the bottom up and its configuration.
#[derive(Debug, Clone)]
pub struct Image {
    /// Bottom first.
    pub layers: Vec<Layer>,
    /// `NAME=VALUE`.
    pub env: Vec<String>,
    /// Its working folder; empty: none.
    pub workdir: String,
    /// In Go's spelling.
    pub architecture: String,
}

impl Image {
    /// An image for this machine.
    pub fn new(layers: Vec<Layer>) -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
        Self { layers, env: vec![path], workdir: String::new(), architecture: architecture.to_owned() }
    }

    /// Its configuration.
    ///
    /// # Errors
    /// When a layer cannot be compressed.
    pub fn config(&self) -> Result<Vec<u8>> {
        let ids = self.layers.iter().map(|layer| Ok(layer.sealed()?.diff_id.clone()));
        let ids = ids.collect::<Result<Vec<_>>>()?;
        let config = json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": {"Env": self.env, "WorkingDir": self.workdir},
            "rootfs": {"type": "layers", "diff_ids": ids},
        });
        Ok(config.to_string().into_bytes())
    }
}

/// A layer that shows a machine's own programs, for a folder of the host mounted at `/usr`.
pub fn host_programs() -> Layer {
    let merged = ["bin", "sbin", "lib", "lib32", "lib64"]
        .into_iter()
        .filter(|name| Path::new("/").join(name).is_symlink())
        .fold(Layer::new(), |layer, name| layer.symlink(name, &format!("usr/{name}")));
    merged
        .folder("etc")
        .folder("usr")
        .folder("root")
        .file("etc/passwd", b"root:x:0:0:root:/root:/bin/bash\n", 0o644)
        .file("etc/group", b"root:x:0:\n", 0o644)
        .entry("tmp", tar::EntryType::Directory, 0o1777, b"", None)
}

/// `sha256:` and the digits.
pub fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    format!("sha256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
