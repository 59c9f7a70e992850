//! Runs of other repositories than the target's: what control arms draw from.

use sha2::{Digest as _, Sha256};

use super::history::Entry;
use super::store::HistoryStore;
use crate::task::InstanceId;

/// Runs that say nothing about the target: none is of its repository. Not a history: no order relates them to the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherRepositories {
    target: InstanceId,
    entries: Vec<Entry>,
}

impl OtherRepositories {
    /// At most `most` runs, drawn by the seed: the same ones for the same target, store and seed.
    pub fn draw(store: &HistoryStore, target: &InstanceId, most: usize, seed: u64) -> Self {
        let others = store.runs().iter().filter(|run| !run.id.same_repo(target));
        let mut lots: Vec<_> =
            others.map(|run| (Sha256::digest(format!("{seed} {target} {}", run.id)), run)).collect();
        lots.sort_by_key(|(lot, _)| *lot);
        lots.truncate(most);
        let entries = lots.into_iter().map(|(_, run)| Entry::of(run, store)).collect();
        Self { target: target.clone(), entries }
    }

    /// The target that they were drawn for.
    pub fn target(&self) -> &InstanceId {
        &self.target
    }

    /// The runs, in the order of their lots.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_of_the_targets_repository() {
        let id = |text: &str| InstanceId::parse(text).unwrap();
        let ids = (1..=20).flat_map(|n| {
            [id(&format!("a__b-{n}")), id(&format!("c__d-{n}")), id(&format!("A__B-{}", n + 50))]
        });
        let store = HistoryStore::of_ids(ids);
        let drawn = OtherRepositories::draw(&store, &id("a__b-30"), 8, 1);
        assert_eq!(drawn.entries().len(), 8);
        assert!(drawn.entries().iter().all(|entry| entry.id().repo_key() == "c__d"));
        assert_eq!(drawn, OtherRepositories::draw(&store, &id("a__b-30"), 8, 1));
        assert_ne!(drawn, OtherRepositories::draw(&store, &id("a__b-30"), 8, 2));
    }
}
