//! The back end `namespaces`: kernel namespaces, overlays and control groups, without a daemon, as root or as an
//! ordinary user.

mod layers;
mod scratch;

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use fs_err as fs;
use memtrial_runner::enter::{self, Base, Bind, Bounds, Enter, Upper};
use memtrial_runner::gateway::SOCKET;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::link::Link;
use super::{
    Backend, Exec, Health, Image, Limits, NOT_KEPT, Network, Output, Sandbox, SandboxError, Spec, program,
};
use layers::Layers;

pub(in crate::sandbox) use layers::check_key;
pub(in crate::sandbox) use scratch::unique;

const NAME: &str = "namespaces";
/// Less free space than this and no sandbox is started.
const RESERVE: u64 = 256 << 20;

/// Sandboxes made of namespaces.
///
/// As an ordinary user everything inside belongs to that user: files of other owners cannot be changed, and packages
/// that create users do not install.
pub struct Namespaces {
    cache: PathBuf,
    layers: Layers,
    cleared: OnceCell<()>,
}

impl Namespaces {
    /// Keeps layers and what sandboxes write under this folder.
    pub fn new(cache: PathBuf) -> Self {
        let cache = std::path::absolute(&cache).unwrap_or(cache);
        let layers = Layers::new(cache.join(NAME).join("layers"));
        Self { cache, layers, cleared: OnceCell::new() }
    }

    fn scratch(&self) -> PathBuf {
        self.cache.join(NAME).join("scratch")
    }

    /// Makes the folders, removes leftovers once, and makes sure that there is room.
    async fn prepare(&self) -> Result<PathBuf, SandboxError> {
        let scratch = self.scratch();
        fs::create_dir_all(&scratch).map_err(|error| self.io("make the cache folder", &error))?;
        self.cleared
            .get_or_init(async || {
                let scratch = scratch.clone();
                let _ = tokio::task::spawn_blocking(move || scratch::clear_stale(&scratch)).await;
            })
            .await;
        if super::free_space(&scratch).is_ok_and(|room| room < RESERVE) {
            return Err(SandboxError::DiskFull { path: self.cache.clone() });
        }
        program::runner(&self.cache).map_err(|error| self.io("lay out the runner", &error))
    }

    fn io(&self, action: &str, error: &io::Error) -> SandboxError {
        if error.kind() == io::ErrorKind::StorageFull {
            return SandboxError::DiskFull { path: self.cache.clone() };
        }
        failed(action, error.to_string())
    }

    async fn open(&self, spec: &Spec) -> Result<NamespaceSandbox, SandboxError> {
        if let Some(reason) = spec.misplaced_gateway() {
            return Err(failed("start", reason));
        }
        let runner = self.prepare().await?;
        let stack = self.layers.stack(&spec.image).map_err(|reason| failed("start on a layer", reason))?;
        let id = unique();
        let enter = Enter {
            scratch: self.scratch().join(&id),
            id,
            base: base(&stack.base)?,
            layers: stack.layers,
            upper: upper(spec),
            limits: bounds(&spec.limits),
            network: spec.network == Network::Host,
            gateway: spec.gateway.is_some(),
            binds: binds(spec),
        };
        let mut command = Command::new(runner);
        command.arg("enter").env_clear().current_dir("/");
        let started = Link::start(NAME, command).await;
        let mut link = started.map_err(|error| self.io("start the runner", &error))?;
        // Where it ends at once, the ping says why.
        let _ = link.describe(&enter).await;
        let limits = match link.ping().await {
            Ok(limits) => limits.unwrap_or_default(),
            Err(_) => return Err(self.not_started(&mut link, &enter.scratch).await),
        };
        let sandbox = NamespaceSandbox {
            cache: self.cache.clone(),
            image: spec.image.clone(),
            scratch: enter.scratch,
            keep: spec.keep,
            limits,
            link,
        };
        Ok(sandbox)
    }

