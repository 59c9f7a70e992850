//! A sandbox in a temporary folder and a model that reads from a script. For tests and the scenario player: commands
//! run on this machine, bounded only in time and output.

#![allow(dead_code, reason = "each user takes what it needs")]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::api::{
    Cost, Elided, Ended, Exec, LlmError, Model, Output, OutputLimit, Reply, Request, Sandbox, SandboxError,
    async_trait,
};

/// Runs commands in its folder.
pub struct FolderSandbox {
    pub folder: PathBuf,
    /// The folder dies with the sandbox, where the sandbox made it.
    _made: Option<tempfile::TempDir>,
    /// Fails instead of running this command (from 1, hidden ones counted).
    pub lost_at: Option<usize>,
    pub executed: Vec<String>,
}

impl FolderSandbox {
    /// An empty folder.
    pub fn new() -> std::io::Result<Self> {
        let made = tempfile::tempdir()?;
        Ok(Self { folder: made.path().to_owned(), _made: Some(made), lost_at: None, executed: Vec::new() })
    }

    /// A folder that is there.
    pub fn within(folder: PathBuf) -> std::io::Result<Self> {
        Ok(Self { folder: folder.canonicalize()?, _made: None, lost_at: None, executed: Vec::new() })
    }
}

#[async_trait]
impl Sandbox for FolderSandbox {
    async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError> {
        let failed = |error: std::io::Error| SandboxError::Failed {
            backend: "folder",
            action: format!("run {:?}", command.argv),
            reason: error.to_string(),
        };
        self.executed.push(command.argv.last().cloned().unwrap_or_default());
        if self.lost_at == Some(self.executed.len()) {
            return Err(SandboxError::Lost { backend: "folder", reason: "asked for by a test".into() });
        }
        let started = Instant::now();
        let mut child = tokio::process::Command::new("sh")
            .args(["-c", "exec \"$@\" 2>&1", "sh"])
            .args(&command.argv)
            .current_dir(&self.folder)
            .env("HOME", &self.folder)
            .envs(&command.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let mut bytes = Vec::new();
        let mut pipe = child.stdout.take();
        let ending = async {
            if let Some(pipe) = &mut pipe {
                pipe.read_to_end(&mut bytes).await?;
            }
            child.wait().await
        };
        let ended = match tokio::time::timeout(command.timeout, ending).await {
            Ok(status) => {
                use std::os::unix::process::ExitStatusExt;
                let status = status.map_err(failed)?;
                match (status.code(), status.signal()) {
                    (Some(code), _) => Ended::Exited(code),
                    (None, signal) => Ended::Signaled(signal.unwrap_or(0)),
                }
            }
            Err(_) => {
                if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
                    let group = format!("-{id}");
                    let kill =
                        tokio::process::Command::new("kill").args(["-KILL", "--", &group]).status().await;
                    kill.map_err(failed)?;
                }
                Ended::TimedOut
            }
        };
        let elided = cut(&mut bytes, command.output);
        Ok(Output { ended, bytes, elided, wall: started.elapsed(), out_of_memory: false })
    }

    async fn put(&mut self, path: &str, bytes: &[u8], _mode: u32) -> Result<(), SandboxError> {
        std::fs::write(self.folder.join(path), bytes).map_err(|error| SandboxError::Failed {
            backend: "folder",
            action: format!("write {path}"),
            reason: error.to_string(),
        })
    }

    async fn get(&mut self, path: &str, _limit: u64) -> Result<Option<Vec<u8>>, SandboxError> {
        Ok(std::fs::read(self.folder.join(path)).ok())
    }

    async fn close(self: Box<Self>) -> Result<(), SandboxError> {
        Ok(())
    }

    fn as_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}

/// Takes out what lies between head and tail.
fn cut(bytes: &mut Vec<u8>, limit: OutputLimit) -> Option<Elided> {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (head, tail) = (size(limit.head), size(limit.tail));
    let excess = bytes.len().checked_sub(head.saturating_add(tail)).filter(|excess| *excess > 0)?;
    bytes.drain(head..head + excess);
    Some(Elided { at: head, bytes: excess as u64 })
}

/// Answers from a script, as a journalled model does: asked again in a new process, it answers again from the start.
pub struct ScriptedModel {
    script: Mutex<VecDeque<Result<Reply, LlmError>>>,
    /// What it was asked.
    pub requests: Mutex<Vec<Request>>,
    /// Fails instead of answering this call (from 1).
    pub fails_at: AtomicUsize,
}

impl ScriptedModel {
    /// Answers with these, in order.
    pub fn new(script: impl IntoIterator<Item = Result<Reply, LlmError>>) -> Self {
        Self {
            script: Mutex::new(script.into_iter().collect()),
            requests: Mutex::default(),
            fails_at: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        let number = match self.requests.lock() {
            Ok(mut requests) => {
                requests.push(request.clone());
                requests.len()
            }
            Err(_) => 0,
        };
        if self.fails_at.load(Ordering::Relaxed) == number {
            let (endpoint, reason) = ("http://script".into(), "asked for by a test".into());
            return Err(LlmError::Unreachable { endpoint, reason, attempts: 1, status: None });
        }
        let next = self.script.lock().ok().and_then(|mut script| script.pop_front());
        next.unwrap_or(Err(LlmError::Exhausted { number: number as u64 }))
    }

    fn name(&self) -> &str {
        "script"
    }
}

/// A reply around a message, with made-up usage.
pub fn reply(message: Value, finish_reason: &str, usd: Option<f64>) -> Reply {
    let (prompt_tokens, completion_tokens) = (100, 10);
    Reply {
        response: json!({
            "id": "r", "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens},
        }),
        message,
        finish_reason: Some(finish_reason.to_owned()),
        cost: Cost {
            calls: 1,
            prompt_tokens,
            completion_tokens,
            list_usd: usd,
            paid_usd: None,
            ..Cost::ZERO
        },
    }
}

/// An assistant message that calls `bash` with each of these commands.
pub fn calling(commands: &[&str]) -> Value {
    let calls: Vec<Value> = commands
        .iter()
        .enumerate()
        .map(|(index, command)| {
            let arguments = json!({"command": command}).to_string();
            json!({"id": format!("call_{index}"), "type": "function",
                   "function": {"name": "bash", "arguments": arguments}})
        })
        .collect();
    json!({"role": "assistant", "content": "Next.", "tool_calls": calls})
}
