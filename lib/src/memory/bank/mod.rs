//! Stores of records, each derived from one run: kept, searched and cut to a budget in one way for all systems that
//! differ only in what they make of a run.

mod kept;
mod lexicon;
mod ranking;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub(super) use kept::Kept;
use lexicon::{FIELD_COUNT, Hit, Lexicon};
pub use ranking::Ranking;
use ranking::{DEPTH, fuse};

use super::{
    Budget, Costed, Delivery, Description, Experience, Held, MemoryError, MemorySystem, Query, Record,
    Retrieval, Scope, Store, estimate_tokens,
};
use crate::llm::{Cost, Embedder};
use crate::task::InstanceId;

/// What a system makes of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Learned {
    /// The records, named `<run>#<n>` by the store.
    pub records: Vec<Kept>,
    /// A run from which nothing could be kept because the model's replies were unusable, in its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
}

/// How runs become records.
#[async_trait]
pub(super) trait Distil: Send + Sync {
    /// What the system is.
    fn about(&self) -> Description;

    /// The records of one run.
    async fn distil(&self, run: &Experience) -> Result<Costed<Learned>, MemoryError>;

    /// What a match in the problem, the change and everything else counts.
    fn weights(&self) -> [f64; FIELD_COUNT] {
        [1.0; FIELD_COUNT]
    }
}

/// A memory system that keeps records.
pub(super) struct Bank {
    distil: Box<dyn Distil>,
    name: String,
    ranking: Ranking,
    embedder: Option<Arc<dyn Embedder>>,
    kept: Vec<Kept>,
    /// Hex SHA-256 of what each run taught.
    runs: BTreeMap<InstanceId, String>,
    lexicon: Lexicon,
    bytes: u64,
    /// Runs from which nothing could be kept, with the reason.
    unusable: BTreeMap<InstanceId, String>,
    frozen: bool,
}

/// A record that answers a query.
struct Found {
    document: u32,
    score: f64,
    why: String,
}

impl Bank {
    pub fn new(distil: impl Distil + 'static, ranking: Ranking, embedder: Option<Arc<dyn Embedder>>) -> Self {
        let embedder = embedder.filter(|_| ranking.dense_weight > 0.0);
        Self {
            name: distil.about().name,
            distil: Box::new(distil),
            ranking,
            embedder,
            kept: Vec::new(),
            runs: BTreeMap::new(),
            lexicon: Lexicon::default(),
            bytes: 0,
            unusable: BTreeMap::new(),
            frozen: false,
        }
    }

    fn out_of_order(&self, call: &'static str, when: &'static str) -> MemoryError {
        MemoryError::OutOfOrder { system: self.name.clone(), call, when }
    }

    fn failed(&self, call: &'static str, reason: &dyn std::fmt::Display) -> MemoryError {
        MemoryError::System { system: self.name.clone(), call, reason: reason.to_string() }
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.runs.clear();
        self.lexicon = Lexicon::default();
        self.unusable.clear();
        (self.bytes, self.frozen) = (0, false);
    }

    /// Takes what a run taught into the store.
    fn add(&mut self, run: &InstanceId, learned: Learned) -> Result<(), MemoryError> {
        let content = serde_json::to_vec(&learned).map_err(|error| self.failed("ingest", &error))?;
        self.bytes += content.len() as u64;
        self.unusable.extend(learned.unusable.map(|reason| (run.clone(), reason)));
        self.runs.insert(run.clone(), format!("{:x}", Sha256::digest(&content)));
        for record in learned.records {
            self.lexicon.add(record.fields());
            self.kept.push(record);
        }
        Ok(())
    }

    async fn learn(&self, run: &Experience) -> Result<Costed<Learned>, MemoryError> {
        let Costed { value: mut learned, mut cost } = self.distil.distil(run).await?;
        for (n, record) in learned.records.iter_mut().enumerate() {
            record.id = format!("{}#{}", run.instance_id, n + 1);
            record.source = Some(run.instance_id.clone());
        }
        if let Some(embedder) = &self.embedder
            && !learned.records.is_empty()
        {
            let texts: Vec<String> = learned.records.iter().map(|record| record.about().to_owned()).collect();
            let embedded = embedder.embed(&texts).await.map_err(|error| self.failed("ingest", &error))?;
            cost = cost.plus(embedded.cost);
            learned
                .records
                .iter_mut()
                .zip(embedded.vectors)
                .for_each(|(record, vector)| record.vector = vector);
        }
        Ok(Costed { value: learned, cost })
    }

    /// Which records a query may see.
    fn may_see(&self, query: &Query) -> Vec<bool> {
        let Some(eligible) = &query.as_of else { return vec![true; self.kept.len()] };
        let eligible: BTreeSet<&InstanceId> = eligible.iter().collect();
        self.kept
            .iter()
            .map(|record| record.source.as_ref().is_some_and(|id| eligible.contains(id)))
            .collect()
    }

