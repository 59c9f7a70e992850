//! One worker's part of a run: it claims what is open, a piece at a time, and does it.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use futures::future::try_join_all;

use super::bench::{Bench, Target};
use super::claims::{Claim, Worker};
use super::journal::Journal;
use super::recall::Hosts;
use super::remember::Deliveries;
use super::trial::{Trial, Tried, check_gold};
use super::{Event, Layout, RunSummary, Stop, StudyError, TrialKey};
use crate::grade::files::json_bytes;
use crate::grade::{Coding, Graded};
use crate::sandbox::environment::Environments;
use crate::task::InstanceId;

/// What a worker has at hand.
pub(super) struct Shift<'a> {
    pub(super) bench: &'a Bench,
    pub(super) environments: Environments,
    pub(super) worker: Worker,
    pub(super) deliveries: Deliveries,
    pub(super) hosts: Hosts,
    journal: Journal,
    stop: &'a Stop,
    on: &'a (dyn Fn(&Event) + Sync),
    /// Targets that are not to be run, and why.
    unfit: Mutex<BTreeMap<InstanceId, Coding>>,
    waiting: AtomicBool,
}

/// Something to be done once.
#[derive(Clone, Copy)]
enum Job<'a> {
    Gold(&'a Target),
    /// A trial, and the number of its claim's newest entry when the work began: what is finished after it is not
    /// begun again here, though its infrastructure may have failed.
    Trial(&'a TrialKey, u64),
}

/// What a slot does next.
enum Next<'a> {
    Do(Job<'a>, Box<Claim>),
    /// Other workers are at all that is left.
    Wait(usize),
    Leave,
}

/// How a worker's time with a trial ended.
enum Ended {
    /// A record or nothing more to do.
    Done,
    /// The claim is another worker's now.
    Lost,
}

impl<'a> Shift<'a> {
    pub(super) fn new(
        bench: &'a Bench,
        environments: Environments,
        worker: Worker,
        journal: Journal,
        stop: &'a Stop,
        on: &'a (dyn Fn(&Event) + Sync),
    ) -> Self {
        let (deliveries, unfit, waiting) = (Deliveries::default(), Mutex::default(), AtomicBool::new(false));
        let hosts = Hosts::default();
        Self { bench, environments, worker, deliveries, hosts, journal, stop, on, unfit, waiting }
    }

    /// Works until nothing is left, or nothing but what others are at.
    pub(super) async fn work(&self, wait: bool) -> Result<RunSummary, StudyError> {
        let bench = self.bench;
        let grid = bench.grid();
        let records = bench.records()?;
        let is_done =
            |key: &TrialKey| records.get(key).is_some_and(|r| r.verdict.coding() != Coding::Missing);
        let mut gold = Vec::new();
        for target in bench.targets.values().filter(|_| bench.design.grade.check_gold) {
            match bench.kept_gold(target.task.id())? {
                Some(graded) => self.judge_gold(target, &graded)?,
                None => gold.push(Job::Gold(target)),
            }
        }
        let finished = grid.iter().filter(|key| is_done(key)).count();
        self.tell(Event::Planned { gold: gold.len(), trials: grid.len(), finished })?;
        // a gold check is short, and no trial of its target can begin before it
        self.all(gold, true).await?;
        let mut trials = Vec::new();
        for key in grid.iter().filter(|key| !is_done(key) && !self.is_unfit(&key.instance_id)) {
            trials.push(Job::Trial(key, self.worker.newest(&Layout::trial_claim(key))?));
        }
        self.all(trials, wait).await?;
        self.summary(&grid)
    }

    fn summary(&self, grid: &[TrialKey]) -> Result<RunSummary, StudyError> {
        let mut summary = RunSummary::default();
        let unfit = self.unfit.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // who is at work is asked before what is finished: what ends in between counts as elsewhere still
        for key in grid {
            let held = self.worker.holder(&Layout::trial_claim(key), &self.bench.layout.record(key))?;
            summary.elsewhere += usize::from(held.is_some());
        }
        let records = self.bench.records()?;
        for key in grid {
            let record = records.get(key).map(|record| record.verdict.coding());
            summary.count(record, unfit.get(&key.instance_id).copied());
        }
        if summary.elsewhere == 0 {
            self.bench.write_predictions()?;
        }
        Ok(summary)
    }

    /// Does all that is open, as much at once as the budget says.
    async fn all(&self, open: Vec<Job<'_>>, wait: bool) -> Result<(), StudyError> {
        let open = tokio::sync::Mutex::new(VecDeque::from(open));
        let slots = (0..self.bench.design.budget.jobs).map(|_| async {
            while !self.stop.asked() {
                let next = self.next(&mut *open.lock().await)?;
                match next {
                    Next::Do(job, claim) => self.perform(job, &claim).await?,
                    Next::Wait(elsewhere) if wait => {
                        if !self.waiting.swap(true, Ordering::Relaxed) {
                            self.tell(Event::Waiting { elsewhere })?;
                        }
                        tokio::time::sleep(self.worker.pause()).await;
                    }
                    Next::Wait(_) | Next::Leave => break,
                }
            }
            Ok::<(), StudyError>(())
        });
        try_join_all(slots).await.map(drop)
    }

    /// Claims the first job that is free. What is done or claimed leaves the list.
    fn next<'j>(&self, open: &mut VecDeque<Job<'j>>) -> Result<Next<'j>, StudyError> {
        let mut elsewhere = 0;
        while let Some(&job) = open.get(elsewhere) {
            if self.is_over(job)? {
                open.remove(elsewhere);
                continue;
            }
            let (claim, result) = self.places(job);
            match self.worker.take(&claim, &result)? {
                None => elsewhere += 1,
                Some(claim) => {
                    open.remove(elsewhere);
                    // its owner may have finished it between the look and the claim
                    if !self.is_over(job)? {
                        return Ok(Next::Do(job, Box::new(claim)));
                    }
                    claim.release()?;
                }
            }
        }
        Ok(if elsewhere > 0 { Next::Wait(elsewhere) } else { Next::Leave })
    }

    /// The names of a job's claim and of its result.
    fn places(&self, job: Job<'_>) -> (PathBuf, PathBuf) {
        match job {
            Job::Gold(target) => {
                let id = target.task.id();
                (Path::new("gold").join(id.as_str()), self.bench.layout.gold_verdict(id))
            }
            Job::Trial(key, _) => (Layout::trial_claim(key), self.bench.layout.record(key)),
        }
    }

    /// Whether another worker has finished it.
    fn is_over(&self, job: Job<'_>) -> Result<bool, StudyError> {
        match job {
            Job::Gold(target) => {
                let Some(graded) = self.bench.kept_gold(target.task.id())? else { return Ok(false) };
                self.judge_gold(target, &graded)?;
                Ok(true)
            }
            Job::Trial(key, seen) => {
                let Some(record) = self.bench.record(key)? else { return Ok(false) };
                let over = record.verdict.coding() != Coding::Missing
                    || self.worker.finished_after(&Layout::trial_claim(key), seen)?;
                if over {
                    (self.on)(&Event::Elsewhere { key: key.clone() });
                }
                Ok(over)
            }
        }
    }

    async fn perform(&self, job: Job<'_>, claim: &Claim) -> Result<(), StudyError> {
        match job {
            Job::Gold(target) => {
                let graded = check_gold(self, target).await?;
                claim.release()?;
                self.judge_gold(target, &graded)
            }
            Job::Trial(key, _) => self.trial(key, claim).await,
        }
    }

    /// Tells of a gold verdict and keeps its target's trials from being run where it is not sound: `Excluded` where gold
    /// fails (the target leaves every arm), `Missing` where no sandbox could be had to grade it (no model is paid for a
    /// trial that could not be graded either).
    fn judge_gold(&self, target: &Target, graded: &Graded) -> Result<(), StudyError> {
        let (id, coding) = (target.task.id(), graded.class.coding());
        if matches!(coding, Coding::Excluded | Coding::Missing) {
            self.unfit.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), coding);
        }
        self.tell(Event::Gold { target: id.clone(), verdict: graded.class, reason: graded.reason.clone() })
    }

    fn is_unfit(&self, target: &InstanceId) -> bool {
        self.unfit.lock().unwrap_or_else(PoisonError::into_inner).contains_key(target)
    }

    /// Writes an event down, then tells it.
    pub(super) fn tell(&self, event: Event) -> Result<(), StudyError> {
        self.journal.write(&event)?;
        (self.on)(&event);
        Ok(())
    }

    /// A claimed trial, until it is finished or taken over.
    async fn trial(&self, key: &TrialKey, claim: &Claim) -> Result<(), StudyError> {
        let Some(target) = self.bench.targets.get(&key.instance_id) else { return Ok(()) };
        if let Some((number, owner)) = &claim.before {
            let worker = owner.worker.clone();
            let reason = format!("taken over from worker {worker}, which gave no sign of life for its lease");
            if self.bench.leave(key, *number, &reason)? {
                self.tell(Event::TakenOver { key: key.clone(), worker })?;
            }
        }
        let ended = tokio::select! {
            biased;
            () = claim.lost() => Ended::Lost,
            ended = self.attempts(key, target, claim) => ended?,
        };
        match ended {
            Ended::Lost => self.tell(Event::Lost { key: key.clone() }),
            Ended::Done => Ok(()),
        }
    }

    /// One trial with its retries. Nothing is written but the record when it is finished.
    async fn attempts(&self, key: &TrialKey, target: &Target, claim: &Claim) -> Result<Ended, StudyError> {
        let mut retries = self.bench.design.budget.retries;
        while !self.stop.asked() {
            let attempt = self.bench.attempt(key)?;
            self.tell(Event::Started { key: key.clone(), attempt })?;
            match (Trial { shift: self, claim, target, key, attempt }).run().await? {
                Tried::Diverged(reason) => {
                    self.bench.abandon(key, attempt, &reason)?;
                    self.tell(Event::Again { key: key.clone(), reason })?;
                }
                Tried::Record(record) if record.verdict.coding() == Coding::Missing && retries > 0 => {
                    retries -= 1;
                    self.tell(Event::Again { key: key.clone(), reason: record.reason.unwrap_or_default() })?;
                }
                Tried::Record(record) => {
                    let path = self.bench.layout.record(key);
                    if !claim.publish(&path, &json_bytes(&path, &record)?)? {
                        return Ok(Ended::Lost);
                    }
                    self.hosts.finished(self.bench, key).await;
                    return self.tell(Event::Finished { record }).map(|()| Ended::Done);
                }
            }
        }
        claim.release().map(|()| Ended::Done)
    }
}
