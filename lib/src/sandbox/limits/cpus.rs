//! Which CPUs a sandbox runs on: as many as its limit, rounded up, and of those that there are the least lent.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rustix::thread::{CpuSet, sched_getaffinity};

/// How many sandboxes of this process each CPU is lent to.
static LENT: Mutex<BTreeMap<u32, usize>> = Mutex::new(BTreeMap::new());

/// CPUs lent to a sandbox; given back when this is dropped.
#[derive(Debug, Default)]
pub(in crate::sandbox) struct Lease(Vec<u32>);

impl Lease {
    /// Lends CPUs of those that this process may run on. None are named where the kernel does not tell.
    pub(in crate::sandbox) fn here(limit: f64) -> Self {
        let Ok(set) = sched_getaffinity(None) else { return Self::default() };
        let here = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        Self::of(&here.filter_map(|cpu| u32::try_from(cpu).ok()).collect::<Vec<_>>(), limit)
    }

    /// Lends CPUs of these. Among those lent equally often the choice starts at a place that differs between processes:
    /// they do not know of each other.
    pub(in crate::sandbox) fn of(all: &[u32], limit: f64) -> Self {
        let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(std::process::id()).unwrap_or(0).checked_rem(all.len()).unwrap_or(0);
        let mut order: Vec<u32> = all[start..].iter().chain(&all[..start]).copied().collect();
        order.sort_by_key(|cpu| lent.get(cpu).copied().unwrap_or(0));
        order.truncate(whole(limit));
        order.sort_unstable();
        for cpu in &order {
            *lent.entry(*cpu).or_default() += 1;
        }
        Self(order)
    }

    /// Their numbers, in order.
    pub(in crate::sandbox) fn cpus(&self) -> &[u32] {
        &self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
        for cpu in &self.0 {
            if let Some(count) = lent.get_mut(cpu) {
                *count = count.saturating_sub(1);
            }
        }
    }
}

/// The CPUs that a share of CPU time needs: at least one.
fn whole(limit: f64) -> usize {
    (1..usize::from(u16::MAX)).find(|count| *count as f64 >= limit).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_up_to_whole_cpus() {
        let cases = [(0.01, 1), (1.0, 1), (1.01, 2), (2.0, 2), (63.5, 64), (f64::MAX, usize::MAX)];
        for (limit, expected) in cases {
            assert_eq!(whole(limit), expected, "{limit}");
        }
    }

    /// Numbers that no other test and no machine uses.
    #[test]
    fn the_least_lent_are_lent_and_given_back() {
        let all = [9001, 9002, 9003, 9004];
        let first = Lease::of(&all, 1.5);
        let second = Lease::of(&all, 2.0);
        let mut both = [first.cpus(), second.cpus()].concat();
        both.sort_unstable();
        assert_eq!(both, all);
        let third = Lease::of(&all, 3.0);
        assert_eq!(third.cpus().len(), 3);
        let fourth = Lease::of(&all, 1.0);
        assert!(!third.cpus().contains(&fourth.cpus()[0]), "{third:?} {fourth:?}");
        drop((second, third, fourth));
        assert_ne!(Lease::of(&all, 2.0).cpus(), first.cpus());
        assert_eq!(Lease::of(&all, 99.0).cpus(), all);
        assert!(Lease::of(&[], 1.0).cpus().is_empty());
    }
}
