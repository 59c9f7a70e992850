//! Blocks that give their target's answer away, and what the comparisons are without them.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::page::{list, table};
use super::table::{Table, wrap};
use super::text::bullets;
use super::wording::{conclusion, counted};
use super::{Comparison, Exclusion, Report, StudyFacts, Trials};
use crate::audit::memory::{LeakFinding, LeakVerdict};
use crate::study::TrialRecord;
use crate::task::InstanceId;

/// Findings of a block that are written out.
const SHOWN: usize = 3;

/// What scans of the injected blocks found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Leaks {
    /// Arms with a block that was flagged, in the study's order.
    pub arms: Vec<LeakArm>,
    /// Flagged blocks, by condition and target.
    pub blocks: Vec<LeakBlock>,
    /// Targets whose answer a block gave away in some arm.
    pub targets: Vec<InstanceId>,
    /// Whether these targets left every arm of the main comparisons.
    pub excluded: bool,
    /// The comparisons without these targets; with them, where the main ones are without. Empty where there are none.
    pub comparisons: Vec<Comparison>,
    /// One sentence a comparison.
    pub conclusions: Vec<String>,
}

/// How many of an arm's trials were flagged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeakArm {
    /// The condition.
    pub condition: String,
    /// The solver.
    pub solver: String,
    /// Finished trials whose block was looked at.
    pub scanned: u64,
    /// Those that are leaks.
    pub leaks: u64,
    /// Those that are suspicious.
    pub suspicious: u64,
}

/// A flagged block. Solvers and replicates of a target are given the same one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeakBlock {
    /// The condition.
    pub condition: String,
    /// The target.
    pub instance_id: InstanceId,
    /// What it is.
    pub verdict: LeakVerdict,
    /// Trials that were given it.
    pub trials: u64,
    /// Why, the heaviest first.
    pub findings: Vec<LeakFinding>,
}

/// Targets that a leak takes out of every arm.
pub(super) fn leaking(trials: &[TrialRecord]) -> Vec<Exclusion> {
    let mut reasons: BTreeMap<&InstanceId, BTreeSet<&str>> = BTreeMap::new();
    for trial in trials {
        if trial.leak.as_ref().is_some_and(|leak| leak.verdict == LeakVerdict::Leak) {
            reasons.entry(&trial.key.instance_id).or_default().insert(&trial.key.condition);
        }
    }
    let reason = |conditions: BTreeSet<&str>| {
        let conditions: Vec<&str> = conditions.into_iter().collect();
        format!("the block of {} gives the answer away", conditions.join(", "))
    };
    reasons
        .into_iter()
        .map(|(id, conditions)| Exclusion { instance_id: id.clone(), reason: reason(conditions) })
        .collect()
}

impl Leaks {
    /// What the trials' scans found, without the comparisons.
    pub(super) fn of(facts: &StudyFacts, trials: &Trials, targets: Vec<InstanceId>) -> Self {
        let mut blocks: BTreeMap<(&str, &InstanceId), LeakBlock> = BTreeMap::new();
        let mut arms: BTreeMap<(&str, &str), LeakArm> = BTreeMap::new();
        for (key, trial) in trials {
            let Some(leak) = &trial.leak else { continue };
            let arm = arms.entry((&key.condition, &key.solver)).or_insert_with(|| LeakArm {
                condition: key.condition.clone(),
                solver: key.solver.clone(),
                scanned: 0,
                leaks: 0,
                suspicious: 0,
            });
            arm.scanned += 1;
            arm.leaks += u64::from(leak.verdict == LeakVerdict::Leak);
            arm.suspicious += u64::from(leak.verdict == LeakVerdict::Suspicious);
            if !leak.is_flagged() {
                continue;
            }
            let block = blocks.entry((&key.condition, &key.instance_id)).or_insert_with(|| LeakBlock {
                condition: key.condition.clone(),
                instance_id: key.instance_id.clone(),
                verdict: leak.verdict,
                trials: 0,
                findings: leak.findings.clone(),
            });
            block.trials += 1;
            block.verdict = block.verdict.max(leak.verdict);
        }
        let arms = facts.grid().filter_map(|arm| arms.remove(&arm));
        Self {
            arms: arms.filter(|arm| arm.leaks + arm.suspicious > 0).collect(),
            blocks: blocks.into_values().collect(),
            targets,
            excluded: facts.exclude_leaks,
            ..Self::default()
        }
    }

    /// Adds the comparisons that stand beside the main ones.
    pub(super) fn compare(&mut self, comparisons: Vec<Comparison>, family: usize) {
        self.conclusions = comparisons.iter().map(|one| conclusion(one, family)).collect();
        self.comparisons = comparisons;
    }

    /// What the comparisons beside the main ones are, in words.
    pub(super) fn beside(&self) -> String {
        let (with, n) = (if self.excluded { "with" } else { "without" }, self.targets.len() as u64);
        format!("{with} {} whose answer a block gave away", counted(n, "target"))
    }

    fn lines(&self) -> Vec<String> {
        self.blocks
            .iter()
            .map(|block| {
                let mut why: Vec<String> = block
                    .findings
                    .iter()
                    .take(SHOWN)
                    .map(|f| format!("{} ({}: {})", f.weight, f.kind.name(), f.evidence))
                    .collect();
                if block.findings.len() > SHOWN {
                    why.push(format!("{} more", block.findings.len() - SHOWN));
                }
                format!(
                    "{} {}, {}: {}: {}",
                    block.condition,
                    block.instance_id,
                    counted(block.trials, "trial"),
                    block.verdict.name(),
                    why.join("; ")
                )
            })
            .collect()
    }

    fn cells(&self) -> Vec<Vec<String>> {
        let counts = |arm: &LeakArm| [arm.scanned, arm.leaks, arm.suspicious].map(|n| n.to_string());
        self.arms
            .iter()
            .map(|arm| [vec![arm.condition.clone(), arm.solver.clone()], counts(arm).to_vec()].concat())
            .collect()
    }
}

impl Report {
    pub(super) fn leaks_text(&self) -> String {
        if self.leaks.blocks.is_empty() && self.leaks.targets.is_empty() {
            return String::new();
        }
        let mut arms = Table::new(2, &["condition", "solver", "scanned", "leaks", "suspicious"]);
        self.leaks.cells().into_iter().for_each(|cells| arms.row(cells));
        let mut out = arms.render_rows();
        out.push_str(&bullets(&self.leaks.lines()));
        if !self.leaks.comparisons.is_empty() {
            out.push_str(&wrap("", &format!("{}:", self.leaks.beside())));
            out.push_str(&bullets(&self.leaks.conclusions));
            out.push_str(&super::text::delta_table(&self.leaks.comparisons));
        }
        out
    }

    pub(super) fn leaks_html(&self) -> Markup {
        let leaks = &self.leaks;
        let rows: Vec<Vec<String>> = leaks
            .comparisons
            .iter()
            .map(|one| [super::text::comparison_names(one), super::html::difference_cells(one)].concat())
            .collect();
        html! {
            @if !leaks.arms.is_empty() {
                (table("Trials whose injected block gives the answer away, or may. Looked at after the run, with the gold \
                    patch in hand.", 2, &["condition", "solver", "scanned", "leaks", "suspicious"], &leaks.cells()))
                (list(&leaks.lines()))
            }
            @if !rows.is_empty() {
                h3 { "The comparisons " (leaks.beside()) }
                (list(&leaks.conclusions))
                (table("As the main differences.", 2, &super::html::DIFFERENCE_HEAD, &rows))
            }
        }
    }
}
