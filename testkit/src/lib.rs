//! Fixtures for memtrial's own tests and its demonstration.
//!
//! [`FakeServer`] is a model endpoint on this machine: it answers what it is told to, fails in the ways real ones do,
//! and checks the shape of every request. [`Reader`] is the model behind it that solves a task exactly when it is shown
//! that task's needle; [`garbage`] is one that never answers well.

mod act;
pub mod bundle;
pub mod check;
pub mod garbage;
mod invariants;
mod patch;
pub mod plant;
mod reader;
mod server;
mod shell;

pub use act::Act;
pub use invariants::violations;
pub use reader::{Reader, ReaderTask};
pub use server::{FakeServer, Player, Recorded, Slow};
