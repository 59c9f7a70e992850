//! What a run leaves behind: mini-swe-agent's trajectories, read and written.
//!
//! * [`Trajectory`]: a whole run in memory; reading and writing keeps every field and its order.
//! * [`stream`]: the parts of a file one by one, at bounded memory, for files of any size.
//! * [`Summary`]: what a person or an index wants to know about a run, computed while streaming.
//! * [`recorded_replies`]: what the model answered, for replay.
//! * [`read_runs`]: one neutral stream of [`Event`]s from the logs of every agent, for whoever learns from runs.
//! * [`convert_to_atif`]: the same run in the format that other tools exchange.
//!
//! Formats are recognised by their content, never by the file's name: see [`Format`].

mod atif;
mod error;
mod experience;
mod format;
pub mod json;
mod message;
mod replies;
mod skim;
mod stream;
mod summary;
mod whole;

pub use atif::{ATIF_VERSION, convert_to_atif, write_atif};
pub use error::TrajectoryError;
pub use experience::{
    BadLine, Event, MiniEvents, MiniMessages, RunCost, RunFormat, RunHead, RunPart, RunsReport, edited_files,
    read_runs, runs_tests,
};
pub use format::{ActionPattern, Format};
pub(crate) use message::kind;
pub use message::{Action, Message, Observation, Role, Usage};
pub use replies::{RecordedReply, recorded_replies};
pub use stream::{Limits, Part, StreamReport, stream, stream_file};
pub use summary::{Summary, SummaryBuilder, issue_text, summarize, summarize_run};
pub use whole::{Trajectory, create_atomic, write_atomic};
