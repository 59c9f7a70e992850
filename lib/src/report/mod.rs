//! What a person reads: whether the conditions of a study differ, by how much, and at what cost.
//!
//! [`Report::build`] computes everything from the trials and a few facts about the study; the renderers
//! ([`Report::text`], [`Report::html`], serde for JSON) only write it down. [`compare`] does the same for two graded
//! runs. The same trials in any order give the same bytes.
//!
//! Codings (law 4): an *excluded* target leaves every arm; a *missing* trial takes its pair out of the comparison, is
//! counted, and bounds what could have been.

mod arm;
pub mod compare;
mod comparison;
mod facts;
mod html;
mod leaks;
mod page;
mod paired;
mod pieces;
mod plot;
mod study;
mod table;
mod text;
mod wording;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

pub use arm::{Arm, MemoryUse, Reliability, Spend, Usage};
pub use comparison::{Comparison, Ratios};
pub use facts::{Exclusion, ReportError, StudyFacts};
pub use leaks::{LeakArm, LeakBlock, Leaks};
pub use paired::{
    Cluster, Equivalence, Estimate, Finding, Flip, Method, Paired, PairedTarget, SingleRun, Strata, Stratum,
    VerdictPair,
};
pub use study::StudyReportError;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::grade::Coding;
use crate::llm::Cost;
use crate::stats::{Cell, holm};
use crate::study::{TrialKey, TrialRecord};
use crate::task::InstanceId;

/// The version of [`Report`]'s JSON form; it rises when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that a study's trials say. Rates and differences are shares (0.125 is 12.5 percentage points).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was studied.
    pub study: StudyFacts,
    /// How much of it is done.
    pub progress: Progress,
    /// One sentence a comparison; none claims more than its interval.
    pub conclusions: Vec<String>,
    /// What a reader must know besides.
    pub caveats: Vec<String>,
    /// Targets that left every arm, by id.
    pub excluded: Vec<Exclusion>,
    /// Each condition with each solver, in the study's order.
    pub arms: Vec<Arm>,
    /// Each condition against the baseline: for each solver, then pooled over solvers where there are several.
    pub comparisons: Vec<Comparison>,
    /// How many comparisons the Holm adjustment of the per-solver p values covers.
    pub family: usize,
    /// What was found in the injected blocks.
    #[serde(default)]
    pub leaks: Leaks,
    /// Each target in each arm, by id.
    pub targets: Vec<TargetRow>,
    /// What all trials cost, those of excluded targets and missing trials included.
    pub spent: Spent,
}

/// How much of the grid is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Trials of the grid, without those of excluded targets.
    pub expected: u64,
    /// Trials with a record.
    pub finished: u64,
    /// Finished trials that infrastructure failed.
    pub missing: u64,
}

impl Progress {
    /// Whether every trial of the grid has a record.
    pub fn complete(self) -> bool {
        self.finished >= self.expected
    }
}

/// One target in every arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRow {
    /// The target.
    pub instance_id: InstanceId,
    /// Its replicates in each of [`Report::arms`], in that order.
    pub arms: Vec<Cell>,
}

/// What the whole study cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Trials counted.
    pub trials: u64,
    /// The solvers.
    pub solver: Cost,
    /// The part of it that went into attempts that were given up.
    pub abandoned: Cost,
    /// The memory systems: build and retrieval.
    pub memory: Cost,
}

/// The trials that enter the statistics, by key.
type Trials<'a> = BTreeMap<&'a TrialKey, &'a TrialRecord>;

