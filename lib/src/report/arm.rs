//! One condition with one solver: how often it resolved, and what it cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Trials;
use super::paired::{Estimate, Method, estimate};
use super::wording::short;
use crate::grade::{Coding, VerdictClass};
use crate::llm::Cost;
use crate::stats::{Cell, Interval, Sample, pass_at_k, pass_hat_k, wilson};
use crate::study::{Asks, TrialRecord};
use crate::task::InstanceId;

/// One arm. Costs cover all its finished trials, missing ones included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// The condition.
    pub condition: String,
    /// The solver.
    pub solver: String,
    /// Trials of the grid.
    pub expected: u64,
    /// Finished trials.
    pub trials: u64,
    /// Finished trials without a verdict, by fault of infrastructure.
    pub missing: u64,
    /// Trials that needed more than one attempt.
    pub retried: u64,
    /// Targets with at least one verdict.
    pub targets: usize,
    /// Resolved trials.
    pub resolved: u64,
    /// The mean over targets of the share of resolved replicates.
    pub resolved_rate: Option<Estimate>,
    /// That rate if all missing trials had failed, or all resolved; `None` where none is missing.
    pub worst_case: Option<Interval>,
    /// Trials by verdict.
    pub verdicts: BTreeMap<VerdictClass, u64>,
    /// Trials by the agent's exit status.
    pub exit_statuses: BTreeMap<String, u64>,
    /// pass@k and pass^k for each k up to the replicates; empty for one replicate.
    pub reliability: Vec<Reliability>,
    /// What it cost.
    pub usage: Usage,
    /// What memory delivered.
    pub memory: MemoryUse,
}

/// How replicates agree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// Runs.
    pub k: u64,
    /// pass@k: at least one of k resolves; mean over targets.
    pub any: f64,
    /// pass^k: all of k resolve; mean over targets.
    pub all: f64,
    /// Targets with at least k verdicts.
    pub targets: usize,
}

/// What the trials of an arm cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The solver's cost, summed.
    pub solver: Cost,
    /// The memory system's: retrieval and the share of the build, summed.
    pub memory: Cost,
    /// Prompt and completion tokens of the solver.
    pub solver_tokens: Spend,
    /// Prompt and completion tokens of the memory system.
    pub memory_tokens: Spend,
    /// Model calls of the agent.
    pub steps: Spend,
    /// US dollars by the price list, solver and memory; unknown where a price is.
    pub list_usd: Option<Spend>,
    /// Wall-clock seconds of agent and grading.
    pub seconds: Spend,
}

/// A total and its shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spend {
    /// Over all finished trials.
    pub total: f64,
    /// Per finished trial; `None` without one.
    pub per_trial: Option<f64>,
    /// Per resolved trial; `None` without one.
    pub per_resolved: Option<f64>,
}

/// What memory delivered to an arm's trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Trials that got a block at the start.
    pub delivered: u64,
    /// Tokens injected, all trials.
    pub injected_tokens: u64,
    /// Trials that got nothing at the start, by the reason.
    pub abstained: BTreeMap<String, u64>,
    /// Trajectories that a target could learn from, mean over trials.
    pub mean_eligible: Option<f64>,
    /// What agents asked with the memory tool; `None`: they had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Asks>,
    /// What was asked at phases of runs; `None`: nothing is asked there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Asks>,
}

/// Counts one trial into its target's cell.
pub(super) fn count(cell: &mut Cell, trial: &TrialRecord) {
    match trial.verdict.coding() {
        Coding::One => cell.resolved += 1,
        Coding::Zero => cell.unresolved += 1,
        Coding::Missing => cell.missing += 1,
        // Such targets have left every arm before.
        Coding::Excluded => {}
    }
}

/// Sums a cost over trials, in the order of their keys: sums of fractions depend on the order.
pub(super) fn total<'a>(
    trials: impl Iterator<Item = &'a TrialRecord>,
    cost: impl Fn(&TrialRecord) -> Cost,
) -> Cost {
    let mut sorted: Vec<&TrialRecord> = trials.collect();
    sorted.sort_by_key(|t| &t.key);
    sorted.into_iter().map(cost).fold(Cost::ZERO, Cost::plus)
}

/// Prompt and completion tokens.
pub(super) fn tokens(cost: Cost) -> u64 {
    cost.prompt_tokens + cost.completion_tokens
}

impl Arm {
    pub(super) fn of(condition: &str, solver: &str, all: &Trials, expected: u64, seed: u64) -> Self {
        let mine: Vec<&TrialRecord> = all
            .values()
            .filter(|t| t.key.condition == condition && t.key.solver == solver)
            .copied()
            .collect();
        let cells = cells(&mine);
        let observed: Vec<Cell> = cells.values().copied().filter(|c| c.observed() > 0).collect();
        let resolved = observed.iter().map(|c| c.resolved).sum();
        let missing = cells.values().map(|c| c.missing).sum();
        Self {
            condition: condition.to_owned(),
            solver: solver.to_owned(),
            expected,
            trials: mine.len() as u64,
            missing,
            retried: mine.iter().filter(|t| t.attempts > 1).count() as u64,
            targets: observed.len(),
            resolved,
            resolved_rate: rate(&observed, seed),
            worst_case: (missing > 0).then(|| bounds(cells.values())).flatten(),
            verdicts: tally(mine.iter().map(|t| t.verdict)),
            exit_statuses: tally(mine.iter().map(|t| t.exit_status.clone())),
            reliability: reliability(&observed),
            usage: Usage::of(&mine, resolved),
            memory: MemoryUse::of(&mine),
        }
    }
}