    /// The records by rank; or why the system abstains.
    async fn find(
        &self,
        query: &Query,
        records: usize,
    ) -> Result<Costed<Result<Vec<Found>, String>>, MemoryError> {
        let may_see = self.may_see(query);
        if !may_see.contains(&true) {
            return Ok(Costed::free(Err("the history is empty".into())));
        }
        let weights = self.ranking.weights(self.distil.weights());
        let mut hits = self.lexicon.search(query.words(), &weights, &may_see);
        let name =
            |document: u32| self.kept.get(document as usize).map(|record| (&record.source, &record.id));
        // as many as can be delivered, or matter in a fused ranking
        let most = records.max(DEPTH);
        let order = |a: &Hit, b: &Hit| {
            b.score.total_cmp(&a.score).then_with(|| name(a.document).cmp(&name(b.document)))
        };
        let covered = hits.iter().map(|hit| hit.coverage).fold(0.0, f64::max);
        if hits.len() > most {
            hits.select_nth_unstable_by(most, order);
            hits.truncate(most);
        }
        hits.sort_by(order);
        let (dense, cost) = match &self.embedder {
            Some(embedder) => self.by_meaning(embedder.as_ref(), query, &may_see).await?,
            None => (Vec::new(), Cost::ZERO),
        };
        if let Some(reason) = self.abstains(&hits, covered, dense.is_empty()) {
            return Ok(Costed { value: Err(reason), cost });
        }
        let found = if dense.is_empty() {
            hits.iter().map(|hit| (hit.document, hit.score)).collect()
        } else {
            let by_words: Vec<u32> = hits.iter().map(|hit| hit.document).collect();
            let by_meaning: Vec<u32> = dense.iter().map(|(document, _)| *document).collect();
            fuse([(&by_words, 1.0), (&by_meaning, self.ranking.dense_weight)], |a, b| name(a).cmp(&name(b)))
        };
        let found = found.into_iter().map(|(document, score)| {
            let why = explain(&hits, &dense, document);
            Found { document, score, why }
        });
        Ok(Costed { value: Ok(found.collect()), cost })
    }

    /// Documents by the cosine of their vectors and the query's.
    async fn by_meaning(
        &self,
        embedder: &dyn Embedder,
        query: &Query,
        may_see: &[bool],
    ) -> Result<(Vec<(u32, f32)>, Cost), MemoryError> {
        let words = [query.words().to_owned()];
        let embedded = embedder.embed(&words).await.map_err(|error| self.failed("retrieve", &error))?;
        let Some(asked) = embedded.vectors.first() else {
            return Err(self.failed("retrieve", &"the embedder gave no vector"));
        };
        let mut near = Vec::new();
        for (at, record) in self.kept.iter().enumerate().filter(|(at, _)| may_see[*at]) {
            if record.vector.len() != asked.len() {
                let reason =
                    format!("{} was embedded by another embedder than {}", record.id, embedder.name());
                return Err(self.failed("retrieve", &reason));
            }
            let cosine: f32 = record.vector.iter().zip(asked).map(|(a, b)| a * b).sum();
            near.push((at as u32, cosine));
        }
        near.sort_by(|(a, x), (b, y)| {
            let name = |at: u32| self.kept.get(at as usize).map(|record| (&record.source, &record.id));
            y.total_cmp(x).then_with(|| name(*a).cmp(&name(*b)))
        });
        Ok((near, embedded.cost))
    }

    fn abstains(&self, hits: &[Hit], covered: f64, words_alone: bool) -> Option<String> {
        let Some(best) = hits.first() else {
            return words_alone.then(|| "no earlier run shares a word with the query".to_owned());
        };
        if !self.ranking.gate {
            return None;
        }
        let least = self.ranking.min_coverage;
        if covered < least {
            return Some(format!(
                "the best record holds {covered:.3} of the query, below min-coverage {least}"
            ));
        }
        let score = best.score;
        let least = self.ranking.min_score.filter(|&least| score < least)?;
        Some(format!("the best score {score:.3} is below min-score {least}"))
    }

    /// The records to deliver, within the budget.
    fn choose(&self, found: Vec<Found>, budget: Budget) -> Vec<Record> {
        let least = self.ranking.min_score.filter(|_| self.ranking.gate && self.embedder.is_none());
        let good = found.into_iter().filter(|found| least.is_none_or(|least| found.score >= least));
        let chosen: Vec<Found> = good.take(budget.records).collect();
        let mut records = Vec::new();
        let mut room = budget.tokens;
        let count = chosen.len() as u64;
        for (at, found) in chosen.into_iter().enumerate() {
            let Some(kept) = self.kept.get(found.document as usize) else { continue };
            let Some(source) = kept.source.clone() else { continue };
            let text = kept.text(room / (count - at as u64), self.ranking.head_share);
            let tokens = estimate_tokens(&text);
            if tokens > 0 {
                room -= tokens.min(room);
                let (id, why) = (Some(kept.id.clone()), Some(found.why));
                records.push(Record { id, source, score: Some(found.score), why, text, tokens });
            }
        }
        records
    }
}

