//! One number a target: mean, standard error, bootstrap, sign-flip permutation.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::number::{half_binomial_tail, t_quantile, upper};
use super::rng::Rng;
use super::{Interval, RESAMPLES, power};

/// Non-zero values up to which the sign-flip test enumerates every assignment.
const ENUMERATED: usize = 20;
/// Random sign assignments beyond that.
const DRAWS: u64 = 100_000;

/// One number a target, in canonical order.
///
/// The order in which targets come in leaves no trace, and a sample and its negation are stored alike, with a mark:
/// so results are the same to the bit for permuted input and exactly mirrored for swapped arms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
    stored: Stored,
}

/// How the stored values relate to those that came in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stored {
    /// They are the same.
    #[default]
    Plain,
    /// They are negated.
    Mirrored,
    /// They are the same, and equal to their negation: whatever is computed must be symmetric about zero.
    Symmetric,
}

/// The sorted means of the bootstrap resamples.
#[derive(Debug, Clone, PartialEq)]
pub struct Bootstrap {
    means: Vec<f64>,
    stored: Stored,
}

/// The result of a sign-flip permutation test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SignFlip {
    /// Two-sided p value.
    pub p: f64,
    /// Whether every sign assignment was counted, instead of a random sample of them.
    pub exact: bool,
}

impl Sample {
    /// A sample of finite numbers; `None` if one is not finite.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        // Adding zero turns -0.0 into 0.0.
        let mut plain: Vec<f64> = values.into_iter().map(|v| v + 0.0).collect();
        if plain.iter().any(|v| !v.is_finite()) {
            return None;
        }
        plain.sort_by(f64::total_cmp);
        let negated: Vec<f64> = plain.iter().rev().map(|v| 0.0 - v).collect();
        let order = negated.iter().zip(&plain).map(|(n, p)| n.total_cmp(p)).find(|o| o.is_ne());
        Some(match order {
            Some(Ordering::Greater) => Self { values: negated, stored: Stored::Mirrored },
            Some(_) => Self { values: plain, stored: Stored::Plain },
            None => Self { values: plain, stored: Stored::Symmetric },
        })
    }

    /// How many targets.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether all values are the same (also where there is none): resampling then says nothing about uncertainty.
    pub fn is_constant(&self) -> bool {
        self.values.first() == self.values.last()
    }

    /// How many values are not zero.
    pub fn nonzero(&self) -> usize {
        self.values.iter().filter(|&&v| v != 0.0).count()
    }

    /// The mean; `None` for an empty sample.
    pub fn mean(&self) -> Option<f64> {
        let mean = self.canonical_mean()?;
        Some(match self.stored {
            Stored::Plain => mean,
            Stored::Mirrored => 0.0 - mean,
            Stored::Symmetric => 0.0,
        })
    }

    fn canonical_mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.values.iter().sum::<f64>() / self.len() as f64)
    }

    /// `Σ (x − x̄)²`.
    fn squares(&self) -> Option<f64> {
        let mean = self.canonical_mean()?;
        Some(self.values.iter().map(|v| (v - mean).powi(2)).sum())
    }

    /// The sample variance (divisor n − 1); `None` below two targets.
    pub fn variance(&self) -> Option<f64> {
        (self.len() >= 2).then(|| self.squares().map(|s| s / (self.len() - 1) as f64)).flatten()
    }

    /// The standard error of the mean, `sqrt(Σ(x−x̄)² / (n(n−1)))`; `None` below two targets.
    pub fn standard_error(&self) -> Option<f64> {
        self.variance().map(|v| (v / self.len() as f64).sqrt())
    }

    /// The standard error that infinitely many bootstrap resamples would show, `sqrt(Σ(x−x̄)²) / n`.
    pub fn ideal_bootstrap_se(&self) -> Option<f64> {
        self.squares().map(|s| s.sqrt() / self.len() as f64)
    }

    /// The t interval of the mean with n − 1 degrees of freedom; `None` below two targets.
    pub fn t_interval(&self, confidence: f64) -> Option<Interval> {
        let half = t_quantile(upper(confidence), self.len().checked_sub(1)?) * self.standard_error()?;
        Some(Interval::around(self.mean()?, half))
    }

    /// Resamples the targets with replacement, 10,000 times; `None` for an empty sample. Of a sample that is its own
    /// negation every second resample is the negation of the one before: it is as likely, and leaves no side preferred.
    pub fn bootstrap(&self, seed: u64) -> Option<Bootstrap> {
        let n = self.len();
        if n == 0 {
            return None;
        }
        let mut rng = Rng::new(seed);
        let mut draw = || (0..n).map(|_| self.values[rng.below(n)]).sum::<f64>() / n as f64;
        let mut means: Vec<f64> = match self.stored {
            Stored::Symmetric => (0..RESAMPLES / 2).map(|_| draw()).flat_map(|m| [m, 0.0 - m]).collect(),
            Stored::Plain | Stored::Mirrored => (0..RESAMPLES).map(|_| draw()).collect(),
        };
        means.sort_by(f64::total_cmp);
        Some(Bootstrap { means, stored: self.stored })
    }

    /// An interval of at least this confidence for a sample whose values are **all alike**, where resampling would show
    /// no spread: the share of unlike targets is bounded, and those may lie anywhere in `[least, most]`. `None` where
    /// the values differ or there are none.
    pub fn alike_interval(&self, confidence: f64, least: f64, most: f64) -> Option<Interval> {
        let (mean, unlike) = (self.mean()?, power::unlike_bound(self.len(), confidence)?);
        let interval = Interval::new(mean - unlike * (mean - least), mean + unlike * (most - mean));
        self.is_constant().then_some(interval)
    }

    /// The share of sign assignments whose sum is at least as far from zero as the observed one.
    ///
    /// Exact where at most 20 values are not zero, or where all of those have one size (then the count of signs is
    /// binomial: with one replicate this is McNemar's exact test). Otherwise 100,000 random assignments, the observed
    /// one counted in.
    pub fn sign_flip(&self, seed: u64) -> SignFlip {
        let mut sizes: Vec<f64> = self.values.iter().map(|v| v.abs()).filter(|&v| v > 0.0).collect();
        sizes.sort_by(f64::total_cmp);
        let total: f64 = sizes.iter().sum();
        let observed = self.values.iter().sum::<f64>().abs();
        // Sums of thirds and the like differ in the last bits by the order of addition: those count as equal.
        let bound = observed - 1e-12 * total;
        let m = sizes.len();
        if bound <= 0.0 {
            return SignFlip { p: 1.0, exact: true };
        }
        if sizes.first() == sizes.last() {
            let m = m as u64;
            let positive = self.values.iter().filter(|&&v| v > 0.0).count() as u64;
            let tail = half_binomial_tail(m, positive.min(m - positive));
            return SignFlip { p: (2.0 * tail).min(1.0), exact: true };
        }
        if m <= ENUMERATED {
            // An assignment and its negation lie equally far out: one sign can be held.
            let hits = count_extreme(&sizes[1..], sizes[0], bound);
            return SignFlip { p: hits as f64 / (1_u64 << (m - 1)) as f64, exact: true };
        }
        let mut rng = Rng::new(seed);
        let hits = (0..DRAWS).filter(|_| random_sum(&sizes, &mut rng).abs() >= bound).count();
        SignFlip { p: (hits + 1) as f64 / (DRAWS + 1) as f64, exact: false }
    }
}

