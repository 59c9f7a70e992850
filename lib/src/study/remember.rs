//! What memory delivers to a target: built and asked once for each (condition, target), kept on disk, and the same
//! for every solver and replicate.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::bench::{Bench, Target};
use super::design::Condition;
use super::{StudyError, layout};
use crate::grade::files::write_json;
use crate::memory::host::{Host, Outcome, Retrieved, Setup};
use crate::memory::{self, BlockTemplate, Budget, MemoryError, Query};
use crate::task::InstanceId;

/// One delivery: locked while it is made, so that it is made once.
type Slot = Arc<Mutex<Option<Arc<Retrieved>>>>;

/// Deliveries that are being made or have been read.
#[derive(Default)]
pub(super) struct Deliveries {
    made: Mutex<BTreeMap<(String, InstanceId), Slot>>,
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
        bench: &Bench,
        condition: &str,
        target: &Target,
    ) -> Result<Arc<Retrieved>, RememberError> {
        let id = target.task.id();
        let place = self.made.lock().await.entry((condition.to_owned(), id.clone())).or_default().clone();
        let mut place = place.lock().await;
        if let Some(made) = place.as_ref() {
            return Ok(made.clone());
        }
        let file = bench.layout.memory(condition, id).join("delivery.json");
        let retrieved = match layout::read_json::<Retrieved>(&file)? {
            Some(kept) => kept,
            None => {
                let made = build(bench, condition, target).await?;
                write_json(&file, &made).map_err(StudyError::from)?;
                made
            }
        };
        let retrieved = Arc::new(retrieved);
        *place = Some(retrieved.clone());
        Ok(retrieved)
    }
}

async fn build(bench: &Bench, name: &str, target: &Target) -> Result<Retrieved, RememberError> {
    let Some(condition) = bench.design.conditions.get(name) else {
        return Err(StudyError::Memory {
            condition: name.to_owned(),
            reason: "it is not in the study".into(),
        }
        .into());
    };
    let Some(history) = &target.history else {
        return Ok(Retrieved::without_history());
    };
    let Condition { memory, settings, records, tokens } = condition;
    let system = memory::open(memory, &serde_json::Value::Object(settings.clone()))?;
    let setup = Setup {
        condition: name.to_owned(),
        seed: bench.design.stats.seed,
        budget: Budget { records: *records, tokens: *tokens },
        template: BlockTemplate::default(),
    };
    let mut host = Host::build(system, history, setup).await?;
    let retrieved = host.retrieve(&Query::at_start((&target.task.solver).into())).await?;
    host.snapshot(&bench.layout.memory(name, target.task.id()).join("store")).await?;
    host.cleanup().await?;
    Ok(retrieved)
}

/// The text to inject, where there is one.
pub(super) fn block(retrieved: &Retrieved) -> Option<&str> {
    match &retrieved.outcome {
        Outcome::Injected(injection) if !injection.block.is_empty() => Some(&injection.block),
        _ => None,
    }
}
