//! Everything a study needs, read and checked before its first trial.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;

use super::design::{Design, Solver};
use super::lock::{ConditionLock, Lock, TargetLock, digest, digest_file};
use super::program::{self, Doors};
use super::{Layout, StudyError, layout, systems};
use crate::agent;
use crate::dataset::{self, History, HistoryStore, MergeDates, OtherRepositories};
use crate::grade::files::{json_bytes, write_new};
use crate::llm::{Api, Endpoint, Limiter, OnRetry, Secret, recorded_run};
use crate::memory::{self, LearnsFrom};
use crate::sandbox::environment::{Base, Settings};
use crate::sandbox::{self, Mount};
use crate::task::{EvaluatorView, InstanceId, Task};

/// The lock's format.
const LOCK_SCHEMA: u32 = 1;

/// Runs of other repositories that a control arm draws from.
const DRAWN: usize = 40;

/// Looks up an environment variable that holds a key.
pub type KeyLookup = Box<dyn Fn(&str) -> Option<String>>;

/// What the caller decides besides the study file.
pub struct Openings {
    /// Where the study's files go; `None`: beside the study file.
    pub out: Option<PathBuf>,
    /// Other addresses for solvers, by name.
    pub endpoints: BTreeMap<String, String>,
    /// Read-only folders of the host that hold toolchains, besides the study file's.
    pub mounts: Vec<Mount>,
    /// Where keys come from.
    pub key: KeyLookup,
}

/// A study's inputs.
pub struct Bench {
    pub(super) design: Design,
    pub(super) layout: Layout,
    pub(super) agent: agent::Config,
    /// Another program in the agent's place.
    pub(super) program: Option<agent::Program>,
    pub(super) doors: Doors,
    pub(super) rooms: Settings,
    pub(super) targets: BTreeMap<InstanceId, Target>,
    pub(super) replays: BTreeMap<String, PathBuf>,
    pub(super) limiter: Limiter,
    pub(super) on_retry: Option<OnRetry>,
    pub(super) lock: Lock,
    warnings: Vec<String>,
}

/// One target with what it may learn from.
pub(super) struct Target {
    pub(super) task: Task,
    /// `None`: the study names no history.
    pub(super) history: Option<History>,
    /// Runs of other repositories, where a condition is a control arm that draws from them.
    pub(super) others: Option<OtherRepositories>,
}

impl Bench {
    /// Reads a study file and everything that it names.
    ///
    /// # Errors
    /// When something is missing or wrong; nothing has been written then.
    pub fn open(path: &std::path::Path, openings: Openings) -> Result<Self, StudyError> {
        let mut design = Design::read(path)?;
        let folder = path.parent().unwrap_or(std::path::Path::new(""));
        let program =
            design.agent.program().map_err(|reason| StudyError::Design { path: path.to_owned(), reason })?;
        let mounts = design.sandbox.mounts.iter().chain(&design.agent.mounts);
        if let Some(mount) = mounts.into_iter().find(|mount| !mount.host.is_dir()) {
            let reason = format!("mounts: there is no folder {}", mount.host.display());
            return Err(StudyError::Design { path: path.to_owned(), reason });
        }
        let backend = design.sandbox.backend.as_str();
        if !sandbox::BACKENDS.contains(&backend) {
            let reason = format!(
                "sandbox.backend: there is no {backend:?}; there are {}",
                sandbox::BACKENDS.join(", ")
            );
            return Err(StudyError::Design { path: path.to_owned(), reason });
        }
        let layout = Layout::new(openings.out.unwrap_or_else(|| folder.to_owned()));
        open_solvers(&mut design, &openings.endpoints, openings.key.as_ref())?;
        let loaded = load_agent(&design)?;
        let tasks = tasks(&design)?;
        let replays = replays(&design);
        let targets = targets(&design, tasks)?;
        let base = Base::parse(&design.sandbox.base)
            .map_err(|reason| StudyError::Design { path: path.to_owned(), reason })?;
        // a published image has its own toolchain
        let published = matches!(base, Base::Published(_));
        let mut settings = Settings::new(design.repos.clone(), base);
        settings.mounts = design.sandbox.mounts.clone();
        let own = |mount: &Mount| design.sandbox.mounts.iter().any(|own| own.inside == mount.inside);
        let taken = |mount: &Mount| published || own(mount);
        settings.mounts.extend(openings.mounts.into_iter().filter(|mount| !taken(mount)));
        settings.env = design.sandbox.env.clone();
        settings.limits = design.sandbox.limits.clone();
        let label = settings.label(&design.sandbox.backend);
        let own = match &program {
            Some(program) => program::identity(program)?,
            None => digest_of(&loaded.config),
        };
        for (name, condition) in &design.conditions {
            condition.asking().check(&loaded.config).map_err(|reason| StudyError::Design {
                path: path.to_owned(),
                reason: format!("conditions.{name}.inject: {reason}"),
            })?;
        }
        let limiter = Limiter::default();
        let conditions = conditions(&design, &layout, &limiter, loaded.config.api)?;
        let lock = lock(&design, own, label, &targets, &replays, conditions)?;
        Ok(Self {
            design,
            layout,
            agent: loaded.config,
            program,
            doors: Doors::default(),
            rooms: settings,
            targets,
            replays,
            limiter,
            on_retry: None,
            lock,
            warnings: loaded.warnings,
        })
    }

