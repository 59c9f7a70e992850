//! Ratios of totals (never means of ratios).

use serde::{Deserialize, Serialize};

use super::rng::Rng;
use super::sample::percentile_interval;
use super::{Interval, RESAMPLES};

/// A ratio of two totals over the same targets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// `Σ a / Σ b`.
    pub ratio: f64,
    /// 95 % percentile interval over resampled targets; `None` where a resample can have the total 0 below, or where
    /// there is only one target.
    pub interval: Option<Interval>,
}

/// `Σ a / Σ b` over targets, with a bootstrap interval over targets; `None` where the total below is 0 or a value is
/// not finite.
pub fn ratio_of_totals(pairs: &[(f64, f64)], seed: u64) -> Option<Ratio> {
    let mut pairs = pairs.to_vec();
    pairs.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)));
    let totals = |(a, b): (f64, f64), &(x, y): &(f64, f64)| (a + x, b + y);
    let (above, below) = pairs.iter().fold((0.0, 0.0), totals);
    if below == 0.0 || !above.is_finite() || !below.is_finite() {
        return None;
    }
    let n = pairs.len();
    let mut rng = Rng::new(seed);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let (a, b) = (0..n).fold((0.0, 0.0), |sums, _| totals(sums, &pairs[rng.below(n)]));
            a / b
        })
        .collect();
    let interval = (n > 1 && ratios.iter().all(|r| r.is_finite())).then(|| {
        ratios.sort_by(f64::total_cmp);
        percentile_interval(&ratios, 0.95)
    });
    Some(Ratio { ratio: above / below, interval })
}
