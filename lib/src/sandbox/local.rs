//! The back end `local`: no isolation. Commands run as this user, on this machine, with its network.
//!
//! It is for machines where nothing else works and code that one trusts. An absolute inside path means a place in a
//! scratch folder (`put`, `get` and the working folder of a command: `/testbed` is `SCRATCH/testbed`), but what a
//! command does with an absolute path of its own reaches the host. Time and output are bounded; memory, processes,
//! CPUs, disk and network are not.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use fs_err as fs;
use memtrial_runner::tidy;
use tokio::process::Command;

use super::conformance::Claim;
use super::link::Link;
use super::namespaces::{check_key, unique};
use super::{
    Attached, Backend, Exec, Health, Image, NOT_KEPT, Output, Program, Sandbox, SandboxError, Spec, program,
};

const NAME: &str = "local";

/// Commands without isolation.
pub struct Local {
    cache: PathBuf,
}

impl Local {
    /// Keeps scratch folders and layers under this folder.
    pub fn new(cache: PathBuf) -> Self {
        Self { cache: std::path::absolute(&cache).unwrap_or(cache) }
    }

    fn layer(&self, key: &str) -> io::Result<PathBuf> {
        check_key(key).map(|()| self.cache.join(NAME).join("layers").join(key))
    }

    /// A scratch folder with the layer's content and the mounts as links.
    async fn scratch(&self, spec: &Spec) -> Result<PathBuf, SandboxError> {
        let parent = self.cache.join(NAME).join("scratch");
        fs::create_dir_all(&parent).map_err(|error| failed("start", error.to_string()))?;
        let scratch = parent.join(unique());
        match &spec.image {
            Image::Host => fs::create_dir(&scratch).map_err(|error| failed("start", error.to_string()))?,
            Image::Layer(key) => {
                let layer = self.layer(key).map_err(|error| failed("start on a layer", error.to_string()))?;
                copy(&layer, &scratch).await?;
            }
            Image::Rootfs(_) | Image::Container(_) => {
                return Err(SandboxError::Unavailable {
                    backend: NAME,
                    reason: "it has no root file system of its own".to_owned(),
                    hint: "use the host as base, or --sandbox namespaces or docker".to_owned(),
                });
            }
        }
        let furnished = furnish(&scratch, spec);
        furnished.map_err(|error| failed("start", error.to_string()))?;
        Ok(scratch)
    }

    async fn open(&self, spec: &Spec) -> Result<LocalSandbox, SandboxError> {
        if spec.gateway.is_some() {
            return Err(SandboxError::Unavailable {
                backend: NAME,
                reason: "it has no network of its own that only a gateway could lead out of".to_owned(),
                hint: "use --sandbox namespaces or docker".to_owned(),
            });
        }
        let runner = program::runner(&self.cache).map_err(|error| failed("start", error.to_string()))?;
        let scratch = self.scratch(spec).await?;
        let mut command = Command::new(runner);
        command.arg("serve").arg(&scratch).env_clear().current_dir(&scratch);
        command.env("HOME", scratch.join("root")).env("TMPDIR", scratch.join("tmp"));
        let link = Link::start(NAME, command).await.map_err(|error| failed("start", error.to_string()))?;
        let guard = Scratch(scratch);
        let mut sandbox = LocalSandbox { guard, keep: spec.keep, link: Some(link) };
        sandbox.link()?.ping().await?;
        Ok(sandbox)
    }
}

fn furnish(scratch: &Path, spec: &Spec) -> io::Result<()> {
    for name in ["root", "tmp"] {
        fs::create_dir_all(scratch.join(name))?;
    }
    for mount in &spec.mounts {
        let place = scratch.join(mount.inside.strip_prefix("/").unwrap_or(&mount.inside));
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        if fs::symlink_metadata(&place).is_err() {
            fs::os::unix::fs::symlink(&mount.host, &place)?;
        }
    }
    Ok(())
}

