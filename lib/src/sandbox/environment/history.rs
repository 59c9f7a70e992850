//! A repository's history: what it shows of later than a commit, and the strip that takes that away.
//!
//! Published images keep later commits readable in `.git` (SWE-bench #465, mini-swe-agent #787, SWE-rebench V2's
//! template), and agents found the fix there. The scripts here look into a repository of any environment and strip it;
//! the builder runs both, so that its own environments are always clean, and so do `audit` and its `--fix`.
//!
//! They are plain `sh` with git's plumbing, for the git of the sandbox: it may be old, and the repository hostile (see
//! `history/common.sh`).

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::sandbox::{Exec, OutputLimit, Sandbox, SandboxError};

const COMMON: &str = include_str!("history/common.sh");
const PROBE: &str = include_str!("history/probe.sh");
const AHEAD: &str = include_str!("history/ahead.sh");
const TREE: &str = include_str!("history/tree.sh");
const RELATED: &str = include_str!("history/related.sh");
const SAID: &str = include_str!("history/said.sh");
const NAMES: &str = include_str!("history/names.sh");
const STRIP: &str = include_str!("history/strip.sh");

/// The detector of a [`Trace`] that says why a repository could not be looked into.
pub const UNREADABLE: &str = "!";

/// Something in a repository that is no part of a commit's past.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trace {
    /// The kind: `branch`, `tag`, `reflog`, … or [`UNREADABLE`].
    pub detector: String,
    /// The file, or the repository's folder and the ref.
    pub place: String,
    /// What is there.
    pub what: String,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.detector, self.place, self.what)
    }
}

/// Why a repository cannot be looked into or stripped.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The script failed.
    #[error("{place}: {action}: {reason}")]
    Failed {
        /// The repository.
        place: String,
        /// What was tried.
        action: &'static str,
        /// What was said.
        reason: String,
    },
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// The history of one repository in a sandbox.
pub struct History<'a> {
    sandbox: &'a mut dyn Sandbox,
    /// The folder of the checkout, or a bare repository.
    place: String,
    /// A folder of the sandbox for lists between steps; empty: there is one step.
    state: String,
    timeout: Duration,
}

impl<'a> History<'a> {
    /// The repository at an absolute place.
    pub fn new(sandbox: &'a mut dyn Sandbox, place: &str, timeout: Duration) -> Self {
        Self { sandbox, place: place.to_owned(), state: String::new(), timeout }
    }

    /// Keeps lists for the steps after [`Self::probe`] in a folder of the sandbox, which is made.
    #[must_use]
    pub fn with_lists(mut self, folder: &str) -> Self {
        folder.clone_into(&mut self.state);
        self
    }

    /// What it shows of later than the commit `base` (empty: HEAD): none is the proof that nothing later is there.
    ///
    /// # Errors
    /// When the sandbox or the script fails, or time runs out.
    pub async fn probe(&mut self, base: &str) -> Result<Vec<Trace>, HistoryError> {
        let state = self.state.clone();
        let said = self.run("looking for later commits", PROBE, &[base, &state], &[]).await?;
        Ok(traces(&said))
    }

    /// Whether another repository of the sandbox is a copy of this one that shows more. After [`Self::probe`].
    ///
    /// # Errors
    /// As [`Self::probe`].
    pub async fn related(&mut self, other: &str) -> Result<Vec<Trace>, HistoryError> {
        let state = self.state.clone();
        Ok(traces(&self.run("comparing two repositories", RELATED, &[other, &state], &[]).await?))
    }

    /// The files of the checkout that are not as at the base commit, changed, untracked or ignored, by their paths in
    /// it; a path that ends with `/` is a folder with a repository of its own. After [`Self::probe`].
    ///
    /// # Errors
    /// As [`Self::probe`].
    pub async fn changed_files(&mut self) -> Result<Vec<String>, HistoryError> {
        let state = self.state.clone();
        let said = self.run("comparing the files with the base commit", TREE, &[&state], &[]).await?;
        let start = said.find("\0\0").map_or(0, |at| at + 2);
        Ok(said[start..].split_terminator('\0').map(str::to_owned).collect())
    }

    /// Lays out in the folder `ahead` of the lists what is accepted without being the base commit's, to be searched as
    /// files: `tags`, the annotated tags of the past, and of the commit that set the environment up `commit`, its message,
    /// and under `files` what it changes. After [`Self::probe`].
    ///
    /// # Errors
    /// As [`Self::probe`].
    pub async fn lay_out_ahead(&mut self) -> Result<(), HistoryError> {
        let state = self.state.clone();
        self.run("reading the commit past the base commit", AHEAD, &[&state], &[]).await?;
        Ok(())
    }

