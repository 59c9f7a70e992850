//! How well does a memory system find what is relevant? Asked offline, with the answer in hand.
//!
//! A record is *relevant* to a target where its run changed what the reference patch changes: one of its files, folders,
//! or functions and classes. The reference is the row's gold patch where a row is known, else what a resolved run of the
//! target submitted; the report says how often which. Relevance by place is a proxy: a record may help that touches
//! nothing in common, and may not help that does.

mod ask;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::diff::{Diff, directory};
use crate::stats::{Interval, Sample};
use crate::task::InstanceId;

pub use ask::{Evaluation, EvaluationError, evaluate};

/// How many records are looked at.
pub const KS: [usize; 4] = [1, 3, 5, 10];

/// The seed of the bootstrap.
const SEED: u64 = 20_260_920;

/// What a patch touches, at each level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touch {
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
    symbols: BTreeSet<String>,
}

impl Touch {
    /// Of a unified diff. Functions and classes are those that hunk headers and changed lines name.
    pub fn by(patch: &str) -> Self {
        let diff = Diff::read(patch);
        let files = diff.paths();
        Self {
            folders: files.iter().map(|file| directory(file).to_owned()).collect(),
            symbols: diff.symbols(),
            files,
        }
    }

    /// Whether both touch one thing of a level.
    pub fn shares(&self, other: &Self, level: Level) -> bool {
        let (own, others) = match level {
            Level::File => (&self.files, &other.files),
            Level::Directory => (&self.folders, &other.folders),
            Level::Symbol => (&self.symbols, &other.symbols),
        };
        !own.is_disjoint(others)
    }
}

/// What counts as the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// One file.
    File,
    /// One folder.
    Directory,
    /// One function or class of one file.
    Symbol,
}

impl Level {
    /// All, in the order of reports.
    pub const ALL: [Self; 3] = [Self::File, Self::Directory, Self::Symbol];

    /// Its name as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symbol => "symbol",
        }
    }
}

/// What the reference patch of a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// The row's gold patch.
    GoldPatch,
    /// What a resolved run of the target submitted.
    ResolvedRun,
}

/// What a system answered for one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The target.
    pub target: InstanceId,
    /// Where the reference comes from.
    pub reference: Reference,
    /// What the reference patch touches.
    pub gold: Touch,
    /// The runs that it may learn from, earliest first, with what each submitted.
    pub eligible: Vec<(InstanceId, Touch)>,
    /// The sources of the delivered records, best first; `None`: the system abstained.
    pub ranked: Option<Vec<InstanceId>>,
}

/// How well a system finds what is relevant, beside rankings that look at nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QualityReport {
    /// The system.
    pub system: String,
    /// Targets that were asked about.
    pub targets: usize,
    /// Those whose reference is the row's gold patch.
    pub gold_patches: usize,
    /// Those whose reference is a resolved run's submission.
    pub resolved_runs: usize,
    /// Targets without a reference: they were not asked about.
    pub without_reference: Vec<InstanceId>,
    /// One entry a level.
    pub levels: Vec<LevelQuality>,
    /// Wall-clock seconds of building and asking.
    pub seconds: f64,
    /// Milliseconds of a retrieval: the median and the 95th percentile; `None`: nothing was asked.
    pub retrieval_ms: Option<[f64; 2]>,
}

/// Quality at one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelQuality {
    /// The level.
    pub level: Level,
    /// Targets with at least one relevant record among the eligible: the rates below are over these.
    pub answerable: usize,
    /// The system, then the baselines `recency` (latest first) and `random` (the expected value of every order).
    pub rankings: Vec<RankingQuality>,
    /// What the system's silence and its deliveries are worth.
    pub abstention: AbstentionQuality,
}

/// Quality of one ranking over the answerable targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankingQuality {
    /// Its name.
    pub name: String,
    /// One entry a `k`.
    pub at: Vec<AtK>,
    /// The mean of `1 / rank` of the first relevant record, 0 where none is among the first ones.
    pub mrr: Option<Rate>,
}

/// Quality of the first `k` records.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AtK {
    /// Records looked at.
    pub k: usize,
    /// The share of targets with a relevant record among the first `k`.
    pub recall: Option<Rate>,
    /// The mean share of the relevant records that is among the first `k`.
    pub found: Option<Rate>,
}

/// A mean over targets with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The mean.
    pub mean: f64,
    /// Bootstrap over targets; an exact bound where all are alike.
    pub interval: Interval,
    /// Targets.
    pub n: usize,
}

/// What a system's silence and its deliveries are worth, over all targets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AbstentionQuality {
    /// Targets for which it abstained.
    pub abstained: usize,
    /// The share of them for which no eligible record was relevant.
    pub rightly: Option<Rate>,
    /// Targets for which it delivered.
    pub delivered: usize,
    /// The share of them whose first record is relevant.
    pub precision: Option<Rate>,
}