    async fn not_started(&self, link: &mut Link, scratch: &Path) -> SandboxError {
        let reason = link.finish().await.reason;
        let reason = reason.replace(&scratch.display().to_string(), "SCRATCH");
        if reason.contains("unshare") {
            let hint = format!("run as root, or allow user namespaces: {ALLOW_USER_NAMESPACES}");
            return SandboxError::Unavailable { backend: NAME, reason, hint };
        }
        if reason.contains("mount an overlay") {
            let hint = "name a folder on ext4, xfs, btrfs or tmpfs with --cache: writes cannot go to every file system";
            return SandboxError::Unavailable { backend: NAME, reason, hint: hint.to_owned() };
        }
        if reason.contains("No space left") {
            return SandboxError::DiskFull { path: self.cache.clone() };
        }
        failed("start", reason)
    }
}

const ALLOW_USER_NAMESPACES: &str = "sudo sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000 kernel.apparmor_restrict_unprivileged_userns=0";

fn failed(action: &str, reason: String) -> SandboxError {
    SandboxError::Failed { backend: NAME, action: action.to_owned(), reason }
}

fn base(image: &Image) -> Result<Base, SandboxError> {
    match image {
        Image::Rootfs(path) => {
            let path = fs::canonicalize(path)
                .map_err(|error| failed("find the root file system", error.to_string()))?;
            Ok(Base::Rootfs(path))
        }
        Image::Container(name) => Err(SandboxError::Unavailable {
            backend: NAME,
            reason: format!("{name} is a container image"),
            hint: "use --sandbox docker, or a root file system in a folder".to_owned(),
        }),
        Image::Host | Image::Layer(_) => Ok(Base::Host),
    }
}

/// A memory file system bounds what is written exactly, but counts as the sandbox's memory and cannot be kept: it is
/// taken where it can fill no more than half of that.
fn upper(spec: &Spec) -> Upper {
    let fits = spec.limits.disk <= spec.limits.memory / 2;
    if fits && !spec.keep { Upper::Memory } else { Upper::Disk }
}

/// The mounts, and the gateway's socket at the place that the runner knows.
fn binds(spec: &Spec) -> Vec<Bind> {
    let mounts =
        spec.mounts.iter().map(|mount| Bind { host: mount.host.clone(), inside: mount.inside.clone() });
    let socket = spec.gateway.iter().map(|socket| Bind { host: socket.clone(), inside: SOCKET.into() });
    mounts.chain(socket).collect()
}

fn bounds(limits: &Limits) -> Bounds {
    Bounds { memory: limits.memory, processes: limits.processes, cpus: limits.cpus, disk: limits.disk }
}

#[async_trait]
impl Backend for Namespaces {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cache(&self) -> &Path {
        &self.cache
    }

