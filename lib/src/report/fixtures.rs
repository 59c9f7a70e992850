//! Studies made up for the tests of this module.

use crate::grade::VerdictClass;
use crate::llm::Cost;
use crate::study::{MemoryNote, TrialKey, TrialRecord};
use crate::task::InstanceId;

use super::{Exclusion, StudyFacts};

pub(super) fn id(text: &str) -> InstanceId {
    InstanceId::parse(text).unwrap()
}

/// Facts of a study with conditions `off` and `bm25`.
pub(super) fn facts(solvers: &[&str], replicates: u32, targets: usize) -> StudyFacts {
    StudyFacts {
        name: "demo".to_owned(),
        baseline: "off".to_owned(),
        conditions: vec!["off".to_owned(), "bm25".to_owned()],
        solvers: solvers.iter().map(|s| (*s).to_owned()).collect(),
        replicates,
        targets,
        excluded: Vec::new(),
        chronology_disagreements: Vec::new(),
        notes: Vec::new(),
        seed: 7,
        lock_digest: "sha256:0123456789ab".to_owned(),
        exclude_leaks: false,
        ceilings: Vec::new(),
        equivalence_margin: 0.03,
    }
}

/// One trial with plausible costs; tokens depend on the condition only.
pub(super) fn trial(
    condition: &str,
    solver: &str,
    replicate: u32,
    target: &str,
    verdict: VerdictClass,
) -> TrialRecord {
    let memory = condition != "off";
    let tokens = if memory { 9_000 } else { 10_000 } + 100 * id(target).number();
    TrialRecord {
        key: TrialKey {
            condition: condition.to_owned(),
            solver: solver.to_owned(),
            replicate,
            instance_id: id(target),
        },
        verdict,
        reason: (verdict != VerdictClass::Resolved).then(|| "because".to_owned()),
        exit_status: "Submitted".to_owned(),
        steps: if memory { 8 } else { 10 },
        solver_cost: Cost {
            calls: 10,
            prompt_tokens: tokens,
            completion_tokens: 500,
            seconds: 12.5,
            list_usd: Some(tokens as f64 * 1e-6),
            paid_usd: None,
            ..Cost::ZERO
        },
        abandoned_cost: Cost::ZERO,
        memory_cost: if memory {
            Cost { calls: 1, prompt_tokens: 400, seconds: 0.1, ..Cost::ZERO }
        } else {
            Cost::ZERO
        },
        memory: MemoryNote {
            eligible: if memory { 3 } else { 0 },
            injected_tokens: if memory { 350 } else { 0 },
            ..MemoryNote::default()
        },
        leak: None,
        attempts: 1,
        agent_seconds: 30.0,
        grade_seconds: 5.5,
    }
}

/// Trials of both conditions from strings of one letter a replicate: `+` resolved, `-` unresolved, `?` missing, `x`
/// gold fails, blank: not run.
pub(super) fn trials(solver: &str, rows: &[(&str, &str, &str)]) -> Vec<TrialRecord> {
    let mut trials = Vec::new();
    for (target, off, bm25) in rows {
        for (condition, marks) in [("off", off), ("bm25", bm25)] {
            for (replicate, mark) in (1..).zip(marks.chars()) {
                let verdict = match mark {
                    '+' => VerdictClass::Resolved,
                    '-' => VerdictClass::Unresolved,
                    '?' => VerdictClass::Infrastructure,
                    'x' => VerdictClass::GoldFails,
                    _ => continue,
                };
                trials.push(trial(condition, solver, replicate, target, verdict));
            }
        }
    }
    trials
}

/// Three repositories, two replicates: gains, a harm, a missing trial, an excluded target.
pub(super) fn demo() -> (StudyFacts, Vec<TrialRecord>) {
    let mut facts = facts(&["reader"], 2, 14);
    facts
        .notes
        .push("planted demonstration: the solver is a fake model that reads planted needles".to_owned());
    facts.chronology_disagreements.push("acme__widget-9 was merged before acme__widget-8".to_owned());
    facts
        .excluded
        .push(Exclusion { instance_id: id("zeta__tool-3"), reason: "gold fails 3 of 3 runs".to_owned() });
    let trials = trials(
        "reader",
        &[
            ("acme__widget-7", "--", "++"),
            ("acme__widget-8", "--", "++"),
            ("acme__widget-9", "+-", "++"),
            ("acme__widget-12", "--", "+-"),
            ("acme__widget-15", "++", "++"),
            ("beta__gadget-2", "--", "++"),
            ("beta__gadget-4", "--", "--"),
            ("beta__gadget-5", "-+", "++"),
            ("beta__gadget-11", "++", "+-"),
            ("zeta__tool-1", "--", "++"),
            ("zeta__tool-2", "--", "?+"),
            ("zeta__tool-5", "--", "+-"),
            ("zeta__tool-6", "x-", "--"),
        ],
    );
    (facts, trials)
}
