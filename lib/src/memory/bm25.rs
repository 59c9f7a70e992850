//! `bm25`: lexical search over the issue texts and submitted patches of earlier runs.
//!
//! The index is built anew for each target from its eligible history and from nothing else, in RAM: BM25 weighs a word
//! by how many documents hold it and a document by the mean length, so an index that held later runs would leak them
//! through the scores even if it never returned them (law 1). A build takes milliseconds.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tantivy::collector::TopDocs;
use tantivy::indexer::SingleSegmentIndexWriter;
use tantivy::query::{BooleanQuery, Occur, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{DocAddress, Index, TantivyDocument, Term};

use super::record::{changes, text};
use super::tokenize::words;
use super::{
    Budget, Costed, Delivery, Description, Experience, MemoryError, MemorySystem, Query, Record, Retrieval,
    Scope, Store, estimate_tokens,
};
use crate::task::InstanceId;

const NAME: &str = "bm25";
const WRITER_BYTES: usize = 32 << 20;

/// Settings of `bm25`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Bm25Settings {
    /// Abstain where the best score is lower. `None`: deliver whatever shares a word with the query.
    pub min_score: Option<f64>,
    /// Distinct words of the query that are searched for, the first ones of it.
    pub query_terms: usize,
    /// The share of a record's room that its issue text may take where the patch needs the rest.
    pub issue_share: f64,
}

impl Default for Bm25Settings {
    fn default() -> Self {
        Self { min_score: None, query_terms: 256, issue_share: 0.4 }
    }
}

impl Bm25Settings {
    pub(super) const KEYS: &'static str = "min-score (number), query-terms (1 to 1024), issue-share (0 to 1)";

    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=1024).contains(&self.query_terms) {
            return Err(format!("query-terms is {}", self.query_terms));
        }
        if !(0.0..=1.0).contains(&self.issue_share) {
            return Err(format!("issue-share is {}", self.issue_share));
        }
        match self.min_score {
            Some(score) if !score.is_finite() => Err(format!("min-score is {score}")),
            _ => Ok(()),
        }
    }
}

/// The system. Its store is the experiences themselves, keyed by instance id; the index is derived from them at freeze.
#[derive(Default)]
pub struct Bm25 {
    settings: Bm25Settings,
    held: BTreeMap<InstanceId, Experience>,
    index: Option<Lexicon>,
}

struct Lexicon {
    index: Index,
    fields: [Field; 2],
    /// In the order of document numbers.
    documents: Vec<InstanceId>,
}

impl Bm25 {
    /// A system with an empty store.
    pub fn new(settings: Bm25Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    fn search(&self, lexicon: &Lexicon, query: &str) -> Result<Vec<(f64, InstanceId)>, MemoryError> {
        let fail = |error: tantivy::TantivyError| failed("retrieve", &error);
        let mut terms: Vec<String> = Vec::new();
        for word in words(query) {
            if terms.len() == self.settings.query_terms {
                break;
            }
            if !terms.contains(&word) {
                terms.push(word);
            }
        }
        let clauses = terms.iter().flat_map(|word| {
            lexicon.fields.iter().map(move |&field| {
                let query = TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs);
                let query: Box<dyn tantivy::query::Query> = Box::new(query);
                (Occur::Should, query)
            })
        });
        let searcher = lexicon.index.reader().map_err(fail)?.searcher();
        let all = TopDocs::with_limit(lexicon.documents.len()).order_by_score();
        let found: Vec<(f32, DocAddress)> =
            searcher.search(&BooleanQuery::new(clauses.collect()), &all).map_err(fail)?;
        let mut hits = Vec::with_capacity(found.len());
        for (score, address) in found {
            // One segment: the number within it is the order of insertion.
            let id = lexicon.documents.get(address.doc_id as usize);
            let id = id.ok_or_else(|| failed("retrieve", &"the index holds an unknown document"))?;
            hits.push((f64::from(score), id.clone()));
        }
        hits.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
        Ok(hits)
    }
}

fn failed(call: &'static str, reason: &dyn std::fmt::Display) -> MemoryError {
    MemoryError::System { system: NAME.into(), call, reason: reason.to_string() }
}

