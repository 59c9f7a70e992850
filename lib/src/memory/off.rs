//! `off`: the baseline that remembers nothing.

use std::path::Path;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use super::{
    Budget, Costed, Description, Experience, MemoryError, MemorySystem, Query, Retrieval, Scope, Store,
};

/// The baseline: takes everything in, keeps nothing, always abstains.
#[derive(Debug, Default)]
pub struct Off;

#[async_trait]
impl MemorySystem for Off {
    fn describe(&self) -> Description {
        Description {
            name: "off".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ingests: false,
            uses_outcome: false,
            reads_events: false,
            order_sensitive: false,
            deterministic: true,
            shared_index: false,
        }
    }

    async fn prepare(&mut self, _scope: &Scope) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    async fn ingest(&mut self, _experience: &Experience) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    async fn flush(&mut self) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        self.store().map(Costed::free)
    }

    fn store(&self) -> Result<Store, MemoryError> {
        Ok(Store { digest: format!("{:x}", Sha256::digest(b"")), records: 0, bytes: 0 })
    }

    async fn retrieve(&mut self, _query: &Query, _budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        Ok(Costed::free(Retrieval::Abstain { reason: "memory is off".into() }))
    }

    async fn snapshot(&mut self, _folder: &Path) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }
}
