//! Many comparisons, and claims of "no difference".

use super::Interval;

/// Holm's step-down adjustment: p values that control the family-wise error, in the order given.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut adjusted = vec![0.0; p.len()];
    let mut floor = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        floor = floor.max(((p.len() - rank) as f64 * p[index]).min(1.0));
        adjusted[index] = floor;
    }
    adjusted
}

/// Two one-sided tests at 5 %: equivalent at `margin` if and only if the **90 %** interval lies inside
/// `(−margin, margin)`.
pub fn equivalent(interval90: Interval, margin: f64) -> bool {
    interval90.within(margin)
}
