//! Two arms over the same targets: the analysis that studies and single comparisons share.

use serde::{Deserialize, Serialize};

use crate::stats::{
    Cell, Interval, PairedTable, Sample, SignFlip, clustered, equivalent, power, within_target_variance,
    worst_case,
};

/// Resolved in A and in B; `None`: missing.
pub type VerdictPair = (Option<bool>, Option<bool>);

/// The trials of one target in arms A (tested) and B (baseline), paired by replicate (and solver, where pooled).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedTarget {
    /// The target's id.
    pub id: String,
    /// Its repository: the cluster.
    pub repo: String,
    /// Its pairs of trials.
    pub pairs: Vec<VerdictPair>,
}

/// A number with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its interval.
    pub interval: Interval,
    /// Where the interval comes from.
    pub method: Method,
}

/// Where an interval comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Percentile bootstrap over targets, 10,000 resamples.
    Bootstrap,
    /// Wilson's score interval.
    Wilson,
    /// Newcombe's paired interval, method 10.
    Newcombe,
    /// Exact bound where all targets came out alike and resampling shows no spread.
    AllAlike,
}

/// What may be said about a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// No target has a verdict in both arms.
    NoData,
    /// The interval lies above 0 and chance does not explain it (p ≤ 0.05).
    Higher,
    /// The interval lies below 0 and chance does not explain it.
    Lower,
    /// The 90 % interval lies inside the equivalence margin.
    Equivalent,
    /// None of these.
    NotShown,
}

/// A target whose outcome moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flip {
    /// The target.
    pub id: String,
    /// Its rate in B, the baseline.
    pub baseline: f64,
    /// Its rate in A.
    pub tested: f64,
}

/// Targets of one headroom class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stratum {
    /// How many.
    pub targets: usize,
    /// Their mean difference.
    pub delta: Option<f64>,
}

/// Targets by the baseline's rate. The strata are defined by the same runs that form the baseline, so by chance alone
/// `never` can only rise and `always` can only fall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Strata {
    /// Never resolved by the baseline.
    pub never: Stratum,
    /// Sometimes.
    pub sometimes: Stratum,
    /// Always: no headroom.
    pub always: Stratum,
}

/// The statistics that hold for one replicate only.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SingleRun {
    /// Both, only A, only B, neither.
    pub table: PairedTable,
    /// McNemar's exact p.
    pub mcnemar_exact: f64,
    /// McNemar's mid-p.
    pub mcnemar_mid_p: f64,
    /// Newcombe's 95 % interval of the difference.
    pub newcombe: Interval,
}

/// The difference with repositories as clusters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// How many repositories.
    pub clusters: usize,
    /// The clustered standard error.
    pub standard_error: f64,
    /// The 95 % t interval with that many degrees of freedom less one, within [−1, 1].
    pub interval: Interval,
}

/// Two one-sided tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Equivalence {
    /// The margin, a share.
    pub margin: f64,
    /// The 90 % interval.
    pub interval90: Interval,
    /// Whether that lies inside the margin.
    pub equivalent: bool,
}

/// Everything about one pair of arms. Differences are A − B.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Targets with a verdict in both arms for at least one pair.
    pub targets: usize,
    /// Pairs of trials with both verdicts.
    pub pairs: u64,
    /// Pairs left out because a verdict is missing.
    pub missing_pairs: u64,
    /// The mean rate in A over those pairs.
    pub rate_a: Option<f64>,
    /// The mean rate in B.
    pub rate_b: Option<f64>,
    /// The mean difference over targets.
    pub delta: Option<Estimate>,
    /// Its standard error.
    pub standard_error: Option<f64>,
    /// Its t interval within [−1, 1], a check of the bootstrap.
    pub t_interval: Option<Interval>,
    /// With repositories as clusters; `None` for a single one.
    pub clustered: Option<Cluster>,
    /// The sign-flip test.
    pub sign_flip: SignFlip,
    /// Where each target has one pair.
    pub single: Option<SingleRun>,
    /// Targets that A resolved more often, by id.
    pub gains: Vec<Flip>,
    /// Targets that A resolved less often, by id.
    pub harms: Vec<Flip>,
    /// By headroom.
    pub strata: Strata,
    /// The variance of the per-target differences, and the part of it that more replicates would shrink.
    pub variance: Option<f64>,
    /// See `variance`; `None` with fewer than two pairs on some target.
    pub within_target_variance: Option<f64>,
    /// The smallest effect that 80 % power finds; `None` where no effect could be shown at all (fewer than six
    /// targets).
    pub detectable: Option<f64>,
    /// Whether "no difference" may be claimed.
    pub equivalence: Option<Equivalence>,
    /// The difference if all missing verdicts had gone against A, or for it; `None` where none is missing.
    pub worst_case: Option<Interval>,
    /// What may be said.
    pub finding: Finding,
}

