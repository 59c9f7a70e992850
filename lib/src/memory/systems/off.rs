//! `off`: the baseline that remembers nothing.

use async_trait::async_trait;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::memory::registry::{About, Needs, NoSettings, read};
use crate::memory::{
    Budget, Costed, Description, LearnsFrom, MemoryError, MemorySystem, Query, Resources, Retrieval, Store,
};

pub(in crate::memory) const ABOUT: About = About {
    name: "off",
    summary: "the baseline: remembers nothing",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::History,
    shared: &[],
    settings: &[],
    paper: "",
    deviations: &[],
    open,
};

fn open(settings: &Value, _resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let NoSettings {} = read(settings)?;
    Ok(Box::new(Off))
}

/// The baseline: takes everything in, keeps nothing, always abstains.
#[derive(Debug, Default)]
pub(in crate::memory) struct Off;

#[async_trait]
impl MemorySystem for Off {
    fn describe(&self) -> Description {
        Description { ingests: false, ..Description::built_in(ABOUT.name) }
    }

    fn store(&self) -> Result<Store, MemoryError> {
        Ok(Store { digest: format!("{:x}", Sha256::digest(b"")), records: 0, bytes: 0, unusable: 0 })
    }

    async fn retrieve(&mut self, _query: &Query, _budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        Ok(Costed::free(Retrieval::Abstain { reason: "memory is off".into() }))
    }
}