    async fn check(&self) -> Health {
        let spec = Spec {
            image: Image::Host,
            limits: Limits { memory: 256 << 20, disk: 64 << 20, ..Limits::default() },
            network: Network::None,
            mounts: Vec::new(),
            // So that it is tried whether layers can be written where the cache lies.
            keep: true,
            gateway: None,
        };
        let tried = async {
            let mut sandbox = self.open(&spec).await?;
            let output = sandbox.exec(&Exec::bash("true", "/")).await?;
            let limits = sandbox.limits.clone();
            sandbox.link.finish().await;
            Ok::<_, SandboxError>((output, limits))
        };
        let user = !rustix::process::geteuid().is_root();
        match tried.await {
            Ok((output, limits)) if output.success() => health(user, &limits),
            Ok((output, _)) => Health { works: false, notes: vec![output.text()], mend: None },
            Err(error) => {
                let mend = match &error {
                    SandboxError::Unavailable { reason, .. } if reason.contains("unshare") => {
                        Some(ALLOW_USER_NAMESPACES.to_owned())
                    }
                    SandboxError::Unavailable { hint, .. } => Some(hint.clone()),
                    SandboxError::DiskFull { path } => Some(format!("du -sh {}/*", path.display())),
                    _ => None,
                };
                Health { works: false, notes: vec![error.to_string()], mend }
            }
        }
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.open(spec).await?))
    }

    async fn has_layer(&self, key: &str) -> Result<bool, SandboxError> {
        check_key(key).map_err(|error| failed("look for a layer", error.to_string()))?;
        Ok(self.layers.has(key))
    }

    async fn commit(&self, sandbox: Box<dyn Sandbox>, key: &str) -> Result<(), SandboxError> {
        check_key(key).map_err(|error| failed("commit", error.to_string()))?;
        let Ok(mut sandbox) = sandbox.as_any().downcast::<NamespaceSandbox>() else {
            return Err(failed("commit", "the sandbox belongs to another back end".to_owned()));
        };
        if !sandbox.keep {
            return Err(failed("commit", NOT_KEPT.to_owned()));
        }
        let held = scratch::hold(&sandbox.scratch).map_err(|error| self.io("commit", &error))?;
        fs::write(sandbox.scratch.join(enter::KEEP), "").map_err(|error| self.io("commit", &error))?;
        let gone = sandbox.link.finish().await;
        if gone.code != Some(i32::from(enter::exit::DONE)) {
            return Err(SandboxError::Lost { backend: NAME, reason: gone.reason });
        }
        let (layers, key) = (self.layers.clone(), key.to_owned());
        let (folder, image) = (sandbox.scratch.clone(), sandbox.image.clone());
        let added = tokio::task::spawn_blocking(move || layers.add(&folder, &key, &image)).await;
        drop(held);
        match added {
            Ok(added) => added.map_err(|error| self.io("commit", &error)),
            Err(error) => Err(failed("commit", error.to_string())),
        }
    }

    async fn drop_layer(&self, key: &str) -> Result<(), SandboxError> {
        let (layers, key) = (self.layers.clone(), key.to_owned());
        match tokio::task::spawn_blocking(move || layers.drop(&key)).await {
            Ok(dropped) => dropped.map_err(|error| self.io("drop a layer", &error)),
            Err(error) => Err(failed("drop a layer", error.to_string())),
        }
    }
}

/// What a working back end can bound here.
fn health(user: bool, limits: &str) -> Health {
    let mut notes = vec![if user { "in a user namespace" } else { "as root" }.to_owned()];
    if limits == "rlimits" {
        notes.push(
            "no control group can be written: memory is bounded per process, CPUs are not bounded".to_owned(),
        );
        let mend = user.then(|| "systemd-run --user --scope -p Delegate=yes memtrial doctor".to_owned());
        return Health { works: true, notes, mend };
    }
    notes.push(format!("limits by {limits}"));
    Health { works: true, notes, mend: None }
}

/// A sandbox of namespaces.
struct NamespaceSandbox {
    cache: PathBuf,
    image: Image,
    scratch: PathBuf,
    keep: bool,
    limits: String,
    link: Link,
}

impl NamespaceSandbox {
    /// The host's full disk is not the sandbox's fault.
    async fn judge<T>(&mut self, result: Result<T, SandboxError>) -> Result<T, SandboxError> {
        match result {
            Err(SandboxError::Lost { .. })
                if self.link.finish().await.code == Some(i32::from(enter::exit::DISK_FULL)) =>
            {
                Err(SandboxError::DiskFull { path: self.cache.clone() })
            }
            other => other,
        }
    }
}

#[async_trait]
impl Sandbox for NamespaceSandbox {
    async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError> {
        let result = self.link.exec(command).await;
        self.judge(result).await
    }

    async fn put(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        let result = self.link.put(path, bytes, mode).await;
        self.judge(result).await
    }

    async fn get(&mut self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SandboxError> {
        let result = self.link.get(path, limit).await;
        self.judge(result).await
    }

    async fn close(mut self: Box<Self>) -> Result<(), SandboxError> {
        self.link.finish().await;
        Ok(())
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}
