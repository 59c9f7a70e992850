//! Which memory system a condition asks: one of the built-in ones, or the oracle over one.

use serde_json::Value;

use super::design::Condition;
use crate::audit::memory::{ORACLE, OracleSettings};
use crate::memory::{self, MemoryError, MemorySystem, Resources};
use crate::task::EvaluatorView;

impl Condition {
    /// Whether it is chosen with knowledge of the answer: a ceiling, no system.
    pub fn is_ceiling(&self) -> bool {
        self.memory == ORACLE
    }

    /// Opens its system. Only the oracle sees the answer.
    pub(super) fn open(
        &self,
        answer: &EvaluatorView,
        resources: &Resources,
    ) -> Result<Box<dyn MemorySystem>, MemoryError> {
        if self.is_ceiling() {
            return Ok(Box::new(OracleSettings::read(&self.settings)?.open(answer, resources)?));
        }
        memory::open(&self.memory, &Value::Object(self.settings.clone()), resources)
    }
}