fn build(held: &BTreeMap<InstanceId, Experience>) -> tantivy::Result<Lexicon> {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default().set_index_option(IndexRecordOption::WithFreqs);
    let options = TextOptions::default().set_indexing_options(indexing);
    let fields = [schema.add_text_field("issue", options.clone()), schema.add_text_field("patch", options)];
    let directory = tantivy::directory::RamDirectory::create();
    let builder = Index::builder().schema(schema.build());
    let mut writer: SingleSegmentIndexWriter =
        builder.single_segment_index_writer(directory, WRITER_BYTES)?;
    for experience in held.values() {
        let changed = changes(experience.patch.as_deref().unwrap_or_default());
        let patch = [changed.files, changed.lines].concat().join("\n");
        let mut document = TantivyDocument::default();
        document.add_pre_tokenized_text(fields[0], tokens(&experience.issue));
        document.add_pre_tokenized_text(fields[1], tokens(&patch));
        writer.add_document(document)?;
    }
    Ok(Lexicon { index: writer.finalize()?, fields, documents: held.keys().cloned().collect() })
}

fn tokens(text: &str) -> PreTokenizedString {
    let tokens = words(text).into_iter().enumerate();
    let tokens = tokens.map(|(position, text)| Token { position, text, ..Token::default() }).collect();
    PreTokenizedString { text: String::new(), tokens }
}

#[async_trait]
impl MemorySystem for Bm25 {
    fn describe(&self) -> Description {
        Description {
            name: NAME.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ingests: true,
            uses_outcome: false,
            reads_events: false,
            order_sensitive: false,
            deterministic: true,
            shared_index: false,
        }
    }

    async fn prepare(&mut self, _scope: &Scope) -> Result<Costed<()>, MemoryError> {
        self.held.clear();
        self.index = None;
        Ok(Costed::free(()))
    }

    async fn ingest(&mut self, experience: &Experience) -> Result<Costed<()>, MemoryError> {
        if self.index.is_some() {
            return Err(MemoryError::OutOfOrder {
                system: NAME.into(),
                call: "ingest",
                when: "after freeze",
            });
        }
        self.held.insert(experience.instance_id.clone(), experience.clone());
        Ok(Costed::free(()))
    }

    async fn flush(&mut self) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        self.index = Some(build(&self.held).map_err(|error| failed("freeze", &error))?);
        self.store().map(Costed::free)
    }

    fn store(&self) -> Result<Store, MemoryError> {
        let content = self.content()?;
        Ok(Store {
            digest: format!("{:x}", Sha256::digest(&content)),
            records: self.held.len() as u64,
            bytes: content.len() as u64,
        })
    }

    async fn retrieve(&mut self, query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        let Some(lexicon) = &self.index else {
            return Err(MemoryError::OutOfOrder {
                system: NAME.into(),
                call: "retrieve",
                when: "before freeze",
            });
        };
        let abstain = |reason: String| Ok(Costed::free(Retrieval::Abstain { reason }));
        if self.held.is_empty() {
            return abstain("the history is empty".into());
        }
        let mut hits = self.search(lexicon, query.words())?;
        let Some(&(best, _)) = hits.first() else {
            return abstain("no earlier run shares a word with the query".into());
        };
        if let Some(min) = self.settings.min_score.filter(|&min| best < min) {
            return abstain(format!("the best score {best:.3} is below min-score {min}"));
        }
        hits.retain(|&(score, _)| self.settings.min_score.is_none_or(|min| score >= min));
        hits.truncate(budget.records);
        let room = budget.tokens.checked_div(hits.len() as u64).unwrap_or(0);
        let records = hits.into_iter().filter_map(|(score, source)| {
            let text = text(self.held.get(&source)?, room, self.settings.issue_share);
            let tokens = estimate_tokens(&text);
            (tokens > 0).then_some(Record { source, score: Some(score), text, tokens })
        });
        let records: Vec<Record> = records.collect();
        if records.is_empty() {
            let Budget { records, tokens } = budget;
            return abstain(format!("the budget of {records} records and {tokens} tokens holds no record"));
        }
        Ok(Costed::free(Retrieval::Delivery(Delivery { records, ..Delivery::default() })))
    }

    async fn snapshot(&mut self, folder: &Path) -> Result<Costed<()>, MemoryError> {
        let path = folder.join("records.jsonl");
        let content = self.content()?;
        fs_err::write(path, content).map_err(|error| failed("snapshot", &error))?;
        Ok(Costed::free(()))
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        self.held.clear();
        self.index = None;
        Ok(Costed::free(()))
    }
}

impl Bm25 {
    /// All that is held, one JSON object a line, in the order of ids.
    fn content(&self) -> Result<Vec<u8>, MemoryError> {
        let mut content = Vec::new();
        for experience in self.held.values() {
            serde_json::to_writer(&mut content, experience).map_err(|error| failed("store", &error))?;
            content.push(b'\n');
        }
        Ok(content)
    }
}

#[cfg(test)]
#[path = "bm25_tests.rs"]
mod tests;