    /// Which of these texts, none with a line end, stand in a file of the base commit. After [`Self::probe`].
    ///
    /// # Errors
    /// As [`Self::probe`].
    pub async fn said_at_base(&mut self, texts: &[&str]) -> Result<BTreeSet<String>, HistoryError> {
        if texts.is_empty() {
            return Ok(BTreeSet::new());
        }
        let state = self.state.clone();
        let stdin = texts.join("\n") + "\n";
        let said = self.run("reading the base commit", SAID, &[&state], stdin.as_bytes()).await?;
        Ok(said.lines().map(str::to_owned).collect())
    }

    /// The files of the base commit, and the versions that tags of its past name, as `v1.2` → `1.2`. After
    /// [`Self::probe`].
    ///
    /// # Errors
    /// As [`Self::probe`].
    pub async fn names(&mut self) -> Result<(Vec<String>, Vec<String>), HistoryError> {
        let state = self.state.clone();
        let said = self.run("reading the base commit's names", NAMES, &[&state], &[]).await?;
        let mut files = Vec::new();
        let mut versions = Vec::new();
        for name in said.split('\0') {
            if let Some(file) = name.strip_prefix("f\t") {
                files.push(file.to_owned());
            } else if let Some(tag) = name.strip_prefix("t\t") {
                let start = tag.find(|c: char| c.is_ascii_digit()).unwrap_or(tag.len());
                versions.push(tag[start..].to_owned());
            }
        }
        Ok((files, versions))
    }

    /// The names of all objects that the base commit reaches, sorted. After [`Self::probe`].
    ///
    /// # Errors
    /// As [`Self::probe`].
    pub async fn known(&mut self) -> Result<Vec<String>, HistoryError> {
        let list = self.sandbox.get(&format!("{}/known", self.state), 1 << 30).await?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&list).lines().map(str::to_owned).collect())
    }

    /// Takes out all that is no part of the past of `base` (empty: HEAD). Returns what was taken, a line each. Killed at any
    /// moment it leaves a usable repository.
    ///
    /// # Errors
    /// As [`Self::probe`]; where the repository cannot be stripped, it is left as it is.
    pub async fn strip(&mut self, base: &str) -> Result<Vec<String>, HistoryError> {
        Ok(taken(&self.run("stripping the history", STRIP, &[base], &[]).await?))
    }

    async fn run(
        &mut self,
        action: &'static str,
        script: &str,
        args: &[&str],
        stdin: &[u8],
    ) -> Result<String, HistoryError> {
        let mut argv: Vec<String> = ["sh", "-c"].map(str::to_owned).into();
        argv.push(format!("{COMMON}\n{script}"));
        argv.push("memtrial".into());
        argv.extend(args.iter().map(|&arg| arg.to_owned()));
        let output = OutputLimit { head: 256 << 20, tail: 1 << 16 };
        let exec =
            Exec { argv, output, stdin: stdin.to_vec(), ..Exec::bash("", &self.place).timeout(self.timeout) };
        let output = self.sandbox.exec(&exec).await?;
        if output.success() && output.elided.is_none() {
            return Ok(output.text());
        }
        let text = output.text();
        let last: Vec<&str> = text.lines().filter(|line| !line.contains('\t')).collect();
        let last = last[last.len().saturating_sub(3)..].join("; ");
        let reason = format!("{:?}: {last}", output.ended);
        Err(HistoryError::Failed { place: self.place.clone(), action, reason })
    }
}

/// The command that strips a repository of the host: `sh` with these arguments, in the folder of the checkout.
pub fn strip_command(base: &str) -> [String; 4] {
    ["-c".into(), format!("{COMMON}\n{STRIP}"), "memtrial".into(), base.to_owned()]
}

/// What the strip says that it took.
pub fn taken(said: &str) -> Vec<String> {
    said.lines().filter_map(|line| Some(line.strip_prefix("took\t")?.to_owned())).collect()
}

/// The findings among the lines; the others are git's own words.
fn traces(said: &str) -> Vec<Trace> {
    let parse = |line: &str| {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        Some(Trace { detector: parts.next()?, place: parts.next()?, what: parts.next()? })
    };
    said.lines().filter_map(parse).collect()
}
