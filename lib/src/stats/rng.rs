//! The one source of random numbers of the statistics: SplitMix64 (Steele, Lea, Flood 2014; public domain).
//!
//! Our own dozen lines and not a crate, because the numbers in a published report must stay the same whatever version
//! of a dependency is current.

/// A seeded generator; the same seed gives the same stream on every platform.
#[derive(Debug, Clone)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A uniform index below `n` without modulo bias (Lemire 2019); `n` must be positive.
    pub(super) fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        let reject_below = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.bits()) * u128::from(n);
            if wide as u64 >= reject_below {
                return (wide >> 64) as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_stream() {
        // Reference outputs of SplitMix64 for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn indices_are_in_range_and_even() {
        let mut rng = Rng::new(1);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7)] += 1;
        }
        // Six standard deviations of a binomial(70000, 1/7) are 555.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 555), "{counts:?}");
    }
}
