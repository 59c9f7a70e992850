//! An MCP server as a memory system, through a mapping in the settings.

mod mapping;
mod query;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Value, json};

pub use mapping::McpSettings;

use super::program::Site;
use super::resident::{Keep, Resident};
use super::talk::clipped;
use super::wire::source;
use crate::memory::record;
use crate::memory::{
    Budget, Costed, Delivery, Description, Experience, MemoryError, MemorySystem, Query, Record, Retrieval,
    Scope, Store, estimate_tokens,
};
use mapping::{Call, Hit};

/// The revision of MCP that is spoken.
const REVISION: &str = "2025-06-18";
/// How long between two looks for what was written.
const PAUSE: Duration = Duration::from_millis(250);
/// The issue's share of what is written of a run.
const ISSUE_SHARE: f64 = 0.4;

/// A memory system in an MCP server.
pub struct Mcp {
    settings: McpSettings,
    site: Option<Site>,
    live: Option<Resident>,
    server: Value,
    namespace: String,
    /// What was written, by the id that it was written under.
    written: BTreeMap<String, String>,
    last: Option<Query>,
    frozen: bool,
}

impl Mcp {
    /// A system that is started by `prepare`; without a site it can be described, not started.
    pub fn new(settings: McpSettings, site: Option<Site>) -> Self {
        Self {
            settings,
            site,
            live: None,
            server: Value::Null,
            namespace: String::new(),
            written: BTreeMap::new(),
            last: None,
            frozen: false,
        }
    }

    fn out_of_order(&self, call: &'static str, when: &'static str) -> MemoryError {
        MemoryError::OutOfOrder { system: self.describe().name, call, when }
    }

    fn live(&mut self, call: &'static str) -> Result<&mut Resident, MemoryError> {
        let missing = self.out_of_order(call, "before prepare");
        self.live.as_mut().ok_or(missing)
    }

    /// The handshake, and whether the tools of the mapping are there.
    async fn greet(&mut self) -> Result<(), MemoryError> {
        let within = self.settings.program.starting();
        let tools: Vec<String> = self.settings.tools().map(str::to_owned).collect();
        let live = self.live("prepare")?;
        let hello = json!({"protocolVersion": REVISION, "capabilities": {},
            "clientInfo": {"name": "memtrial", "version": env!("CARGO_PKG_VERSION")}});
        let server = live.ask("prepare", "initialize", hello, within, Keep::Again).await?;
        live.tell("notifications/initialized", json!({})).await?;
        let mut known = Vec::new();
        let mut params = json!({});
        // Lists come in pages; no server has a hundred of them.
        for _ in 0..100 {
            let page = live.ask("prepare", "tools/list", params, within, Keep::Again).await?;
            let names = page["tools"].as_array().into_iter().flatten();
            known.extend(names.filter_map(|tool| tool["name"].as_str().map(str::to_owned)));
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => break,
            }
        }
        if let Some(missing) = tools.iter().find(|tool| !known.contains(tool)) {
            let known = known.join(", ");
            return Err(
                live.failure("prepare", format!("the server has no tool {missing:?}; it has {known}"))
            );
        }
        self.server = server["serverInfo"].clone();
        Ok(())
    }

    /// Calls a tool. Returns what it found: structured content, else the text, read as JSON where it is JSON.
    async fn call(
        &mut self,
        call: &'static str,
        tool: &Call,
        variables: &Value,
        within: Duration,
        keep: Keep,
    ) -> Result<Value, MemoryError> {
        let arguments = tool.arguments(variables);
        let live = self.live(call)?;
        let arguments = arguments.map_err(|reason| live.failure(call, reason))?;
        let params = json!({"name": tool.tool, "arguments": arguments});
        let mut result = live.ask(call, "tools/call", params, within, keep).await?;
        let text = |result: &Value| {
            let parts = result["content"].as_array().into_iter().flatten();
            parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        };
        if result["isError"] == json!(true) {
            let words = clipped(&text(&result), 1000);
            return Err(live.failure(call, format!("tool {:?} failed: {words}", tool.tool)));
        }
        let structured = result["structuredContent"].take();
        if !structured.is_null() {
            return Ok(structured);
        }
        let text = text(&result);
        Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Every hit, best first.
    async fn search(&mut self, call: &'static str, query: &Query, k: usize) -> Result<Vec<Hit>, MemoryError> {
        let within = self.settings.program.retrieving();
        let read = self.settings.read.clone();
        let (tool, asked) = (read.call(), read.queries(query.words()));
        let mut lists = Vec::new();
        for words in asked {
            let variables = json!({"query": words, "k": k, "namespace": self.namespace,
                "repo": query.target.repo, "state": self.state()?});
            let found = self.call(call, &tool, &variables, within, Keep::Once).await?;
            let hits = read.hits(&found);
            lists.push(hits.map_err(|reason| match self.live(call) {
                Ok(live) => live.failure(call, reason),
                Err(error) => error,
            })?);
        }
        Ok(query::merge(lists))
    }

    fn state(&mut self) -> Result<String, MemoryError> {
        Ok(self.live("retrieve")?.state_inside())
    }

    /// A record of a hit: its text cut to the room.
    fn record(&self, hit: &Hit, room: u64) -> Result<Record, String> {
        let source = source(&hit.id).map_err(|error| {
            format!(
                "{error}; `read.id` must lead to where the server keeps the `{{{{ id }}}}` that was written"
            )
        })?;
        let text = hit.text.as_ref().or_else(|| self.written.get(&hit.id));
        let text = text.ok_or_else(|| format!("there is no text of {:?}: set `read.text`", hit.id))?;
        let text = record::cut(text, usize::try_from(room.saturating_mul(4)).unwrap_or(usize::MAX));
        Ok(Record { id: None, source, score: hit.score, why: None, tokens: estimate_tokens(&text), text })
    }
}

