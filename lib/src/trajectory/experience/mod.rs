//! A run as a stream of neutral events, whichever agent made it and whatever its file looks like.

mod command;
mod event;
mod mini;
mod python;
mod shell;

pub use command::{edited_files, runs_tests};
pub use event::Event;
pub use mini::MiniEvents;