    /// What was noticed while reading, for people.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Tells of every model call that failed and is made again.
    pub fn on_retry(&mut self, tell: OnRetry) {
        self.on_retry = Some(tell);
    }

    /// Number of targets, excluded ones included.
    pub fn targets(&self) -> usize {
        self.targets.len()
    }

    /// Where the pull requests' numbers and their merge dates order a target and its history differently.
    pub fn disagreements(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (id, target) in &self.targets {
            for found in target.history.iter().flat_map(History::disagreements) {
                let by = if found.earlier_by_number { "number" } else { "merge date" };
                let used = target.history.as_ref().is_some_and(|history| history.contains(&found.id));
                let effect = if used { "used" } else { "not used" };
                lines.push(format!("{id}: {} is earlier by {by} alone ({effect})", found.id));
            }
        }
        lines
    }

    /// The digest of the lock.
    pub fn lock_digest(&self) -> String {
        digest_of(&self.lock)
    }

    /// Runs so many trials at once instead of the study file's number.
    pub fn set_jobs(&mut self, jobs: usize) {
        self.design.budget.jobs = jobs.max(1);
    }

    /// The study's folder.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The study as designed.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Checks that the study has been begun, and with these inputs: what its folder holds belongs to them.
    ///
    /// # Errors
    /// When there is no lock, or an input has changed since; the text names it.
    pub fn expect_begun(&self) -> Result<(), StudyError> {
        let path = self.layout.lock();
        match layout::read_json::<Lock>(&path)? {
            None => Err(StudyError::NotBegun { path: self.layout.root().to_owned() }),
            Some(begun) => self.compare(path, &begun),
        }
    }

    /// Writes the lock before the first trial, or compares with the one that is there: of several workers that begin at
    /// once one writes it.
    ///
    /// # Errors
    /// When an input has changed since the study was begun; the text names it.
    pub(super) fn hold_to_lock(&self) -> Result<(), StudyError> {
        let path = self.layout.lock();
        if !path.exists() {
            write_new(&path, &json_bytes(&path, &self.lock)?)?;
        }
        self.expect_begun()
    }

    fn compare(&self, path: PathBuf, begun: &Lock) -> Result<(), StudyError> {
        match begun.changes(&self.lock) {
            changes if changes.is_empty() => Ok(()),
            changes => Err(StudyError::Locked { path, changes: changes.join(", ") }),
        }
    }
}

