//! A ceiling: the best of what a memory system would retrieve, chosen by someone who knows the answer.
//!
//! The system is asked as ever, for more records than may be injected; of these the arm delivers the ones that overlap
//! most with the gold patch. How far a system's own arm lies below tells what its ranking costs; how far this arm lies
//! above `off` bounds what better ranking of the same records could bring. No deployed system can do this.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::diff::{Diff, Sign, directory, identifiers};
use crate::memory;
use crate::memory::{
    Budget, Costed, Delivery, Description, Experience, Feedback, MemoryError, MemorySystem, Query, Resources,
    Retrieval, Scope, Store, estimate_tokens,
};
use crate::task::{EvaluatorView, InstanceId};

/// The name of the arm in study files.
pub const ORACLE: &str = "oracle";

const KEYS: &str = "of (a memory system), candidates (at least 1), settings (of that system)";

/// From this share of the gold patch's names on a record is relevant that touches no folder of it.
const SHARED_NAMES: f64 = 0.2;

/// Settings of the oracle arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OracleSettings {
    /// The system whose records are chosen from.
    pub of: String,
    /// How many records it is asked for.
    #[serde(default = "ten")]
    pub candidates: usize,
    /// Its own settings.
    #[serde(default)]
    pub settings: Map<String, Value>,
}

fn ten() -> usize {
    10
}

/// The arm: a memory system between the host and the one that it chooses from.
pub struct Oracle {
    inner: Box<dyn MemorySystem>,
    candidates: usize,
    gold: Touched,
    runs: BTreeMap<InstanceId, Touched>,
}

/// What a patch touches.
#[derive(Debug, Clone, Default, PartialEq)]
struct Touched {
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
    names: BTreeSet<String>,
}

impl Touched {
    fn by(patch: &str) -> Self {
        let diff = Diff::read(patch);
        let files = diff.paths();
        let changed = diff.lines(&[Sign::Added, Sign::Removed]).flat_map(identifiers);
        Self {
            folders: files.iter().map(|file| directory(file).to_owned()).collect(),
            names: changed.filter(|name| name.len() >= 4).map(str::to_owned).collect(),
            files,
        }
    }

    /// How much of what `self` touches another patch touches too; `None`: nothing that matters.
    fn overlap(&self, other: &Self) -> Option<f64> {
        let share = |own: &BTreeSet<String>, theirs: &BTreeSet<String>| {
            own.intersection(theirs).count() as f64 / own.len().max(1) as f64
        };
        let files = share(&self.files, &other.files);
        let folders = share(&self.folders, &other.folders);
        let names = share(&self.names, &other.names);
        let relevant = files > 0.0 || folders > 0.0 || names >= SHARED_NAMES;
        // the same file says most, the same folder least
        relevant.then_some(2.0 * files + 0.5 * folders + names)
    }
}

impl OracleSettings {
    /// Reads the settings of a condition.
    ///
    /// # Errors
    /// For an unknown key, none of `of`, no candidates, or an oracle of an oracle.
    pub fn read(settings: &Map<String, Value>) -> Result<Self, MemoryError> {
        let refuse =
            |reason: String| MemoryError::Settings { system: ORACLE.into(), reason, known: KEYS.into() };
        let read: Self = serde_json::from_value(Value::Object(settings.clone()))
            .map_err(|error| refuse(error.to_string()))?;
        if read.candidates == 0 {
            return Err(refuse("candidates is 0".into()));
        }
        if read.of == ORACLE {
            return Err(refuse("of names the oracle itself".into()));
        }
        Ok(read)
    }

    /// Opens the system that is chosen from, with the answer of one target in hand.
    ///
    /// # Errors
    /// Where that system cannot be opened.
    pub fn open(&self, answer: &EvaluatorView, resources: &Resources) -> Result<Oracle, MemoryError> {
        let inner = memory::open(&self.of, &Value::Object(self.settings.clone()), resources)?;
        Ok(Oracle::over(inner, self.candidates, answer))
    }
}

impl Oracle {
    /// Chooses among `candidates` records of `inner` for a target with this answer.
    pub fn over(inner: Box<dyn MemorySystem>, candidates: usize, answer: &EvaluatorView) -> Self {
        Self { inner, candidates, gold: Touched::by(&answer.patch), runs: BTreeMap::new() }
    }
}

#[async_trait]
impl MemorySystem for Oracle {
    fn describe(&self) -> Description {
        let inner = self.inner.describe();
        Description {
            name: format!("{ORACLE} of {} at {}", inner.name, self.candidates),
            shared_index: false,
            ..inner
        }
    }

    async fn prepare(&mut self, scope: &Scope) -> Result<Costed<()>, MemoryError> {
        self.runs.clear();
        self.inner.prepare(scope).await
    }

    async fn ingest(&mut self, experience: &Experience) -> Result<Costed<()>, MemoryError> {
        let touched = Touched::by(experience.patch.as_deref().unwrap_or_default());
        self.runs.insert(experience.instance_id.clone(), touched);
        self.inner.ingest(experience).await
    }

