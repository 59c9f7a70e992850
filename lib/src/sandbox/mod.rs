//! Where commands run: one trait, three back ends.
//!
//! A [`Backend`] starts a [`Sandbox`] on an [`Image`]: a base or a committed layer. What a sandbox writes is dropped
//! when it is closed, or kept as a new layer by [`Backend::commit`]. So an environment is built once (base →
//! repository at its commit, installed) and every trial starts on it and is dropped in one step.
//!
//! Inside every sandbox one small program, the runner, executes commands over a pipe: a command costs a millisecond,
//! its whole process tree ends with it, its output is bounded where it arises. The end of the pipe ends the sandbox,
//! so that nothing outlives a killed memtrial.

mod attached;
pub mod conformance;
mod docker;
pub mod images;
mod limits;
mod link;
mod local;
mod namespaces;
mod program;

pub mod environment;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use attached::{Attached, Program};
pub use docker::Docker;
pub use limits::Limits;
pub use local::Local;
pub use namespaces::Namespaces;

/// The back ends by name, the isolating ones first.
pub const BACKENDS: [&str; 3] = ["namespaces", "docker", "local"];

/// The port of a sandbox's loopback interface that leads to its gateway: [`Spec::gateway`].
pub const GATEWAY_PORT: u16 = memtrial_runner::gateway::PORT;

/// Where commands find programs unless their environment says otherwise.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why a sandbox is not committed that was not started for it.
const NOT_KEPT: &str = "it was not started to be kept (`Spec::keep`)";

/// What back ends are opened with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder for layers, scratch folders and the runner.
    pub cache: PathBuf,
    /// The container engine's program: `docker`, `podman` or a path.
    pub engine: PathBuf,
    /// The engine's address, where it is not the one of the environment (`DOCKER_HOST`).
    pub engine_host: Option<String>,
    /// How published images are fetched and kept.
    pub images: images::ImageSettings,
}

impl Settings {
    /// Docker, as the environment knows it.
    pub fn new(cache: PathBuf) -> Self {
        let images = images::ImageSettings::default();
        Self { cache, engine: PathBuf::from("docker"), engine_host: None, images }
    }
}

/// Opens a back end by its name. Nothing is started yet.
///
/// # Errors
/// When there is no back end of this name.
pub fn open(name: &str, settings: &Settings) -> Result<Arc<dyn Backend>, SandboxError> {
    let cache = settings.cache.clone();
    match name {
        "namespaces" => Ok(Arc::new(Namespaces::new(cache).images(settings.images.clone()))),
        "docker" => {
            let docker = Docker::new(&settings.engine, cache).images(settings.images.clone());
            Ok(Arc::new(match &settings.engine_host {
                Some(address) => docker.host(address),
                None => docker,
            }))
        }
        "local" => Ok(Arc::new(Local::new(cache))),
        other => Err(SandboxError::Unknown { name: other.to_owned() }),
    }
}

/// Free bytes of the file system that a folder lies on, as far as ordinary users may use them.
///
/// # Errors
/// When the folder cannot be looked at.
pub fn free_space(folder: &std::path::Path) -> std::io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// What a sandbox starts on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Image {
    /// The host's `/usr` (with `/bin`, `/lib*`) and a synthetic `/etc`; never `/home`, `/root` or `/var`.
    Host,
    /// A root file system in a folder (`namespaces` only).
    Rootfs(PathBuf),
    /// A container image by name, which is here already: an engine's, or one that [`images::Images`] fetched.
    Container(String),
    /// A layer committed under this key (a digest in hex).
    Layer(String),
}

/// Whether the sandbox reaches the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Loopback only.
    #[default]
    None,
    /// The host's network: while installing.
    Host,
}

/// A folder of the host that the sandbox sees, read-only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mount {
    /// On the host.
    pub host: PathBuf,
    /// In the sandbox: absolute.
    pub inside: PathBuf,
}

/// How a sandbox is started.
#[derive(Debug, Clone)]
pub struct Spec {
    /// What it starts on.
    pub image: Image,
    /// Bounds.
    pub limits: Limits,
    /// Network.
    pub network: Network,
    /// Read-only folders of the host.
    pub mounts: Vec<Mount>,
    /// Whether what is written may be kept by [`Backend::commit`].
    pub keep: bool,
    /// A socket of the host that [`GATEWAY_PORT`] leads to: the one way out of a sandbox without network. `local`, which
    /// has no network of its own, refuses it.
    pub gateway: Option<PathBuf>,
}

