//! Memory systems that are programs of their own.
//!
//! A program is started in a sandbox, talks JSON-RPC 2.0 over its standard streams, may write to one folder (its state),
//! and reaches nothing but the gateway to the model, whose counts are its costs. Two languages are spoken:
//! `memtrial-memory/1`, which has the shape of [`MemorySystem`] ([`Plugged`], `docs/reference/memory-protocol.md`), and MCP
//! through a mapping in the settings ([`Mcp`]).
//!
//! | the program | becomes |
//! |---|---|
//! | writes lines that are no JSON-RPC | they are skipped, and told where a call fails |
//! | answers with an error | the error, with the program's words |
//! | is late, answers too much or something else | an error; the program is ended |
//! | ends by itself | it is started again and fed again, a bounded number of times; then an error |
//! | changes its state after it was frozen | the host's error: the state's files are the store |

pub mod check;
mod door;
mod home;
mod mcp;
mod program;
mod resident;
mod settings;
mod spool;
mod system;
mod talk;
mod wire;

pub use door::Calls;
pub use mcp::{Mcp, McpSettings};
pub use program::Site;
pub use settings::{ProgramSettings, read_settings};
pub use system::Plugged;
pub use wire::{PROTOCOL, SelfReported};

#[cfg(test)]
mod real_tests;
#[cfg(test)]
mod tests;
