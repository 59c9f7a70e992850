//! A program that speaks `memtrial-memory/1`.

use std::borrow::Cow;
use std::path::Path;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::program::Site;
use super::resident::{Keep, Resident};
use super::settings::ProgramSettings;
use super::talk::clipped;
use super::wire::{Answer, Done, Feed, Greeting, Hello, Ingest, PROTOCOL, Prepare, Retrieve};
use crate::memory::{
    Budget, Costed, Description, Experience, Feedback, MemoryError, MemorySystem, Query, Retrieval, Scope,
    Store,
};

/// A memory system in a program of its own.
pub struct Plugged {
    settings: ProgramSettings,
    site: Option<Site>,
    live: Option<Resident>,
    greeting: Option<Greeting>,
    frozen: bool,
}

impl Plugged {
    /// A system that is started by `prepare`; without a site it can be described, not started.
    pub fn new(settings: ProgramSettings, site: Option<Site>) -> Self {
        Self { settings, site, live: None, greeting: None, frozen: false }
    }

    fn name(&self) -> String {
        self.describe().name
    }

    fn out_of_order(&self, call: &'static str, when: &'static str) -> MemoryError {
        MemoryError::OutOfOrder { system: self.name(), call, when }
    }

    pub(super) fn live(&mut self, call: &'static str) -> Result<&mut Resident, MemoryError> {
        let missing = self.out_of_order(call, "before prepare");
        self.live.as_mut().ok_or(missing)
    }

    /// Asks who it is, and whether the study's settings fit.
    async fn greet(&mut self) -> Result<Greeting, MemoryError> {
        let within = self.settings.starting();
        let live = self.live("prepare")?;
        let hello = Hello { protocol: PROTOCOL.into(), state: live.state_inside(), model: live.has_model() };
        let model = live.has_model();
        let value = live.ask("prepare", "hello", json!(hello), within, Keep::Again).await?;
        let greeting: Greeting = parsed(live, "prepare", value)?;
        let misfit = if greeting.protocol != PROTOCOL {
            Some(format!("it speaks {:?}; this is {PROTOCOL}", greeting.protocol))
        } else if self.settings.version.as_ref().is_some_and(|version| *version != greeting.version) {
            let stated = self.settings.version.as_deref().unwrap_or_default();
            Some(format!("the settings say version {stated}, the program says {}", greeting.version))
        } else if greeting.needs.outcome && !self.settings.uses_outcome {
            Some("it needs outcomes of earlier runs: set uses-outcome = true".into())
        } else if greeting.needs.events && !self.settings.reads_events {
            Some("it needs the events of earlier runs: set reads-events = true".into())
        } else if greeting.needs.model && !model {
            Some("it needs a model, and none is configured for memory".into())
        } else {
            None
        };
        match misfit {
            Some(reason) => Err(self.live("prepare")?.failure("prepare", reason)),
            None => Ok(greeting),
        }
    }

    /// Notes what a result says besides, and what the gateway counted.
    fn settled<T>(
        live: &mut Resident,
        call: &'static str,
        result: &Value,
        value: T,
    ) -> Result<Costed<T>, MemoryError> {
        let done: Done = parsed(live, call, result.clone())?;
        live.notes.reported.add(done.usage);
        if let Some(words) = done.degraded {
            live.notes.degraded.push(format!("{call}: {}", clipped(&words, 500)));
        }
        Ok(Costed { value, cost: live.charge() })
    }
}

fn parsed<T: DeserializeOwned>(live: &Resident, call: &'static str, value: Value) -> Result<T, MemoryError> {
    let shown = clipped(&value.to_string(), 300);
    serde_json::from_value(value)
        .map_err(|error| live.failure(call, format!("its result cannot be used: {error}: {shown}")))
}

#[async_trait]
impl MemorySystem for Plugged {
    fn describe(&self) -> Description {
        let mut about = self.settings.describe("program");
        if let (None, Some(greeting)) = (&self.settings.version, &self.greeting) {
            about.version = format!("{} {}", greeting.name, greeting.version);
        }
        about
    }

