//! `frozen`: records read from a published file, injected as they are.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::memory::distil::FixCard;
use crate::memory::record::fit;
use crate::memory::registry::{About, Needs, Setting, read};
use crate::memory::{
    Budget, Costed, Delivery, Description, LearnsFrom, MemoryError, MemorySystem, Query, Record, Resources,
    Retrieval, Store, estimate_tokens,
};
use crate::task::InstanceId;

pub(in crate::memory) const ABOUT: About = About {
    name: "frozen",
    summary: "records of a published file (JSON lines), with their provenance, injected as they are; learns nothing",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::EarlierTasks,
    shared: &[],
    settings: &[Setting { name: "file", value: "a path", default: "(required)", what: "the records" }],
    paper: "VibeMemBench, arXiv 2609.23570: its track A injects frozen verified records",
    deviations: &[
        "the benchmark's own records are not published; the file's format is memtrial's (`memrec/1`)",
    ],
    open,
};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Settings {
    file: Option<PathBuf>,
}

fn open(settings: &serde_json::Value, _resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let settings: Settings = read(settings)?;
    let file = settings.file.ok_or("file is missing: the path of a file of records")?;
    Ok(Box::new(Frozen::read(&file)?))
}

/// A line of the file: a text, or the four fields of a card. Other fields (who made it, with which model) are provenance:
/// kept in the file, not injected.
#[derive(Debug, Clone, Deserialize)]
struct Line {
    schema: String,
    id: String,
    /// The target that it was verified for; none: any later task of the repository.
    #[serde(default)]
    target: Option<InstanceId>,
    source_instance: InstanceId,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    bug_class: String,
    #[serde(default)]
    root_cause: String,
    #[serde(default)]
    fix_pattern: String,
    #[serde(default)]
    lesson: String,
    #[serde(default)]
    anchors: Vec<String>,
}

struct Held {
    id: String,
    target: Option<InstanceId>,
    source: InstanceId,
    text: String,
}

/// The records of a file.
struct Frozen {
    records: Vec<Held>,
    sha256: String,
    bytes: u64,
}

impl Frozen {
    fn read(file: &Path) -> Result<Self, String> {
        let content = fs_err::read_to_string(file).map_err(|error| error.to_string())?;
        let mut records: Vec<Held> = Vec::new();
        for (at, line) in content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let fail = |reason: String| format!("{}, line {}: {reason}", file.display(), at + 1);
            let line: Line = serde_json::from_str(line).map_err(|error| fail(error.to_string()))?;
            if line.schema != "memrec/1" {
                return Err(fail(format!("schema is {:?}, not \"memrec/1\"", line.schema)));
            }
            let held = line.hold().map_err(fail)?;
            if let Some(target) = &held.target
                && (!held.source.same_repo(target) || held.source.number() >= target.number())
            {
                return Err(fail(format!(
                    "{target} cannot learn from {}: it is not earlier there",
                    held.source
                )));
            }
            if records.iter().any(|known| known.id == held.id && known.target == held.target) {
                return Err(fail(format!("the id {:?} is used twice", held.id)));
            }
            records.push(held);
        }
        let sha256 = format!("{:x}", Sha256::digest(content.as_bytes()));
        Ok(Self { records, sha256, bytes: content.len() as u64 })
    }
}

impl Line {
    fn hold(self) -> Result<Held, String> {
        let text = match self.text {
            Some(text) if text.trim().is_empty() => return Err("text is empty".into()),
            Some(text) => text,
            None => {
                let Self { bug_class, root_cause, fix_pattern, lesson, anchors, .. } = self;
                FixCard { bug_class, root_cause, fix_pattern, lesson, anchors }.tidy()?.text()
            }
        };
        Ok(Held { id: self.id, target: self.target, source: self.source_instance, text })
    }
}

#[async_trait]
impl MemorySystem for Frozen {
    fn describe(&self) -> Description {
        Description {
            version: format!("sha256:{}", self.sha256),
            ingests: false,
            learns_from: LearnsFrom::EarlierTasks,
            ..Description::built_in(ABOUT.name)
        }
    }

    fn store(&self) -> Result<Store, MemoryError> {
        let records = self.records.len() as u64;
        Ok(Store { digest: self.sha256.clone(), records, bytes: self.bytes, unusable: 0 })
    }

    async fn retrieve(&mut self, query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        let target = &query.target.instance_id;
        let of_target = self.records.iter().filter(|held| held.target.as_ref() == Some(target));
        let of_any = self.records.iter().filter(|held| {
            held.target.is_none() && held.source.same_repo(target) && held.source.number() < target.number()
        });
        let chosen: Vec<&Held> = of_target.chain(of_any).take(budget.records).collect();
        let room = budget.tokens.checked_div(chosen.len() as u64).unwrap_or(0);
        let records = chosen.into_iter().map(|held| {
            let text = fit(&held.text, "", room, 1.0);
            let tokens = estimate_tokens(&text);
            let (id, source) = (Some(held.id.clone()), held.source.clone());
            Record { id, source, score: None, why: None, text, tokens }
        });
        let records: Vec<Record> = records.filter(|record| record.tokens > 0).collect();
        let value = if records.is_empty() {
            Retrieval::Abstain { reason: format!("the file holds no record for {target}") }
        } else {
            Retrieval::Delivery(Delivery { records, ..Delivery::default() })
        };
        Ok(Costed::free(value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::tests::{ask_for, sources};

    fn file(lines: &[serde_json::Value]) -> (tempfile::TempDir, serde_json::Value) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.jsonl");
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        fs_err::write(&path, lines.join("\n") + "\n").unwrap();
        let settings = json!({"file": path});
        (folder, settings)
    }

    fn refusal(line: serde_json::Value) -> String {
        let (_folder, settings) = file(&[line]);
        open(&settings, &Resources::default()).err().unwrap()
    }

    #[tokio::test]
    async fn gives_what_was_made_for_the_target_first() {
        let record = |id: &str, source: &str, target: Option<&str>| json!({"schema": "memrec/1", "id": id, "source_instance": source, "target": target, "text": format!("text of {id}")});
        let (_folder, settings) = file(&[
            record("a", "acme__widget-3", None),
            record("b", "acme__widget-2", Some("acme__widget-99")),
            record("c", "acme__widget-120", None),
            record("d", "other__widget-1", None),
        ]);
        let opened = || open(&settings, &Resources::default()).unwrap();
        assert_eq!(sources(&ask_for(opened(), "acme__widget-99", 5).await), [2, 3]);
        assert_eq!(sources(&ask_for(opened(), "acme__widget-3", 5).await), Vec::<u64>::new());
    }

    #[test]
    fn refuses_what_it_cannot_vouch_for() {
        assert!(open(&json!({}), &Resources::default()).err().unwrap().starts_with("file is missing"));
        let line = |more: serde_json::Value| {
            let mut line = json!({"schema": "memrec/1", "id": "a", "source_instance": "a__b-3"});
            line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            refusal(line)
        };
        assert!(line(json!({"text": " "})).ends_with("line 1: text is empty"));
        assert!(line(json!({})).ends_with("bug_class is empty"));
        assert!(
            line(json!({"text": "t", "target": "a__b-3"}))
                .ends_with("a__b-3 cannot learn from a__b-3: it is not earlier there")
        );
        assert!(line(json!({"text": "t", "schema": "2"})).contains("schema is \"2\""));
    }
}
