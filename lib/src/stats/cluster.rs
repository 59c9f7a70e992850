//! Standard errors where targets come in clusters (repositories).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::number::{t_quantile, upper};
use super::{Interval, Sample};

/// A mean whose uncertainty is measured between clusters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Clustered {
    /// The mean over all targets.
    pub mean: f64,
    /// `sqrt( Σ_c (Σ_{i∈c}(x_i − x̄))² · C/(C−1) ) / n`.
    pub standard_error: f64,
    /// How many clusters.
    pub clusters: usize,
}

impl Clustered {
    /// The t interval with C − 1 degrees of freedom.
    pub fn interval(&self, confidence: f64) -> Interval {
        Interval::around(self.mean, t_quantile(upper(confidence), self.clusters - 1) * self.standard_error)
    }
}

/// The clustered standard error of `(cluster, value)` pairs; `None` below two clusters or with a value that is not
/// finite.
pub fn clustered<'a>(targets: impl IntoIterator<Item = (&'a str, f64)>) -> Option<Clustered> {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (cluster, value) in targets {
        groups.entry(cluster).or_default().push(value);
    }
    let clusters = groups.len();
    if clusters < 2 {
        return None;
    }
    let all = Sample::new(groups.values().flatten().copied())?;
    let mean = all.mean()?;
    let squares: f64 = groups
        .values_mut()
        .map(|values| {
            values.sort_by(f64::total_cmp);
            values.iter().map(|v| v - mean).sum::<f64>().powi(2)
        })
        .sum();
    let c = clusters as f64;
    let standard_error = (squares * c / (c - 1.0)).sqrt() / all.len() as f64;
    Some(Clustered { mean, standard_error, clusters })
}
