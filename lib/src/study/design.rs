//! `study.toml`: the grid of trials, as a person writes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::StudyError;
use super::recall::Inject;
use crate::agent::{PromptBy, TrajectoryFormat};
use crate::dataset::Chronology;
use crate::llm::Endpoint;
use crate::sandbox::{Limits, Mount};
use crate::task::InstanceId;

/// A commented study file with every key: what `memtrial study init` writes.
pub const TEMPLATE: &str = include_str!("template.toml");

/// A study as its file states it. Paths are relative to the file's folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Design {
    /// Its name in reports.
    pub name: String,
    /// What a reader of the report must know (for example that a demonstration is planted).
    #[serde(default)]
    pub note: Option<String>,
    /// Task files.
    pub tasks: Vec<PathBuf>,
    /// The targets; empty: every task of the files.
    #[serde(default)]
    pub targets: Vec<InstanceId>,
    /// The folder of earlier trajectories; none: every target has an empty history.
    #[serde(default)]
    pub history: Option<PathBuf>,
    /// What "earlier" means.
    #[serde(default)]
    pub chronology: Chronology,
    /// The folder of bare clones.
    pub repos: PathBuf,
    /// Independent repetitions of each trial.
    #[serde(default = "one")]
    pub replicates: u32,
    /// The condition that the others are compared with.
    #[serde(default = "off")]
    pub baseline: String,
    /// Names of conditions and what they are.
    pub conditions: BTreeMap<String, Condition>,
    /// Names of solvers and what they are.
    pub solvers: BTreeMap<String, Solver>,
    /// Models that memory systems ask, by name. Their addresses are not part of the lock.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Endpoint>,
    /// The fixed agent.
    #[serde(default)]
    pub agent: Agent,
    /// Where commands run.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// How predictions are graded.
    #[serde(default)]
    pub grade: Grade,
    /// Bounds of the run.
    #[serde(default)]
    pub budget: Budget,
    /// Seeds of the statistics.
    #[serde(default)]
    pub stats: Stats,
    /// What is done about blocks that give the answer away.
    #[serde(default, skip_serializing_if = "is_default")]
    pub audit: Audit,
}

/// A memory system with its settings (every context policy but `full` comes later).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Condition {
    /// The memory system's name.
    pub memory: String,
    /// Its settings.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// At most this many records are injected.
    #[serde(default = "one_record")]
    pub records: usize,
    /// At most this many tokens are injected.
    #[serde(default = "tokens")]
    pub tokens: u64,
    /// The model (of `models`) that the system asks while it learns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What embeds records and queries: an entry of `models` whose endpoint has embeddings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
    /// The condition whose deliveries this one matches, target for target: as many records, as many tokens, and an
    /// abstention where that one abstains. For control arms.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "match")]
    pub matches: Option<String>,
    /// When: at the start, by a tool of the agent, at phases of the run. Records and tokens bound each delivery.
    #[serde(default, skip_serializing_if = "Inject::is_default")]
    pub inject: Inject,
    /// Calls of the memory tool that a run may make; none: [`crate::agent::TOOL_CALLS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u32>,
}

/// A model with its sampling parameters, or recorded runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Solver {
    /// A model behind an OpenAI-compatible endpoint. Its address is not part of the lock.
    Openai(Box<Endpoint>),
    /// Re-executes the actions of recorded trajectories.
    #[serde(rename_all = "kebab-case")]
    Replay {
        /// The folder of trajectories, one for each target.
        trajectories: PathBuf,
    },
}

/// The fixed agent's settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Agent {
    /// mini-swe-agent YAML files and `a.b=value` overrides, merged left to right; empty: the built-in configuration.
    pub config: Vec<String>,
    /// Model calls a run may make.
    pub step_limit: Option<u64>,
    /// US dollars a run may cost.
    pub cost_limit: Option<f64>,
    /// Tokens (prompt and completion) a run may use.
    pub token_limit: Option<u64>,
    /// Seconds a run may take.
    pub time_limit: Option<u64>,
    /// Seconds a command may take.
    pub command_timeout: Option<u64>,
    /// Tokens the model is shown at most.
    pub context_limit: Option<u64>,
    /// Which files tell of a run.
    #[serde(skip_serializing_if = "is_default")]
    pub trajectory_format: TrajectoryFormat,
    /// Another program as the agent: program and arguments. The keys below go with it: [`crate::agent::Program`].
    pub command: Vec<String>,
    /// What it is told.
    pub prompt: Option<String>,
    /// How it is handed over.
    pub prompt_by: Option<PromptBy>,
    /// Its environment variables.
    pub env: BTreeMap<String, String>,
    /// Read-only folders of the host that hold it.
    pub mounts: Vec<Mount>,
    /// A script that installs it.
    pub install: Option<String>,
    /// Files of its own that are kept.
    pub logs: Vec<String>,
    /// New files in the repository that are no part of its work.
    pub exclude: Vec<String>,
    /// Request fields that may be left out where the endpoint's format has no place for them.
    pub may_drop: Vec<String>,
}

