//! A run as a stream of neutral events, whichever agent made it and whatever its file looks like.
//!
//! [`read_runs`] reads any file: `detect` tells its format by content, `source` gives its JSON at bounded memory, and
//! one module a format tells its events to a `Teller`, which does what all have in common.

mod atif;
mod claude_code;
mod codex;
mod command;
mod detect;
mod event;
mod mini;
mod nemo_gym;
mod openhands;
mod place;
mod python;
mod read;
mod responses;
mod run;
mod shell;
mod source;
mod swe_agent;
mod teller;
#[cfg(test)]
mod tests;
mod time;
mod tool;

pub use command::{edited_files, runs_tests};
pub use event::Event;
pub use mini::{MiniEvents, MiniMessages};
pub use read::read_runs;
pub use run::{BadLine, RunCost, RunFormat, RunHead, RunPart, RunsReport};