impl Spec {
    /// Why the gateway cannot be had, where it cannot.
    fn misplaced_gateway(&self) -> Option<String> {
        let socket = self.gateway.as_deref()?;
        if self.network != Network::None {
            return Some("a gateway is the only way out: the host's network cannot be open besides".into());
        }
        let found = std::fs::metadata(socket).map(|found| found.file_type());
        match found {
            Ok(kind) if std::os::unix::fs::FileTypeExt::is_socket(&kind) => None,
            Ok(_) => Some(format!("the gateway {} is no socket", socket.display())),
            Err(error) => Some(format!("the gateway {}: {error}", socket.display())),
        }
    }
}

/// Where in a sandbox a task's repository lies, and the environment of every command there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The repository's folder: absolute.
    pub workdir: String,
    /// Environment variables (`PATH` with the task's toolchain, the recipe's own).
    pub env: BTreeMap<String, String>,
}

/// One command.
#[derive(Debug, Clone)]
pub struct Exec {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The working folder: absolute.
    pub cwd: String,
    /// The whole environment of the command besides the sandbox's defaults (`PATH`, `HOME`, `LANG`, `TZ`).
    pub env: BTreeMap<String, String>,
    /// Bytes for its standard input; empty: end of file at once.
    pub stdin: Vec<u8>,
    /// After this its whole process tree is killed.
    pub timeout: Duration,
    /// How much of its output is kept.
    pub output: OutputLimit,
}

impl Exec {
    /// `bash -c COMMAND` in `cwd`, with a minute and the default output limit.
    pub fn bash(command: impl Into<String>, cwd: impl Into<String>) -> Self {
        Self {
            argv: vec!["bash".into(), "-c".into(), command.into()],
            cwd: cwd.into(),
            env: BTreeMap::new(),
            stdin: Vec::new(),
            timeout: Duration::from_secs(60),
            output: OutputLimit::default(),
        }
    }

    /// With another time limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// With these environment variables.
    #[must_use]
    pub fn env(mut self, env: BTreeMap<String, String>) -> Self {
        self.env = env;
        self
    }
}

/// How much of a command's output is kept: the first and the last bytes; what lies between is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLimit {
    /// Bytes from the start.
    pub head: u64,
    /// Bytes from the end.
    pub tail: u64,
}

impl Default for OutputLimit {
    fn default() -> Self {
        Self { head: 8 << 20, tail: 8 << 20 }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Its time ran out: the process tree was killed.
    TimedOut,
}

impl Ended {
    /// The exit code as a shell reports it: 128 + signal; `None` after a time-out.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signaled(signal) => Some(128 + signal),
            Self::TimedOut => None,
        }
    }
}

/// What a command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended.
    pub ended: Ended,
    /// Standard output and error in the order written, cut to head and tail.
    pub bytes: Vec<u8>,
    /// Where in `bytes` the cut lies, and how many bytes were left out there.
    pub elided: Option<Elided>,
    /// Wall-clock time.
    pub wall: Duration,
    /// Whether the memory limit killed something while the command ran.
    pub out_of_memory: bool,
}

/// A cut in an [`Output`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elided {
    /// The offset in `bytes` of the first byte after the cut.
    pub at: usize,
    /// Bytes left out.
    pub bytes: u64,
}

impl Output {
    /// The output as text, bytes that are no UTF-8 replaced by U+FFFD. A cut is marked by a line of its own.
    pub fn text(&self) -> String {
        match self.elided {
            None => String::from_utf8_lossy(&self.bytes).into_owned(),
            Some(cut) => {
                let (head, tail) = self.bytes.split_at(cut.at.min(self.bytes.len()));
                format!(
                    "{}\n[{} bytes elided]\n{}",
                    String::from_utf8_lossy(head),
                    cut.bytes,
                    String::from_utf8_lossy(tail)
                )
            }
        }
    }

    /// Whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.ended == Ended::Exited(0)
    }
}

