//! How replicates of one target agree.

/// `C(n − miss, k) / C(n, k)` with `C(kept, k) = 0` where `kept < k`.
fn share_of_subsets(kept: u64, n: u64, k: u64) -> f64 {
    (0..k).map(|i| kept.saturating_sub(i) as f64 / (n - i) as f64).product()
}

/// pass@k: the chance that at least one of `k` runs drawn from `n`, of which `c` resolved, is resolved:
/// `1 − C(n−c, k)/C(n, k)`. `None` where there are fewer than `k` runs.
pub fn pass_at_k(n: u64, c: u64, k: u64) -> Option<f64> {
    (c <= n && k <= n).then(|| 1.0 - share_of_subsets(n - c, n, k))
}

/// pass^k: the chance that all of `k` runs drawn from `n`, of which `c` resolved, are resolved: `C(c, k)/C(n, k)`.
/// `None` where there are fewer than `k` runs.
pub fn pass_hat_k(n: u64, c: u64, k: u64) -> Option<f64> {
    (c <= n && k <= n).then(|| share_of_subsets(c, n, k))
}

/// The variance of one trial around its target's rate, `q(1−q)·S/(S−1)`, for `resolved` of `runs` replicates; `None`
/// below two.
pub fn within_target_variance(resolved: u64, runs: u64) -> Option<f64> {
    if runs < 2 || resolved > runs {
        return None;
    }
    let (s, q) = (runs as f64, resolved as f64 / runs as f64);
    Some(q * (1.0 - q) * s / (s - 1.0))
}