    async fn prepare(&mut self, scope: &Scope) -> Result<Costed<()>, MemoryError> {
        if let Some(live) = self.live.take() {
            live.end().await;
        }
        (self.frozen, self.greeting) = (false, None);
        let name = self.name();
        let site = self.site.as_ref().ok_or_else(|| MemoryError::System {
            system: name.clone(),
            call: "prepare",
            reason: "programs have no place to run here".into(),
        })?;
        self.live = Some(Resident::start(&name, &self.settings, site, scope).await?);
        self.greeting = Some(self.greet().await?);
        let within = self.settings.starting();
        let params = json!(Prepare { scope: Cow::Borrowed(scope) });
        let live = self.live("prepare")?;
        let result = live.ask("prepare", "prepare", params, within, Keep::Again).await?;
        Self::settled(live, "prepare", &result, ())
    }

    async fn ingest(&mut self, experience: &Experience) -> Result<Costed<()>, MemoryError> {
        if self.frozen {
            return Err(self.out_of_order("ingest", "after freeze"));
        }
        let within = self.settings.ingesting();
        let live = self.live("ingest")?;
        let params = json!(Ingest { experience: Cow::Borrowed(experience) });
        let result = live.ask("ingest", "ingest", params, within, Keep::Again).await?;
        live.ingested += 1;
        Self::settled(live, "ingest", &result, ())
    }

    async fn flush(&mut self) -> Result<Costed<()>, MemoryError> {
        let within = self.settings.flushing();
        let live = self.live("flush")?;
        let result = live.ask_if_known("flush", "flush", json!({}), within, Keep::Again).await?;
        Self::settled(live, "flush", &result.unwrap_or_else(|| json!({})), ())
    }

    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        let within = self.settings.flushing();
        let live = self.live("freeze")?;
        let result = live.ask("freeze", "freeze", json!({}), within, Keep::Again).await?;
        let store = live.store()?;
        let settled = Self::settled(live, "freeze", &result, store)?;
        self.frozen = true;
        Ok(settled)
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
        let within = self.settings.retrieving();
        let name = self.name();
        let live = self.live("retrieve")?;
        let params = json!(Retrieve { query: Cow::Borrowed(query), budget });
        let result = live.ask("retrieve", "retrieve", params, within, Keep::Once).await?;
        let answer: Answer = parsed(live, "retrieve", result.clone())?;
        let retrieval =
            answer.retrieval().map_err(|reason| MemoryError::Delivery { system: name, reason })?;
        Self::settled(live, "retrieve", &result, retrieval)
    }

    async fn feedback(&mut self, feedback: &Feedback) -> Result<Costed<()>, MemoryError> {
        let within = self.settings.retrieving();
        let live = self.live("feedback")?;
        let params = json!(Feed { feedback: Cow::Borrowed(feedback) });
        let result = live.ask_if_known("feedback", "feedback", params, within, Keep::Again).await?;
        Self::settled(live, "feedback", &result.unwrap_or_else(|| json!({})), ())
    }

    async fn snapshot(&mut self, folder: &Path) -> Result<Costed<()>, MemoryError> {
        let within = self.settings.flushing();
        let greeting = json!(self.greeting);
        let live = self.live("snapshot")?;
        let result = live.ask_if_known("snapshot", "snapshot", json!({}), within, Keep::Once).await?;
        live.keep(folder, &greeting)?;
        Self::settled(live, "snapshot", &result.unwrap_or_else(|| json!({})), ())
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        let within = self.settings.retrieving();
        let Some(mut live) = self.live.take() else { return Ok(Costed::free(())) };
        self.frozen = false;
        // It ends in any case: a farewell that fails is no failure of what it delivered.
        let _ = live.ask_if_known("cleanup", "cleanup", json!({}), within, Keep::Once).await;
        Ok(Costed { value: (), cost: live.end().await })
    }
}
