//! The trial design: conditions, lock, run, resume.
//!
//! [`Bench::open`] reads a study file and all that it names; [`Bench::run`] runs what is left of the grid;
//! [`Bench::records`] is what reports read.

mod bench;
mod check;
mod design;
mod error;
mod layout;
mod lock;
mod program;
mod record;
mod remember;
mod run;
mod trial;

pub use bench::{Bench, KeyLookup, Openings};
pub use design::{Agent, Budget, Condition, Design, Grade, Sandbox, Solver, Stats, TEMPLATE, image};
pub use error::StudyError;
pub use layout::Layout;
pub use lock::{ConditionLock, Lock, TargetLock};
pub use record::{MemoryNote, TrialKey, TrialRecord};
pub use run::{Event, Excluded, RunSummary, Stop};
