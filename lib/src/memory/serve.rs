//! What a memory index offers to agents at work, however they ask: search, reading, and their reports of what helped.

mod feedback;

use std::collections::BTreeMap;

use serde::Serialize;
use tokio::sync::Mutex;

use super::host::{Host, Outcome, Setup};
use super::index::Index;
use super::{Budget, Held, MemoryError, Query, Resources, Target};

pub use feedback::{FEEDBACK_FILE, Feedback, Feedbacks};

/// Records that a search can give, and tokens of each.
pub const MOST_FOUND: usize = 50;
const TOKENS: u64 = 400;

/// An index that can be asked: of every repository what all its runs taught.
pub struct Served {
    repos: BTreeMap<String, Known>,
}

/// One repository.
struct Known {
    target: Target,
    host: Mutex<Host>,
    held: BTreeMap<String, Held>,
}

/// A record that answers a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// Its name in the index.
    pub id: String,
    /// The run that it derives from.
    pub source_instance_id: String,
    /// How well it fits, higher is better; comparable within one repository and search only.
    pub score: Option<f64>,
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
    /// The runs that it derives from.
    pub source_instance_ids: Vec<String>,
    /// What it says, whole.
    pub text: String,
}

impl Served {
    /// Loads what an index knows of its repositories.
    ///
    /// # Errors
    /// Where the index holds a run that it cannot take back.
    pub async fn load(index: &Index, resources: &Resources) -> Result<Self, MemoryError> {
        let mut repos = BTreeMap::new();
        let budget = Budget { records: MOST_FOUND, tokens: TOKENS * MOST_FOUND as u64 };
        for key in index.manifest().repos.keys() {
            let host = index.host_of_repo(key, resources, Setup::plain(budget)).await?;
            let instance_id = host.target().clone();
            let repo = format!("{}/{}", instance_id.owner(), instance_id.name());
            let held = host.held().into_iter().map(|held| (held.id.clone(), held)).collect();
            let target =
                Target { instance_id, repo: repo.clone(), problem_statement: String::new(), language: None };
            repos.insert(repo, Known { target, host: Mutex::new(host), held });
        }
        Ok(Self { repos })
    }

    /// The repositories that it knows (`owner/name`), in order.
    pub fn repos(&self) -> Vec<String> {
        self.repos.keys().cloned().collect()
    }

    /// The at most `k` records that fit a query best, best first, of one repository or (`None`) the best of each by turns;
    /// empty where the system abstains or the repository is unknown.
    ///
    /// # Errors
    /// When the system fails.
    pub async fn search(&self, repo: Option<&str>, query: &str, k: usize) -> Result<Vec<Hit>, MemoryError> {
        let mut found = Vec::new();
        for (_, known) in self.repos.iter().filter(|(name, _)| repo.is_none_or(|repo| repo == name.as_str()))
        {
            found.push(known.search(query).await?.into_iter());
        }
        // scores of two repositories do not compare: ranks do
        let mut hits = Vec::new();
        while hits.len() < k {
            let before = hits.len();
            hits.extend(found.iter_mut().filter_map(Iterator::next));
            if hits.len() == before {
                break;
            }
        }
        hits.truncate(k);
        Ok(hits)
    }

    /// The record of this name; `None`: there is none.
    pub fn read(&self, id: &str) -> Option<ServedRecord> {
        let (repo, held) = self.repos.iter().find_map(|(repo, known)| Some((repo, known.held.get(id)?)))?;
        Some(ServedRecord {
            id: held.id.clone(),
            repo: repo.clone(),
            source_instance_ids: held.sources.iter().map(ToString::to_string).collect(),
            text: held.text.clone(),
        })
    }
}

impl Known {
    async fn search(&self, query: &str) -> Result<Vec<Hit>, MemoryError> {
        let query = Query { text: Some(query.to_owned()), ..Query::at_start(self.target.clone()) };
        let outcome = self.host.lock().await.retrieve(&query).await?.outcome;
        let Outcome::Injected(injection) = outcome else { return Ok(Vec::new()) };
        if injection.records.is_empty() {
            // a page of the system's own
            let page = |held: &Held| Hit {
                id: held.id.clone(),
                source_instance_id: held.sources.last().map(ToString::to_string).unwrap_or_default(),
                score: None,
                text: held.text.clone(),
                why: "the page of the repository".to_owned(),
            };
            return Ok(self.held.values().take(1).map(page).collect());
        }
        let hit = |record: super::Record| Hit {
            id: record.id.unwrap_or_default(),
            source_instance_id: record.source.to_string(),
            score: record.score,
            text: record.text,
            why: record.why.unwrap_or_default(),
        };
        Ok(injection.records.into_iter().map(hit).collect())
    }
}
