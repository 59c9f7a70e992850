//! What memory delivers to a target: built and asked once for each (condition, target), kept on disk, and the same
//! for every solver and replicate.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::bench::{Bench, Target};
use super::recall::build_host;
use super::shift::Shift;
use super::{StudyError, layout};
use crate::grade::files::{json_bytes, write_new};
use crate::memory::host::{Outcome, Retrieved};
use crate::memory::{MemoryError, Query};
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
        shift: &Shift<'_>,
        condition: &str,
        target: &Target,
    ) -> Result<Arc<Retrieved>, RememberError> {
        let id = target.task.id();
        let place = self.made.lock().await.entry((condition.to_owned(), id.clone())).or_default().clone();
        let mut place = place.lock().await;
        if let Some(made) = place.as_ref() {
            return Ok(made.clone());
        }
        let retrieved = made_once(shift, condition, target).await?;
        let retrieved = Arc::new(retrieved);
        *place = Some(retrieved.clone());
        Ok(retrieved)
    }
}

/// Makes a delivery, or waits for the worker that does.
async fn made_once(shift: &Shift<'_>, condition: &str, target: &Target) -> Result<Retrieved, RememberError> {
    let (bench, id) = (shift.bench, target.task.id());
    let file = bench.layout.memory(condition, id).join("delivery.json");
    let name = Path::new("memory").join(condition).join(id.as_str());
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
            let made = build(bench, condition, target).await;
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

async fn build(bench: &Bench, name: &str, target: &Target) -> Result<Retrieved, RememberError> {
    let Some(history) = &target.history else {
        return Ok(Retrieved::without_history());
    };
    let mut host = build_host(bench, name, history).await?;
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
