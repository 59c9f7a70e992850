//! One thing that happened in a run.

use serde::{Deserialize, Serialize};

/// One thing that happened in a run, in the order of happening.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Event {
    /// What the agent was asked to do: the issue text without an agent's frame around it. In a conversation a person
    /// may ask for more later; the first is the run's issue.
    Issue {
        /// The text.
        text: String,
    },
    /// What the agent said or thought beside its action.
    Thought {
        /// The text.
        text: String,
    },
    /// An action: a shell command, or the call of another tool as one line of its name and arguments.
    Command {
        /// The command.
        text: String,
        /// Files that it changes, as far as its text tells.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edits: Vec<String>,
        /// Whether it runs tests, as far as its text tells.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tests: bool,
    },
    /// What came back from the earliest command before it that has no observation yet. Only the last commands of a run
    /// have none; the text is empty where the run holds no answer.
    Observation {
        /// The output, without an agent's frame around it.
        text: String,
        /// The exit code; `None`: not recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
    },
    /// The patch that the run submitted.
    Submission {
        /// A unified diff.
        patch: String,
    },
    /// The end of the run.
    Ended {
        /// How the agent ended (`Submitted`, `LimitsExceeded`, …); `None`: not recorded.
        status: Option<String>,
        /// Whether the run resolved its task, where its own file says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolved: Option<bool>,
    },
}

impl Event {
    /// A command line with what its text tells about it; paths are relative to the folder of SWE-bench's images.
    pub fn command(text: impl Into<String>) -> Self {
        super::tool::shell(
            text.into(),
            &super::place::Place::default(),
            &mut super::command::Commands::default(),
        )
    }
}
