//! The back end `namespaces`: kernel namespaces, overlays and control groups, without a daemon, as root or as an
//! ordinary user.

mod images;
mod layers;
mod scratch;

use std::any::Any;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use fs_err as fs;
use memtrial_runner::enter::{self, Base, Bind, Bounds, Enter, Upper};
use memtrial_runner::gateway::SOCKET;
use tokio::process::Command;
use tokio::sync::{OnceCell, Semaphore};

use super::conformance::Claim;
use super::images::{ImageSettings, Images};
use super::limits::Lease;
use super::link::Link;
use super::{
    Attached, Backend, Exec, Health, Image, Limits, Mount, NOT_KEPT, Network, Output, Program, Sandbox,
    SandboxError, Spec, program,
};
use images::Folders;
use layers::{Layers, Stack};

pub(in crate::sandbox) use layers::check_key;
pub(in crate::sandbox) use scratch::unique;

const NAME: &str = "namespaces";
/// Less free space than this and no sandbox is started.
const RESERVE: u64 = 256 << 20;
/// So many ended sandboxes may still be removing what they wrote; the next one is waited for.
const REMOVALS: u32 = 8;

/// Sandboxes made of namespaces.
///
/// As an ordinary user everything inside belongs to that user: files of other owners cannot be changed, and packages
/// that create users do not install.
pub struct Namespaces {
    cache: PathBuf,
    layers: Layers,
    folders: Arc<Folders>,
    images: Arc<Images>,
    cleared: OnceCell<()>,
    removals: Arc<Semaphore>,
}

impl Namespaces {
    /// Keeps layers and what sandboxes write under this folder.
    pub fn new(cache: PathBuf) -> Self {
        let cache = std::path::absolute(&cache).unwrap_or(cache);
        let layers = Layers::new(cache.join(NAME).join("layers"));
        let folder = cache.join(NAME).join("images");
        let folders = Arc::new(Folders::new(folder.clone(), layers.clone()));
        let images = Arc::new(Images::new(folder, folders.clone(), ImageSettings::default()));
        let removals = Arc::new(Semaphore::new(REMOVALS as usize));
        Self { cache, layers, folders, images, cleared: OnceCell::new(), removals }
    }