/// The verdict pairs of one target, counted.
struct Row<'a> {
    target: &'a PairedTarget,
    a: Cell,
    b: Cell,
    /// The difference of the rates.
    d: f64,
    /// The baseline's rate.
    base: f64,
}

impl<'a> Row<'a> {
    /// `None` without a complete pair.
    fn of(target: &'a PairedTarget) -> Option<Self> {
        let complete: Vec<(bool, bool)> = target.pairs.iter().filter_map(|&(a, b)| a.zip(b)).collect();
        let cell = |of: fn(&(bool, bool)) -> bool| {
            let resolved = complete.iter().filter(|p| of(p)).count() as u64;
            Cell { resolved, unresolved: complete.len() as u64 - resolved, missing: 0 }
        };
        let (a, b) = (cell(|p| p.0), cell(|p| p.1));
        let n = complete.len() as f64;
        let d = (a.resolved as f64 - b.resolved as f64) / n;
        (!complete.is_empty()).then(|| Self { target, a, b, d, base: b.resolved as f64 / n })
    }
}

impl Paired {
    /// Analyses targets (in any order).
    pub fn of(targets: &[PairedTarget], seed: u64, margin: f64) -> Self {
        let mut rows: Vec<Row> = targets.iter().filter_map(Row::of).collect();
        rows.sort_by(|x, y| x.target.id.cmp(&y.target.id));
        let sample = of_rows(&rows, |r| r.d);
        let flips = |moved: fn(f64) -> bool| -> Vec<Flip> {
            let flip = |r: &Row| Flip { id: r.target.id.clone(), baseline: r.base, tested: r.base + r.d };
            rows.iter().filter(|r| moved(r.d)).map(flip).collect()
        };
        let all_pairs = targets.iter().map(|t| t.pairs.len() as u64).sum::<u64>();
        let pairs = rows.iter().map(|r| r.a.observed()).sum::<u64>();
        let delta = estimate(&sample, seed, -1.0);
        let equivalence = equivalence(&sample, seed, margin);
        let sign_flip = sample.sign_flip(seed);
        Self {
            targets: rows.len(),
            pairs,
            missing_pairs: all_pairs - pairs,
            rate_a: of_rows(&rows, |r| r.base + r.d).mean(),
            rate_b: of_rows(&rows, |r| r.base).mean(),
            standard_error: sample.standard_error(),
            t_interval: sample.t_interval(0.95).map(|i| i.clamped(-1.0, 1.0)),
            clustered: by_repository(&rows),
            single: single_run(&rows),
            gains: flips(|d| d > 0.0),
            harms: flips(|d| d < 0.0),
            strata: strata(&rows),
            variance: sample.variance(),
            within_target_variance: within(&rows),
            detectable: detectable(&sample, pairs),
            worst_case: (all_pairs > pairs).then(|| worst(targets)).flatten(),
            finding: finding(delta, sign_flip, equivalence),
            delta,
            sign_flip,
            equivalence,
        }
    }

    /// Lets Newcombe's interval, and not the bootstrap's, stand for the difference and decide the finding; where
    /// targets have several pairs, nothing changes. Returns the interval that stood there.
    pub(super) fn decide_by_newcombe(&mut self) -> Option<Interval> {
        let before = self.delta?;
        if let Some(single) = self.single {
            let interval = single.newcombe;
            self.delta = Some(Estimate { value: before.value, interval, method: Method::Newcombe });
            self.finding = finding(self.delta, self.sign_flip, self.equivalence);
        }
        Some(before.interval)
    }
}

fn of_rows(rows: &[Row], value: impl Fn(&Row) -> f64) -> Sample {
    // Shares of counts are finite, so the sample always exists.
    Sample::new(rows.iter().map(value)).unwrap_or_default()
}

