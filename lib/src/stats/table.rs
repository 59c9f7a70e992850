//! Two runs of the same targets, one replicate each: McNemar's tests and Newcombe's interval.

use serde::{Deserialize, Serialize};

use super::Interval;
use super::number::{half_binomial, half_binomial_tail, normal_quantile, upper};

/// Counts of targets by their outcome in runs A and B.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedTable {
    /// a: resolved in both.
    pub both: u64,
    /// b: resolved in A only.
    pub only_a: u64,
    /// c: resolved in B only.
    pub only_b: u64,
    /// d: resolved in neither.
    pub neither: u64,
}

impl PairedTable {
    /// Counts `(resolved in A, resolved in B)` pairs.
    pub fn count(pairs: impl IntoIterator<Item = (bool, bool)>) -> Self {
        let mut table = Self::default();
        for pair in pairs {
            match pair {
                (true, true) => table.both += 1,
                (true, false) => table.only_a += 1,
                (false, true) => table.only_b += 1,
                (false, false) => table.neither += 1,
            }
        }
        table
    }

    /// How many targets.
    pub fn n(&self) -> u64 {
        self.both + self.only_a + self.only_b + self.neither
    }

    /// The table with A and B swapped.
    #[must_use]
    pub fn swapped(self) -> Self {
        Self { only_a: self.only_b, only_b: self.only_a, ..self }
    }

    /// Targets on which the runs differ.
    pub fn discordant(&self) -> u64 {
        self.only_a + self.only_b
    }

    /// The difference of the resolved rates, A − B; `None` without targets.
    pub fn difference(&self) -> Option<f64> {
        (self.n() > 0).then(|| (self.only_a as f64 - self.only_b as f64) / self.n() as f64)
    }

    /// McNemar's exact conditional p value, two-sided; 1 where the runs never differ.
    pub fn mcnemar_exact(&self) -> f64 {
        let (m, k) = (self.discordant(), self.only_a.min(self.only_b));
        (2.0 * half_binomial_tail(m, k)).min(1.0)
    }

    /// McNemar's mid-p value (Fagerland, Lydersen, Laake 2013), less conservative than the exact one.
    pub fn mcnemar_mid_p(&self) -> f64 {
        let (m, k) = (self.discordant(), self.only_a.min(self.only_b));
        match m {
            0 => 1.0,
            _ if self.only_a == self.only_b => 1.0 - half_binomial(m, k) / 2.0,
            _ => self.mcnemar_exact() - half_binomial(m, k),
        }
    }

    /// Newcombe's interval of the paired difference A − B (1998, method 10: Wilson limits, continuity-corrected φ);
    /// `None` without targets.
    pub fn newcombe(&self, confidence: f64) -> Option<Interval> {
        if self.only_a < self.only_b {
            // So that swapped runs have the mirrored interval to the bit.
            return self.swapped().newcombe(confidence).map(Interval::mirrored);
        }
        let difference = self.difference()?;
        let (a, b, c, d) = (self.both as f64, self.only_a as f64, self.only_b as f64, self.neither as f64);
        let n = a + b + c + d;
        let (p1, p2) = ((a + b) / n, (a + c) / n);
        let first = wilson(self.both + self.only_a, self.n(), confidence)?;
        let second = wilson(self.both + self.only_b, self.n(), confidence)?;
        let phi = correlation(a, b, c, d);
        let reach = |x: f64, y: f64| (x * x - 2.0 * phi * x * y + y * y).max(0.0).sqrt();
        Some(Interval {
            low: difference - reach(p1 - first.low, second.high - p2),
            high: difference + reach(first.high - p1, p2 - second.low),
        })
    }
}

/// Newcombe's φ; 0 where a margin is empty.
fn correlation(a: f64, b: f64, c: f64, d: f64) -> f64 {
    let product = (a + b) * (c + d) * (a + c) * (b + d);
    if product == 0.0 {
        return 0.0;
    }
    let (g, half) = (a * d - b * c, (a + b + c + d) / 2.0);
    let corrected = if g > half { g - half } else { g.min(0.0) };
    corrected / product.sqrt()
}

/// Wilson's score interval of `successes` in `n`; `None` without trials.
pub fn wilson(successes: u64, n: u64, confidence: f64) -> Option<Interval> {
    if n == 0 {
        return None;
    }
    let (x, n, z) = (successes as f64, n as f64, normal_quantile(upper(confidence)));
    let z2 = z * z;
    let centre = (x + z2 / 2.0) / (n + z2);
    let half = z * (x * (n - x) / n + z2 / 4.0).sqrt() / (n + z2);
    Some(Interval { low: (centre - half).max(0.0), high: (centre + half).min(1.0) })
}
