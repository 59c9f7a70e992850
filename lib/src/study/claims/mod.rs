//! Who works on what, where several processes work on one study.
//!
//! Whatever is to be done once (a trial, a gold check, a memory) is claimed first. A claim is a folder of numbered
//! entries; each number is given out once by an atomic rename, so exactly one process takes, takes over or finishes.
//! A worker shows that it lives by changing its heartbeat file. One that is silent for its lease, as seen by the
//! watcher's own clock, or whose process is known to have ended, loses its claims to whoever takes them over.
//!
//! A worker that was only suspended finds its claim's next number taken, so it finishes nothing that is no longer
//! its own: [`Claim::publish`].

mod heart;
mod log;
mod owner;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heart::{Heart, Watch};
use log::{Deed, Entry, Log};

pub use owner::{Owner, unique_name};

use super::{Layout, StudyError};
use crate::grade::files::{OutError, write};

/// A process that has joined a study, until it is dropped.
pub(super) struct Worker {
    layout: Layout,
    owner: Owner,
    log: Log,
    watched: Mutex<HashMap<(String, u64), Watch>>,
    _heart: Heart,
}

/// The right to finish something.
#[derive(Debug)]
pub(super) struct Claim {
    log: Log,
    number: u64,
    owner: Owner,
    /// The newest claim before this one whose owner was silent for its lease and may come back, with its number.
    pub(super) before: Option<(u64, Owner)>,
}

impl Worker {
    /// Joins under a name.
    ///
    /// # Errors
    /// When the name is none, a living worker has it, or the folder cannot be written.
    pub(super) fn join(layout: &Layout, name: &str, lease: Duration) -> Result<Self, StudyError> {
        let wrong = |reason: String| StudyError::Worker { reason };
        if let Some(fault) = owner::fault(name) {
            return Err(wrong(fault));
        }
        if lease < Duration::from_secs(1) {
            return Err(wrong("a lease lasts at least 1 second".into()));
        }
        let log = Log::new(layout.claims().join("workers").join(name));
        let here = Owner::here(name.to_owned(), lease.as_secs());
        loop {
            let newest = log.newest()?;
            let number = newest.as_ref().map_or(0, |(number, _)| *number) + 1;
            if let Some((_, Entry { what: Deed::Claimed, by, .. })) = newest
                && !by.is_known_dead(&here)
                && !silent_for_a_lease(&log, &by)
            {
                let Owner { host, pid, .. } = by;
                return Err(wrong(format!(
                    "worker {name:?} is at work already (process {pid} on {host}); give this one another name with \
                     --worker"
                )));
            }
            let owner = here.with_run(number);
            if log.add(number, &entry(Deed::Claimed, &owner))? {
                let heart = Heart::start(beat(&log, number), lease)?;
                let (layout, watched) = (layout.clone(), Mutex::default());
                return Ok(Self { layout, owner, log, watched, _heart: heart });
            }
        }
    }

    /// Claims what `claim` names below the folder of claims; `None` where another worker has it. `result` is where what
    /// it leads to is published.
    pub(super) fn take(&self, claim: &Path, result: &Path) -> Result<Option<Claim>, StudyError> {
        let log = Log::new(self.layout.claims().join(claim));
        loop {
            let newest = log.newest()?;
            if self.held(newest.as_ref(), result)?.is_some() {
                return Ok(None);
            }
            let number = newest.map_or(0, |(number, _)| number) + 1;
            if log.add(number, &entry(Deed::Claimed, &self.owner))? {
                // whoever had it before can publish nothing from here on
                for earlier in 1..number {
                    remove(&unpublished(result, earlier))?;
                }
                let before = self.silent(&log, number)?;
                return Ok(Some(Claim { log, number, owner: self.owner.clone(), before }));
            }
        }
    }

    /// Who holds a claim now.
    pub(super) fn holder(&self, claim: &Path, result: &Path) -> Result<Option<Owner>, StudyError> {
        let newest = Log::new(self.layout.claims().join(claim)).newest()?;
        self.held(newest.as_ref(), result)
    }

    fn held(&self, newest: Option<&(u64, Entry)>, result: &Path) -> Result<Option<Owner>, StudyError> {
        let Some((_, Entry { what, by, .. })) = newest else { return Ok(None) };
        let over = *what == Deed::Released || (*what == Deed::Finished && result.exists());
        let held = !over && matches!(self.standing(by)?, Standing::Alive);
        Ok(held.then(|| by.clone()))
    }

    /// The newest claim before `number` that was taken from an owner who may come back.
    fn silent(&self, log: &Log, number: u64) -> Result<Option<(u64, Owner)>, StudyError> {
        let mut next = self.owner.clone();
        for earlier in (1..number).rev() {
            let Some(Entry { what, by, .. }) = log.entry(earlier)? else { continue };
            let taken_over = what == Deed::Claimed && by != next;
            if taken_over && !matches!(self.standing(&by)?, Standing::Gone) {
                return Ok(Some((earlier, by)));
            }
            next = by;
        }
        Ok(None)
    }

    /// The number of a claim's newest entry; 0: there is none.
    pub(super) fn newest(&self, claim: &Path) -> Result<u64, StudyError> {
        let newest = Log::new(self.layout.claims().join(claim)).newest()?;
        Ok(newest.map_or(0, |(number, _)| number))
    }

