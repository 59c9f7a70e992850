//! In which order records are offered, and when none is.

use serde::{Deserialize, Serialize};

use super::lexicon::Weights;

/// How a store ranks: settings that every system of records has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Ranking {
    /// Whether the system may abstain for want of relevance; without it, quality can be measured at every dose.
    pub gate: bool,
    /// Abstain where the best record holds less of the query's weight (0 to 1).
    pub min_coverage: f64,
    /// Abstain where the best BM25 score is lower.
    pub min_score: Option<f64>,
    /// Distinct words of the query that are searched for, the first ones of it.
    pub query_terms: usize,
    /// The share of a record's room that its first part may take where the second needs the rest.
    pub head_share: f64,
    /// How much the rank by meaning counts beside the rank by words, where an embedder is given; 0: not at all.
    pub dense_weight: f64,
}

impl Default for Ranking {
    fn default() -> Self {
        Self {
            gate: true,
            min_coverage: 0.0,
            min_score: None,
            query_terms: 256,
            head_share: 0.4,
            dense_weight: 1.0,
        }
    }
}

impl Ranking {
    /// Its keys in a table of settings.
    pub(in crate::memory) const KEYS: [&'static str; 6] =
        ["gate", "min-coverage", "min-score", "query-terms", "head-share", "dense-weight"];

    /// Says what is wrong with a value.
    pub(in crate::memory) fn check(&self) -> Result<(), String> {
        if !(1..=1024).contains(&self.query_terms) {
            return Err(format!("query-terms is {}, not 1 to 1024", self.query_terms));
        }
        for (key, share) in [("head-share", self.head_share), ("min-coverage", self.min_coverage)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("{key} is {share}, not 0 to 1"));
            }
        }
        if !(0.0..=100.0).contains(&self.dense_weight) {
            return Err(format!("dense-weight is {}, not 0 to 100", self.dense_weight));
        }
        match self.min_score {
            Some(score) if !score.is_finite() => Err(format!("min-score is {score}")),
            _ => Ok(()),
        }
    }

    pub(super) fn weights(&self, fields: [f64; super::lexicon::FIELD_COUNT]) -> Weights {
        Weights { words: self.query_terms, fields }
    }
}

/// Ranks deeper than this count for nothing in a fused ranking.
pub(super) const DEPTH: usize = 50;
/// Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion" (2009): the constant that damps the first ranks.
const DAMPING: f64 = 60.0;

/// Fuses two rankings of documents, each best first: `Σ weight / (60 + rank)`, rank from 1, the first 50 of each. Equal
/// sums keep the order of `tie`.
pub(super) fn fuse(
    rankings: [(&[u32], f64); 2],
    tie: impl Fn(u32, u32) -> std::cmp::Ordering,
) -> Vec<(u32, f64)> {
    let mut sums = std::collections::BTreeMap::<u32, f64>::new();
    for (ranking, weight) in rankings {
        for (at, document) in ranking.iter().take(DEPTH).enumerate() {
            *sums.entry(*document).or_default() += weight / (DAMPING + at as f64 + 1.0);
        }
    }
    let mut fused: Vec<(u32, f64)> = sums.into_iter().filter(|(_, sum)| *sum > 0.0).collect();
    fused.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| tie(*a, *b)));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuses_by_rank() {
        let fused = fuse([(&[7, 3], 1.0), (&[3, 9], 1.0)], |a, b| a.cmp(&b));
        let order: Vec<u32> = fused.iter().map(|(document, _)| *document).collect();
        assert_eq!(order, [3, 7, 9]);
        assert_eq!(fused[0].1, 1.0 / 62.0 + 1.0 / 61.0);
        assert_eq!(fuse([(&[1], 1.0), (&[2], 0.0)], |a, b| a.cmp(&b)).len(), 1);
    }
}