    async fn flush(&mut self) -> Result<Costed<()>, MemoryError> {
        self.inner.flush().await
    }

    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        self.inner.freeze().await
    }

    fn store(&self) -> Result<Store, MemoryError> {
        self.inner.store()
    }

    async fn retrieve(&mut self, query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        // each candidate has the room that it would have if it were chosen
        let room = budget.tokens / (budget.records.max(1) as u64);
        let wide = Budget { records: self.candidates, tokens: room.saturating_mul(self.candidates as u64) };
        let answer = self.inner.retrieve(query, wide).await?;
        let delivery = match answer.value {
            Retrieval::Abstain { .. } => return Ok(answer),
            Retrieval::Delivery(delivery) => delivery,
        };
        if delivery.records.is_empty() {
            let reason = "it delivers no records: there is nothing to choose among".to_owned();
            return Err(MemoryError::Delivery { system: self.describe().name, reason });
        }
        let mut ranked: Vec<_> = delivery
            .records
            .into_iter()
            .filter_map(|record| Some((self.gold.overlap(self.runs.get(&record.source)?)?, record)))
            .collect();
        // stable: among equals the system's own order stays
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let (mut records, mut left) = (Vec::new(), budget.tokens);
        for (_, mut record) in ranked {
            let tokens = estimate_tokens(&record.text);
            if records.len() < budget.records && tokens <= left {
                left -= tokens;
                // how well it overlaps is part of the answer
                record.score = None;
                records.push(record);
            }
        }
        let value = if records.is_empty() {
            let reason = format!("none of {} candidates touches what the answer touches", self.candidates);
            Retrieval::Abstain { reason }
        } else {
            Retrieval::Delivery(Delivery { records, ..Delivery::default() })
        };
        Ok(Costed { value, cost: answer.cost })
    }

    async fn feedback(&mut self, feedback: &Feedback) -> Result<Costed<()>, MemoryError> {
        self.inner.feedback(feedback).await
    }

    async fn snapshot(&mut self, folder: &Path) -> Result<Costed<()>, MemoryError> {
        self.inner.snapshot(folder).await
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        self.runs.clear();
        self.inner.cleanup().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::Target;

    fn id(number: u64) -> InstanceId {
        InstanceId::parse(&format!("acme__widget-{number}")).unwrap()
    }

    fn patch(path: &str, line: &str) -> String {
        format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+{line}\n")
    }

    /// Runs 1 to 4: by words the first is best, by the answer the last.
    async fn oracle(candidates: usize, gold: &str) -> Oracle {
        let settings = json!({"of": "bm25", "candidates": candidates});
        let settings = OracleSettings::read(settings.as_object().unwrap()).unwrap();
        let answer = EvaluatorView { patch: gold.into(), ..EvaluatorView::default() };
        let mut oracle = settings.open(&answer, &Resources::default()).unwrap();
        let scope = Scope { condition: "c".into(), target: id(9), seed: 0 };
        oracle.prepare(&scope).await.unwrap();
        for (number, issue, changed) in [
            (1, "handle leak retry reader", patch("docs/a.md", "words")),
            (2, "handle leak retry", patch("src/io/other.py", "close_it(now)")),
            (3, "unrelated", patch("lib/x.py", "acquire_guard(handle_guard)")),
            (4, "handle", patch("src/io/lines.py", "something = 1")),
        ] {
            let experience = Experience {
                instance_id: id(number),
                issue: issue.into(),
                patch: Some(changed),
                exit_status: Some("Submitted".into()),
                outcome: None,
                events: Vec::new(),
            };
            oracle.ingest(&experience).await.unwrap();
        }
        oracle.flush().await.unwrap();
        oracle.freeze().await.unwrap();
        oracle
    }

    async fn ask(oracle: &mut Oracle, records: usize, tokens: u64) -> Retrieval {
        let target = Target {
            instance_id: id(9),
            repo: "acme/widget".into(),
            problem_statement: "handle leak retry reader".into(),
            language: None,
        };
        oracle.retrieve(&Query::at_start(target), Budget { records, tokens }).await.unwrap().value
    }

    fn sources(answer: Retrieval) -> Vec<u64> {
        match answer {
            Retrieval::Delivery(delivery) => {
                assert!(delivery.records.iter().all(|record| record.score.is_none()));
                delivery.records.iter().map(|record| record.source.number()).collect()
            }
            Retrieval::Abstain { reason } => panic!("{reason}"),
        }
    }

    #[tokio::test]
    async fn delivers_what_overlaps_most_among_the_candidates() {
        let gold = patch("src/io/lines.py", "handle_guard = acquire_guard(request)");
        let mut all = oracle(10, &gold).await;
        assert_eq!(sources(ask(&mut all, 1, 500).await), [4], "the same file");
        // names before a folder, and nothing that has neither
        assert_eq!(sources(ask(&mut all, 9, 5000).await), [4, 3, 2]);
        let mut few = oracle(2, &gold).await;
        assert_eq!(sources(ask(&mut few, 1, 500).await), [2], "only what the system would retrieve");
        assert_eq!(few.describe().name, "oracle of bm25 at 2");
    }

    #[tokio::test]
    async fn abstains_where_nothing_overlaps_and_keeps_the_budget() {
        let mut none = oracle(10, &patch("other/z.c", "unheard_of()")).await;
        let Retrieval::Abstain { reason } = ask(&mut none, 1, 500).await else { panic!() };
        assert_eq!(reason, "none of 10 candidates touches what the answer touches");
        let gold = patch("src/io/lines.py", "handle_guard = acquire_guard(request)");
        let mut tight = oracle(10, &gold).await;
        let Retrieval::Delivery(delivery) = ask(&mut tight, 2, 40).await else { panic!() };
        assert!(delivery.records.iter().map(|r| estimate_tokens(&r.text)).sum::<u64>() <= 40);
    }

    #[test]
    fn says_what_is_wrong_with_its_settings() {
        let error =
            |settings: Value| OracleSettings::read(settings.as_object().unwrap()).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!({})), @r#"settings of memory system "oracle": missing field `of`; its settings are of (a memory system), candidates (at least 1), settings (of that system)"#);
        assert!(error(json!({"of": "bm25", "candidates": 0})).contains("candidates is 0"));
        assert!(error(json!({"of": "oracle"})).contains("itself"));
        assert!(error(json!({"of": "bm25", "k": 3})).contains("unknown field `k`"));
    }
}
