//! What `agent`, `grade` and `study` share: flags that say where commands run, and what they open.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use memtrial::sandbox::environment::{Base, Environments, Settings};
use memtrial::sandbox::{self, Backend, Limits, Mount};

use super::registry::ImageArgs;
use crate::exit::Failure;

/// Where commands run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sandbox")]
pub struct SandboxArgs {
    /// Where commands run: `local` has no isolation
    #[arg(long, value_name = "BACKEND", default_value = "namespaces",
          value_parser = clap::builder::PossibleValuesParser::new(sandbox::BACKENDS))]
    pub sandbox: String,
    /// What environments start on: host, rootfs:FOLDER (namespaces), image:NAME, or the image that was published for
    /// each task, as it is: published (named by its row) or published:swe-bench (SWE-bench's name where it names none)
    #[arg(long, value_name = "BASE", default_value = "host")]
    pub base: String,
    /// A read-only folder of the host, as HOST:INSIDE; its `bin` is put on the path. A Rust toolchain outside /usr is
    /// mounted at /opt/rust by itself
    #[arg(long, value_name = "HOST:INSIDE", value_parser = mount)]
    pub mount: Vec<Mount>,
    /// An environment variable of every installation, agent and test, as NAME=VALUE; the task's own win
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// Memory of a sandbox, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    pub memory_limit: u64,
    /// CPUs of a sandbox
    #[arg(long, default_value_t = 2.0)]
    pub cpus: f64,
    /// Bare clones: <owner>+<name>/repo, <owner>__<name>.git or <owner>/<name>.git
    #[arg(long, value_name = "DIR", default_value = "repos")]
    pub repos: PathBuf,
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// Where layers are kept.
#[derive(Debug, Clone, clap::Args)]
pub struct CacheArgs {
    /// The folder for environment layers and scratch files [default: memtrial in the user's cache folder]
    #[arg(long, env = "MEMTRIAL_CACHE", value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// The container engine: docker, podman, or a path
    #[arg(long, env = "MEMTRIAL_ENGINE", value_name = "PROGRAM", default_value = "docker")]
    pub engine: PathBuf,
    #[command(flatten)]
    pub images: ImageArgs,
}

impl CacheArgs {
    /// The settings that back ends are opened with.
    pub fn settings(&self) -> Result<sandbox::Settings, Failure> {
        let settings = sandbox::Settings::new(self.folder()?);
        Ok(sandbox::Settings { engine: self.engine.clone(), images: self.images.settings(), ..settings })
    }

    /// The cache folder.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let user = || of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
        self.cache.clone().or_else(|| Some(user()?.join("memtrial"))).ok_or_else(|| {
            Failure::environment(anyhow::anyhow!("no cache folder is known: neither HOME nor --cache is set"))
        })
    }
}

impl SandboxArgs {
    /// Environments as the flags say.
    pub fn environments(&self) -> Result<Environments, Failure> {
        let base = Base::parse(&self.base).map_err(|reason| Failure::usage(anyhow::anyhow!(reason)))?;
        let published = matches!(base, Base::Published(_));
        let mut settings = Settings::new(self.repos.clone(), base);
        // A published image has its own toolchain.
        settings.mounts = if published { self.mount.clone() } else { with_toolchains(self.mount.clone()) };
        settings.env = self.env.iter().cloned().collect();
        settings.limits = Limits {
            memory: self.memory_limit.saturating_mul(1 << 20),
            cpus: self.cpus,
            ..Limits::default()
        };
        settings.limits.check().map_err(|reason| Failure::usage(anyhow::anyhow!(reason)))?;
        Ok(Environments::new(backend(&self.sandbox, &self.cache)?, settings))
    }
}

/// Opens a back end by name.
pub fn backend(name: &str, cache: &CacheArgs) -> Result<Arc<dyn Backend>, Failure> {
    sandbox::open(name, &cache.settings()?).map_err(Failure::environment)
}

/// Adds the Rust toolchain, where there is one outside /usr: a sandbox does not see the home folder.
pub fn with_toolchains(mut mounts: Vec<Mount>) -> Vec<Mount> {
    let inside = PathBuf::from("/opt/rust");
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    if let Some(sysroot) = sysroot {
        let host = PathBuf::from(String::from_utf8_lossy(&sysroot).trim());
        let known = mounts.iter().any(|mount| mount.inside == inside);
        if !host.starts_with("/usr") && host.join("bin/cargo").is_file() && !known {
            mounts.push(Mount { host, inside });
        }
    }
    mounts
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn mount(text: &str) -> Result<Mount, String> {
    match text.split_once(':') {
        Some((host, inside)) if !host.is_empty() && inside.starts_with('/') => {
            Ok(Mount { host: host.into(), inside: inside.into() })
        }
        _ => Err("expected HOST:INSIDE, INSIDE being absolute".into()),
    }
}