#[async_trait]
impl MemorySystem for Mcp {
    fn describe(&self) -> Description {
        let mut about = self.settings.program.describe("mcp");
        if let (None, Some(name)) = (&self.settings.program.version, self.server["name"].as_str()) {
            about.version = format!("{name} {}", self.server["version"].as_str().unwrap_or_default());
        }
        about
    }

    async fn prepare(&mut self, scope: &Scope) -> Result<Costed<()>, MemoryError> {
        if let Some(live) = self.live.take() {
            live.end().await;
        }
        (self.frozen, self.last) = (false, None);
        self.written.clear();
        let name = self.describe().name;
        let site = self.site.as_ref().ok_or_else(|| MemoryError::System {
            system: name.clone(),
            call: "prepare",
            reason: "programs have no place to run here".into(),
        })?;
        self.namespace = format!("{}/{}", scope.condition, scope.target);
        self.live = Some(Resident::start(&name, &self.settings.program, site, scope).await?);
        self.greet().await?;
        if let Some(reset) = self.settings.reset.clone() {
            let variables = json!({"namespace": self.namespace, "state": self.state()?});
            let within = self.settings.program.starting();
            self.call("prepare", &reset, &variables, within, Keep::Again).await?;
        }
        let cost = self.live("prepare")?.charge();
        Ok(Costed { value: (), cost })
    }

    async fn ingest(&mut self, experience: &Experience) -> Result<Costed<()>, MemoryError> {
        if self.frozen {
            return Err(self.out_of_order("ingest", "after freeze"));
        }
        let id = &experience.instance_id;
        let repo = format!("{}/{}", id.owner(), id.name());
        let (issue, patch) = record::issue_and_patch(experience);
        let text = record::fit(&issue, &patch, self.settings.write_tokens, ISSUE_SHARE);
        let variables = json!({"id": id, "text": text, "issue": experience.issue, "repo": repo,
            "patch": experience.patch, "exit_status": experience.exit_status, "outcome": experience.outcome,
            "namespace": self.namespace, "state": self.state()?});
        let write = self.settings.write.clone();
        let within = self.settings.program.ingesting();
        self.call("ingest", &write, &variables, within, Keep::Again).await?;
        self.written.insert(id.to_string(), text);
        self.last = Some(Query::at_start(crate::memory::Target {
            instance_id: id.clone(),
            repo,
            problem_statement: experience.issue.clone(),
            language: None,
        }));
        let live = self.live("ingest")?;
        live.ingested += 1;
        Ok(Costed { value: (), cost: live.charge() })
    }

    /// Servers write when they like: where the settings say so, waits until the last run can be found.
    async fn flush(&mut self) -> Result<Costed<()>, MemoryError> {
        let patience = Duration::from_secs(self.settings.settle_seconds);
        if let Some(last) = self.last.clone().filter(|_| !patience.is_zero()) {
            let began = Instant::now();
            let id = last.target.instance_id.to_string();
            while !self.search("flush", &last, 10).await?.iter().any(|hit| hit.id == id) {
                if began.elapsed() >= patience {
                    let reason = format!(
                        "{id} is not found by its own issue {} s after it was written",
                        patience.as_secs()
                    );
                    return Err(self.live("flush")?.failure("flush", reason));
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        let cost = self.live("flush")?.charge();
        Ok(Costed { value: (), cost })
    }

    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        let live = self.live("freeze")?;
        let (value, cost) = (live.store()?, live.charge());
        self.frozen = true;
        Ok(Costed { value, cost })
    }

    fn store(&self) -> Result<Store, MemoryError> {
        match &self.live {
            Some(live) => live.store(),
            None => Err(self.out_of_order("store", "before prepare")),
        }
    }

    async fn retrieve(&mut self, query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        if !self.frozen {
            return Err(self.out_of_order("retrieve", "before freeze"));
        }
        let hits = self.search("retrieve", query, budget.records).await?;
        let cost = self.live("retrieve")?.charge();
        let best: Vec<&Hit> = hits.iter().take(budget.records).collect();
        if best.is_empty() {
            let reason =
                if budget.records == 0 { "no record is asked for" } else { "the server found nothing" };
            return Ok(Costed { value: Retrieval::Abstain { reason: reason.into() }, cost });
        }
        let room = budget.tokens / best.len() as u64;
        let records = best.into_iter().map(|hit| self.record(hit, room)).collect::<Result<Vec<_>, _>>();
        let records =
            records.map_err(|reason| MemoryError::Delivery { system: self.describe().name, reason })?;
        let value = if records.iter().all(|record| record.text.is_empty()) {
            Retrieval::Abstain { reason: format!("{} tokens hold no record", budget.tokens) }
        } else {
            Retrieval::Delivery(Delivery { records, ..Delivery::default() })
        };
        Ok(Costed { value, cost })
    }

    async fn snapshot(&mut self, folder: &Path) -> Result<Costed<()>, MemoryError> {
        let about = json!({"protocol": format!("MCP {REVISION}"), "server": self.server});
        let live = self.live("snapshot")?;
        live.keep(folder, &about)?;
        let cost = live.charge();
        Ok(Costed { value: (), cost })
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        self.frozen = false;
        self.written.clear();
        let Some(live) = self.live.take() else { return Ok(Costed::free(())) };
        Ok(Costed { value: (), cost: live.end().await })
    }
}
