//! `placebo`: neutral text of the same length as what it is compared with: a control arm.

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use crate::memory::registry::{About, Needs, NoSettings, read};
use crate::memory::{
    Budget, Costed, Delivery, Description, LearnsFrom, MemoryError, MemorySystem, Query, Record, Resources,
    Retrieval, Store, estimate_tokens,
};
use crate::task::InstanceId;

pub(in crate::memory) const ABOUT: About = About {
    name: "placebo",
    summary: "a control arm: neutral sentences about software, as many tokens as the budget (or the matched condition) has",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::OtherRepositories,
    shared: &[],
    settings: &[],
    paper: "",
    deviations: &[],
    open,
};

/// Sentences that are true of any repository and help with no issue.
const SENTENCES: &str = include_str!("placebo.txt");
/// What its records are said to come from: a repository that does not exist.
const SOURCE: &str = "general__notes-1";

fn open(settings: &serde_json::Value, _resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let NoSettings {} = read(settings)?;
    let source = InstanceId::parse(SOURCE).map_err(|error| error.to_string())?;
    Ok(Box::new(Placebo { source }))
}

struct Placebo {
    source: InstanceId,
}

/// Exactly `tokens` tokens of the sentences, from the `start`th on, over and over.
pub(super) fn fill(sentences: &[&str], start: usize, tokens: u64) -> String {
    let room = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let mut text = String::new();
    let mut length = 0;
    for sentence in sentences.iter().cycle().skip(start % sentences.len().max(1)) {
        if length >= room || sentence.is_empty() {
            break;
        }
        text.push_str(sentence);
        text.push('\n');
        length += sentence.chars().count() + 1;
    }
    let end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
    text.truncate(end);
    // a last line break would be trimmed, and be missed
    if text.ends_with('\n') {
        text.replace_range(text.len() - 1.., ".");
    }
    text
}

/// A number that differs from target to target and is the same for one.
pub(super) fn draw(query: &Query, seed: u64) -> usize {
    let digest = Sha256::digest(format!("{seed} {}", query.target.instance_id));
    digest.iter().take(4).fold(0, |number, byte| number << 8 | usize::from(*byte))
}

#[async_trait]
impl MemorySystem for Placebo {
    fn describe(&self) -> Description {
        Description {
            ingests: false,
            learns_from: LearnsFrom::OtherRepositories,
            ..Description::built_in(ABOUT.name)
        }
    }

    fn store(&self) -> Result<Store, MemoryError> {
        let digest = format!("{:x}", Sha256::digest(SENTENCES));
        Ok(Store {
            digest,
            records: SENTENCES.lines().count() as u64,
            bytes: SENTENCES.len() as u64,
            unusable: 0,
        })
    }

    async fn retrieve(&mut self, query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        let sentences: Vec<&str> = SENTENCES.lines().collect();
        let start = draw(query, 0);
        let records = (0..budget.records as u64).map(|n| {
            // shares that differ by a token at most and add up to the budget
            let tokens =
                budget.tokens * (n + 1) / budget.records as u64 - budget.tokens * n / budget.records as u64;
            let text = fill(&sentences, start + n as usize * 3, tokens);
            let tokens = estimate_tokens(&text);
            Record { id: None, source: self.source.clone(), score: None, why: None, text, tokens }
        });
        let records: Vec<Record> = records.filter(|record| record.tokens > 0).collect();
        let value = if records.is_empty() {
            Retrieval::Abstain { reason: "the budget holds no text".into() }
        } else {
            Retrieval::Delivery(Delivery { records, ..Delivery::default() })
        };
        Ok(Costed::free(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::query;

    #[tokio::test]
    async fn gives_exactly_the_tokens_of_the_budget() {
        for (records, tokens) in [(1, 1), (1, 137), (3, 200), (2, 5000)] {
            let mut system = open(&serde_json::Value::Null, &Resources::default()).unwrap();
            let answer = system.retrieve(&query("anything"), Budget { records, tokens }).await.unwrap().value;
            let Retrieval::Delivery(delivery) = answer else { panic!("abstained") };
            assert_eq!(delivery.records.iter().map(|record| record.tokens).sum::<u64>(), tokens);
            assert!(delivery.records.len() <= records);
        }
    }

    #[test]
    fn says_nothing_that_helps() {
        let code = ["fix", "bug", "patch", "test", "error", "issue", "(", "_", "`", "/"];
        for sentence in SENTENCES.lines() {
            assert!(!code.iter().any(|word| sentence.to_lowercase().contains(word)), "{sentence}");
        }
    }
}
