//! `study.lock.json`: digests of everything that goes into a study, written before its first trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::recall::Inject;
use crate::agent::Asking;
use crate::task::InstanceId;

/// Digests of all inputs (SHA-256 in hex), and how the arms differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The lock's format.
    pub schema: u32,
    /// The version of memtrial that began the study.
    pub memtrial: String,
    /// The study file without what may change between invocations (jobs, retries, addresses).
    pub design: String,
    /// The agent's whole configuration.
    pub agent: String,
    /// Where commands run: the back end and its base.
    pub sandbox: String,
    /// The targets.
    pub targets: BTreeMap<InstanceId, TargetLock>,
    /// Each condition's system, and the text that sets its arm apart from one without memory.
    pub conditions: BTreeMap<String, ConditionLock>,
    /// Recorded runs that solvers replay, by solver and target.
    pub replays: BTreeMap<String, String>,
    /// The published image of each target, as `NAME@DIGEST`, where trials run in these. Entered when a run begins:
    /// looking at a study asks no registry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<InstanceId, String>,
}

/// One target's inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetLock {
    /// The whole task row.
    pub task: String,
    /// The trajectories that the target may learn from, oldest first.
    pub history: Vec<(InstanceId, String)>,
    /// The runs of other repositories that control arms draw from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<(InstanceId, String)>,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConditionLock {
    /// The memory system's own description.
    pub system: serde_json::Value,
    /// What an arm of this condition shows the model besides what `off` shows: the block, its records left open; the
    /// tool's definition; what is said at phases.
    pub difference: String,
    /// Whether it is chosen with knowledge of the answer: a ceiling, no system.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ceiling: bool,
    /// When memory reaches a run.
    #[serde(default, skip_serializing_if = "Inject::is_default")]
    pub inject: Inject,
    /// When a run asks memory while it goes on.
    #[serde(default, skip_serializing_if = "Asking::is_never")]
    pub asking: Asking,
}

impl Lock {
    /// What differs between a lock and the present inputs, one phrase each.
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut differs = |what: &str, same: bool| {
            if !same {
                changes.push(what.to_owned());
            }
        };
        differs("the lock's format", self.schema == now.schema);
        differs("memtrial's version", self.memtrial == now.memtrial);
        differs("the study file", self.design == now.design);
        differs("the agent's configuration", self.agent == now.agent);
        differs("the sandbox", self.sandbox == now.sandbox);
        differs("a condition's memory system", self.conditions == now.conditions);
        differs("recorded runs", self.replays == now.replays);
        differs("the set of targets", self.targets.keys().eq(now.targets.keys()));
        for (id, target) in &self.targets {
            let Some(other) = now.targets.get(id) else { continue };
            differs(&format!("the task {id}"), target.task == other.task);
            differs(&format!("the history of {id}"), target.history == other.history);
            differs(&format!("other repositories' runs for {id}"), target.others == other.others);
        }
        changes
    }
}

/// SHA-256 of bytes, in hex.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of a file, in hex, read in pieces.
///
/// # Errors
/// When it cannot be read.
pub fn digest_file(path: &std::path::Path) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut hasher)?;
    Ok(hex(&hasher.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let id = InstanceId::parse("acme__widget-7").unwrap();
        let earlier = InstanceId::parse("acme__widget-3").unwrap();
        let target =
            TargetLock { task: "t".into(), history: vec![(earlier, "h".into())], others: Vec::new() };
        Lock {
            schema: 1,
            memtrial: "0.1.0".into(),
            design: "d".into(),
            agent: "a".into(),
            sandbox: "s".into(),
            targets: BTreeMap::from([(id, target)]),
            conditions: BTreeMap::new(),
            replays: BTreeMap::new(),
            images: BTreeMap::new(),
        }
    }

    #[test]
    fn names_what_changed() {
        assert_eq!(lock().changes(&lock()), Vec::<String>::new());
        let mut now = lock();
        now.agent = "b".into();
        now.targets.values_mut().next().unwrap().history[0].1 = "other".into();
        assert_eq!(lock().changes(&now), ["the agent's configuration", "the history of acme__widget-7"]);
        let mut now = lock();
        now.targets.clear();
        assert_eq!(lock().changes(&now), ["the set of targets"]);
    }
}
