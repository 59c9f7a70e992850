//! What memory delivers to a target: asked once for each (condition, target), kept on disk, and the same for every solver
//! and replicate. What a repository's runs taught is learnt once for all its targets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::bench::Target;
use super::design::Condition;
use super::shift::Shift;
use super::{StudyError, layout, systems};
use crate::grade::files::{json_bytes, make_folder, write_new};
use crate::memory::host::{Host, Outcome, Retrieved, Setup};
use crate::memory::plugged::Site;
use crate::memory::shelf::{self, Shelf};
use crate::memory::{BlockTemplate, Budget, LearnsFrom, MemoryError, Query};
use crate::task::InstanceId;

/// Why nothing is delivered where there are no runs to learn from.
pub(super) const NO_HISTORY: &str = "the study names no history";

/// The deliveries to one repository's targets: locked while one is made, so that each is made once and one store at a
/// time learns.
type Slot = Arc<Mutex<BTreeMap<InstanceId, Arc<Retrieved>>>>;

/// Deliveries that are being made or have been read, by condition and repository.
#[derive(Default)]
pub(super) struct Deliveries {
    made: Mutex<BTreeMap<(String, String), Slot>>,
}

/// Why there is no delivery.
#[derive(Debug, thiserror::Error)]
pub(super) enum RememberError {
    /// The system failed: an error of the harness, never an empty delivery.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The study's files cannot be used.
    #[error(transparent)]
    Study(#[from] StudyError),
}

impl Deliveries {
    /// What `condition` delivers to the target.
    pub(super) async fn get(
        &self,
        shift: &Shift<'_>,
        condition: &str,
        target: &Target,
    ) -> Result<Arc<Retrieved>, RememberError> {
        let matched = match shift.bench.design.conditions.get(condition).and_then(|c| c.matches.as_deref()) {
            Some(other) => Some(self.own(shift, other, target, None).await?),
            None => None,
        };
        self.own(shift, condition, target, matched.as_deref()).await
    }

    /// Waits until nothing learns from the repository's runs, and keeps it so. Another worker's store has a claim of its own.
    pub(super) async fn turn(&self, condition: &str, target: &Target) -> OwnedMutexGuard<impl Sized> {
        let place = (condition.to_owned(), target.task.id().repo_key().to_owned());
        let slot = self.made.lock().await.entry(place).or_default().clone();
        slot.lock_owned().await
    }

    async fn own(
        &self,
        shift: &Shift<'_>,
        condition: &str,
        target: &Target,
        matched: Option<&Retrieved>,
    ) -> Result<Arc<Retrieved>, RememberError> {
        let id = target.task.id();
        let place = (condition.to_owned(), id.repo_key().to_owned());
        let slot = self.made.lock().await.entry(place).or_default().clone();
        let mut made = slot.lock().await;
        if let Some(made) = made.get(id) {
            return Ok(made.clone());
        }
        let retrieved = Arc::new(made_once(shift, condition, target, matched).await?);
        made.insert(id.clone(), retrieved.clone());
        Ok(retrieved)
    }
}

/// Makes a delivery, or waits for the worker that is at the repository.
async fn made_once(
    shift: &Shift<'_>,
    condition: &str,
    target: &Target,
    matched: Option<&Retrieved>,
) -> Result<Retrieved, RememberError> {
    let (bench, id) = (shift.bench, target.task.id());
    let file = bench.layout.memory(condition, id).join("delivery.json");
    let name = Path::new("memory").join(condition).join(id.repo_key());
    loop {
        if let Some(kept) = layout::read_json::<Retrieved>(&file)? {
            return Ok(kept);
        }
        let Some(claim) = shift.worker.take(&name, &file)? else {
            tokio::time::sleep(shift.worker.pause()).await;
            continue;
        };
        // between the look and the claim it may have been made
        if !file.exists() {
            let made = make(shift, condition, target, matched).await;
            if let Ok(made) = &made {
                keep(&file, made)?;
            }
            claim.release()?;
            made?;
        }
    }
}

/// The first delivery stays.
fn keep(file: &Path, made: &Retrieved) -> Result<(), StudyError> {
    let bytes = json_bytes(file, made)?;
    Ok(write_new(file, &bytes).map(drop)?)
}

/// A condition's memory with a frozen store for one target, asked for at most `budget`; `None`: the study has no runs to make
/// it of.
pub(super) async fn build_host(
    shift: &Shift<'_>,
    name: &str,
    target: &Target,
    budget: Budget,
) -> Result<Option<Host>, RememberError> {
    let bench = shift.bench;
    let Some(condition) = bench.design.conditions.get(name) else {
        let reason = "it is not in the study".into();
        return Err(StudyError::Memory { condition: name.to_owned(), reason }.into());
    };
    let system = systems::open(
        &bench.design,
        &bench.layout,
        &bench.limiter,
        name,
        &target.task.evaluator,
        Some(site(shift)),
    )?;
    let setup = Setup {
        condition: name.to_owned(),
        seed: bench.design.stats.seed,
        budget,
        template: BlockTemplate::default(),
    };
    let about = system.describe();
    if about.learns_from == LearnsFrom::OtherRepositories {
        let Some(others) = &target.others else { return Ok(None) };
        return Ok(Some(Host::build_control(system, others, setup).await?));
    }
    let Some(history) = &target.history else { return Ok(None) };
    let path = bench.layout.learned(name, target.task.id());
    if let Some(folder) = path.parent() {
        make_folder(folder).map_err(StudyError::from)?;
    }
    let identity = shelf::identity(&about, &serde_json::Value::Object(condition.settings.clone()));
    let mut shelf = Shelf::open(&path, identity)?;
    Ok(Some(Host::build_on(&mut shelf, system, history, setup).await?))
}

async fn make(
    shift: &Shift<'_>,
    name: &str,
    target: &Target,
    matched: Option<&Retrieved>,
) -> Result<Retrieved, RememberError> {
    let bench = shift.bench;
    let budget = match matched.map(|matched| &matched.outcome) {
        Some(Outcome::Abstained { reason }) => {
            return Ok(Retrieved::abstained(format!("the matched condition abstains: {reason}")));
        }
        Some(Outcome::Injected(injection)) => injection.dose(),
        None => bench.design.conditions.get(name).map(Condition::budget).unwrap_or_default(),
    };
    let Some(mut host) = build_host(shift, name, target, budget).await? else {
        return Ok(Retrieved::abstained(NO_HISTORY.into()));
    };
    let retrieved = host.retrieve(&Query::at_start((&target.task.solver).into())).await?;
    host.snapshot(&bench.layout.memory(name, target.task.id()).join("store")).await?;
    host.cleanup().await?;
    Ok(retrieved)
}

/// Where plugged-in systems run: in the study's sandboxes, their state below the study's folder while they live.
fn site(shift: &Shift<'_>) -> Site {
    Site {
        backend: shift.environments.backend().clone(),
        state: shift.bench.layout.root().join("memory").join(".live"),
        limits: shift.bench.design.sandbox.limits.clone(),
        calls: None,
    }
}

/// The text to inject, where there is one.
pub(super) fn block(retrieved: &Retrieved) -> Option<&str> {
    match &retrieved.outcome {
        Outcome::Injected(injection) if !injection.block.is_empty() => Some(&injection.block),
        _ => None,
    }
}