/// How many of the `2^rest.len()` sign assignments of `rest`, added to `sum`, lie at `bound` or further out.
fn count_extreme(rest: &[f64], sum: f64, bound: f64) -> u64 {
    match rest.split_last() {
        None => u64::from(sum.abs() >= bound),
        Some((value, rest)) => {
            count_extreme(rest, sum + value, bound) + count_extreme(rest, sum - value, bound)
        }
    }
}

fn random_sum(sizes: &[f64], rng: &mut Rng) -> f64 {
    let mut sum = 0.0;
    for chunk in sizes.chunks(64) {
        let mut bits = rng.bits();
        for size in chunk {
            sum += if bits & 1 == 1 { *size } else { -*size };
            bits >>= 1;
        }
    }
    sum
}

impl Bootstrap {
    /// The percentile interval, linear between order statistics.
    pub fn interval(&self, confidence: f64) -> Interval {
        let interval = percentile_interval(&self.means, confidence);
        match self.stored {
            Stored::Plain => interval,
            Stored::Mirrored => interval.mirrored(),
            // Interpolation rounds differently on the two sides.
            Stored::Symmetric => Interval { low: 0.0 - interval.high, ..interval },
        }
    }
}

/// The percentile interval of sorted values; both ends are counted from their own side, so that it mirrors exactly.
pub(super) fn percentile_interval(sorted: &[f64], confidence: f64) -> Interval {
    let last = sorted.len() - 1;
    let rank = (1.0 - confidence) / 2.0 * last as f64;
    let (whole, part) = (rank.floor() as usize, rank.fract());
    let between = |near: f64, far: f64| near + part * (far - near);
    Interval {
        low: between(sorted[whole], sorted[(whole + 1).min(last)]),
        high: between(sorted[last - whole], sorted[last.saturating_sub(whole + 1)]),
    }
}
