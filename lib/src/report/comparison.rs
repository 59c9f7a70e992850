//! One condition against the baseline.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::arm::tokens;
use super::paired::{Paired, PairedTarget};
use super::{StudyFacts, Trials};
use crate::grade::Coding;
use crate::stats::{Ratio, ratio_of_totals};
use crate::study::{TrialKey, TrialRecord};
use crate::task::InstanceId;

/// One condition (A) against the baseline (B).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The condition.
    pub condition: String,
    /// The baseline.
    pub baseline: String,
    /// Whether the condition is chosen with knowledge of the answer: a ceiling.
    #[serde(default)]
    pub ceiling: bool,
    /// With which solver; `None`: pooled over all, the unit still being the target.
    pub solver: Option<String>,
    /// The outcomes.
    pub paired: Paired,
    /// The sign-flip p, adjusted by Holm over the comparisons of the report.
    pub holm_p: Option<f64>,
    /// The costs.
    pub ratios: Ratios,
}

/// Ratios of totals, condition to baseline, over the same pairs as the outcomes; `None` where the baseline's total is
/// 0 or unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Tokens of the solver.
    pub solver_tokens: Option<Ratio>,
    /// Tokens of solver and memory system.
    pub all_tokens: Option<Ratio>,
    /// Model calls of the agent.
    pub steps: Option<Ratio>,
    /// US dollars by the price list, solver and memory system.
    pub list_usd: Option<Ratio>,
    /// Wall-clock seconds of agent and grading.
    pub seconds: Option<Ratio>,
}

/// Trials of the condition and of the baseline that belong together.
type Pair<'a> = (&'a TrialRecord, &'a TrialRecord);

/// Every condition but the baseline: with each solver, then pooled where there are several.
pub(super) fn all(facts: &StudyFacts, trials: &Trials) -> Vec<Comparison> {
    let mut solvers: Vec<Option<&str>> = facts.solvers.iter().map(|s| Some(s.as_str())).collect();
    if solvers.len() > 1 {
        solvers.push(None);
    }
    let conditions = facts.conditions.iter().filter(|c| **c != facts.baseline);
    conditions.flat_map(|c| solvers.iter().map(|s| one(facts, trials, c, *s))).collect()
}

fn one(facts: &StudyFacts, trials: &Trials, condition: &str, solver: Option<&str>) -> Comparison {
    let pairs = pair_up(facts, trials, condition, solver);
    let targets: Vec<PairedTarget> = pairs
        .iter()
        .map(|(id, pairs)| PairedTarget {
            id: id.to_string(),
            // GitHub compares names without case.
            repo: id.repo_key().to_ascii_lowercase(),
            pairs: pairs.iter().map(|(a, b)| (resolved(a), resolved(b))).collect(),
        })
        .collect();
    Comparison {
        condition: condition.to_owned(),
        baseline: facts.baseline.clone(),
        ceiling: facts.ceilings.iter().any(|name| name == condition),
        solver: solver.map(str::to_owned),
        paired: Paired::of(&targets, facts.seed, facts.equivalence_margin),
        holm_p: None,
        ratios: Ratios::of(&pairs, facts.seed),
    }
}

fn pair_up<'a>(
    facts: &StudyFacts,
    trials: &Trials<'a>,
    condition: &str,
    solver: Option<&str>,
) -> BTreeMap<&'a InstanceId, Vec<Pair<'a>>> {
    let mut pairs: BTreeMap<&InstanceId, Vec<Pair>> = BTreeMap::new();
    for (key, baseline) in trials {
        if key.condition != facts.baseline || solver.is_some_and(|s| s != key.solver) {
            continue;
        }
        let partner = TrialKey { condition: condition.to_owned(), ..(*key).clone() };
        if let Some(tested) = trials.get(&partner) {
            pairs.entry(&key.instance_id).or_default().push((tested, baseline));
        }
    }
    pairs
}

/// `None`: missing.
fn resolved(trial: &TrialRecord) -> Option<bool> {
    match trial.verdict.coding() {
        Coding::One => Some(true),
        Coding::Zero => Some(false),
        Coding::Missing | Coding::Excluded => None,
    }
}

impl Ratios {
    /// Each ratio with the name of what it measures.
    pub fn named(&self) -> [(&'static str, Option<Ratio>); 5] {
        [
            ("solver tokens", self.solver_tokens),
            ("tokens with memory", self.all_tokens),
            ("steps", self.steps),
            ("list price", self.list_usd),
            ("seconds", self.seconds),
        ]
    }

    fn of(pairs: &BTreeMap<&InstanceId, Vec<Pair>>, seed: u64) -> Self {
        let complete: Vec<Vec<Pair>> =
            pairs.values().map(|pairs| complete(pairs)).filter(|p| !p.is_empty()).collect();
        let ratio = |measure: fn(&TrialRecord) -> Option<f64>| {
            let means: Option<Vec<(f64, f64)>> = complete.iter().map(|pairs| mean(pairs, measure)).collect();
            ratio_of_totals(&means?, seed)
        };
        Self {
            solver_tokens: ratio(|t| Some(tokens(t.solver_cost) as f64)),
            all_tokens: ratio(|t| Some(tokens(t.solver_cost.plus(t.memory_cost)) as f64)),
            steps: ratio(|t| Some(t.steps as f64)),
            list_usd: ratio(|t| t.solver_cost.plus(t.memory_cost).list_usd),
            seconds: ratio(|t| Some(t.agent_seconds + t.grade_seconds)),
        }
    }
}

fn complete<'a>(pairs: &[Pair<'a>]) -> Vec<Pair<'a>> {
    pairs.iter().filter(|(a, b)| resolved(a).is_some() && resolved(b).is_some()).copied().collect()
}

/// The means of a target's pairs; `None` where the measure of one trial is unknown.
fn mean(pairs: &[Pair], measure: fn(&TrialRecord) -> Option<f64>) -> Option<(f64, f64)> {
    let (mut a, mut b) = (0.0, 0.0);
    for (tested, baseline) in pairs {
        a += measure(tested)?;
        b += measure(baseline)?;
    }
    let n = pairs.len() as f64;
    Some((a / n, b / n))
}
