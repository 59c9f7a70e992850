//! What can go wrong with memory.

use std::path::PathBuf;

use crate::task::InstanceId;

/// Why a memory system could not do its part. Never turned into an abstention.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The study names a system that does not exist.
    #[error("memory system {name:?} is unknown; known are {known}")]
    UnknownSystem {
        /// The name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A system's settings cannot be read.
    #[error("settings of memory system {system:?}: {reason}; its settings are {known}")]
    Settings {
        /// The system.
        system: String,
        /// What is wrong, with the key.
        reason: String,
        /// The keys that exist.
        known: String,
    },
    /// A system returned something from a run that the target may not learn from.
    #[error(
        "causality: memory system {system:?} returned something from {origin} for target {target}, whose history does \
         not hold it; the system mixes namespaces or invents sources"
    )]
    CausalViolation {
        /// The system.
        system: Box<str>,
        /// The target.
        target: InstanceId,
        /// The run that is not eligible.
        origin: InstanceId,
    },
    /// The history offered a run that the target may not learn from.
    #[error(
        "causality: history of {target} offers {origin}, which is {reason}; nothing was ingested from it"
    )]
    NotEligible {
        /// The target.
        target: InstanceId,
        /// The run.
        origin: InstanceId,
        /// Why it is not eligible.
        reason: &'static str,
    },
    /// The query names another target than the one that the store was built for.
    #[error(
        "causality: the store was built for {built_for} and asked for {asked}; build one for each target"
    )]
    WrongTarget {
        /// The target of the store.
        built_for: InstanceId,
        /// The target of the query.
        asked: InstanceId,
    },
    /// A system delivered more than it may.
    #[error("memory system {system:?} delivered {got} {unit} where the budget allows {allowed}")]
    OverBudget {
        /// The system.
        system: String,
        /// How much it delivered.
        got: u64,
        /// How much it may deliver.
        allowed: u64,
        /// `records` or `tokens`.
        unit: &'static str,
    },
    /// A system delivered nothing at all, or a file outside the mount point.
    #[error("memory system {system:?} made an unusable delivery: {reason}")]
    Delivery {
        /// The system.
        system: String,
        /// What is wrong.
        reason: String,
    },
    /// The content of a frozen store changed.
    #[error("store of memory system {system:?} changed after it was frozen ({before} became {after})")]
    StoreChanged {
        /// The system.
        system: String,
        /// The digest at freeze.
        before: String,
        /// The digest now.
        after: String,
    },
    /// A call came out of order.
    #[error("memory system {system:?}: {call} must not be called {when}")]
    OutOfOrder {
        /// The system.
        system: String,
        /// The call.
        call: &'static str,
        /// In which state it is forbidden.
        when: &'static str,
    },
    /// An earlier run cannot be read.
    #[error("history of {target}: cannot read the run of {origin}: {reason}")]
    History {
        /// The target.
        target: InstanceId,
        /// The run.
        origin: InstanceId,
        /// What happened, with the path.
        reason: Box<str>,
    },
    /// The block template cannot be used.
    #[error("block template{}: {reason}", .path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    Template {
        /// The file, where the template is not the built-in one.
        path: Option<PathBuf>,
        /// What is wrong, with the line.
        reason: String,
    },
    /// One store was to serve several targets, and the system mixes runs.
    #[error("memory system {system:?} mixes runs: a store of it serves the one target that it was built for")]
    NotShared {
        /// The system.
        system: String,
    },
    /// A memory index, or what lies beside it, cannot be read or written.
    #[error("memory index {}: {reason}", .path.display())]
    Index {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The system itself failed.
    #[error("memory system {system:?}: {call} failed: {reason}")]
    System {
        /// The system.
        system: String,
        /// The call.
        call: &'static str,
        /// What happened.
        reason: String,
    },
}
