//! How a sandbox of namespaces is to be made.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The first frame that a runner started as `enter` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Enter {
    /// Names the sandbox's control groups.
    pub id: String,
    /// A folder to be made for this sandbox alone; it is removed when the sandbox has ended, unless it then holds a
    /// file named [`KEEP`].
    pub scratch: PathBuf,
    /// What lies at the bottom.
    pub base: Base,
    /// Folders of committed layers, topmost first. Each holds `root/` and, on [`Base::Host`], `usr/`.
    pub layers: Vec<PathBuf>,
    /// Where writes go.
    pub upper: Upper,
    /// Bounds.
    pub limits: Bounds,
    /// The CPUs that it may run on, by the kernel's numbers; none: all.
    pub cpu_set: Vec<u32>,
    /// Whether the host's network is shared.
    pub network: bool,
    /// Whether [`crate::gateway::PORT`] leads to [`crate::gateway::SOCKET`], which is one of the binds.
    pub gateway: bool,
    /// Folders and files of the host.
    pub binds: Vec<Bind>,
}

/// The file in the scratch folder that says: keep what was written.
pub const KEEP: &str = "keep";

/// Exit codes of `enter`.
pub mod exit {
    /// The sandbox ended because its input did.
    pub const DONE: u8 = 0;
    /// It could not be made, or ended by itself.
    pub const FAILED: u8 = 1;
    /// It wrote more than it may.
    pub const DISK_LIMIT: u8 = 3;
    /// The host has no room left.
    pub const DISK_FULL: u8 = 4;
}

/// The lowest layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// The host's `/usr` and a synthetic `/etc`.
    Host,
    /// A root file system.
    Rootfs(PathBuf),
}

/// Where writes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Upper {
    /// A memory file system: fast, exactly bounded, and counted as the sandbox's memory.
    Memory,
    /// The scratch folder, watched.
    Disk,
}

/// Bounds on the whole sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Bytes of memory.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u32,
    /// CPUs.
    pub cpus: f64,
    /// Bytes written.
    pub disk: u64,
    /// Files, folders and links written.
    pub entries: u64,
}

/// A folder or file of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// On the host.
    pub host: PathBuf,
    /// In the sandbox: absolute.
    pub inside: PathBuf,
    /// Whether the sandbox may write to it.
    pub writable: bool,
}