    /// Whether something was finished by a later entry than this.
    pub(super) fn finished_after(&self, claim: &Path, number: u64) -> Result<bool, StudyError> {
        let log = Log::new(self.layout.claims().join(claim));
        for later in number + 1.. {
            match log.entry(later)? {
                Some(entry) if entry.what == Deed::Finished => return Ok(true),
                Some(_) => {}
                None => break,
            }
        }
        Ok(false)
    }

    /// How often to look for what others have finished or lost.
    pub(super) fn pause(&self) -> Duration {
        (Duration::from_secs(self.owner.lease) / 5).min(Duration::from_secs(1))
    }

    fn standing(&self, owner: &Owner) -> Result<Standing, StudyError> {
        if owner.is_known_dead(&self.owner) {
            return Ok(Standing::Gone);
        }
        let log = Log::new(self.layout.claims().join("workers").join(&owner.worker));
        if log.entry(owner.run + 1)?.is_some_and(|next| next.what == Deed::Released) {
            return Ok(Standing::Gone);
        }
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let watch = watched.entry((owner.worker.clone(), owner.run)).or_default();
        let silent = watch.silent(&beat(&log, owner.run)) >= Duration::from_secs(owner.lease);
        Ok(if silent { Standing::Silent } else { Standing::Alive })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // says that nothing more will come; where it cannot be written, the lease says so later
        let _ = self.log.add(self.owner.run + 1, &entry(Deed::Released, &self.owner));
    }
}

enum Standing {
    Alive,
    Gone,
    Silent,
}

impl Claim {
    /// Whether nobody has taken it over.
    pub(super) fn is_mine(&self) -> bool {
        !self.log.has(self.number + 1)
    }

    /// Comes to an end when another worker has taken it over.
    pub(super) async fn lost(&self) {
        let pause = (Duration::from_secs(self.owner.lease) / 5).min(Duration::from_secs(1));
        while self.is_mine() {
            tokio::time::sleep(pause).await;
        }
    }

    /// Finishes: writes the result, unless another worker has taken the claim over (`false`).
    ///
    /// The result is written beside its place under this claim's number, then the end is entered, then the result is
    /// renamed into place. Whoever takes over enters the next number, then removes what was written beside: so of two
    /// owners exactly one gets its result into place, wherever either is held up.
    pub(super) fn publish(&self, result: &Path, bytes: &[u8]) -> Result<bool, StudyError> {
        let beside = unpublished(result, self.number);
        write(&beside, bytes)?;
        if !self.log.add(self.number + 1, &entry(Deed::Finished, &self.owner))? {
            remove(&beside)?;
            return Ok(false);
        }
        match std::fs::rename(&beside, result) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(OutError::new(result, error).into()),
        }
        let folder = result.parent().unwrap_or(Path::new("."));
        std::fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| OutError::new(result, error))?;
        Ok(true)
    }

    /// Gives it back unfinished.
    pub(super) fn release(&self) -> Result<(), StudyError> {
        self.log.add(self.number + 1, &entry(Deed::Released, &self.owner)).map(|_| ())
    }
}

/// Where a result lies that is not published yet.
fn unpublished(result: &Path, number: u64) -> PathBuf {
    let name = result.file_name().unwrap_or_default().to_string_lossy();
    result.with_file_name(format!(".{name}.{number}"))
}

fn remove(path: &Path) -> Result<(), StudyError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(OutError::new(path, error).into()),
        _ => Ok(()),
    }
}

/// Every worker that has joined and not left, with the age of its heartbeat, in the order of names.
pub(super) fn joined(layout: &Layout) -> Result<Vec<(Owner, Option<Duration>)>, StudyError> {
    let folder = layout.claims().join("workers");
    let mut names: Vec<PathBuf> = match std::fs::read_dir(&folder) {
        Ok(names) => names.flatten().map(|entry| entry.path()).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(StudyError::io(&folder)(error)),
    };
    names.sort();
    let mut joined = Vec::new();
    for log in names.into_iter().map(Log::new) {
        if let Some((run, Entry { what: Deed::Claimed, by, .. })) = log.newest()? {
            joined.push((by, heart::age(&beat(&log, run))));
        }
    }
    Ok(joined)
}

/// Whether a worker's process is known to have ended.
pub(super) fn has_ended(owner: &Owner) -> bool {
    owner.is_known_dead(&Owner::here(String::new(), 0))
}

/// Whose a claim is, whether or not they live; `None`: it is finished, given back or was never made.
pub(super) fn claimed_by(layout: &Layout, claim: &Path) -> Result<Option<Owner>, StudyError> {
    let newest = Log::new(layout.claims().join(claim)).newest()?;
    Ok(newest.and_then(|(_, entry)| (entry.what == Deed::Claimed).then_some(entry.by)))
}

fn entry(what: Deed, owner: &Owner) -> Entry {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    Entry { what, by: owner.clone(), unix }
}

fn beat(log: &Log, run: u64) -> PathBuf {
    log.folder().join(format!("heartbeat-{run}"))
}

/// For a name that is asked for again: whether its last process has been silent, by the file's own time.
fn silent_for_a_lease(log: &Log, owner: &Owner) -> bool {
    heart::age(&beat(log, owner.run)).is_none_or(|age| age > Duration::from_secs(owner.lease))
}

#[cfg(test)]
mod tests;