/// Copies a tree with everything that a file system keeps about it.
async fn copy(from: &Path, to: &Path) -> Result<(), SandboxError> {
    let output = Command::new("cp").arg("-a").arg("--").arg(from).arg(to).output().await;
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            tidy::remove(to);
            Err(failed("copy a layer", String::from_utf8_lossy(&output.stderr).trim().to_owned()))
        }
        Err(error) => Err(failed("copy a layer", format!("cp: {error}"))),
    }
}

fn failed(action: &str, reason: String) -> SandboxError {
    SandboxError::Failed { backend: NAME, action: action.to_owned(), reason }
}

#[async_trait]
impl Backend for Local {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cache(&self) -> &Path {
        &self.cache
    }

    async fn check(&self) -> Health {
        let notes = vec!["no isolation: time and output are bounded, nothing else".to_owned()];
        let unclaimed = Claim::ALL.into_iter().filter(|claim| *claim != Claim::Orphans).collect();
        match program::runner(&self.cache) {
            Ok(_) => Health { unclaimed, ..Health::works(notes) },
            Err(error) => Health::fails(error.to_string(), None),
        }
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.open(spec).await?))
    }

    async fn attach(&self, spec: &Spec, program: &Program) -> Result<Attached, SandboxError> {
        let mut spec = spec.clone();
        spec.mounts.push(program.writable.clone());
        let LocalSandbox { link, guard, .. } = self.open(&spec).await?;
        let link = link.ok_or_else(|| failed("start", "it is closed".to_owned()))?;
        Ok(link.hand(program).await?.holding(guard))
    }

    async fn has_layer(&self, key: &str) -> Result<bool, SandboxError> {
        Ok(self.layer(key).map_err(|error| failed("look for a layer", error.to_string()))?.is_dir())
    }

    async fn commit(&self, sandbox: Box<dyn Sandbox>, key: &str) -> Result<(), SandboxError> {
        let layer = self.layer(key).map_err(|error| failed("commit", error.to_string()))?;
        let Ok(mut sandbox) = sandbox.as_any().downcast::<LocalSandbox>() else {
            return Err(failed("commit", "the sandbox belongs to another back end".to_owned()));
        };
        if !sandbox.keep {
            return Err(failed("commit", NOT_KEPT.to_owned()));
        }
        sandbox.finish().await;
        let keep = || {
            if let Some(parent) = layer.parent() {
                fs::create_dir_all(parent)?;
            }
            // Where another process was first, its layer stays: the key says that it is the same.
            if layer.is_dir() { Ok(()) } else { fs::rename(&sandbox.guard.0, &layer) }
        };
        keep().map_err(|error| failed("commit", error.to_string()))
    }

    async fn drop_layer(&self, key: &str) -> Result<(), SandboxError> {
        let layer = self.layer(key).map_err(|error| failed("drop a layer", error.to_string()))?;
        tidy::remove(&layer);
        Ok(())
    }
}

/// A scratch folder with a runner.
struct LocalSandbox {
    // Dropped before its folder: the runner ends what it started once its input is closed.
    link: Option<Link>,
    keep: bool,
    guard: Scratch,
}

/// A scratch folder, removed when this is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        tidy::remove(&self.0);
    }
}

impl LocalSandbox {
    fn link(&mut self) -> Result<&mut Link, SandboxError> {
        let reason = "it is closed".to_owned();
        self.link.as_mut().ok_or(SandboxError::Lost { backend: NAME, reason })
    }

    async fn finish(&mut self) {
        if let Some(mut link) = self.link.take() {
            link.finish().await;
        }
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError> {
        self.link()?.exec(command).await
    }

    async fn put(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        self.link()?.put(path, bytes, mode).await
    }

    async fn get(&mut self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SandboxError> {
        self.link()?.get(path, limit).await
    }

    async fn close(mut self: Box<Self>) -> Result<(), SandboxError> {
        self.finish().await;
        Ok(())
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}
