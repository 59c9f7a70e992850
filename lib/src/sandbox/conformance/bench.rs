//! What cases have in common.

use std::cell::RefCell;
use std::fmt;

use super::Options;
use crate::sandbox::{Backend, Exec, Limits, Network, Output, Sandbox, SandboxError, Spec, program};

tokio::task_local! {
    /// What a case saw last.
    pub(super) static SEEN: RefCell<String>;
}

/// What was seen instead of what must be.
pub(super) struct Wrong(pub String);

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

/// Fails a case unless something holds, with what was seen instead.
pub(super) fn must(holds: bool, instead: impl fmt::Debug) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(Wrong(format!("{instead:?}").chars().take(2000).collect())) }
}

/// Keeps what was seen as the case's evidence, until the next is seen.
pub(super) fn saw(what: impl fmt::Display) {
    let _ = SEEN.try_with(|last| *last.borrow_mut() = what.to_string());
}

/// What cases run on.
pub(super) struct Bench<'a> {
    pub backend: &'a dyn Backend,
    pub options: &'a Options,
}

impl Bench<'_> {
    /// A sandbox with modest bounds.
    pub(super) async fn start(&self) -> Result<Box<dyn Sandbox>, Wrong> {
        self.start_with(|_| {}).await
    }

    pub(super) async fn start_with(&self, change: impl FnOnce(&mut Spec)) -> Result<Box<dyn Sandbox>, Wrong> {
        let mut spec = self.spec();
        change(&mut spec);
        Ok(self.backend.start(&spec).await?)
    }

    pub(super) fn spec(&self) -> Spec {
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

/// Runs a command; its end and the start of its output are evidence.
pub(super) async fn exec(sandbox: &mut Box<dyn Sandbox>, command: &Exec) -> Result<Output, SandboxError> {
    let output = sandbox.exec(command).await?;
    let text: String = String::from_utf8_lossy(&output.bytes).chars().take(160).collect();
    saw(format_args!("{:?} {:?}", output.ended, text.trim_end()));
    Ok(output)
}

/// Runs a shell command at the root.
pub(super) async fn bash(sandbox: &mut Box<dyn Sandbox>, command: &str) -> Result<Output, Wrong> {
    Ok(exec(sandbox, &Exec::bash(command, "/")).await?)
}

/// The folder and the name of the probe: a static program, so that the same is tried on every image.
const PROBE: (&str, &str) = ("/tmp", "memtrial-probe");

/// Lays the probe into a sandbox.
pub(super) async fn lay_probe(sandbox: &mut Box<dyn Sandbox>) -> Result<(), Wrong> {
    let (folder, name) = PROBE;
    Ok(sandbox.put(&format!("{folder}/{name}"), program::RUNNER, 0o755).await?)
}

/// Runs a shell command in the probe's folder, where `$probe` starts it.
pub(super) async fn probe(sandbox: &mut Box<dyn Sandbox>, command: &str) -> Result<Output, Wrong> {
    let (folder, name) = PROBE;
    let command = format!("probe='./{name} probe'; {command}");
    Ok(exec(sandbox, &Exec::bash(command, folder)).await?)
}

/// A number for `sleep` by which its process can be found, on the whole machine where there is no isolation.
pub(super) fn mark() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    u64::from(std::process::id()) * 1000 + 100_000_000_000 + COUNT.fetch_add(1, Ordering::Relaxed)
}

/// Fails where a process with this mark still runs. The pattern does not match its own command line.
pub(super) async fn must_be_gone(sandbox: &mut Box<dyn Sandbox>, mark: u64) -> Result<(), Wrong> {
    let (front, last) = (mark / 10, mark % 10);
    let search = format!("grep -l 'sleep.{front}[{last}]' /proc/[0-9]*/cmdline 2>/dev/null");
    let found = sandbox.exec(&Exec::bash(search, "/")).await?;
    must(found.bytes.is_empty(), ("still running", found.text()))
}