fn cells<'a>(trials: &[&'a TrialRecord]) -> BTreeMap<&'a InstanceId, Cell> {
    let mut cells = BTreeMap::<_, Cell>::new();
    for trial in trials {
        count(cells.entry(&trial.key.instance_id).or_default(), trial);
    }
    cells
}

fn tally<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, u64> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// Wilson's interval where each target is a plain yes or no, else the bootstrap over targets.
fn rate(cells: &[Cell], seed: u64) -> Option<Estimate> {
    let rates = || cells.iter().filter_map(|c| c.rate());
    let sample = Sample::new(rates())?;
    if rates().all(|q| q == 0.0 || q == 1.0) {
        let interval = wilson(rates().filter(|&q| q == 1.0).count() as u64, cells.len() as u64, 0.95)?;
        return Some(Estimate { value: sample.mean()?, interval, method: Method::Wilson });
    }
    estimate(&sample, seed, 0.0)
}

fn bounds<'a>(cells: impl Iterator<Item = &'a Cell>) -> Option<Interval> {
    let (low, high): (Vec<f64>, Vec<f64>) = cells.filter_map(|c| c.bounds()).map(|b| (b.low, b.high)).unzip();
    Some(Interval::new(Sample::new(low)?.mean()?, Sample::new(high)?.mean()?))
}

fn reliability(cells: &[Cell]) -> Vec<Reliability> {
    let most = cells.iter().map(|c| c.observed()).max().unwrap_or(0);
    if most < 2 {
        return Vec::new();
    }
    let at = |k: u64| {
        let over = |share: fn(u64, u64, u64) -> Option<f64>| {
            Sample::new(cells.iter().filter_map(|c| share(c.observed(), c.resolved, k)))
        };
        let any = over(pass_at_k)?;
        Some(Reliability { k, any: any.mean()?, all: over(pass_hat_k)?.mean()?, targets: any.len() })
    };
    (1..=most).filter_map(at).collect()
}

impl Usage {
    fn of(trials: &[&TrialRecord], resolved: u64) -> Self {
        let sum = |cost: fn(&TrialRecord) -> Cost| total(trials.iter().copied(), cost);
        let (solver, memory) = (sum(|t| t.solver_cost), sum(|t| t.memory_cost));
        let spend = |total: f64| Spend {
            total,
            per_trial: (!trials.is_empty()).then(|| total / trials.len() as f64),
            per_resolved: (resolved > 0).then(|| total / resolved as f64),
        };
        Self {
            solver,
            memory,
            solver_tokens: spend(tokens(solver) as f64),
            memory_tokens: spend(tokens(memory) as f64),
            steps: spend(trials.iter().map(|t| t.steps).sum::<u64>() as f64),
            list_usd: solver.plus(memory).list_usd.map(spend),
            seconds: spend(trials.iter().map(|t| t.agent_seconds + t.grade_seconds).sum()),
        }
    }
}

impl MemoryUse {
    fn of(trials: &[&TrialRecord]) -> Self {
        let eligible: usize = trials.iter().map(|t| t.memory.eligible).sum();
        Self {
            delivered: trials.iter().filter(|t| t.memory.injected_tokens > 0).count() as u64,
            injected_tokens: trials.iter().map(|t| t.memory.injected_tokens).sum(),
            abstained: tally(trials.iter().filter_map(|t| t.memory.abstained.clone())),
            mean_eligible: (!trials.is_empty()).then(|| eligible as f64 / trials.len() as f64),
            tool: trials.iter().filter_map(|t| t.memory.tool).reduce(Asks::plus),
            phases: trials.iter().filter_map(|t| t.memory.phases).reduce(Asks::plus),
        }
    }

    /// Whether there is anything to tell.
    pub(super) fn is_used(&self) -> bool {
        self.delivered > 0 || !self.abstained.is_empty() || self.in_the_run()
    }

    /// Whether runs asked memory, or could.
    pub(super) fn in_the_run(&self) -> bool {
        self.tool.is_some() || self.phases.is_some()
    }

    /// What runs asked, a phrase for each way.
    pub(super) fn asks(&self) -> Vec<String> {
        let phrase = |way: &str, asks: Asks| {
            let Asks { asked, delivered, tokens } = asks;
            format!("{way}: asked {asked} times, {delivered} answers shown, {} tokens", short(tokens as f64))
        };
        let tool = self.tool.map(|asks| phrase("memory tool", asks));
        tool.into_iter().chain(self.phases.map(|asks| phrase("phases", asks))).collect()
    }
}
