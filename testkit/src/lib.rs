//! Fixtures for memtrial's own tests and its demonstration.
//!
//! [`FakeServer`] is a model endpoint on this machine, of chat completions and Anthropic messages: it answers what it is told to, fails in the ways real ones do,
//! and checks the shape of every request. [`Reader`] is the model behind it that solves a task exactly when it is shown
//! that task's needle; [`garbage`] is one that never answers well, [`tool_user`] one that uses a tool once.
//! [`vectors`] answers requests for embeddings. [`ImageRegistry`] serves small container images; [`logs`] makes test logs up.

mod act;
pub mod bundle;
pub mod check;
pub mod garbage;
pub mod image;
mod invariants;
pub mod logs;
mod messages;
mod patch;
pub mod plant;
mod reader;
mod registry;
mod server;
mod serving;
mod shell;
mod tls;
pub mod tool_user;
pub mod vectors;

pub use act::Act;
pub use invariants::violations;
pub use reader::{Reader, ReaderTask};
pub use registry::{Fault, ImageRegistry};
pub use server::{FakeServer, Player, Recorded, Slow};
pub use tls::SelfSigned;
