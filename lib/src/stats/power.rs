//! What a study of a given size can show.

use super::PairedTable;
use super::number::{normal_quantile, upper};

/// The power that reports state detectable effects for.
pub const POWER: f64 = 0.8;

/// `z(0.975) + z(power)`: 2.802 at 80 %.
fn factor(power: f64) -> f64 {
    normal_quantile(upper(0.95)) + normal_quantile(power)
}

/// The smallest true effect that a two-sided 5 % test finds with this power, given the standard error of the estimate.
pub fn detectable(standard_error: f64, power: f64) -> f64 {
    factor(power) * standard_error
}

/// [`detectable`] if the same targets were run with `then` instead of `now` replicates: more of them shrink only the
/// within-target part `within` of the per-target `variance`.
///
/// `variance` is that of the differences at `now` replicates; `n` targets; `f64::INFINITY` for `then` is allowed.
pub fn detectable_with_replicates(
    variance: f64,
    within: f64,
    now: f64,
    then: f64,
    n: usize,
    power: f64,
) -> f64 {
    factor(power) * ((variance - within + within * now / then).max(0.0) / n as f64).sqrt()
}

/// How many targets it takes to find a true effect of `effect` with this power, given the variance of the per-target
/// differences (for one replicate and a small effect: the share of discordant targets). `None` for an effect of 0.
pub fn required_targets(effect: f64, variance: f64, power: f64) -> Option<u64> {
    let n = (factor(power) / effect).powi(2) * variance;
    n.is_finite().then(|| n.ceil() as u64)
}

/// The most even split of `m` discordant targets that McNemar's exact test still finds significant at 5 %, as
/// `(more, fewer)`; `None` below six.
pub fn significant_split(m: u64) -> Option<(u64, u64)> {
    (0..=m / 2)
        .rev()
        .map(|fewer| PairedTable { only_a: m - fewer, only_b: fewer, ..PairedTable::default() })
        .find(|table| table.mcnemar_exact() < 0.05)
        .map(|table| (table.only_a, table.only_b))
}

/// The fewest targets that must all move one way before any exact paired test can reach 5 %.
pub const FEWEST_MOVED: u64 = 6;

/// The largest share of targets that can differ from `n` observed ones **that were all alike**, with this confidence:
/// `1 − (1 − confidence)^(1/n)` (exact; for 95 % 3/n at large n). `None` without targets.
pub fn unlike_bound(n: usize, confidence: f64) -> Option<f64> {
    (n > 0).then(|| 1.0 - (1.0 - confidence).powf(1.0 / n as f64))
}
