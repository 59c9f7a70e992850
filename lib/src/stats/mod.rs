//! Whether it helped: paired tests, intervals, power. Pure functions, no I/O.
//!
//! The unit of analysis is the **target**: one number a target (the mean over its replicates, or the difference of two
//! such means). Everything is deterministic: random draws come from one seeded generator of our own, samples are put
//! into a canonical order first, so that the order of the input never matters, and swapping the two arms mirrors
//! every interval to the bit.
//!
//! | question | with several replicates | with one replicate |
//! |---|---|---|
//! | how large is the effect? | [`Sample::bootstrap`], checked by [`Sample::t_interval`] | also [`PairedTable::newcombe`] |
//! | could it be chance? | [`Sample::sign_flip`] | also [`PairedTable::mcnemar_exact`], [`PairedTable::mcnemar_mid_p`] |
//! | are repositories alike inside? | [`clustered`] | [`clustered`] |
//! | what does it cost? | [`ratio_of_totals`] | [`ratio_of_totals`] |
//! | what could have been seen? | [`power`] | [`power`] |
//! | what could the missing have done? | [`worst_case`] | [`worst_case`] |
//!
//! McNemar's test and Newcombe's interval treat rows as independent; on replicates of one target they would count the
//! same target several times, so [`PairedTable`] is for one replicate only.

mod adjust;
mod cluster;
mod missing;
mod number;
pub mod power;
mod ratio;
mod reliability;
mod rng;
mod sample;
mod table;
#[cfg(test)]
mod tests;

pub use adjust::{equivalent, holm};
pub use cluster::{Clustered, clustered};
pub use missing::{Cell, worst_case};
pub use number::{normal_quantile, t_quantile};
pub use ratio::{Ratio, ratio_of_totals};
pub use reliability::{pass_at_k, pass_hat_k, within_target_variance};
pub use sample::{Bootstrap, Sample, SignFlip};
pub use table::{PairedTable, wilson};

use serde::{Deserialize, Serialize};

/// Bootstrap resamples of every interval that a report prints.
pub const RESAMPLES: usize = 10_000;

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// An interval from its ends.
    pub fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// `centre ± half_width`.
    pub fn around(centre: f64, half_width: f64) -> Self {
        Self { low: centre - half_width, high: centre + half_width }
    }

    /// The interval of the negated quantity.
    #[must_use]
    pub fn mirrored(self) -> Self {
        // `0.0 - x` and not `-x`: no negative zero reaches a report.
        Self { low: 0.0 - self.high, high: 0.0 - self.low }
    }

    /// Whether all of it lies above zero.
    pub fn above_zero(self) -> bool {
        self.low > 0.0
    }

    /// Whether all of it lies below zero.
    pub fn below_zero(self) -> bool {
        self.high < 0.0
    }

    /// Whether it lies strictly inside `(-margin, margin)`.
    pub fn within(self, margin: f64) -> bool {
        -margin < self.low && self.high < margin
    }

    /// The part of it that is possible, where the quantity cannot leave `[least, most]`.
    #[must_use]
    pub fn clamped(self, least: f64, most: f64) -> Self {
        Self { low: self.low.clamp(least, most), high: self.high.clamp(least, most) }
    }

    /// Upper end minus lower end.
    pub fn width(self) -> f64 {
        self.high - self.low
    }
}