/// Gives solvers, and the models of memory systems, their addresses and keys.
fn open_solvers(
    design: &mut Design,
    endpoints: &BTreeMap<String, String>,
    key: &dyn Fn(&str) -> Option<String>,
) -> Result<(), StudyError> {
    let named = |name: &String| design.solvers.contains_key(name) || design.models.contains_key(name);
    if let Some(unknown) = endpoints.keys().find(|name| !named(name)) {
        let known = design.solvers.keys().chain(design.models.keys()).cloned().collect::<Vec<_>>().join(", ");
        let reason = format!("is not in the study; its solvers and models are {known}");
        return Err(StudyError::Solver { solver: unknown.clone(), reason });
    }
    for (name, solver) in &mut design.solvers {
        let Solver::Openai(endpoint) = solver else { continue };
        if let Some(address) = endpoints.get(name) {
            endpoint.base_url.clone_from(address);
        }
        let wrong = |reason| StudyError::Solver { solver: name.clone(), reason };
        open_endpoint(endpoint, key).map_err(wrong)?;
    }
    for (name, endpoint) in &mut design.models {
        if let Some(address) = endpoints.get(name) {
            endpoint.base_url.clone_from(address);
        }
        let wrong = |reason| StudyError::Solver { solver: name.clone(), reason };
        open_endpoint(endpoint, key).map_err(wrong)?;
    }
    Ok(())
}

/// Gives an endpoint its key.
fn open_endpoint(endpoint: &mut Endpoint, key: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
    let Some(variable) = &endpoint.api_key_env else { return Ok(()) };
    let value = key(variable).filter(|value| !value.is_empty());
    let missing = || format!("its key is expected in the environment variable {variable}, which is not set");
    endpoint.api_key = Some(Secret::new(value.ok_or_else(missing)?));
    Ok(())
}

/// The agent's configuration, the study's own limits over the files'.
fn load_agent(design: &Design) -> Result<agent::Loaded, StudyError> {
    let wrong = |error: agent::ConfigError| StudyError::Agent(error.to_string());
    let mut loaded = agent::Config::load(&design.agent.config).map_err(wrong)?;
    let (config, limits) = (&mut loaded.config, &design.agent);
    let set = |place: &mut u64, value: Option<u64>| *place = value.unwrap_or(*place);
    if let Some(steps) = limits.step_limit {
        config.set_step_limit(steps);
    }
    set(&mut config.limits.tokens, limits.token_limit);
    set(&mut config.limits.wall_seconds, limits.time_limit);
    set(&mut config.command_timeout, limits.command_timeout);
    config.limits.cost_usd = limits.cost_limit.unwrap_or(config.limits.cost_usd);
    Ok(loaded)
}

/// Every task of the study's files.
fn tasks(design: &Design) -> Result<BTreeMap<InstanceId, Task>, StudyError> {
    let mut tasks = BTreeMap::new();
    for file in &design.tasks {
        for task in dataset::read_tasks(file)?.tasks {
            tasks.insert(task.id().clone(), task);
        }
    }
    Ok(tasks)
}

/// The targets, each with the history made for it.
fn targets(
    design: &Design,
    tasks: BTreeMap<InstanceId, Task>,
) -> Result<BTreeMap<InstanceId, Target>, StudyError> {
    let store = design.history.as_deref().map(HistoryStore::open).transpose()?;
    let dates = MergeDates::from_tasks(tasks.values());
    let none = HistoryStore::default();
    let draws = design.conditions.values().any(|condition| {
        memory::describe(&condition.memory)
            .is_ok_and(|about| about.learns_from == LearnsFrom::OtherRepositories)
    });
    let wanted: Vec<InstanceId> = match design.targets.as_slice() {
        [] => tasks.keys().cloned().collect(),
        named => named.to_vec(),
    };
    let mut targets = BTreeMap::new();
    for id in wanted {
        let task = tasks.get(&id).cloned().ok_or_else(|| StudyError::UnknownTarget {
            target: id.to_string(),
            files: design.tasks.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", "),
        })?;
        let history = store
            .as_ref()
            .map(|store| History::for_target(store, &id, design.chronology, &dates))
            .transpose()?;
        let drawn_from = store.as_ref().unwrap_or(&none);
        let others = draws.then(|| OtherRepositories::draw(drawn_from, &id, DRAWN, design.stats.seed));
        targets.insert(id, Target { task, history, others });
    }
    Ok(targets)
}

/// The folders of recorded runs, by solver.
fn replays(design: &Design) -> BTreeMap<String, PathBuf> {
    let folder = |(name, solver): (&String, &Solver)| match solver {
        Solver::Replay { trajectories } => Some((name.clone(), trajectories.clone())),
        Solver::Openai(_) => None,
    };
    design.solvers.iter().filter_map(folder).collect()
}

