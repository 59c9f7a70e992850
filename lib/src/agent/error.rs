//! Why a run has no end of its own, and what the trajectory calls it.

use super::config::Dialect;
use super::event::Exception;
use super::exit;
use super::journal::JournalError;
use super::machine::StepError;
use super::template::TemplateError;
use crate::llm::LlmError;
use crate::memory::MemoryError;
use crate::sandbox::SandboxError;
use crate::trajectory::TrajectoryError;

/// Why a run has no end of its own. After a failed model, sandbox or template the trajectory is written all the same,
/// and the same call takes the run up where it failed.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The model failed.
    #[error(transparent)]
    Model(LlmError),
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Memory failed while the run went on.
    #[error("memory: {0}")]
    Memory(Box<MemoryError>),
    /// The agent's configuration cannot ask memory in this way.
    #[error("memory in the run: {0}")]
    Asking(String),
    /// A template cannot be rendered.
    #[error("agent configuration: {0}")]
    Template(#[from] TemplateError),
    /// The start-up command failed.
    #[error("run.env_startup_command ended with code {returncode}: {output}")]
    Startup {
        /// Its return code.
        returncode: i64,
        /// What it wrote.
        output: String,
    },
    /// Another program as the agent asked no model, and changed nothing or failed.
    #[error("the agent's program ended {ended} without one answered model call; its last words:\n{output}")]
    Idle {
        /// How it ended.
        ended: String,
        /// The end of its output.
        output: String,
    },
    /// There is nothing to compare with.
    #[error("{workdir} is no git repository with a commit")]
    NoRepository {
        /// Where it should be.
        workdir: String,
    },
    /// The machine was misused.
    #[error(transparent)]
    Step(StepError),
    /// The run's files cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run cannot be written in another format.
    #[error(transparent)]
    Document(#[from] TrajectoryError),
    /// A resumed run does not repeat what the interrupted one did: start a new attempt in another folder.
    #[error("the resumed run left its record at event {event} ({what}): recorded {recorded}, now {now}")]
    Diverged {
        /// The event, from 1.
        event: u64,
        /// What differs: `command`, `return code`, `repository`, `model call`, `model reply`, `message` or `event`.
        what: &'static str,
        /// As recorded.
        recorded: String,
        /// As it is now.
        now: String,
    },
}

impl From<LlmError> for AgentError {
    fn from(error: LlmError) -> Self {
        match error {
            LlmError::Diverged { path, number } => Self::Diverged {
                event: number,
                what: "model call",
                recorded: format!("call {number} of {path}"),
                now: "another request".into(),
            },
            error => Self::Model(error),
        }
    }
}

impl From<StepError> for AgentError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Template(error) => Self::Template(error),
            error => Self::Step(error),
        }
    }
}

impl AgentError {
    /// What the trajectory says of a run that this ended; `None`: the trajectory stays as it was.
    pub(super) fn exception(&self, dialect: Dialect) -> Option<Exception> {
        let class = match self {
            // 1.x hides what kept failing behind the name of its retry library's exception.
            Self::Model(LlmError::Unreachable { .. }) if dialect == Dialect::V1 => "RetryError",
            Self::Model(error) => class(error),
            Self::Sandbox(_) => "SandboxError",
            Self::Template(error) => error.class,
            Self::Memory(_) => "MemoryError",
            Self::Startup { .. } | Self::Idle { .. } | Self::NoRepository { .. } => "RuntimeError",
            Self::Asking(_)
            | Self::Step(_)
            | Self::Journal(_)
            | Self::Document(_)
            | Self::Diverged { .. } => {
                return None;
            }
        };
        Some(Exception { class: class.to_owned(), text: self.to_string() })
    }
}

/// The class name that mini-swe-agent's client library gives to the same failure.
pub(super) fn class(error: &LlmError) -> &'static str {
    match error {
        LlmError::ContextWindowExceeded { .. } => exit::CONTEXT_WINDOW_EXCEEDED,
        LlmError::Unreachable { status: None, .. } => "APIConnectionError",
        LlmError::Unreachable { status: Some(status), .. } | LlmError::Refused { status, .. } => match status
        {
            400 | 422 => "BadRequestError",
            401 => "AuthenticationError",
            403 => "PermissionDeniedError",
            404 => "NotFoundError",
            408 => "Timeout",
            429 => "RateLimitError",
            500.. => "InternalServerError",
            _ => "APIError",
        },
        LlmError::Untranslatable { .. } => "BadRequestError",
        LlmError::Capped { .. } => "BudgetExceededError",
        LlmError::Exhausted { .. } => "ReplayExhausted",
        LlmError::Setup { .. }
        | LlmError::Prices { .. }
        | LlmError::Recording { .. }
        | LlmError::Vectors { .. } => "ConfigurationError",
        LlmError::Journal { .. } | LlmError::Diverged { .. } | LlmError::Cache { .. } => "JournalError",
    }
}

impl From<MemoryError> for AgentError {
    fn from(error: MemoryError) -> Self {
        Self::Memory(Box::new(error))
    }
}
