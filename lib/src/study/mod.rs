//! The trial design: conditions, lock, run, resume.
//!
//! [`Bench::open`] reads a study file and all that it names; [`Bench::run`] runs what is left of the grid, in as many
//! processes as like to take part; [`Bench::records`] is what reports read.

mod attempt;
mod bench;
mod check;
mod claims;
mod design;
mod error;
mod images;
mod journal;
mod layout;
mod leak;
mod lock;
mod program;
mod recall;
mod record;
mod remember;
mod run;
mod shift;
mod systems;
mod trial;
mod workers;

pub use bench::{Bench, KeyLookup, Openings};
pub use claims::{Owner, unique_name};
pub use design::{Agent, Audit, Budget, Condition, Design, Grade, Sandbox, Solver, Stats, TEMPLATE};
pub use error::StudyError;
pub use layout::Layout;
pub use lock::{ConditionLock, Lock, TargetLock};
pub use recall::{Asks, Inject, Way};
pub use record::{MemoryNote, TrialKey, TrialRecord};
pub use run::{Event, Excluded, RunSummary, Stop, WorkerOptions};
pub use workers::AtWork;