/// Where commands run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sandbox {
    /// `namespaces`, `docker` or `local`.
    pub backend: String,
    /// `host`, `rootfs:FOLDER`, `image:NAME`, `published` or `published:swe-bench`.
    pub base: String,
    /// A mirror, asked for published images in Docker Hub's place: `HOST[:PORT]`. Not part of the lock.
    pub registry: Option<String>,
    /// Bytes on disk that published images may take. Not part of the lock.
    pub image_disk: Option<u64>,
    /// Read-only folders of the host: toolchains.
    pub mounts: Vec<Mount>,
    /// Environment variables of every installation, agent and test; a task's own win.
    pub env: BTreeMap<String, String>,
    /// Bounds.
    pub limits: Limits,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            backend: "namespaces".into(),
            base: "host".into(),
            registry: None,
            image_disk: None,
            mounts: Vec::new(),
            env: BTreeMap::new(),
            limits: Limits::default(),
        }
    }
}

/// How predictions are graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Grade {
    /// Seconds the tests may take.
    pub timeout: u64,
    /// Whether each target's gold patch is graded first, and a target whose gold fails leaves every arm.
    pub check_gold: bool,
}

impl Default for Grade {
    fn default() -> Self {
        Self { timeout: 1800, check_gold: true }
    }
}

/// Bounds of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Budget {
    /// Trials at once.
    pub jobs: usize,
    /// How often a trial that failed by infrastructure is tried again.
    pub retries: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { jobs: 2, retries: 2 }
    }
}

/// Seeds and sizes of the statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stats {
    /// The bootstrap's seed; the order of trials is drawn from it too.
    pub seed: u64,
}

impl Default for Stats {
    fn default() -> Self {
        Self { seed: 20_260_920 }
    }
}

/// What is done about blocks that give the answer away.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Audit {
    /// Whether a target leaves every arm where a block gave its answer away in some arm. Without it such targets stay, and
    /// the comparison without them stands beside the main one; with it the other way round.
    pub exclude_leaks: bool,
}

/// What does not change a run does not change the lock of a study that leaves it out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn one() -> u32 {
    1
}

fn off() -> String {
    "off".into()
}

fn one_record() -> usize {
    1
}

fn tokens() -> u64 {
    1024
}

impl Design {
    /// Reads a study file; its paths become relative to the current folder instead of the file's.
    ///
    /// # Errors
    /// When it cannot be read, or states something that cannot be run; the text says where and what to do.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let bad = |reason: String| StudyError::Design { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(StudyError::io(path))?;
        let mut design: Self =
            toml::from_str(&text).map_err(|error| bad(error.to_string().trim_end().into()))?;
        design.check().map_err(bad)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for place in design.paths() {
            *place = folder.join(&place);
        }
        if let Some(rootfs) = design.sandbox.base.strip_prefix("rootfs:") {
            design.sandbox.base = format!("rootfs:{}", folder.join(rootfs).display());
        }
        for spec in &mut design.agent.config {
            // an override or a built-in configuration is no file
            let beside = folder.join(&spec);
            if !spec.contains('=') && beside.is_file() {
                *spec = beside.to_string_lossy().into_owned();
            }
        }
        Ok(design)
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let replays = self.solvers.values_mut().filter_map(|solver| match solver {
            Solver::Replay { trajectories } => Some(trajectories),
            Solver::Openai(_) => None,
        });
        let mounts =
            self.sandbox.mounts.iter_mut().chain(&mut self.agent.mounts).map(|mount| &mut mount.host);
        self.tasks.iter_mut().chain(&mut self.history).chain([&mut self.repos]).chain(replays).chain(mounts)
    }
}

/// Whether mounts have places inside; the text names the key.
pub(super) fn check_mounts(key: &str, mounts: &[Mount]) -> Result<(), String> {
    for mount in mounts {
        if !mount.inside.is_absolute() || mount.inside == Path::new("/") {
            let inside = mount.inside.display();
            return Err(format!("{key}: inside = {inside:?} is not an absolute path below the root"));
        }
    }
    Ok(())
}