impl QualityReport {
    /// Computes everything from a system's answers. `ks` are looked at in their order; the largest bounds the ranks that
    /// count for MRR.
    pub fn of(system: &str, answers: &[Answer], ks: &[usize]) -> Self {
        let count = |reference| answers.iter().filter(|answer| answer.reference == reference).count();
        Self {
            system: system.to_owned(),
            targets: answers.len(),
            gold_patches: count(Reference::GoldPatch),
            resolved_runs: count(Reference::ResolvedRun),
            without_reference: Vec::new(),
            levels: Level::ALL.iter().map(|&level| LevelQuality::of(system, level, answers, ks)).collect(),
            seconds: 0.0,
            retrieval_ms: None,
        }
    }
}

/// One target at one level: which of its ranked and eligible records are relevant.
struct Marks {
    /// In the order of the system's ranking.
    ranked: Option<Vec<bool>>,
    /// Latest first.
    recent: Vec<bool>,
    relevant: usize,
}

impl Marks {
    fn of(answer: &Answer, level: Level) -> Self {
        let relevant: BTreeMap<&InstanceId, bool> =
            answer.eligible.iter().map(|(id, touch)| (id, answer.gold.shares(touch, level))).collect();
        let is = |id: &InstanceId| relevant.get(id).copied().unwrap_or(false);
        Self {
            ranked: answer.ranked.as_ref().map(|ranked| ranked.iter().map(is).collect()),
            recent: answer.eligible.iter().rev().map(|(id, _)| is(id)).collect(),
            relevant: relevant.values().filter(|relevant| **relevant).count(),
        }
    }
}

impl LevelQuality {
    fn of(system: &str, level: Level, answers: &[Answer], ks: &[usize]) -> Self {
        let marks: Vec<Marks> = answers.iter().map(|answer| Marks::of(answer, level)).collect();
        let answerable: Vec<&Marks> = marks.iter().filter(|marks| marks.relevant > 0).collect();
        let most = ks.iter().copied().max().unwrap_or(0);
        let ranking = |name: &str, one: &dyn Fn(&Marks) -> Scores| {
            let scores: Vec<Scores> = answerable.iter().map(|marks| one(marks)).collect();
            RankingQuality {
                name: name.to_owned(),
                at: ks
                    .iter()
                    .enumerate()
                    .map(|(place, &k)| AtK {
                        k,
                        recall: rate(scores.iter().map(|scores| scores.at[place].0)),
                        found: rate(scores.iter().map(|scores| scores.at[place].1)),
                    })
                    .collect(),
                mrr: rate(scores.iter().map(|scores| scores.reciprocal)),
            }
        };
        let own = |marks: &Marks| {
            Scores::ranked(marks.ranked.as_deref().unwrap_or_default(), marks.relevant, ks, most)
        };
        let recent = |marks: &Marks| Scores::ranked(&marks.recent, marks.relevant, ks, most);
        let random = |marks: &Marks| Scores::random(marks.recent.len(), marks.relevant, ks, most);
        let silent = marks.iter().filter(|marks| marks.ranked.is_none());
        let first =
            marks.iter().filter_map(|marks| Some(share(marks.ranked.as_ref()?.first() == Some(&true))));
        Self {
            level,
            answerable: answerable.len(),
            rankings: vec![ranking(system, &own), ranking("recency", &recent), ranking("random", &random)],
            abstention: AbstentionQuality {
                abstained: silent.clone().count(),
                rightly: rate(silent.map(|marks| share(marks.relevant == 0))),
                delivered: first.clone().count(),
                precision: rate(first),
            },
        }
    }
}

/// One target under one ranking.
struct Scores {
    /// For each `k`: whether a relevant record is among the first `k`, and the share of the relevant ones that is.
    at: Vec<(f64, f64)>,
    reciprocal: f64,
}

impl Scores {
    fn ranked(marks: &[bool], relevant: usize, ks: &[usize], most: usize) -> Self {
        let at = |&k: &usize| {
            let found = marks.iter().take(k).filter(|relevant| **relevant).count();
            (share(found > 0), found as f64 / relevant as f64)
        };
        let first = marks.iter().take(most).position(|relevant| *relevant);
        Self {
            at: ks.iter().map(at).collect(),
            reciprocal: first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
        }
    }

    /// The expected values over every order of `n` records of which some are relevant.
    fn random(n: usize, relevant: usize, ks: &[usize], most: usize) -> Self {
        // missed[k]: the chance that none of the first k is relevant
        let mut missed = vec![1.0];
        for drawn in 0..most.min(n) {
            let before = missed[drawn];
            missed.push(before * n.saturating_sub(relevant + drawn) as f64 / (n - drawn) as f64);
        }
        let at = |&k: &usize| {
            let k = k.min(n);
            (1.0 - missed[k.min(missed.len() - 1)], k as f64 / n.max(1) as f64)
        };
        let reciprocal =
            missed.array_windows().zip(1..).map(|([a, b], rank)| (a - b) / f64::from(rank)).sum();
        Self { at: ks.iter().map(at).collect(), reciprocal }
    }
}

fn share(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn rate(values: impl Iterator<Item = f64>) -> Option<Rate> {
    let sample = Sample::new(values)?;
    let interval = match sample.alike_interval(0.95, 0.0, 1.0) {
        Some(interval) => interval,
        None => sample.bootstrap(SEED)?.interval(0.95),
    };
    Some(Rate { mean: sample.mean()?, interval: interval.clamped(0.0, 1.0), n: sample.len() })
}

#[cfg(test)]
#[path = "quality_tests.rs"]
mod tests;
