//! The fixed agent: a state machine without input or output, and its driver.
//!
//! The [`State`] takes [`Event`]s and answers with [`Effect`]s; it follows mini-swe-agent 2.4.6 message for message, and
//! 1.15 where the configuration was written for 1.x.
//! [`drive`] performs the effects in a sandbox and against a model, journals each event before it is used, resumes
//! an interrupted run, and writes the trajectory.
//!
//! Where it differs from mini-swe-agent on purpose:
//! - a call of unknown price counts as free and does not end the run (there: `RuntimeError`);
//! - a submission is kept as the command wrote it (there: `\r\n` and `\r` become `\n`, which spoils patches of files
//!   with CRLF lines);
//! - a shell that a signal ended has return code 128 + signal, as in its docker environment (its local one: −signal);
//! - after a time-out the whole process tree is dead, and the model reads the command, not the back end's argv;
//! - a submission that is longer than the sandbox's output limit is none: the command becomes an ordinary observation
//!   that begins with the reason, and the run goes on (there: output has no limit);
//! - a token limit and a context limit end a run as well;
//! - where a study says so, memory is asked in the run: by a tool beside `bash`, or at phases ([`Asking`]).

mod asking;
mod clock;
mod command;
mod config;
mod driver;
mod error;
mod event;
mod journal;
mod keys;
mod machine;
mod message;
mod parse;
mod pyjson;
mod recall;
mod render;
mod shown;
mod template;
mod text;
mod trajectory;
mod tree;
mod yaml;

/// What the fakes use, under the names that they have outside the crate as well.
#[cfg(test)]
mod api {
    pub use crate::llm::{Cost, LlmError, Model, Reply, Request};
    pub use crate::sandbox::{Elided, Ended, Exec, Output, OutputLimit, Sandbox, SandboxError};
    pub use async_trait::async_trait;
}
#[cfg(test)]
#[path = "../../examples/agent_scenario/fakes.rs"]
mod fakes;

#[cfg(test)]
mod real_runs_tests;

pub use asking::{Asking, NOTHING_FOUND, Question, TOOL_CALLS, WITHHELD, memory_tool};
pub use clock::{Clock, SystemClock};
pub use command::{CommandRun, Door, Program, PromptBy, run_command};
pub use config::{Config, ConfigError, Dialect, Loaded, Mode, RunLimits, Templates};
pub use driver::{Finished, Run, drive};
pub use error::AgentError;
pub use event::{Effect, Event, Exception, Moment, Observation, Uname};
pub use journal::{JournalError, recalled};
pub use machine::{SENTINEL, Setup, State, StepError};
pub use parse::{Action, bash_tool};
pub use recall::{OnDemand, Recall, Recalled};
pub use template::TemplateError;
pub use trajectory::{TrajectoryFormat, trajectory_value};
pub use yaml::Layer;

/// How runs end. Any other exit status is the class of an exception.
pub mod exit {
    /// The sentinel was seen.
    pub const SUBMITTED: &str = "Submitted";
    /// The step, cost or token limit was reached before a call.
    pub const LIMITS_EXCEEDED: &str = "LimitsExceeded";
    /// The wall-clock limit was reached before a call.
    pub const TIME_EXCEEDED: &str = "TimeExceeded";
    /// Too many replies in a row held no valid command.
    pub const REPEATED_FORMAT_ERROR: &str = "RepeatedFormatError";
    /// The prompt is longer than the context limit, or than the model's window.
    pub const CONTEXT_WINDOW_EXCEEDED: &str = "ContextWindowExceededError";

    /// Another program as the agent ended in failure; what it changed is graded.
    pub const NON_ZERO_EXIT: &str = "NonZeroExit";
    /// Another program as the agent left no repository from which its changes can be told.
    pub const NO_DIFFERENCE: &str = "NoDifference";

    /// Whether a run that ended so hands in work to be graded.
    pub fn hands_in(exit_status: &str) -> bool {
        [SUBMITTED, NON_ZERO_EXIT].contains(&exit_status)
    }

    /// Whether a run that ended so is the agent's own doing: a result, not a failure of the harness.
    pub fn is_result(exit_status: &str) -> bool {
        hands_in(exit_status)
            || [LIMITS_EXCEEDED, TIME_EXCEEDED, REPEATED_FORMAT_ERROR, CONTEXT_WINDOW_EXCEEDED, NO_DIFFERENCE]
                .contains(&exit_status)
    }
}
