//! Quantiles, and binomial terms without logarithms.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The `p` quantile of the standard normal distribution, `0 < p < 1`; NaN outside.
pub fn normal_quantile(p: f64) -> f64 {
    if p > 0.0 && p < 1.0 { Normal::standard().inverse_cdf(p) } else { f64::NAN }
}

/// The `p` quantile of Student's t with `df` degrees of freedom, `0 < p < 1`; NaN outside or where `df` is 0.
pub fn t_quantile(p: f64, df: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, df as f64) {
        Ok(t) if p > 0.0 && p < 1.0 => t.inverse_cdf(p),
        _ => f64::NAN,
    }
}

/// The two-sided critical value of a distribution for a confidence level: its `(1 + confidence) / 2` quantile.
pub(super) fn upper(confidence: f64) -> f64 {
    f64::midpoint(1.0, confidence)
}

/// `C(m, k) / 2^m`, by products alone: exact while the terms fit a double, and the same on every platform.
pub(super) fn half_binomial(m: u64, k: u64) -> f64 {
    let k = k.min(m - k.min(m));
    let mut halvings = m;
    let mut term = 1.0_f64;
    for i in 1..=k {
        term *= (m - k + i) as f64;
        term /= i as f64;
        // Halving is exact, so it is spread out only to keep the term in range.
        while term > 1.0e200 && halvings > 0 {
            term *= 0.5;
            halvings -= 1;
        }
    }
    for _ in 0..halvings {
        term *= 0.5;
    }
    term
}

/// `Σ_{i ≤ k} C(m, i) / 2^m`.
pub(super) fn half_binomial_tail(m: u64, k: u64) -> f64 {
    let mut term = half_binomial(m, k);
    let mut sum = 0.0;
    for i in (0..=k.min(m)).rev() {
        sum += term;
        term *= i as f64 / (m - i + 1) as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_tabled_ones() {
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!((t_quantile(0.975, 7) - 2.364_624_251_592_785).abs() < 1e-9);
        assert!((t_quantile(0.975, 1) - 12.706_204_736_174_707).abs() < 1e-7);
        assert!(normal_quantile(0.0).is_nan() && t_quantile(0.5, 0).is_nan() && t_quantile(1.0, 3).is_nan());
    }

    #[test]
    fn binomial_terms_are_exact() {
        assert_eq!(half_binomial(4, 2), 6.0 / 16.0);
        assert_eq!(half_binomial(0, 0), 1.0);
        assert_eq!(half_binomial_tail(8, 1), 9.0 / 256.0);
        assert_eq!(half_binomial_tail(5, 5), 1.0);
        // Far tails and large counts neither overflow nor become NaN.
        assert!((half_binomial_tail(10_001, 5_000) - 0.5).abs() < 1e-10);
        assert_eq!(half_binomial_tail(10_000, 3), 0.0);
    }
}