impl Report {
    /// Computes the report of a finished or running study.
    ///
    /// # Errors
    /// When the facts and the trials do not fit: an unknown condition or solver, a replicate out of range, a trial
    /// twice, or a baseline that is no condition.
    pub fn build(facts: StudyFacts, trials: &[TrialRecord]) -> Result<Self, ReportError> {
        facts.check(trials)?;
        let unfit = excluded(&facts, trials);
        let mut leaking = leaks::leaking(trials);
        leaking.retain(|leak| !unfit.iter().any(|e| e.instance_id == leak.instance_id));
        let leaking_targets: Vec<InstanceId> = leaking.iter().map(|e| e.instance_id.clone()).collect();
        let all_excluded = unfit.iter().cloned().chain(leaking).collect::<Vec<_>>();
        let mut excluded = if facts.exclude_leaks { all_excluded.clone() } else { unfit.clone() };
        excluded.sort_by(|a, b| a.instance_id.cmp(&b.instance_id));
        let kept = without(trials, &excluded);
        let mut leaks = Leaks::of(&facts, &without(trials, &unfit), leaking_targets);
        if !leaks.targets.is_empty() {
            let beside = without(trials, if facts.exclude_leaks { &unfit } else { &all_excluded });
            let mut comparisons = comparison::all(&facts, &beside);
            let family = adjust(&mut comparisons);
            leaks.compare(comparisons, family);
        }

        let remaining = facts.targets.saturating_sub(excluded.len()) as u64;
        let per_arm = remaining * u64::from(facts.replicates);
        let arms: Vec<Arm> = facts
            .grid()
            .map(|(condition, solver)| Arm::of(condition, solver, &kept, per_arm, facts.seed))
            .collect();
        let mut comparisons = comparison::all(&facts, &kept);
        let family = adjust(&mut comparisons);
        let mut report = Self {
            schema_version: SCHEMA_VERSION,
            progress: Progress {
                expected: per_arm * (facts.conditions.len() * facts.solvers.len()) as u64,
                finished: kept.len() as u64,
                missing: arms.iter().map(|a| a.missing).sum(),
            },
            conclusions: comparisons.iter().map(|c| wording::conclusion(c, family)).collect(),
            caveats: Vec::new(),
            leaks,
            targets: target_rows(&facts, &kept),
            spent: spent(trials),
            study: facts,
            excluded,
            arms,
            comparisons,
            family,
        };
        report.caveats = wording::caveats(&report);
        Ok(report)
    }
}

/// The trials of the targets that are not excluded.
fn without<'a>(trials: &'a [TrialRecord], excluded: &[Exclusion]) -> Trials<'a> {
    let gone: BTreeSet<&InstanceId> = excluded.iter().map(|e| &e.instance_id).collect();
    trials.iter().filter(|t| !gone.contains(&t.key.instance_id)).map(|t| (&t.key, t)).collect()
}

/// Targets that the study or a verdict takes out, with the first reason by key.
fn excluded(facts: &StudyFacts, trials: &[TrialRecord]) -> Vec<Exclusion> {
    let mut reasons: BTreeMap<&InstanceId, String> = BTreeMap::new();
    let mut by_key: Vec<&TrialRecord> = trials.iter().collect();
    by_key.sort_by_key(|t| &t.key);
    for exclusion in &facts.excluded {
        reasons.entry(&exclusion.instance_id).or_insert_with(|| exclusion.reason.clone());
    }
    for trial in by_key.into_iter().filter(|t| t.verdict.coding() == Coding::Excluded) {
        let name = wording::verdict_name(trial.verdict);
        let reason = match &trial.reason {
            Some(reason) => format!("{name}: {reason}"),
            None => name,
        };
        reasons.entry(&trial.key.instance_id).or_insert(reason);
    }
    reasons.into_iter().map(|(id, reason)| Exclusion { instance_id: id.clone(), reason }).collect()
}

/// Fills in Holm-adjusted p values: one family for the per-solver comparisons, one for the pooled ones. Returns the
/// size of the first.
fn adjust(comparisons: &mut [Comparison]) -> usize {
    let mut sizes = [0; 2];
    for (size, pooled) in sizes.iter_mut().zip([false, true]) {
        let mut family: Vec<&mut Comparison> = comparisons
            .iter_mut()
            .filter(|c| c.solver.is_none() == pooled && c.paired.delta.is_some())
            .collect();
        let p: Vec<f64> = family.iter().map(|c| c.paired.sign_flip.p).collect();
        *size = family.len();
        for (comparison, adjusted) in family.iter_mut().zip(holm(&p)) {
            comparison.holm_p = Some(adjusted);
        }
    }
    sizes[0]
}

fn target_rows(facts: &StudyFacts, trials: &Trials) -> Vec<TargetRow> {
    let index: BTreeMap<(&str, &str), usize> = facts.grid().enumerate().map(|(i, arm)| (arm, i)).collect();
    let mut rows: BTreeMap<&InstanceId, Vec<Cell>> = BTreeMap::new();
    for (key, trial) in trials {
        let cells = rows.entry(&key.instance_id).or_insert_with(|| vec![Cell::default(); index.len()]);
        if let Some(&arm) = index.get(&(key.condition.as_str(), key.solver.as_str())) {
            arm::count(&mut cells[arm], trial);
        }
    }
    rows.into_iter().map(|(id, arms)| TargetRow { instance_id: id.clone(), arms }).collect()
}

fn spent(trials: &[TrialRecord]) -> Spent {
    let sum = |cost: fn(&TrialRecord) -> Cost| arm::total(trials.iter(), cost);
    Spent {
        trials: trials.len() as u64,
        solver: sum(|t| t.solver_cost),
        abandoned: sum(|t| t.abandoned_cost),
        memory: sum(|t| t.memory_cost),
    }
}
