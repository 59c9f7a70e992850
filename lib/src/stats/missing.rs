//! What the missing trials could have done.

use serde::{Deserialize, Serialize};

use super::{Interval, Sample};

/// The replicates of one target in one arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Resolved.
    pub resolved: u64,
    /// Coded 0.
    pub unresolved: u64,
    /// Failed by infrastructure: unknown.
    pub missing: u64,
}

impl Cell {
    /// Trials with a verdict.
    pub fn observed(self) -> u64 {
        self.resolved + self.unresolved
    }

    /// The resolved share of what was observed; `None` where nothing was.
    pub fn rate(self) -> Option<f64> {
        (self.observed() > 0).then(|| self.resolved as f64 / self.observed() as f64)
    }

    /// The least and the largest share that the missing trials allow; `None` without trials.
    pub fn bounds(self) -> Option<Interval> {
        let all = self.observed() + self.missing;
        let share = |resolved: u64| resolved as f64 / all as f64;
        (all > 0).then(|| Interval::new(share(self.resolved), share(self.resolved + self.missing)))
    }
}

/// The mean difference A − B over targets if every missing trial had gone against A, and if every one had gone for it
/// (Manski's bounds). Targets without trials in an arm are left out; `None` if that leaves none.
pub fn worst_case(pairs: impl IntoIterator<Item = (Cell, Cell)>) -> Option<Interval> {
    let (low, high): (Vec<f64>, Vec<f64>) = pairs
        .into_iter()
        .filter_map(|(a, b)| a.bounds().zip(b.bounds()))
        .map(|(a, b)| (a.low - b.high, a.high - b.low))
        .unzip();
    Some(Interval { low: Sample::new(low)?.mean()?, high: Sample::new(high)?.mean()? })
}
