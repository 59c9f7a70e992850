//! Other programs as the fixed agent: any command line that asks a model over HTTP.
//!
//! The program runs inside the sandbox, in the repository's folder, with a home folder outside of it; a gateway is its
//! only way out and its calls there are its costs. Whatever it is, memory reaches it in its prompt alone. When it has
//! ended, the difference between the repository and its base commit is the prediction; what it wrote of its own is
//! kept as it is; what it asked and was answered becomes a trajectory.
//!
//! | it ended | exit status | graded |
//! |---|---|---|
//! | with code 0 | `Submitted` | yes |
//! | with another code or by a signal | `NonZeroExit` | what difference there is |
//! | after a cap had refused it a call | `LimitsExceeded` | no: it reached its limit |
//! | by its time limit | `TimeExceeded` | no: it reached its limit |
//! | without an answered call, and in failure or with nothing changed | none: [`AgentError::Idle`](super::AgentError) | it never was the agent |
//! | in failure, after the endpoint had failed its last call for good | none: the model's error | |

mod collect;
mod convert;
mod door;
mod patch;
mod program;
mod run;

pub use door::Door;
pub use program::{Program, PromptBy};
pub use run::{CommandRun, run_command};
