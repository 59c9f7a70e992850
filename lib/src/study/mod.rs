//! The trial design: conditions, lock, run, resume.

mod record;

pub use record::{MemoryNote, TrialKey, TrialRecord};