/// Why a document stands where it does.
fn explain(hits: &[Hit], dense: &[(u32, f32)], document: u32) -> String {
    let by_words = hits.iter().enumerate().find(|(_, hit)| hit.document == document);
    let by_meaning = dense.iter().enumerate().find(|(_, (near, _))| *near == document);
    let words = match by_words {
        Some((at, hit)) => {
            format!("words: rank {}, BM25 {:.3}, {:.3} of the query", at + 1, hit.score, hit.coverage)
        }
        None => "words: none shared".to_owned(),
    };
    match by_meaning {
        Some((at, (_, cosine))) => format!("{words}; meaning: rank {}, cosine {cosine:.3}", at + 1),
        None => words,
    }
}

#[async_trait]
impl MemorySystem for Bank {
    fn describe(&self) -> Description {
        let mut about = self.distil.about();
        if let Some(embedder) = &self.embedder {
            about.embedder = Some(embedder.name().to_owned());
        }
        about
    }

    async fn prepare(&mut self, _scope: &Scope) -> Result<Costed<()>, MemoryError> {
        self.clear();
        Ok(Costed::free(()))
    }

    async fn ingest(&mut self, experience: &Experience) -> Result<Costed<()>, MemoryError> {
        if self.frozen {
            return Err(self.out_of_order("ingest", "after freeze"));
        }
        let learned = self.learn(experience).await?;
        self.add(&experience.instance_id, learned.value)?;
        Ok(Costed { value: (), cost: learned.cost })
    }

    fn saved(&self, run: &InstanceId) -> Result<Option<Value>, MemoryError> {
        let after = self.kept.iter().rev().take_while(|record| record.source.as_ref() == Some(run)).count();
        let records = self.kept[self.kept.len() - after..].to_vec();
        let learned = Learned { records, unusable: self.unusable.get(run).cloned() };
        serde_json::to_value(&learned).map(Some).map_err(|error| self.failed("save", &error))
    }

    fn held(&self) -> Vec<Held> {
        let held = |record: &Kept| Held {
            id: record.id.clone(),
            sources: record.source.iter().cloned().collect(),
            text: record.text(u64::MAX / 8, self.ranking.head_share),
        };
        self.kept.iter().map(held).collect()
    }

    fn load(&mut self, run: &InstanceId, saved: Value) -> Result<(), MemoryError> {
        if self.frozen {
            return Err(self.out_of_order("load", "after freeze"));
        }
        let learned: Learned = serde_json::from_value(saved).map_err(|error| self.failed("load", &error))?;
        self.add(run, learned)
    }

    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        self.frozen = true;
        self.store().map(Costed::free)
    }

    fn store(&self) -> Result<Store, MemoryError> {
        // Nothing changes a frozen bank: what each run taught was digested when it came in.
        let mut all = Sha256::new();
        for (run, digest) in &self.runs {
            all.update(format!("{run} {digest}\n"));
        }
        Ok(Store {
            digest: format!("{:x}", all.finalize()),
            records: self.kept.len() as u64,
            bytes: self.bytes,
            unusable: self.unusable.len() as u64,
        })
    }

    async fn retrieve(&mut self, query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        if !self.frozen {
            return Err(self.out_of_order("retrieve", "before freeze"));
        }
        let Costed { value: found, cost } = self.find(query, budget.records).await?;
        let value = match found.map(|found| self.choose(found, budget)) {
            Err(reason) => Retrieval::Abstain { reason },
            Ok(records) if records.is_empty() => {
                let Budget { records, tokens } = budget;
                let reason = format!("the budget of {records} records and {tokens} tokens holds no record");
                Retrieval::Abstain { reason }
            }
            Ok(records) => Retrieval::Delivery(Delivery { records, ..Delivery::default() }),
        };
        Ok(Costed { value, cost })
    }

    async fn snapshot(&mut self, folder: &Path) -> Result<Costed<()>, MemoryError> {
        let mut content = Vec::new();
        for record in &self.kept {
            serde_json::to_writer(&mut content, record).map_err(|error| self.failed("snapshot", &error))?;
            content.push(b'\n');
        }
        let path = folder.join("records.jsonl");
        fs_err::write(path, content).map_err(|error| self.failed("snapshot", &error))?;
        Ok(Costed::free(()))
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        self.clear();
        Ok(Costed::free(()))
    }
}