/// What went wrong with a sandbox itself. Never a failed command: that is an [`Output`].
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// There is no such back end.
    #[error("no sandbox back end is named {name:?}; there are namespaces, docker and local")]
    Unknown {
        /// The name given.
        name: String,
    },
    /// The back end cannot work here.
    #[error("sandbox back end {backend}: {reason}; {hint}")]
    Unavailable {
        /// Its name.
        backend: &'static str,
        /// What is missing.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// A sandbox could not be started, or a layer not be made.
    #[error("sandbox {backend}: {action}: {reason}")]
    Failed {
        /// The back end's name.
        backend: &'static str,
        /// What was tried.
        action: String,
        /// What happened.
        reason: String,
    },
    /// The sandbox ended under a command (killed from outside, or out of memory as a whole).
    #[error("sandbox {backend} ended while it ran a command: {reason}")]
    Lost {
        /// The back end's name.
        backend: &'static str,
        /// What is known.
        reason: String,
    },
    /// No room is left on the host.
    #[error("no space left for sandboxes under {path}: free some or name another folder with --cache")]
    DiskFull {
        /// Where.
        path: PathBuf,
    },
}

/// The outcome of a check of a back end.
#[derive(Debug, Clone, Serialize)]
pub struct Health {
    /// Whether sandboxes can be started.
    pub works: bool,
    /// What was found, a line each.
    pub notes: Vec<String>,
    /// The one command that mends it, where it does not work or is limited.
    pub mend: Option<String>,
    /// What [`conformance`] must not hold it to here.
    pub unclaimed: Vec<conformance::Claim>,
}

impl Health {
    /// It works and holds everything.
    pub fn works(notes: Vec<String>) -> Self {
        Self { works: true, notes, mend: None, unclaimed: Vec::new() }
    }

    /// It does not work.
    pub fn fails(reason: String, mend: Option<String>) -> Self {
        Self { works: false, notes: vec![reason], mend, unclaimed: Vec::new() }
    }
}

/// A way of making sandboxes.
#[async_trait]
pub trait Backend: Send + Sync {
    /// `namespaces`, `docker` or `local`.
    fn name(&self) -> &'static str;

    /// The folder for what processes on this machine share: layers, locks.
    fn cache(&self) -> &std::path::Path;

    /// Starts a sandbox for real and reports what it can bound.
    async fn check(&self) -> Health;

    /// The published images that sandboxes can start on; `None`: it cannot.
    fn images(&self) -> Option<Arc<images::Images>> {
        None
    }

    /// Starts a sandbox.
    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>, SandboxError>;

    /// Starts a program in a sandbox of its own that talks to memtrial over its standard streams for as long as it
    /// lives.
    async fn attach(&self, _spec: &Spec, _program: &Program) -> Result<Attached, SandboxError> {
        Err(SandboxError::Unavailable {
            backend: self.name(),
            reason: "it cannot hold a program that memtrial talks to".to_owned(),
            hint: "use namespaces, or local for programs that you trust".to_owned(),
        })
    }

    /// Whether a layer was committed under this key.
    async fn has_layer(&self, key: &str) -> Result<bool, SandboxError>;

    /// Keeps what the sandbox wrote as a layer under this key and closes it. Atomic: a layer is whole or absent.
    async fn commit(&self, sandbox: Box<dyn Sandbox>, key: &str) -> Result<(), SandboxError>;

    /// What an image says of itself besides its files: variables, labels, the commands that made it; place and text.
    /// Nothing where a back end's images say nothing.
    async fn describe(&self, _image: &Image) -> Result<Vec<(String, String)>, SandboxError> {
        Ok(Vec::new())
    }

    /// Drops a layer and what it alone holds.
    async fn drop_layer(&self, key: &str) -> Result<(), SandboxError>;
}

/// A live sandbox. Dropping it ends everything that runs in it.
#[async_trait]
pub trait Sandbox: Send {
    /// Runs one command to its end.
    async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError>;

    /// Writes a file (parents made, a link at its place replaced) with these permission bits.
    async fn put(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError>;

    /// Reads a regular file of at most `limit` bytes; `None` where there is none.
    async fn get(&mut self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SandboxError>;

    /// Ends everything and drops what was written. When this returns nothing runs any more; room on the disk may take
    /// a little longer to come back.
    async fn close(self: Box<Self>) -> Result<(), SandboxError>;

    /// For [`Backend::commit`].
    fn as_any(self: Box<Self>) -> Box<dyn std::any::Any + Send>;
}
