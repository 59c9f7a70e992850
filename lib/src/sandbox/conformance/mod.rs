//! What every back end must hold, case by case, against real commands: for this crate's own back ends and for those of
//! others. `memtrial sandbox check` is the same on the command line.

mod bench;
mod bounds;
mod commands;
mod files;
mod gateway;
mod kernel;
mod outside;
mod trees;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use futures::future::BoxFuture;
use serde::Serialize;

use super::{Backend, Image};
use bench::{Bench, SEEN, Wrong};

/// What a suite runs with.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the sandboxes start on. It needs bash, coreutils, grep and util-linux's `setsid`.
    pub image: Image,
    /// A folder of the host for what cases need there.
    pub scratch: PathBuf,
    /// Files that the caller has planted on the host, in the home folder and in `/var`: none may be found inside.
    pub canaries: Vec<Canary>,
    /// The caller's environment variables: none may be found inside.
    pub environment: BTreeMap<String, String>,
    /// How to start a second process of the caller; none: what outlives a killed one is not tried.
    pub holder: Option<Holder>,
    /// What the back end does not promise here: [`super::Health::unclaimed`].
    pub unclaimed: Vec<Claim>,
    /// The cases to run, by name; none: all.
    pub only: Vec<String>,
}

impl Options {
    /// All cases on this image, everything promised, nothing planted.
    pub fn new(image: Image, scratch: PathBuf) -> Self {
        Self {
            image,
            scratch,
            canaries: Vec::new(),
            environment: BTreeMap::new(),
            holder: None,
            unclaimed: Vec::new(),
            only: Vec::new(),
        }
    }
}

/// A file of the host that no sandbox may see.
#[derive(Debug, Clone)]
pub struct Canary {
    /// Where it lies.
    pub path: PathBuf,
    /// A word in it that stands nowhere else.
    pub word: String,
}

/// A program that starts a sandbox of the same back end, runs `sleep NUMBER` in it and waits. It is killed while it does.
#[derive(Debug, Clone)]
pub struct Holder {
    /// The program.
    pub program: PathBuf,
    /// Its arguments; `{number}` in one stands for the number.
    pub arguments: Vec<String>,
    /// Environment variables besides its own; `{number}` likewise.
    pub environment: BTreeMap<String, String>,
}

/// A promise that not every back end can make everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// Commands reach neither the host's files nor its network, processes and kernel, nor the runner.
    Isolation,
    /// Memory is bounded for the sandbox as a whole, and a kill is reported.
    Memory,
    /// Processes are bounded.
    Processes,
    /// CPU time is bounded.
    Cpus,
    /// Programs see as many CPUs as they have.
    CpuCount,
    /// What is written is bounded.
    Disk,
    /// So are files, folders and links, however small.
    Entries,
    /// So is what lies in removed files that are still open, and in folders deeper than a path is long.
    HiddenDisk,
    /// Nothing outlives a killed memtrial on this machine.
    Orphans,
}

impl Claim {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Isolation,
        Self::Memory,
        Self::Processes,
        Self::Cpus,
        Self::CpuCount,
        Self::Disk,
        Self::Entries,
        Self::HiddenDisk,
        Self::Orphans,
    ];
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What it demands.
    pub demand: &'static str,
    /// The promise that it rests on; `None`: it is no sandbox otherwise.
    pub claim: Option<Claim>,
    /// What came of it.
    pub outcome: Outcome,
    /// What was seen last, or instead of what must be.
    pub evidence: String,
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
        write!(f, "{outcome:9} {:24} {}", self.name, self.demand)?;
        if self.evidence.is_empty() { Ok(()) } else { write!(f, "\n{:34} {}", "", self.evidence) }
    }
}

/// The names of all cases, in order.
pub fn names() -> Vec<&'static str> {
    cases().into_iter().map(|(name, ..)| name).collect()
}

/// Runs the cases, one after the other, each in sandboxes of its own. Each row of the table is shown as it comes.
pub async fn run(backend: &dyn Backend, options: &Options, mut show: impl FnMut(&Case) + Send) -> Vec<Case> {
    let bench = Bench { backend, options };
    let mut table = Vec::new();
    for (name, demand, claim, case) in cases() {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == name) {
            continue;
        }
        let (outcome, evidence) = if claim.is_some_and(|claim| unclaimed(options, claim)) {
            (Outcome::Unclaimed, String::new())
        } else {
            let tried = async {
                let ended = case(&bench).await;
                (ended, SEEN.with(std::cell::RefCell::take))
            };
            match SEEN.scope(Default::default(), tried).await {
                (Ok(()), seen) => (Outcome::Passed, seen),
                (Err(Wrong(instead)), _) => (Outcome::Failed, instead),
            }
        };
        let row = Case { name, demand, claim, outcome, evidence };
        show(&row);
        table.push(row);
    }
    table
}

fn unclaimed(options: &Options, claim: Claim) -> bool {
    options.unclaimed.contains(&claim) || claim == Claim::Orphans && options.holder.is_none()
}

type Try<'a> = fn(&'a Bench<'a>) -> BoxFuture<'a, Result<(), Wrong>>;

/// A case: its name, what it demands, the promise that it rests on, how it is tried.
type Entry<'a> = (&'static str, &'static str, Option<Claim>, Try<'a>);

fn cases<'a>() -> Vec<Entry<'a>> {
    let groups: [Vec<Entry<'a>>; 7] = [
        commands::cases(),
        trees::cases(),
        bounds::cases(),
        files::cases(),
        gateway::cases(),
        outside::cases(),
        kernel::cases(),
    ];
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let mut names = names();
        let count = names.len();
        assert!(count >= 40, "{count}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        let fits = |name: &&str| {
            name.bytes().all(|byte| byte.is_ascii_lowercase() || b"-0123456789".contains(&byte))
        };
        assert!(names.iter().all(fits), "{names:?}");
    }
}
