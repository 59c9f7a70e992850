//! One record of a store: what is searched of it, and what is injected.

use serde::{Deserialize, Serialize};

use super::lexicon::FIELD_COUNT;
use crate::memory::record::fit;
use crate::task::InstanceId;

/// A record as a store keeps it. It derives from one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::memory) struct Kept {
    /// Its name, unique in the store: the run's id and a number.
    pub id: String,
    /// The run that it derives from.
    pub source: Option<InstanceId>,
    /// What is searched: the problem, the change, everything else. `None`: the injected text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched: Option<[String; FIELD_COUNT]>,
    /// The first part of what is injected.
    pub head: String,
    /// The second part.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The unit vector of what the record is about, where the store embeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vector: Vec<f32>,
}

impl Kept {
    /// The searched texts: the problem, the change, everything else.
    pub fn fields(&self) -> [&str; FIELD_COUNT] {
        match &self.searched {
            Some(searched) => searched.each_ref().map(String::as_str),
            None => ["", self.head.as_str(), self.body.as_str()],
        }
    }

    /// What an embedding is made of: the problem where it is stated, else the injected text.
    pub fn about(&self) -> &str {
        let problem = self.fields()[0];
        match (problem.is_empty(), self.head.is_empty()) {
            (false, _) => problem,
            (true, false) => &self.head,
            (true, true) => &self.body,
        }
    }

    /// The text to inject, cut to `tokens`.
    pub fn text(&self, tokens: u64, head_share: f64) -> String {
        fit(&self.head, &self.body, tokens, head_share)
    }
}