fn lock(
    design: &Design,
    agent: String,
    sandbox: String,
    targets: &BTreeMap<InstanceId, Target>,
    replays: &BTreeMap<String, PathBuf>,
    conditions: BTreeMap<String, ConditionLock>,
) -> Result<Lock, StudyError> {
    let mut hashes = Hashes::default();
    let mut locked = BTreeMap::new();
    for (id, target) in targets {
        let entries = target.history.iter().flat_map(History::entries);
        let history = entries.map(|entry| Ok((entry.id().clone(), hashes.of(entry.path())?)));
        let history = history.collect::<Result<_, StudyError>>()?;
        let others = target.others.iter().flat_map(OtherRepositories::entries);
        let others = others.map(|entry| Ok((entry.id().clone(), hashes.of(entry.path())?)));
        let others = others.collect::<Result<_, StudyError>>()?;
        locked.insert(id.clone(), TargetLock { task: digest_of(&target.task), history, others });
    }
    let mut recorded = BTreeMap::new();
    for (solver, folder) in replays {
        for id in targets.keys() {
            if let Some(path) = recorded_run(folder, id) {
                recorded.insert(format!("{solver}/{id}"), hashes.of(&path)?);
            }
        }
    }
    Ok(Lock {
        schema: LOCK_SCHEMA,
        memtrial: env!("CARGO_PKG_VERSION").into(),
        design: digest_of(&fixed_part(design)),
        agent,
        sandbox,
        targets: locked,
        conditions,
        replays: recorded,
        images: BTreeMap::new(),
    })
}

/// The study without what may change from one invocation to the next.
fn fixed_part(design: &Design) -> serde_json::Value {
    let mut fixed = json!(design);
    if let Some(study) = fixed.as_object_mut() {
        for place in ["budget", "tasks", "history", "repos"] {
            study.remove(place);
        }
        for place in ["registry", "image-disk"] {
            study.get_mut("sandbox").and_then(|s| s.as_object_mut()).map(|sandbox| sandbox.remove(place));
        }
        // what they hold goes into the agent's digest, wherever they lie
        study.get_mut("agent").and_then(|agent| agent.as_object_mut()).map(|agent| agent.remove("mounts"));
        for model in
            study.get_mut("models").and_then(|m| m.as_object_mut()).into_iter().flat_map(|m| m.values_mut())
        {
            for place in ["base-url", "api-key-env", "max-in-flight"] {
                model.as_object_mut().map(|model| model.remove(place));
            }
        }
        for solver in
            study.get_mut("solvers").and_then(|s| s.as_object_mut()).into_iter().flat_map(|s| s.values_mut())
        {
            for place in ["base-url", "trajectories", "api-key-env", "max-in-flight"] {
                solver.as_object_mut().map(|solver| solver.remove(place));
            }
        }
    }
    fixed
}

fn conditions(
    design: &Design,
    layout: &Layout,
    limiter: &Limiter,
    api: Api,
) -> Result<BTreeMap<String, ConditionLock>, StudyError> {
    let mut conditions = BTreeMap::new();
    for (name, condition) in &design.conditions {
        let about = systems::open(design, layout, limiter, name, &EvaluatorView::default(), None)?.describe();
        let locked = ConditionLock {
            system: json!(about),
            difference: condition.difference(api),
            ceiling: condition.is_ceiling(),
            inject: condition.inject.clone(),
            asking: condition.asking(),
        };
        conditions.insert(name.clone(), locked);
    }
    Ok(conditions)
}

/// Digests of files, each read once.
#[derive(Default)]
struct Hashes(BTreeMap<PathBuf, String>);

impl Hashes {
    fn of(&mut self, path: &std::path::Path) -> Result<String, StudyError> {
        if let Some(known) = self.0.get(path) {
            return Ok(known.clone());
        }
        let digest = digest_file(path).map_err(StudyError::io(path))?;
        self.0.insert(path.to_owned(), digest.clone());
        Ok(digest)
    }
}

fn digest_of<T: serde::Serialize>(value: &T) -> String {
    digest(json!(value).to_string().as_bytes())
}