    /// Fetches and keeps published images in this way.
    #[must_use]
    pub fn images(mut self, settings: ImageSettings) -> Self {
        let folder = self.cache.join(NAME).join("images");
        self.images = Arc::new(Images::new(folder, self.folders.clone(), settings));
        self
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
        let is_full = || super::free_space(&scratch).is_ok_and(|room| room < RESERVE);
        if is_full() {
            // Room may just be coming back.
            let _ = self.removals.acquire_many(REMOVALS).await;
        }
        if is_full() {
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

    async fn open(&self, spec: &Spec, writable: Option<&Mount>) -> Result<NamespaceSandbox, SandboxError> {
        if let Some(reason) = spec.misplaced_gateway() {
            return Err(failed("start", reason));
        }
        let runner = self.prepare().await?;
        let stack = self.layers.stack(&spec.image).map_err(|reason| failed("start on a layer", reason))?;
        let Bottom { base, layers, lease } = self.bottom(stack).await?;
        let id = unique();
        let cpus = Lease::here(spec.limits.cpus);
        let enter = Enter {
            scratch: self.scratch().join(&id),
            id,
            base,
            layers,
            upper: upper(spec),
            limits: bounds(&spec.limits),
            cpu_set: cpus.cpus().to_vec(),
            network: spec.network == Network::Host,
            gateway: spec.gateway.is_some(),
            binds: binds(spec, writable),
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
            removals: self.removals.clone(),
            _cpus: cpus,
            _image: lease,
        };
        Ok(sandbox)
    }

    /// The lowest folder and those above it, topmost first. An image's layers lie below the committed ones.
    async fn bottom(&self, stack: Stack) -> Result<Bottom, SandboxError> {
        let Stack { base, mut layers } = stack;
        match base {
            Image::Host | Image::Layer(_) => Ok(Bottom { base: Base::Host, layers, lease: None }),
            Image::Rootfs(path) => {
                let path = fs::canonicalize(path)
                    .map_err(|error| failed("find the root file system", error.to_string()))?;
                Ok(Bottom { base: Base::Rootfs(path), layers, lease: None })
            }
            Image::Container(name) => {
                let found = self.images.layers_of(&name).await;
                let found = found.map_err(|error| failed("find an image", error.to_string()))?;
                let Some((found, lease)) = found else {
                    let hint = format!("fetch it: memtrial image pull {name}");
                    let reason = format!("there is no image {name} here");
                    return Err(SandboxError::Unavailable { backend: NAME, reason, hint });
                };
                let mut folders = self.folders.stack(&found).into_iter();
                let bottom =
                    folders.next().ok_or_else(|| failed("find an image", "it has no layer".to_owned()))?;
                layers.extend(folders.rev());
                Ok(Bottom { base: Base::Rootfs(bottom.join("root")), layers, lease: Some(lease) })
            }
        }
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

/// What a sandbox lies on.
struct Bottom {
    base: Base,
    /// Topmost first.
    layers: Vec<PathBuf>,
    lease: Option<File>,
}

/// A memory file system bounds what is written exactly, but counts as the sandbox's memory and cannot be kept: it is
/// taken where it can fill no more than half of that.
fn upper(spec: &Spec) -> Upper {
    let fits = spec.limits.disk <= spec.limits.memory / 2;
    if fits && !spec.keep { Upper::Memory } else { Upper::Disk }
}

/// The mounts, the gateway's socket at the place that the runner knows, and what may be written to.
fn binds(spec: &Spec, writable: Option<&Mount>) -> Vec<Bind> {
    let bind = |host: &Path, inside: &Path, writable| Bind {
        host: host.to_owned(),
        inside: inside.to_owned(),
        writable,
    };
    let mounts = spec.mounts.iter().map(|mount| bind(&mount.host, &mount.inside, false));
    let socket = spec.gateway.iter().map(|socket| bind(socket, Path::new(SOCKET), false));
    let writable = writable.map(|mount| bind(&mount.host, &mount.inside, true));
    mounts.chain(socket).chain(writable).collect()
}

fn bounds(limits: &Limits) -> Bounds {
    Bounds {
        memory: limits.memory,
        processes: limits.processes,
        cpus: limits.cpus,
        disk: limits.disk,
        entries: limits.entries(),
    }
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
            let mut sandbox = self.open(&spec, None).await?;
            let output = sandbox.exec(&Exec::bash("true", "/")).await?;
            let limits = sandbox.limits.clone();
            sandbox.link.finish().await;
            Ok::<_, SandboxError>((output, limits))
        };
        let user = !rustix::process::geteuid().is_root();
        match tried.await {
            Ok((output, limits)) if output.success() => health(user, &limits),
            Ok((output, _)) => Health::fails(output.text(), None),
            Err(error) => {
                let mend = match &error {
                    SandboxError::Unavailable { reason, .. } if reason.contains("unshare") => {
                        Some(ALLOW_USER_NAMESPACES.to_owned())
                    }
                    SandboxError::Unavailable { hint, .. } => Some(hint.clone()),
                    SandboxError::DiskFull { path } => Some(format!("du -sh {}/*", path.display())),
                    _ => None,
                };
                Health::fails(error.to_string(), mend)
            }
        }
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.open(spec, None).await?))
    }

    async fn attach(&self, spec: &Spec, program: &Program) -> Result<Attached, SandboxError> {
        let NamespaceSandbox { link, _cpus: cpus, _image: image, .. } =
            self.open(spec, Some(&program.writable)).await?;
        Ok(link.hand(program).await?.holding((cpus, image)))
    }

    fn images(&self) -> Option<Arc<Images>> {
        Some(self.images.clone())
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
        let unclaimed = vec![Claim::Memory, Claim::Cpus];
        return Health { mend, unclaimed, ..Health::works(notes) };
    }
    notes.push(format!("limits by {limits}"));
    Health::works(notes)
}

/// A sandbox of namespaces.
struct NamespaceSandbox {
    cache: PathBuf,
    image: Image,
    scratch: PathBuf,
    keep: bool,
    limits: String,
    link: Link,
    removals: Arc<Semaphore>,
    _cpus: Lease,
    /// Holds the published image that it lies on.
    _image: Option<File>,
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

    /// Removing many files, or few on a busy disk, takes longer than all else: the sandbox's outer process does it
    /// while memtrial goes on, and also when memtrial is killed meanwhile.
    async fn close(self: Box<Self>) -> Result<(), SandboxError> {
        let mut runner = self.link.part().await;
        let permit = self.removals.acquire_owned().await;
        tokio::spawn(async move {
            let _ = runner.wait().await;
            drop(permit);
        });
        Ok(())
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}
