//! What the state machine is told and what it asks for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asking::Question;
use crate::context::View;
use crate::llm::Reply;

/// When something happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Unix time in seconds.
    pub unix: f64,
    /// Seconds that the run has taken, pauses between an interruption and its resumption left out.
    pub elapsed: f64,
}

/// What the sandbox calls itself in templates (`uname`). Constant, so that prompts do not depend on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are uname's")]
pub struct Uname {
    pub system: String,
    pub node: String,
    pub release: String,
    pub version: String,
    pub machine: String,
}

impl Default for Uname {
    fn default() -> Self {
        let [system, node, release, version, machine] =
            ["Linux", "sandbox", "6", "#1 SMP", "x86_64"].map(str::to_owned);
        Self { system, node, release, version, machine }
    }
}

/// What a command left, as the model may see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Standard output and error, bounded by the sandbox, undecodable bytes replaced by U+FFFD.
    pub output: String,
    /// The exit code; 128 + signal; −1 when the command did not run to its end.
    pub returncode: i64,
    /// Why it did not run to its end: the class and text of mini-swe-agent's exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<Exception>,
    /// Whether the memory limit killed something while it ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_memory: bool,
    /// Bytes in the middle of the output that the sandbox did not keep.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub elided: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Why a command did not run to its end, or a run crashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// The class name, for example `TimeoutExpired`.
    pub class: String,
    /// Its text.
    pub text: String,
}

impl Observation {
    /// What templates show as `exception_info`; empty for a command that ended.
    pub fn exception_info(&self) -> String {
        self.exception
            .as_ref()
            .map(|exception| format!("An error occurred while executing the command: {}", exception.text))
            .unwrap_or_default()
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The run begins.
    Started {
        /// When.
        at: Moment,
    },
    /// The model answered.
    Replied {
        /// The answer.
        reply: Box<Reply>,
        /// When.
        at: Moment,
    },
    /// The command ended.
    Ran {
        /// What it left.
        observation: Observation,
        /// When.
        at: Moment,
    },
    /// Memory answered.
    Recalled {
        /// What the model reads; `None`: nothing.
        text: Option<String>,
        /// When.
        at: Moment,
    },
    /// The model, the sandbox, memory or a template failed: the run ends with the class as its exit status.
    Failed {
        /// With what.
        exception: Exception,
    },
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Write this message to the log.
    Append(Value),
    /// Ask the model; answer with [`Event::Replied`].
    CallModel(View),
    /// Run this command; answer with [`Event::Ran`].
    Run {
        /// As the model wrote it.
        command: String,
        /// The call that it answers; none in text mode.
        tool_call_id: Option<Value>,
    },
    /// Ask memory; answer with [`Event::Recalled`].
    Recall(Question),
    /// The run has ended.
    Finish {
        /// One of [`exit`](super::exit), or the class of an exception.
        exit_status: String,
        /// The patch, or nothing.
        submission: String,
    },
}

impl Event {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::Replied { .. } => "replied",
            Self::Ran { .. } => "ran",
            Self::Recalled { .. } => "recalled",
            Self::Failed { .. } => "failed",
        }
    }
}
