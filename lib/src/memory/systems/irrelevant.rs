//! `irrelevant`: records of other repositories, as many tokens as what it is compared with: a control arm.

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use super::placebo::{draw, fill};
use crate::memory::distil::by_rules;
use crate::memory::registry::{About, Needs, NoSettings, read};
use crate::memory::{
    Budget, Costed, Delivery, Description, Experience, LearnsFrom, MemoryError, MemorySystem, Query, Record,
    Resources, Retrieval, Scope, Store, estimate_tokens,
};
use crate::task::InstanceId;

pub(in crate::memory) const ABOUT: About = About {
    name: "irrelevant",
    summary: "a control arm: fix cards of other repositories, drawn by chance, as many tokens as the budget (or the matched \
              condition) has",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::OtherRepositories,
    shared: &[],
    settings: &[],
    paper: "",
    deviations: &[],
    open,
};

fn open(settings: &serde_json::Value, _resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let NoSettings {} = read(settings)?;
    Ok(Box::new(Irrelevant::default()))
}

#[derive(Default)]
struct Irrelevant {
    cards: Vec<(InstanceId, String)>,
    seed: u64,
}

#[async_trait]
impl MemorySystem for Irrelevant {
    fn describe(&self) -> Description {
        Description { learns_from: LearnsFrom::OtherRepositories, ..Description::built_in(ABOUT.name) }
    }

    async fn prepare(&mut self, scope: &Scope) -> Result<Costed<()>, MemoryError> {
        *self = Self { cards: Vec::new(), seed: scope.seed };
        Ok(Costed::free(()))
    }

    async fn ingest(&mut self, experience: &Experience) -> Result<Costed<()>, MemoryError> {
        if let Some(card) = by_rules(experience) {
            self.cards.push((experience.instance_id.clone(), card.text()));
        }
        Ok(Costed::free(()))
    }

    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        self.cards.sort();
        self.store().map(Costed::free)
    }

    fn store(&self) -> Result<Store, MemoryError> {
        let mut all = Sha256::new();
        let mut bytes = 0;
        for (id, text) in &self.cards {
            all.update(format!("{id}\n{text}\n"));
            bytes += text.len() as u64;
        }
        let digest = format!("{:x}", all.finalize());
        Ok(Store { digest, records: self.cards.len() as u64, bytes, unusable: 0 })
    }

    async fn retrieve(&mut self, query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        let count = budget.records.min(self.cards.len());
        let start = draw(query, self.seed);
        let mut delivery = Delivery::default();
        for n in 0..count {
            let (upto, from) = (budget.tokens * (n as u64 + 1), budget.tokens * n as u64);
            let tokens = upto / count as u64 - from / count as u64;
            // A card that is shorter than its room goes on with the next ones.
            let at = (start + n * self.cards.len() / count) % self.cards.len();
            let texts: Vec<&str> = self.cards.iter().map(|(_, text)| text.as_str()).collect();
            let text = fill(&texts, at, tokens);
            let mut left = text.chars().count();
            for (id, card) in self.cards.iter().cycle().skip(at).take(self.cards.len()) {
                delivery.sources.push(id.clone());
                left = left.saturating_sub(card.chars().count() + 1);
                if left == 0 {
                    break;
                }
            }
            let tokens = estimate_tokens(&text);
            if tokens > 0 {
                let source = self.cards[at].0.clone();
                delivery.records.push(Record { id: None, source, score: None, why: None, text, tokens });
            }
        }
        let value = if delivery.records.is_empty() {
            Retrieval::Abstain { reason: "there is no run of another repository, or no room".into() }
        } else {
            Retrieval::Delivery(delivery)
        };
        Ok(Costed::free(value))
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        self.cards.clear();
        Ok(Costed::free(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{query, run};

    #[tokio::test]
    async fn gives_exactly_the_tokens_of_the_budget() {
        for (records, tokens) in [(1, 40), (2, 333), (5, 4000)] {
            let mut system = open(&serde_json::Value::Null, &Resources::default()).unwrap();
            for n in 1..=3 {
                system.ingest(&run(n, "Reader fails", "x = 1")).await.unwrap();
            }
            system.freeze().await.unwrap();
            let answer = system.retrieve(&query("anything"), Budget { records, tokens }).await.unwrap().value;
            let Retrieval::Delivery(delivery) = answer else { panic!("abstained") };
            assert_eq!(delivery.records.iter().map(|record| record.tokens).sum::<u64>(), tokens);
            assert_eq!(delivery.records.len(), records.min(3));
            assert!(delivery.records[0].text.starts_with("Bug class: "));
        }
    }
}
