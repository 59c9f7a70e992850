//! `fs-grep`: the history as files to search, and no system: what a memory system must beat.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::memory::block::frame;
use crate::memory::distil::digest;
use crate::memory::registry::{About, Needs, Setting, read};
use crate::memory::{
    Budget, Costed, Delivery, Description, Experience, Held, LearnsFrom, MEMORY_FOLDER, MemoryError,
    MemoryFile, MemorySystem, Query, Resources, Retrieval, Scope, Store, estimate_tokens,
};
use crate::task::InstanceId;

pub(in crate::memory) const ABOUT: About = About {
    name: "fs-grep",
    summary: "the earlier runs as files outside the repository, for the agent to search with its own commands; no system at all",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::History,
    shared: &[],
    settings: &[
        Setting {
            name: "file-tokens",
            value: "200 to 1000000",
            default: "20000",
            what: "tokens of a run's file, at most",
        },
        Setting {
            name: "files",
            value: "1 to 10000",
            default: "500",
            what: "files at most: the latest runs",
        },
    ],
    paper: "",
    deviations: &[],
    open,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Settings {
    file_tokens: u64,
    files: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { file_tokens: 20_000, files: 500 }
    }
}

fn open(settings: &Value, _resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let settings: Settings = read(settings)?;
    if !(200..=1_000_000).contains(&settings.file_tokens) || !(1..=10_000).contains(&settings.files) {
        let Settings { file_tokens, files } = settings;
        return Err(format!("file-tokens is {file_tokens} (200 to 1000000), files is {files} (1 to 10000)"));
    }
    Ok(Box::new(Files { settings, runs: Vec::new(), held: BTreeMap::new() }))
}

struct Files {
    settings: Settings,
    /// In the order of ingestion.
    runs: Vec<InstanceId>,
    held: BTreeMap<InstanceId, String>,
}

impl Files {
    fn keep(&mut self, run: &InstanceId, text: String) {
        self.runs.push(run.clone());
        self.held.insert(run.clone(), text);
    }
}

#[async_trait]
impl MemorySystem for Files {
    fn describe(&self) -> Description {
        Description { reads_events: true, ..Description::built_in(ABOUT.name) }
    }

    async fn prepare(&mut self, _scope: &Scope) -> Result<Costed<()>, MemoryError> {
        self.runs.clear();
        self.held.clear();
        Ok(Costed::free(()))
    }

    async fn ingest(&mut self, experience: &Experience) -> Result<Costed<()>, MemoryError> {
        self.keep(&experience.instance_id, digest(experience, self.settings.file_tokens));
        Ok(Costed::free(()))
    }

    fn saved(&self, run: &InstanceId) -> Result<Option<Value>, MemoryError> {
        Ok(self.held.get(run).map(|text| Value::String(text.clone())))
    }

    fn held(&self) -> Vec<Held> {
        let held = |(id, text): (&InstanceId, &String)| Held {
            id: id.to_string(),
            sources: vec![id.clone()],
            text: text.clone(),
        };
        self.held.iter().map(held).collect()
    }

    fn load(&mut self, run: &InstanceId, saved: Value) -> Result<(), MemoryError> {
        match saved {
            Value::String(text) => {
                self.keep(run, text);
                Ok(())
            }
            other => Err(MemoryError::System {
                system: ABOUT.name.into(),
                call: "load",
                reason: format!("expected a text for {run}, found {other}"),
            }),
        }
    }

    fn store(&self) -> Result<Store, MemoryError> {
        let mut all = Sha256::new();
        for (id, text) in &self.held {
            all.update(format!("{id} {:x}\n", Sha256::digest(text)));
        }
        let bytes = self.held.values().map(|text| text.len() as u64).sum();
        Ok(Store {
            digest: format!("{:x}", all.finalize()),
            records: self.held.len() as u64,
            bytes,
            unusable: 0,
        })
    }

    async fn retrieve(&mut self, query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        let may_see = |id: &&InstanceId| query.as_of.as_ref().is_none_or(|eligible| eligible.contains(id));
        let latest: Vec<&InstanceId> =
            self.runs.iter().rev().filter(may_see).take(self.settings.files).collect();
        if latest.is_empty() {
            return Ok(Costed::free(Retrieval::Abstain { reason: "the history is empty".into() }));
        }
        let block = frame(&format!(
            "{} earlier runs in this repository are kept in {MEMORY_FOLDER}, a file each ({MEMORY_FOLDER}/<task>.md: issue, \
             steps, patch). Search them with grep where that may help.",
            latest.len()
        ));
        if estimate_tokens(&block) > budget.tokens {
            let reason =
                format!("the budget of {} tokens does not hold the words about the files", budget.tokens);
            return Ok(Costed::free(Retrieval::Abstain { reason }));
        }
        let files = latest.iter().filter_map(|id| {
            let content = self.held.get(*id)?.clone();
            Some(MemoryFile { path: format!("{id}.md"), content })
        });
        let (files, sources) = (files.collect(), latest.iter().map(|id| (*id).clone()).collect());
        let delivery = Delivery { block: Some(block), files, sources, ..Delivery::default() };
        Ok(Costed::free(Retrieval::Delivery(delivery)))
    }

    async fn snapshot(&mut self, folder: &Path) -> Result<Costed<()>, MemoryError> {
        for (id, text) in &self.held {
            fs_err::write(folder.join(format!("{id}.md")), text).map_err(|error| MemoryError::System {
                system: ABOUT.name.into(),
                call: "snapshot",
                reason: error.to_string(),
            })?;
        }
        Ok(Costed::free(()))
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        self.runs.clear();
        self.held.clear();
        Ok(Costed::free(()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::conformance;
    use crate::memory::tests::{deliver, run};

    #[tokio::test]
    async fn conforms() {
        let open = || Ok(open(&json!({}), &Resources::default()).unwrap());
        assert_eq!(conformance::check(&open, true).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn the_latest_runs_are_files() {
        let system = open(&json!({"files": 2}), &Resources::default()).unwrap();
        let runs = [run(1, "One", "x"), run(2, "Two", "y"), run(3, "Three", "z")];
        let (delivery, _) = deliver(system, &runs, "anything", 1).await;
        let paths: Vec<&str> = delivery.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["acme__widget-3.md", "acme__widget-2.md"]);
        assert!(delivery.files[0].content.starts_with("# Issue\nThree"));
        assert!(delivery.block.unwrap().contains("2 earlier runs in this repository are kept in /"));
    }
}
