//! Numbers that look random and are the same everywhere.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Numbers of a seed and a name.
    pub fn new(seed: u64, name: &str) -> Self {
        let state =
            name.bytes().fold(seed, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Self(state)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`; 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.next().checked_rem(end as u64).unwrap_or_default() as usize
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    pub fn of<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}
