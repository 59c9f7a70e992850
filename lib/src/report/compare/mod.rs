//! Two graded runs, paired by task: `memtrial compare A B`.
//!
//! A is the run under test, B the one that it is measured against; all differences are A − B. Read are the summary
//! reports of SWE-bench (versions 4 and 5) and of `memtrial grade`, which have one schema.

mod read;
mod render;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use read::{Outcome, ReadError, Run, read_run};

use super::paired::{Finding, Paired, PairedTarget};
use crate::stats::Interval;
use crate::task::InstanceId;

/// The version of [`Comparison`]'s JSON form.
pub const SCHEMA_VERSION: u32 = 1;

/// The seed of the bootstrap where none is given.
pub const SEED: u64 = 0;

/// Differences smaller than this share count as "no difference" where no margin is given.
pub const MARGIN: f64 = 0.03;

/// Two runs compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The run under test.
    pub a: RunFacts,
    /// The run that it is measured against.
    pub b: RunFacts,
    /// Tasks that both runs list and at least one attempted; the analysis is of these.
    pub common: usize,
    /// Tasks that only A lists.
    pub only_in_a: Vec<String>,
    /// Tasks that only B lists.
    pub only_in_b: Vec<String>,
    /// Tasks that both list and neither attempted: left out.
    pub attempted_by_neither: Vec<String>,
    /// Tasks that a run took out because no fair verdict is possible: left out of both.
    pub excluded: Vec<String>,
    /// The analysis; Newcombe's interval decides.
    pub paired: Paired,
    /// The bootstrap interval of the difference, a check of Newcombe's.
    pub bootstrap: Option<Interval>,
    /// The analysis once more, with doubtful failures as missing; `None` where there is none.
    pub sensitivity: Option<Sensitivity>,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// One or two sentences; they never claim more than the interval.
    pub conclusion: String,
}

/// One run, counted over all tasks that it lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The file that was read.
    pub path: String,
    /// Tasks that it lists.
    pub listed: usize,
    /// Tasks by outcome.
    pub outcomes: BTreeMap<Outcome, usize>,
}

/// What changes if failures that may be the harness's count as missing instead of failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The tasks: an error without a cause, or no prediction in one of the runs.
    pub ids: Vec<String>,
    /// Tasks left.
    pub targets: usize,
    /// The difference over those.
    pub delta: Option<f64>,
    /// Its Newcombe interval.
    pub newcombe: Option<Interval>,
    /// McNemar's mid-p over those.
    pub mcnemar_mid_p: Option<f64>,
    /// The difference if the doubtful verdicts had all gone one way or the other.
    pub worst_case: Option<Interval>,
}

impl Comparison {
    /// Newcombe's interval of the difference: the one that decides; `None` without common tasks.
    pub fn interval(&self) -> Option<Interval> {
        self.paired.single.map(|s| s.newcombe)
    }

    /// Whether A is worse: the interval lies below 0 and chance does not explain it. What the conclusion says and what
    /// a gate does are one decision.
    pub fn worse(&self) -> bool {
        self.paired.finding == Finding::Lower
    }
}

/// Compares A (under test) with B, over the tasks that both list.
pub fn compare(a: &Run, b: &Run, seed: u64) -> Comparison {
    let mut out = Sides::default();
    for (id, &in_a) in &a.outcomes {
        match b.outcomes.get(id) {
            None => out.only_in_a.push(id.clone()),
            Some(&in_b) => out.sort(id, in_a, in_b),
        }
    }
    let only_in_b = b.outcomes.keys().filter(|id| !a.outcomes.contains_key(*id)).cloned().collect();
    let mut paired = Paired::of(&targets(&out.pairs, false), seed, MARGIN);
    let bootstrap = paired.decide_by_newcombe();
    let mut comparison = Comparison {
        schema_version: SCHEMA_VERSION,
        a: facts(a),
        b: facts(b),
        common: out.pairs.len(),
        only_in_a: out.only_in_a,
        only_in_b,
        attempted_by_neither: out.neither,
        excluded: out.excluded,
        sensitivity: sensitivity(&out.pairs, seed),
        paired,
        bootstrap,
        seed,
        conclusion: String::new(),
    };
    comparison.conclusion = render::conclusion(&comparison);
    comparison
}

/// The tasks of A by what becomes of them.
#[derive(Default)]
struct Sides<'a> {
    pairs: Vec<(&'a str, Outcome, Outcome)>,
    only_in_a: Vec<String>,
    neither: Vec<String>,
    excluded: Vec<String>,
}

impl<'a> Sides<'a> {
    fn sort(&mut self, id: &'a str, a: Outcome, b: Outcome) {
        if a == Outcome::Excluded || b == Outcome::Excluded {
            self.excluded.push(id.to_owned());
        } else if a == Outcome::NoPrediction && b == Outcome::NoPrediction {
            self.neither.push(id.to_owned());
        } else {
            self.pairs.push((id, a, b));
        }
    }
}

fn targets(pairs: &[(&str, Outcome, Outcome)], strict: bool) -> Vec<PairedTarget> {
    let verdict = |outcome: Outcome| match outcome {
        _ if strict && outcome.doubtful() => None,
        outcome => outcome.resolved(),
    };
    pairs
        .iter()
        .map(|&(id, a, b)| PairedTarget {
            id: id.to_owned(),
            repo: repository(id),
            pairs: vec![(verdict(a), verdict(b))],
        })
        .collect()
}

/// The repository in an id: `owner__name`. Ids of other forms (SWE-bench Pro) are cut at the first `-` after `__`; one
/// without `__` stands for itself.
fn repository(id: &str) -> String {
    let key = match InstanceId::parse(id) {
        Ok(parsed) => parsed.repo_key().to_owned(),
        Err(_) => match id.split_once("__") {
            Some((owner, rest)) => format!("{owner}__{}", rest.split('-').next().unwrap_or(rest)),
            None => id.to_owned(),
        },
    };
    key.to_ascii_lowercase()
}

fn sensitivity(pairs: &[(&str, Outcome, Outcome)], seed: u64) -> Option<Sensitivity> {
    let doubtful = pairs.iter().filter(|(_, a, b)| a.doubtful() || b.doubtful());
    let ids: Vec<String> = doubtful.map(|(id, ..)| (*id).to_owned()).collect();
    let strict = Paired::of(&targets(pairs, true), seed, MARGIN);
    (!ids.is_empty()).then(|| Sensitivity {
        ids,
        targets: strict.targets,
        delta: strict.delta.map(|d| d.value),
        newcombe: strict.single.map(|s| s.newcombe),
        mcnemar_mid_p: strict.single.map(|s| s.mcnemar_mid_p),
        worst_case: strict.worst_case,
    })
}

fn facts(run: &Run) -> RunFacts {
    let mut outcomes = BTreeMap::new();
    for outcome in run.outcomes.values() {
        *outcomes.entry(*outcome).or_insert(0) += 1;
    }
    RunFacts { path: run.path.display().to_string(), listed: run.outcomes.len(), outcomes }
}
