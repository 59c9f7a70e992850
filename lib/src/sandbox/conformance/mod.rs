//! What every back end must hold, case by case, against real commands: for this crate's own back ends and for those of
//! others.

mod bounds;
mod commands;
mod files;
mod gateway;
mod isolation;
mod trees;

use std::fmt;
use std::path::PathBuf;

use futures::future::BoxFuture;
use serde::Serialize;

use super::{Backend, Exec, GATEWAY_PORT, Image, Limits, Network, Output, Sandbox, SandboxError, Spec};

/// What a suite runs with.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the sandboxes start on. It needs bash, coreutils, grep and util-linux's `setsid`.
    pub image: Image,
    /// A folder of the host for what cases need there.
    pub scratch: PathBuf,
    /// Files that the caller has planted on the host, in the home folder and in `/var`: none may be found inside.
    pub canaries: Vec<Canary>,
    /// What the back end does not promise here.
    pub unclaimed: Vec<Claim>,
}

/// A file of the host that no sandbox may see.
#[derive(Debug, Clone)]
pub struct Canary {
    /// Where it lies.
    pub path: PathBuf,
    /// A word in it that stands nowhere else.
    pub word: String,
}

/// A promise that not every back end can make everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Commands reach neither the host's files nor its network nor the runner.
    Isolation,
    /// Memory is bounded for the sandbox as a whole, and a kill is reported.
    Memory,
    /// Processes are bounded.
    Processes,
    /// CPUs are bounded.
    Cpus,
    /// What is written is bounded.
    Disk,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// What was tried.
    pub name: &'static str,
    /// What came of it.
    pub outcome: Outcome,
    /// What was seen instead, where it failed.
    pub detail: String,
}

/// How a case went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As it must be.
    Passed,
    /// Otherwise.
    Failed,
    /// The back end does not promise this here.
    Unclaimed,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Unclaimed => "unclaimed",
        };
        write!(f, "{outcome:9} {}", self.name)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

/// Runs every case, one after the other, each in sandboxes of its own.
pub async fn run(backend: &dyn Backend, options: &Options) -> Vec<Case> {
    let bench = Bench { backend, options };
    let mut table = Vec::new();
    for (name, claim, case) in cases() {
        let (outcome, detail) = if claim.is_some_and(|claim| options.unclaimed.contains(&claim)) {
            (Outcome::Unclaimed, String::new())
        } else {
            match case(&bench).await {
                Ok(()) => (Outcome::Passed, String::new()),
                Err(Wrong(detail)) => (Outcome::Failed, detail),
            }
        };
        table.push(Case { name, outcome, detail });
    }
    table
}

type Try<'a> = fn(&'a Bench<'a>) -> BoxFuture<'a, Result<(), Wrong>>;

/// All cases, with the promise that each rests on.
fn cases<'a>() -> Vec<(&'static str, Option<Claim>, Try<'a>)> {
    let groups: [Vec<(&'static str, Option<Claim>, Try<'a>)>; 6] = [
        commands::cases(),
        trees::cases(),
        bounds::cases(),
        files::cases(),
        isolation::cases(),
        gateway::cases(),
    ];
    groups.into_iter().flatten().collect()
}

/// What was seen instead of what must be.
struct Wrong(String);

impl From<SandboxError> for Wrong {
    fn from(error: SandboxError) -> Self {
        Self(error.to_string())
    }
}

impl From<std::io::Error> for Wrong {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Fails a case unless something holds.
fn must(holds: bool, otherwise: impl fmt::Debug) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(Wrong(format!("{otherwise:?}").chars().take(2000).collect())) }
}

/// What cases run on.
struct Bench<'a> {
    backend: &'a dyn Backend,
    options: &'a Options,
}

impl Bench<'_> {
    /// A sandbox with modest bounds.
    async fn start(&self) -> Result<Box<dyn Sandbox>, Wrong> {
        self.start_with(|_| {}).await
    }

    async fn start_with(&self, change: impl FnOnce(&mut Spec)) -> Result<Box<dyn Sandbox>, Wrong> {
        let mut spec = self.spec();
        change(&mut spec);
        Ok(self.backend.start(&spec).await?)
    }

    fn spec(&self) -> Spec {
        Spec {
            image: self.options.image.clone(),
            limits: Limits { memory: 512 << 20, processes: 256, cpus: 2.0, disk: 1 << 30 },
            network: Network::None,
            mounts: Vec::new(),
            keep: false,
            gateway: None,
        }
    }
}

/// Runs a shell command at the root.
async fn bash(sandbox: &mut Box<dyn Sandbox>, command: &str) -> Result<Output, Wrong> {
    Ok(sandbox.exec(&Exec::bash(command, "/")).await?)
}

/// A number for `sleep` by which its process can be found, on the whole machine where there is no isolation.
fn mark() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    u64::from(std::process::id()) * 1000 + 100_000_000_000 + COUNT.fetch_add(1, Ordering::Relaxed)
}

/// Fails where a process with this mark still runs. The pattern does not match its own command line.
async fn must_be_gone(sandbox: &mut Box<dyn Sandbox>, mark: u64) -> Result<(), Wrong> {
    let (front, last) = (mark / 10, mark % 10);
    let found =
        bash(sandbox, &format!("grep -l 'sleep.{front}[{last}]' /proc/[0-9]*/cmdline 2>/dev/null")).await?;
    must(found.bytes.is_empty(), ("still running", found.text()))
}