/// The mean of a sample of values in `[least, 1]` with its 95 % interval; `None` for an empty sample.
pub(super) fn estimate(sample: &Sample, seed: u64, least: f64) -> Option<Estimate> {
    let value = sample.mean()?;
    Some(match sample.alike_interval(0.95, least, 1.0) {
        Some(interval) => Estimate { value, interval, method: Method::AllAlike },
        None => {
            Estimate { value, interval: sample.bootstrap(seed)?.interval(0.95), method: Method::Bootstrap }
        }
    })
}

fn equivalence(sample: &Sample, seed: u64, margin: f64) -> Option<Equivalence> {
    let interval90 = match sample.alike_interval(0.90, -1.0, 1.0) {
        Some(interval) => interval,
        None => sample.bootstrap(seed)?.interval(0.90),
    };
    Some(Equivalence { margin, interval90, equivalent: equivalent(interval90, margin) })
}

fn by_repository(rows: &[Row]) -> Option<Cluster> {
    let result = clustered(rows.iter().map(|r| (r.target.repo.as_str(), r.d)))?;
    Some(Cluster {
        clusters: result.clusters,
        standard_error: result.standard_error,
        interval: result.interval(0.95).clamped(-1.0, 1.0),
    })
}

fn single_run(rows: &[Row]) -> Option<SingleRun> {
    if rows.iter().any(|r| r.target.pairs.len() != 1) {
        return None;
    }
    let table = PairedTable::count(rows.iter().map(|r| (r.a.resolved == 1, r.b.resolved == 1)));
    Some(SingleRun {
        table,
        mcnemar_exact: table.mcnemar_exact(),
        mcnemar_mid_p: table.mcnemar_mid_p(),
        newcombe: table.newcombe(0.95)?,
    })
}

fn strata(rows: &[Row]) -> Strata {
    let stratum = |inside: fn(f64) -> bool| {
        let members = Sample::new(rows.iter().filter(|r| inside(r.base)).map(|r| r.d)).unwrap_or_default();
        Stratum { targets: members.len(), delta: members.mean() }
    };
    Strata {
        never: stratum(|q| q == 0.0),
        sometimes: stratum(|q| q > 0.0 && q < 1.0),
        always: stratum(|q| q == 1.0),
    }
}

/// The mean over targets of what replicates of one target contribute to the variance of its difference.
fn within(rows: &[Row]) -> Option<f64> {
    let part = |r: &Row| {
        let of = |cell: Cell| within_target_variance(cell.resolved, cell.observed());
        Some((of(r.a)? + of(r.b)?) / r.a.observed() as f64)
    };
    Sample::new(rows.iter().map(part).collect::<Option<Vec<_>>>()?)?.mean()
}

/// By the standard error, but never less than what an exact paired test needs: six targets that move one way, each by
/// at least one replicate.
fn detectable(sample: &Sample, pairs: u64) -> Option<f64> {
    let floor = power::FEWEST_MOVED as f64 / pairs as f64;
    let by_error = power::detectable(sample.standard_error()?, power::POWER);
    (sample.len() as u64 >= power::FEWEST_MOVED).then(|| by_error.max(floor))
}

/// Over pairs whose two trials exist, with or without a verdict.
fn worst(targets: &[PairedTarget]) -> Option<Interval> {
    worst_case(targets.iter().map(|target| {
        let cell = |of: fn(&VerdictPair) -> Option<bool>| {
            target.pairs.iter().map(of).fold(Cell::default(), |mut cell, verdict| {
                match verdict {
                    Some(true) => cell.resolved += 1,
                    Some(false) => cell.unresolved += 1,
                    None => cell.missing += 1,
                }
                cell
            })
        };
        (cell(|p| p.0), cell(|p| p.1))
    }))
}

fn finding(delta: Option<Estimate>, flip: SignFlip, equivalence: Option<Equivalence>) -> Finding {
    let Some(delta) = delta else { return Finding::NoData };
    let chance = flip.p > 0.05;
    if delta.interval.above_zero() && !chance {
        Finding::Higher
    } else if delta.interval.below_zero() && !chance {
        Finding::Lower
    } else if equivalence.is_some_and(|e| e.equivalent) {
        Finding::Equivalent
    } else {
        Finding::NotShown
    }
}
