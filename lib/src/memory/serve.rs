//! What a memory index offers to agents at work, however they ask: search, reading, and their reports of what helped.

mod feedback;
mod lines;

use serde::Serialize;
use serde_json::{Map, Value};

use super::MemoryError;

pub use feedback::{FEEDBACK_FILE, Feedback, Feedbacks};
pub use lines::Lines;

/// An index that can be asked. Calls may block; they come from several threads.
pub trait Served: Send + Sync {
    /// The repositories that it knows (`owner/name`), in order.
    fn repos(&self) -> Vec<String>;

    /// The at most `k` records that fit a query best, best first, of one repository or (`None`) of all; empty where
    /// nothing fits or the repository is unknown.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn search(&self, repo: Option<&str>, query: &str, k: usize) -> Result<Vec<Hit>, MemoryError>;

    /// The record of this id; `None`: there is none.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn read(&self, id: &str) -> Result<Option<ServedRecord>, MemoryError>;
}

/// A record that answers a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// Its name in the index.
    pub id: String,
    /// The run that it derives from.
    pub source_instance_id: String,
    /// How well it fits, higher is better; comparable within one search only.
    pub score: f64,
    /// What it says, perhaps shortened.
    pub text: String,
    /// Why it was chosen.
    pub why: String,
}

/// A whole record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServedRecord {
    /// Its name in the index.
    pub id: String,
    /// The repository (`owner/name`) that it belongs to.
    pub repo: String,
    /// The run that it derives from.
    pub source_instance_id: String,
    /// What it says, whole.
    pub text: String,
    /// Whatever else is stored of it.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}
