//! Stores of one text that every run may change: what it says mixes all runs, so each target has the text as it was
//! after its own history and no later one.

use std::path::Path;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::block::frame;
use super::{
    Budget, Costed, Delivery, Description, Experience, Held, MemoryError, MemorySystem, Query, Retrieval,
    Scope, Store, estimate_tokens,
};
use crate::task::InstanceId;

/// How a text evolves.
#[async_trait]
pub(super) trait Evolve: Send + Sync {
    /// What is written down.
    type Page: Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;

    /// What the system is.
    fn about(&self) -> Description;

    /// The page after a run; the inner error says why the model's replies could not be used (the page stays).
    async fn evolve(
        &self,
        page: &Self::Page,
        run: &Experience,
    ) -> Result<Costed<Result<Self::Page, String>>, MemoryError>;

    /// The page in at most `tokens`; empty where there is nothing to say.
    fn show(&self, page: &Self::Page, tokens: u64) -> String;

    /// How many things the page holds.
    fn count(&self, page: &Self::Page) -> u64;
}

/// A memory system that keeps one page.
pub(super) struct Notebook<E: Evolve> {
    evolve: E,
    name: String,
    state: State<E::Page>,
    frozen: bool,
}

/// The page, and what shaped it.
#[derive(Clone, Default, Serialize, Deserialize)]
struct State<P> {
    page: P,
    /// The runs that were taken in, in their order.
    runs: Vec<InstanceId>,
    /// Those of them that changed nothing because the model's replies were unusable.
    unusable: Vec<InstanceId>,
}

impl<E: Evolve> Notebook<E> {
    pub fn new(evolve: E) -> Self {
        Self { name: evolve.about().name, evolve, state: State::default(), frozen: false }
    }

    fn refuse(&self, call: &'static str, when: &'static str) -> MemoryError {
        MemoryError::OutOfOrder { system: self.name.clone(), call, when }
    }

    fn failed(&self, call: &'static str, reason: &dyn std::fmt::Display) -> MemoryError {
        MemoryError::System { system: self.name.clone(), call, reason: reason.to_string() }
    }

    fn content(&self) -> Result<Vec<u8>, MemoryError> {
        serde_json::to_vec_pretty(&self.state).map_err(|error| self.failed("store", &error))
    }
}

#[async_trait]
impl<E: Evolve> MemorySystem for Notebook<E> {
    fn describe(&self) -> Description {
        self.evolve.about()
    }

    async fn prepare(&mut self, _scope: &Scope) -> Result<Costed<()>, MemoryError> {
        (self.state, self.frozen) = (State::default(), false);
        Ok(Costed::free(()))
    }

    async fn ingest(&mut self, experience: &Experience) -> Result<Costed<()>, MemoryError> {
        if self.frozen {
            return Err(self.refuse("ingest", "after freeze"));
        }
        let evolved = self.evolve.evolve(&self.state.page, experience).await?;
        match evolved.value {
            Ok(page) => self.state.page = page,
            Err(_) => self.state.unusable.push(experience.instance_id.clone()),
        }
        self.state.runs.push(experience.instance_id.clone());
        Ok(Costed { value: (), cost: evolved.cost })
    }

    fn saved(&self, run: &InstanceId) -> Result<Option<Value>, MemoryError> {
        // only the state after the last run is known
        let state = (self.state.runs.last() == Some(run)).then(|| serde_json::to_value(&self.state));
        state.transpose().map_err(|error| self.failed("save", &error))
    }

    fn held(&self) -> Vec<Held> {
        let text = self.evolve.show(&self.state.page, u64::MAX / 8);
        let page = Held { id: "page".into(), sources: self.state.runs.clone(), text };
        if page.text.is_empty() { Vec::new() } else { vec![page] }
    }

    fn load(&mut self, run: &InstanceId, saved: Value) -> Result<(), MemoryError> {
        if self.frozen {
            return Err(self.refuse("load", "after freeze"));
        }
        let state: State<E::Page> =
            serde_json::from_value(saved).map_err(|error| self.failed("load", &error))?;
        if state.runs.last() != Some(run) {
            return Err(self.failed("load", &format!("the state is not the one after {run}")));
        }
        self.state = state;
        Ok(())
    }

    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        self.frozen = true;
        self.store().map(Costed::free)
    }

    fn store(&self) -> Result<Store, MemoryError> {
        let content = self.content()?;
        Ok(Store {
            digest: format!("{:x}", Sha256::digest(&content)),
            records: self.evolve.count(&self.state.page),
            bytes: content.len() as u64,
            unusable: self.state.unusable.len() as u64,
        })
    }

    async fn retrieve(&mut self, _query: &Query, budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        if !self.frozen {
            return Err(self.refuse("retrieve", "before freeze"));
        }
        // What the frame and the quoting add must fit too: the text is shortened until it does.
        let mut room = budget.tokens;
        loop {
            let text = self.evolve.show(&self.state.page, room);
            if text.trim().is_empty() || budget.records == 0 {
                let reason = match self.state.runs.is_empty() {
                    true => "the history is empty".to_owned(),
                    false => format!("nothing was written down that fits {} tokens", budget.tokens),
                };
                return Ok(Costed::free(Retrieval::Abstain { reason }));
            }
            let block = frame(&text);
            let over = estimate_tokens(&block).saturating_sub(budget.tokens);
            if over == 0 {
                let sources = self.state.runs.clone();
                let delivery = Delivery { block: Some(block), sources, ..Delivery::default() };
                return Ok(Costed::free(Retrieval::Delivery(delivery)));
            }
            room = room.min(estimate_tokens(&text)).saturating_sub(over.max(1));
        }
    }

    async fn snapshot(&mut self, folder: &Path) -> Result<Costed<()>, MemoryError> {
        let content = self.content()?;
        fs_err::write(folder.join("page.json"), content).map_err(|error| self.failed("snapshot", &error))?;
        Ok(Costed::free(()))
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        self.state = State::default();
        Ok(Costed::free(()))
    }
}
