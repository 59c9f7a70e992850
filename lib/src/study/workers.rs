//! Who is at work on a study, for people.

use std::time::Duration;

use serde::Serialize;

use super::bench::Bench;
use super::claims::{self, Owner};
use super::{Layout, StudyError, TrialKey};

/// A worker that has joined a study and not left it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtWork {
    /// Which process, and where.
    pub worker: Owner,
    /// Seconds since its last heartbeat, by the clock of this machine; `None`: it has left none.
    pub heartbeat_age: Option<f64>,
    /// Whether its heartbeat is older than its lease, or its process is known to have ended: its trials are taken over
    /// by the next worker that looks.
    pub lost: bool,
    /// The trials that it is at.
    pub trials: Vec<TrialKey>,
}

impl Bench {
    /// Who is at work, in the order of their names; of those that are lost only who left trials unfinished.
    ///
    /// # Errors
    /// When a claim cannot be read.
    pub fn at_work(&self) -> Result<Vec<AtWork>, StudyError> {
        let mut found = Vec::new();
        for (worker, heartbeat_age) in claims::joined(&self.layout)? {
            let silent = heartbeat_age.is_none_or(|age| age > Duration::from_secs(worker.lease));
            let lost = silent || claims::has_ended(&worker);
            let heartbeat_age = heartbeat_age.map(|age| age.as_secs_f64());
            found.push(AtWork { worker, heartbeat_age, lost, trials: Vec::new() });
        }
        for key in self.grid() {
            let Some(owner) = claims::claimed_by(&self.layout, &Layout::trial_claim(&key))? else { continue };
            if let Some(at) = found.iter_mut().find(|at| at.worker == owner) {
                at.trials.push(key);
            }
        }
        found.retain(|at| !at.lost || !at.trials.is_empty());
        Ok(found)
    }
}
