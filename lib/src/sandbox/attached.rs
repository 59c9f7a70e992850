//! A program that lives in a sandbox and talks to memtrial over its standard streams.

use std::any::Any;
use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Mount;

/// How long a program and its sandbox may take to end once its input is closed.
const FAREWELL: Duration = Duration::from_secs(20);

/// A program to start.
#[derive(Debug, Clone)]
pub struct Program {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The working folder: absolute, as the sandbox sees it.
    pub cwd: String,
    /// Its whole environment besides the sandbox's defaults (`PATH`, `HOME`, `LANG`, `TZ`).
    pub env: BTreeMap<String, String>,
    /// The one folder of the host that it may write to.
    pub writable: Mount,
}

/// A program that runs. Dropping this closes its input, which ends its sandbox with all that it started.
#[derive(Debug)]
pub struct Attached {
    /// Its standard input.
    pub input: Option<ChildStdin>,
    /// Its standard output.
    pub output: ChildStdout,
    child: Child,
    words: JoinHandle<String>,
    /// What must be held while it runs.
    held: Option<Box<dyn Any + Send>>,
}

impl Attached {
    pub(super) fn new(
        child: Child,
        input: ChildStdin,
        output: ChildStdout,
        words: JoinHandle<String>,
    ) -> Self {
        Self { input: Some(input), output, child, words, held: None }
    }

    /// Holds this as long as the program runs.
    pub(super) fn holding(mut self, what: impl Any + Send) -> Self {
        self.held = Some(Box::new(what));
        self
    }

    /// Closes its input, waits for its end and that of everything it started, and returns the last of what it said on
    /// its standard error; where it ended in failure, the last line says how.
    pub async fn end(mut self) -> String {
        self.input = None;
        // Nobody reads any more: a program that still writes must not wait for it.
        let mut rest = vec![0; 64 << 10];
        let output = &mut self.output;
        let drained = async { while let Ok(1..) = output.read(&mut rest).await {} };
        if timeout(FAREWELL, drained).await.is_err() {
            // The process outside: the sandbox is tied to it.
            let _ = self.child.start_kill();
        }
        let _ = timeout(FAREWELL, self.child.wait()).await;
        // Whoever still holds the stream open shall not hold this up.
        let words = timeout(Duration::from_secs(2), self.words).await;
        words.ok().and_then(Result::ok).unwrap_or_default().trim().replace("memtrial-runner: ", "")
    }
}
