//! How a program is started and bounded: the settings that both languages share.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::Description;

/// Settings of the system `program`, and those of `mcp` that say how its server is started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProgramSettings {
    /// Program and arguments. An argument with a slash that names a file is shown to the sandbox at its own path, and a
    /// program of a Python environment brings that environment.
    pub command: Vec<String>,
    /// Environment variables; `{{ state }}` stands for the state folder.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// More files and folders of the host that the program may read, at their own paths.
    #[serde(default)]
    pub mounts: Vec<PathBuf>,
    /// The name that results carry.
    #[serde(default)]
    pub name: Option<String>,
    /// The version that results carry; a program that calls itself otherwise is refused.
    #[serde(default)]
    pub version: Option<String>,
    /// Whether it is told if an earlier run was resolved.
    #[serde(default)]
    pub uses_outcome: bool,
    /// Whether it is told what happened in earlier runs, step by step.
    #[serde(default)]
    pub reads_events: bool,
    /// Whether the order of ingestion matters; what is not known does.
    #[serde(default = "yes")]
    pub order_sensitive: bool,
    /// Whether the same input gives the same delivery and the same files, byte for byte.
    #[serde(default)]
    pub deterministic: bool,
    /// Files and folders below the state folder that are no part of the store (caches, logs); `*.ext` names files by
    /// their ends. `tmp` never is a part.
    #[serde(default)]
    pub not_store: Vec<String>,
    /// Seconds that starting and `prepare` may take.
    #[serde(default = "start_seconds")]
    pub start_seconds: u64,
    /// Seconds that taking in one run may take.
    #[serde(default = "ingest_seconds")]
    pub ingest_seconds: u64,
    /// Seconds that `flush` and `freeze` may take.
    #[serde(default = "flush_seconds")]
    pub flush_seconds: u64,
    /// Seconds that every other call may take.
    #[serde(default = "retrieve_seconds")]
    pub retrieve_seconds: u64,
    /// The longest line that it may answer, in MiB.
    #[serde(default = "reply_mib")]
    pub reply_mib: u64,
    /// How large its store may be when it is frozen, in MiB.
    #[serde(default = "state_mib")]
    pub state_mib: u64,
    /// How often it is started again where it ended by itself.
    #[serde(default = "restarts")]
    pub restarts: u32,
}

/// Reads a file of settings: a table in TOML or JSON.
///
/// # Errors
/// Where it is neither, as a person reads it.
pub fn read_settings(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("no JSON table: {error}"));
    }
    toml::from_str(text).map_err(|error| format!("no TOML: {error}"))
}

fn yes() -> bool {
    true
}
fn start_seconds() -> u64 {
    120
}
fn ingest_seconds() -> u64 {
    600
}
fn flush_seconds() -> u64 {
    3600
}
fn retrieve_seconds() -> u64 {
    120
}
fn reply_mib() -> u64 {
    32
}
fn state_mib() -> u64 {
    4096
}
fn restarts() -> u32 {
    2
}

/// A day: no call of a memory system is waited for longer.
const LONGEST: u64 = 24 * 3600;

impl ProgramSettings {
    /// The keys, as error messages tell them.
    pub const KEYS: [&'static str; 17] = [
        "command",
        "env",
        "mounts",
        "name",
        "version",
        "uses-outcome",
        "reads-events",
        "order-sensitive",
        "deterministic",
        "not-store",
        "start-seconds",
        "ingest-seconds",
        "flush-seconds",
        "retrieve-seconds",
        "reply-mib",
        "state-mib",
        "restarts",
    ];

    /// A command with everything else as it is by default.
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            env: BTreeMap::new(),
            mounts: Vec::new(),
            name: None,
            version: None,
            uses_outcome: false,
            reads_events: false,
            order_sensitive: true,
            deterministic: false,
            not_store: Vec::new(),
            start_seconds: start_seconds(),
            ingest_seconds: ingest_seconds(),
            flush_seconds: flush_seconds(),
            retrieve_seconds: retrieve_seconds(),
            reply_mib: reply_mib(),
            state_mib: state_mib(),
            restarts: restarts(),
        }
    }

    /// Whether a program can be run so.
    ///
    /// # Errors
    /// The key, its value and what it may be.
    pub fn check(&self) -> Result<(), String> {
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(
                "command is empty: name the program and its arguments, [\"python3\", \"./memory.py\"]".into(),
            );
        }
        let seconds = [
            ("start-seconds", self.start_seconds),
            ("ingest-seconds", self.ingest_seconds),
            ("flush-seconds", self.flush_seconds),
            ("retrieve-seconds", self.retrieve_seconds),
        ];
        if let Some((key, value)) = seconds.iter().find(|(_, value)| !(1..=LONGEST).contains(value)) {
            return Err(format!("{key} is {value}: it is 1 to {LONGEST}"));
        }
        for (key, value) in [("reply-mib", self.reply_mib), ("state-mib", self.state_mib)] {
            if !(1..=1 << 20).contains(&value) {
                return Err(format!("{key} is {value}: it is 1 to {}", 1 << 20));
            }
        }
        if self.restarts > 100 {
            return Err(format!("restarts is {}: it is 0 to 100", self.restarts));
        }
        if let Some(path) = self.mounts.iter().find(|path| !path.is_absolute()) {
            return Err(format!("mounts: {} is not absolute", path.display()));
        }
        let names_below = |path: &str| {
            !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
        };
        match self.not_store.iter().find(|path| !names_below(path)) {
            Some(path) => Err(format!("not-store: {path:?} is no path below the state folder")),
            None => Ok(()),
        }
    }

    pub(super) fn describe(&self, kind: &str) -> Description {
        Description {
            version: self.version.clone().unwrap_or_else(|| "not stated".into()),
            uses_outcome: self.uses_outcome,
            reads_events: self.reads_events,
            order_sensitive: self.order_sensitive,
            deterministic: self.deterministic,
            shared_index: false,
            ..Description::built_in(self.name.as_deref().unwrap_or(kind))
        }
    }

    pub(super) fn starting(&self) -> Duration {
        Duration::from_secs(self.start_seconds)
    }

    pub(super) fn ingesting(&self) -> Duration {
        Duration::from_secs(self.ingest_seconds)
    }

    pub(super) fn flushing(&self) -> Duration {
        Duration::from_secs(self.flush_seconds)
    }

    pub(super) fn retrieving(&self) -> Duration {
        Duration::from_secs(self.retrieve_seconds)
    }
}
