//! How runs get into a store: from the shelf where they stand there, else read on all processors and ingested in their order.

use std::time::Instant;

use super::host::{Experiences, spend};
use super::redact::{Redactions, redact_run};
use super::shelf::{Chain, Shelf, Taken};
use super::{Description, Experience, MemoryError, MemorySystem};
use crate::llm::Cost;
use crate::task::InstanceId;

/// Takes runs in, from the history or from a shelf.
pub(super) struct Take<'a> {
    about: &'a Description,
    history: &'a dyn Experiences,
    chain: Chain,
}

/// A run as it was found: on the shelf, or in the history.
pub(super) struct Found {
    origin: InstanceId,
    key: String,
    saved: Option<(serde_json::Value, Taken)>,
    read: Option<(Experience, Taken)>,
}

/// The same work for several things, each on a thread of its own.
fn on_all<I, U>(things: I, work: impl Fn(I::Item) -> U + Sync) -> Vec<U>
where
    I: IntoIterator<Item: Send>,
    U: Send,
{
    let work = &work;
    std::thread::scope(|scope| {
        let working: Vec<_> = things.into_iter().map(|thing| scope.spawn(move || work(thing))).collect();
        let done = working.into_iter().map(|thread| thread.join());
        done.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// What stands on the shelf for a run, not taken back yet: of a store whose state mixes runs only the last one counts.
pub(super) type Ahead = Option<(InstanceId, serde_json::Value)>;

impl<'a> Take<'a> {
    /// From the beginning of a history.
    pub fn new(about: &'a Description, history: &'a dyn Experiences) -> Self {
        Self { about, history, chain: Chain::new(about.order_sensitive) }
    }

    /// Reads a run, without secrets and without what the system does not declare that it reads.
    fn read(&self, origin: &InstanceId, found: &mut Redactions) -> Result<Experience, MemoryError> {
        let read = self.history.read(origin, self.about.reads_events).and_then(|read| same_run(origin, read));
        let mut experience = read.map_err(|reason| self.unreadable(origin, reason))?;
        if !self.about.uses_outcome {
            experience.outcome = None;
        }
        if !self.about.reads_events {
            experience.events.clear();
        }
        redact_run(&mut experience, found);
        Ok(experience)
    }

    fn unreadable(&self, origin: &InstanceId, reason: String) -> MemoryError {
        MemoryError::History {
            target: self.history.target().clone(),
            origin: origin.clone(),
            reason: reason.into(),
        }
    }

    /// Finds some runs on the shelf, and reads the others, on all processors.
    pub fn find(&mut self, origins: &[InstanceId], shelf: Option<&Shelf>) -> Result<Vec<Found>, MemoryError> {
        let mut found = Vec::new();
        let digests = match shelf {
            Some(_) => on_all(origins, |origin| self.history.digest(origin)),
            None => origins.iter().map(|_| Ok(Default::default())).collect(),
        };
        for (origin, digest) in origins.iter().zip(digests) {
            let (content, outcome) = digest.map_err(|reason| self.unreadable(origin, reason))?;
            let key = self.chain.next(origin, &content, outcome.filter(|_| self.about.uses_outcome));
            let saved = shelf.map(|shelf| shelf.get(&key)).transpose()?.flatten();
            found.push(Found { origin: origin.clone(), key, saved, read: None });
        }
        let missing: Vec<&mut Found> = found.iter_mut().filter(|found| found.saved.is_none()).collect();
        let read = on_all(missing, |found| {
            let started = Instant::now();
            let mut redactions = Redactions::default();
            let experience = self.read(&found.origin, &mut redactions)?;
            let cost = Cost { seconds: started.elapsed().as_secs_f64(), ..Cost::ZERO };
            found.read = Some((experience, Taken { cost, redactions }));
            Ok(())
        });
        read.into_iter().collect::<Result<(), MemoryError>>()?;
        Ok(found)
    }

    pub async fn take_in(
        &self,
        found: Found,
        shelf: Option<&mut Shelf>,
        system: &mut dyn MemorySystem,
        ahead: &mut Ahead,
    ) -> Result<Taken, MemoryError> {
        let Found { origin, key, saved, read } = found;
        if let Some((saved, taken)) = saved {
            if self.about.order_sensitive {
                *ahead = Some((origin, saved));
            } else {
                system.load(&origin, saved)?;
            }
            return Ok(taken);
        }
        let Some((experience, mut taken)) = read else {
            return Err(self.unreadable(&origin, "it was neither read nor found".into()));
        };
        self.take_back(system, ahead.take())?;
        let started = Instant::now();
        let mut cost = Cost::ZERO;
        spend(&mut cost, started, system.ingest(&experience).await?);
        taken.cost = taken.cost.plus(cost);
        if let Some(shelf) = shelf
            && let Some(saved) = system.saved(&origin)?
        {
            shelf.put(&key, &origin, &saved, &taken)?;
        }
        Ok(taken)
    }

    pub fn take_back(&self, system: &mut dyn MemorySystem, ahead: Ahead) -> Result<(), MemoryError> {
        ahead.map_or(Ok(()), |(origin, saved)| system.load(&origin, saved))
    }
}

fn same_run(origin: &InstanceId, read: Experience) -> Result<Experience, String> {
    if read.instance_id == *origin {
        return Ok(read);
    }
    Err(format!("it holds the run of {}", read.instance_id))
}
