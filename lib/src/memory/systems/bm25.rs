//! `bm25`: lexical search over the issue texts and submitted patches of earlier runs, which it shows as they are.

use async_trait::async_trait;

use crate::memory::bank::{Bank, Distil, Kept, Learned, Ranking};
use crate::memory::changes::Changes;
use crate::memory::record::issue_and_patch;
use crate::memory::registry::{About, Needs, NoSettings, RANKED, read_ranked};
use crate::memory::{Costed, Description, Experience, LearnsFrom, MemoryError, MemorySystem, Resources};

pub(in crate::memory) const ABOUT: About = About {
    name: "bm25",
    summary: "the earlier issue texts and submitted patches, cut to the budget; found by words (and by meaning, with an embedder)",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::History,
    shared: RANKED,
    settings: &[],
    paper: "",
    deviations: &[],
    open,
};

fn open(settings: &serde_json::Value, resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let (ranking, NoSettings {}) = read_ranked(settings, Ranking::default())?;
    Ok(Box::new(Bank::new(Whole, ranking, resources.embedder.clone())))
}

/// Keeps issue and patch.
struct Whole;

#[async_trait]
impl Distil for Whole {
    fn about(&self) -> Description {
        Description::built_in(ABOUT.name)
    }

    async fn distil(&self, run: &Experience) -> Result<Costed<Learned>, MemoryError> {
        let (head, body) = issue_and_patch(run);
        let change = Changes::of(run.patch.as_deref().unwrap_or_default()).searched();
        let searched = Some([run.issue.clone(), change, String::new()]);
        let records = vec![Kept { searched, head, body, ..Kept::default() }];
        Ok(Costed::free(Learned { records, unusable: None }))
    }
}

#[cfg(test)]
#[path = "bm25_tests.rs"]
mod tests;
