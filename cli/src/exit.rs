//! Exit codes, documented in `docs/reference/exit-codes.md`.

use std::fmt;

use tokio::signal::unix::{SignalKind, signal};

/// How memtrial ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The answer is negative where a gate was asked for.
    Negative = 1,
    /// The command line is wrong.
    Usage = 2,
    /// An input is bad.
    BadInput = 3,
    /// Something is missing here, or does not hold what it promises: a sandbox back end, disk, an endpoint.
    Environment = 4,
    /// Finished, with some trials failed by infrastructure.
    PartlyFailed = 5,
    /// Interrupted; everything finished is kept.
    Interrupted = 130,
}

/// An error with the exit code that it leads to.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What happened.
    pub error: anyhow::Error,
}

impl Failure {
    /// A wrong command line.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into() }
    }

    /// A bad input.
    pub fn input(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::BadInput, error: error.into() }
    }

    /// Something missing here.
    pub fn environment(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Environment, error: error.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            // many errors show their source already
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        f.write_str(&text)
    }
}

/// What a command returns.
pub type Outcome = Result<Exit, Failure>;

/// Waits for the next SIGINT (Ctrl-C) or SIGTERM. Without signal handlers it waits for ever: then a signal ends the
/// process at once, and nothing finished is lost by that either.
pub async fn interrupted() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => signals.recv().await,
            Err(_) => std::future::pending().await,
        };
    };
    let pressed = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = terminated => {}
        () = pressed => {}
    }
}

impl From<memtrial::dataset::DatasetError> for Failure {
    fn from(error: memtrial::dataset::DatasetError) -> Self {
        Self::input(error)
    }
}

impl From<memtrial::trajectory::TrajectoryError> for Failure {
    fn from(error: memtrial::trajectory::TrajectoryError) -> Self {
        Self::input(error)
    }
}

impl From<memtrial::study::StudyError> for Failure {
    fn from(error: memtrial::study::StudyError) -> Self {
        match error {
            memtrial::study::StudyError::Out(error) => error.into(),
            error @ memtrial::study::StudyError::Images(_) => Self::environment(error),
            _ => Self::input(error),
        }
    }
}

impl From<memtrial::report::StudyReportError> for Failure {
    fn from(error: memtrial::report::StudyReportError) -> Self {
        match error {
            memtrial::report::StudyReportError::Study(error) => error.into(),
            error => Self::input(error),
        }
    }
}

impl From<memtrial::grade::files::OutError> for Failure {
    fn from(error: memtrial::grade::files::OutError) -> Self {
        Self::environment(error)
    }
}
