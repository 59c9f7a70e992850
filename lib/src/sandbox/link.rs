//! The host's end of the connection to a runner.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use memtrial_runner::wire::{self, Answer, Call, End, Finished, Reply, Request};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::attached::{Attached, Program};
use super::{Elided, Ended, Exec, Output, SandboxError};

/// How much longer than a command's own time-out its answer may take before the sandbox counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long everything but a command may take: files can be large.
const ERRAND: Duration = Duration::from_secs(600);
/// How long a sandbox may take to end and clear up after itself.
const FAREWELL: Duration = Duration::from_secs(60);
/// How much is kept of what a runner says on its standard error.
const LAST_WORDS: usize = 4096;

/// A running runner. Dropping it closes its input, which ends the sandbox.
pub(super) struct Link {
    backend: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    words: Option<JoinHandle<String>>,
    next: u64,
    /// A request is out. Stays set where a caller gave up waiting: what comes next would be the old answer.
    busy: bool,
    gone: Option<Gone>,
}

/// How a runner ended.
#[derive(Debug, Clone)]
pub(super) struct Gone {
    /// Its exit code, where it has one.
    pub code: Option<i32>,
    /// What it said.
    pub reason: String,
}

impl Link {
    /// Starts a runner, or a program that passes both streams on to one.
    pub(super) async fn start(backend: &'static str, mut command: Command) -> io::Result<Self> {
        // A group of its own: Ctrl-C at the terminal is for memtrial, which then closes its sandboxes in order.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(&mut command).await?;
        let (Some(input), Some(output), Some(error)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let words = Some(tokio::spawn(last_words(error)));
        Ok(Self { backend, child, input: Some(input), output, words, next: 0, busy: false, gone: None })
    }

    /// Sends a frame that is not answered: how the sandbox is to be made.
    pub(super) async fn describe<T: Serialize>(&mut self, header: &T) -> io::Result<()> {
        self.send(&wire::encode(header, 0)?, &[]).await
    }

    /// Waits until the sandbox is up. Returns what holds its limits.
    pub(super) async fn ping(&mut self) -> Result<Option<String>, SandboxError> {
        match self.call(Call::Ping, &[], ERRAND).await? {
            (Answer::Pong { limits }, _) => Ok(limits),
            (other, _) => Err(self.misfit(&other)),
        }
    }

    /// Runs a command.
    pub(super) async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError> {
        let call = Call::Exec(wire::Command {
            argv: command.argv.clone(),
            cwd: command.cwd.clone(),
            env: command.env.clone(),
            timeout_ms: u64::try_from(command.timeout.as_millis()).unwrap_or(u64::MAX).min(MAX_TIMEOUT_MS),
            head: command.output.head,
            tail: command.output.tail,
        });
        match self.call(call, &command.stdin, command.timeout.saturating_add(PATIENCE)).await? {
            (Answer::Ended(finished), bytes) => Ok(output(&finished, bytes)),
            (Answer::Failed { reason }, _) => Err(self.failed("run a command", reason)),
            (other, _) => Err(self.misfit(&other)),
        }
    }

    /// Writes a file.
    pub(super) async fn put(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        match self.call(Call::Put { path: path.to_owned(), mode }, bytes, ERRAND).await? {
            (Answer::Written, _) => Ok(()),
            (Answer::Failed { reason }, _) => Err(self.failed("write a file", reason)),
            (other, _) => Err(self.misfit(&other)),
        }
    }

    /// Reads a file.
    pub(super) async fn get(&mut self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SandboxError> {
        match self.call(Call::Get { path: path.to_owned(), limit }, &[], ERRAND).await? {
            (Answer::File, bytes) => Ok(Some(bytes)),
            (Answer::Absent, _) => Ok(None),
            (Answer::Failed { reason }, _) => Err(self.failed("read a file", reason)),
            (other, _) => Err(self.misfit(&other)),
        }
    }

    /// Hands the connection to a program.
    pub(super) async fn hand(mut self, program: &Program) -> Result<Attached, SandboxError> {
        let call = Call::Hand(wire::Program {
            argv: program.argv.clone(),
            cwd: program.cwd.clone(),
            env: program.env.clone(),
        });
        match self.call(call, &[], ERRAND).await? {
            (Answer::Handed, _) => {}
            (Answer::Failed { reason }, _) => return Err(self.failed("start a program", reason)),
            (other, _) => return Err(self.misfit(&other)),
        }
        let words = self.words.take();
        match (self.input, words) {
            (Some(input), Some(words)) => Ok(Attached::new(self.child, input, self.output, words)),
            _ => Err(SandboxError::Lost { backend: self.backend, reason: "it has ended".into() }),
        }
    }

    /// Closes the runner's input and waits until it has ended and cleared up.
    pub(super) async fn finish(&mut self) -> Gone {
        if let Some(gone) = &self.gone {
            return gone.clone();
        }
        self.input = None;
        let status = match timeout(FAREWELL, self.child.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => {
                let _ = self.child.start_kill();
                None
            }
        };
        let words = match self.words.take() {
            // Whoever still holds the stream open shall not hold this up.
            Some(task) => timeout(Duration::from_secs(2), task).await.ok().and_then(Result::ok),
            None => None,
        };
        let words = words.unwrap_or_default().trim().trim_start_matches("memtrial-runner: ").to_owned();
        let reason = match (words.is_empty(), status) {
            (false, _) => words,
            (true, Some(status)) => format!("its runner ended with {status}"),
            (true, None) => "its runner did not end".to_owned(),
        };
        let gone = Gone { code: status.and_then(|status| status.code()), reason };
        self.gone.insert(gone).clone()
    }

    /// Closes the runner's input and waits for the end of its output: the process that serves the sandbox has then
    /// ended all others and is ending itself. Returns the process that was started here, which may still clear up.
    pub(super) async fn part(mut self) -> Child {
        self.input = None;
        let mut rest = [0; 1024];
        let ended = async { while let Ok(1..) = self.output.read(&mut rest).await {} };
        if timeout(FAREWELL, ended).await.is_err() {
            let _ = self.child.start_kill();
        }
        self.child
    }

    async fn call(
        &mut self,
        call: Call,
        body: &[u8],
        at_most: Duration,
    ) -> Result<(Answer, Vec<u8>), SandboxError> {
        if self.busy {
            let reason = "an earlier request was given up, its answer is still out".to_owned();
            return Err(SandboxError::Lost { backend: self.backend, reason });
        }
        self.next += 1;
        let request = Request { id: self.next, call };
        let frame = wire::encode(&request, body.len());
        let frame = frame.map_err(|error| self.failed("send a request", error.to_string()))?;
        self.busy = true;
        let answered = timeout(at_most, async {
            self.send(&frame, body).await?;
            self.receive().await
        })
        .await;
        let reason = match answered {
            Ok(Ok((reply, bytes))) if reply.id == request.id => {
                self.busy = false;
                return Ok((reply.answer, bytes));
            }
            Ok(Ok((reply, _))) => format!("it answered request {} instead of {}", reply.id, request.id),
            Ok(Err(_)) => self.finish().await.reason,
            Err(_) => format!("it did not answer within {} s", at_most.as_secs()),
        };
        self.input = None;
        Err(SandboxError::Lost { backend: self.backend, reason })
    }

    async fn send(&mut self, frame: &[u8], body: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(frame).await?;
        input.write_all(body).await?;
        input.flush().await
    }

    async fn receive(&mut self) -> io::Result<(Reply, Vec<u8>)> {
        let mut prefix = [0; 8];
        self.output.read_exact(&mut prefix).await?;
        let (head, body) = wire::lengths(prefix)?;
        let mut header = vec![0; head];
        self.output.read_exact(&mut header).await?;
        let mut bytes = vec![0; body];
        self.output.read_exact(&mut bytes).await?;
        Ok((serde_json::from_slice(&header)?, bytes))
    }

    fn failed(&self, action: &str, reason: String) -> SandboxError {
        SandboxError::Failed { backend: self.backend, action: action.to_owned(), reason }
    }

    fn misfit(&self, answer: &Answer) -> SandboxError {
        SandboxError::Lost {
            backend: self.backend,
            reason: format!("it answered something else: {answer:?}"),
        }
    }
}

/// A year: more than any command may run, and far from overflowing a clock.
const MAX_TIMEOUT_MS: u64 = 366 * 24 * 3600 * 1000;

/// Starts a program that was written a moment ago. Where another thread forked while it was written, the kernel calls
/// it busy until that child has started its own program.
async fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..50 {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            other => return other,
        }
    }
    command.spawn()
}

/// The end of what comes on a stream.
async fn last_words(mut stream: ChildStderr) -> String {
    let mut kept = Vec::new();
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..read]);
        let excess = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn output(finished: &Finished, bytes: Vec<u8>) -> Output {
    Output {
        ended: match finished.end {
            End::Exited(code) => Ended::Exited(code),
            End::Signaled(signal) => Ended::Signaled(signal),
            End::TimedOut => Ended::TimedOut,
        },
        elided: finished
            .cut
            .and_then(|at| usize::try_from(at).ok())
            .map(|at| Elided { at, bytes: finished.elided }),
        bytes,
        wall: Duration::from_micros(finished.wall_us),
        out_of_memory: finished.out_of_memory,
    }
}
