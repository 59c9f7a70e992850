//! The memory systems of a study's conditions, with the models that they may ask: the built-in ones, or the oracle over one.

use std::sync::Arc;

use serde_json::Value;

use super::design::{Condition, Design};
use super::{Layout, StudyError};
use crate::audit::memory::{ORACLE, OracleSettings};
use crate::llm::gateway::{self, Caps, Gateway};
use crate::llm::{Client, EndpointEmbedder, Kept, Limiter, Model};
use crate::memory::plugged::{Calls, Site};
use crate::memory::{self, MemorySystem, Resources};
use crate::task::EvaluatorView;

impl Condition {
    /// Whether it is chosen with knowledge of the answer: a ceiling, no system.
    pub fn is_ceiling(&self) -> bool {
        self.memory == ORACLE
    }
}

/// Opens the system of a condition. Only the oracle sees the answer. The replies that it pays for are kept in the study's folder.
///
/// # Errors
/// Where the system, its settings or its model are wrong.
pub(super) fn open(
    design: &Design,
    layout: &Layout,
    limiter: &Limiter,
    name: &str,
    answer: &EvaluatorView,
    site: Option<Site>,
) -> Result<Box<dyn MemorySystem>, StudyError> {
    let wrong = |reason: String| StudyError::Memory { condition: name.to_owned(), reason };
    let condition = design.conditions.get(name).ok_or_else(|| wrong("it is not in the study".into()))?;
    let Condition { memory, settings, model, embedder, .. } = condition;
    let mut resources = Resources { site, ..Resources::default() };
    if let Some(name_of_embedder) = embedder {
        let endpoint = design.models.get(name_of_embedder);
        let endpoint = endpoint.ok_or_else(|| wrong(format!("there is no [models.{name_of_embedder}]")))?;
        let embedder = EndpointEmbedder::sharing(endpoint.clone(), limiter);
        resources.embedder = Some(Arc::new(embedder.map_err(|error| wrong(error.to_string()))?));
    }
    if let Some(model) = model {
        let endpoint =
            design.models.get(model).ok_or_else(|| wrong(format!("there is no [models.{model}]")))?;
        let client = Client::sharing(endpoint.clone(), limiter).map_err(|error| wrong(error.to_string()))?;
        let kept: Arc<dyn Model> = Arc::new(Kept::new(client, &layout.memory_replies(name)));
        resources.model = Some(kept);
        if let Some(site) = &mut resources.site {
            // a program asks the same model, through a gateway of its own
            let gateway = Gateway::new(endpoint.clone(), limiter, gateway::Settings::default());
            let gateway = gateway.map_err(|error| wrong(error.to_string()))?;
            let journals = Some(layout.memory_replies(name));
            site.calls = Some(Calls { gateway, journals, caps: Caps::default() });
        }
    }
    let opened = if condition.is_ceiling() {
        let oracle = OracleSettings::read(settings).and_then(|settings| settings.open(answer, &resources));
        oracle.map(|oracle| Box::new(oracle) as Box<dyn MemorySystem>)
    } else {
        memory::open(memory, &Value::Object(settings.clone()), &resources)
    };
    opened.map_err(|error| wrong(error.to_string()))
}
