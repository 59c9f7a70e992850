//! JSON-RPC 2.0 with a program, a line a message: one request at a time, each within its time.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::sandbox::Attached;

/// How much of a line that was skipped is kept for messages.
const SHOWN: usize = 200;

/// Why a call brought no result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fault {
    /// The program is gone.
    Ended,
    /// It did not answer in time.
    Late(Duration),
    /// It said no.
    Refused {
        /// JSON-RPC's code.
        code: i64,
        /// Its words.
        message: String,
    },
    /// What it answered is no answer.
    Broken(String),
}

/// JSON-RPC's code for a method that is not there.
pub(super) const NO_METHOD: i64 = -32601;

/// Lines that are no message of JSON-RPC: how many, and the last.
#[derive(Debug, Clone, Default)]
pub(super) struct Skipped {
    pub lines: u64,
    pub last: String,
}

/// A running program that is talked to.
#[derive(Debug)]
pub(super) struct Talk {
    attached: Attached,
    /// What is still to be written.
    pending: Vec<u8>,
    /// What was read and not yet understood, and how much of it holds no end of a line.
    unread: Vec<u8>,
    scanned: usize,
    /// The longest line.
    longest: usize,
    next: u64,
    /// It counts as ended, whatever it still says.
    cut: bool,
    pub skipped: Skipped,
}

impl Talk {
    pub fn new(attached: Attached, longest: usize) -> Self {
        Self {
            attached,
            pending: Vec::new(),
            unread: Vec::new(),
            scanned: 0,
            longest,
            next: 0,
            cut: false,
            skipped: Skipped::default(),
        }
    }

    /// Asks and waits for the result.
    pub async fn ask(&mut self, method: &str, params: &Value, within: Duration) -> Result<Value, Fault> {
        self.next += 1;
        let id = self.next;
        self.queue(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        timeout(within, self.result(id)).await.unwrap_or(Err(Fault::Late(within)))
    }

    /// Says what is not answered.
    pub async fn tell(&mut self, method: &str, params: &Value, within: Duration) -> Result<(), Fault> {
        self.queue(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
        let said = async {
            let input = self.attached.input.as_mut().ok_or(Fault::Ended)?;
            let written = input.write_all(&self.pending).await;
            self.pending.clear();
            written.map_err(|_| Fault::Ended)
        };
        timeout(within, said).await.unwrap_or(Err(Fault::Late(within)))
    }

    /// Sends bytes as they are: for checks of how a program bears what is no message.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Closes its input: what comes next finds it ended.
    pub fn cut(&mut self) {
        self.attached.input = None;
        self.cut = true;
    }

    /// Ends the program and all that it started. Returns the end of what it said on its standard error.
    pub async fn end(self) -> String {
        self.attached.end().await
    }

    fn queue(&mut self, message: &Value) {
        self.pending.extend_from_slice(message.to_string().as_bytes());
        self.pending.push(b'\n');
    }

    /// Writes and reads at once: a program that answers while it is written to must not be waited for in vain.
    async fn result(&mut self, id: u64) -> Result<Value, Fault> {
        if self.cut {
            return Err(Fault::Ended);
        }
        loop {
            while let Some(line) = self.line()? {
                if let Some(result) = self.understand(&line, id)? {
                    return Ok(result);
                }
            }
            let Self { attached: Attached { input, output, .. }, pending, unread, .. } = self;
            let writing = input.as_mut().filter(|_| !pending.is_empty());
            let write = async {
                match writing {
                    Some(input) => input.write(pending).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // What is written to a program that no longer reads is lost; the end of its output will tell.
                written = write => match written {
                    Ok(written @ 1..) => drop(pending.drain(..written)),
                    _ => pending.clear(),
                },
                read = output.read_buf(unread) => if !matches!(read, Ok(1..)) {
                    return Err(Fault::Ended);
                },
            }
        }
    }

    /// The next whole line.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let end = memchr::memchr(b'\n', &self.unread[self.scanned..]).map(|at| self.scanned + at);
        if end.unwrap_or(self.unread.len()) > self.longest {
            return Err(Fault::Broken(format!("it wrote a line of more than {} bytes", self.longest)));
        }
        let Some(end) = end else {
            self.scanned = self.unread.len();
            return Ok(None);
        };
        let rest = self.unread.split_off(end + 1);
        let line = std::mem::replace(&mut self.unread, rest);
        self.scanned = 0;
        Ok(Some(line))
    }

    /// The result, where the line is the answer that is waited for.
    fn understand(&mut self, line: &[u8], id: u64) -> Result<Option<Value>, Fault> {
        let message = match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(message)) if speaks_to_us(&message) => message,
            _ => {
                let text = String::from_utf8_lossy(line);
                let text = text.trim();
                if !text.is_empty() {
                    self.skipped.lines += 1;
                    self.skipped.last = text.chars().take(SHOWN).collect();
                }
                return Ok(None);
            }
        };
        if let Some(method) = message.get("method") {
            if let Some(theirs) = message.get("id") {
                let answer = if method == "ping" {
                    json!({"jsonrpc": "2.0", "id": theirs, "result": {}})
                } else {
                    json!({"jsonrpc": "2.0", "id": theirs,
                        "error": {"code": NO_METHOD, "message": "this client serves no requests"}})
                };
                self.queue(&answer);
            }
            return Ok(None);
        }
        let theirs = message.get("id").unwrap_or(&Value::Null);
        if let Some(error) = message.get("error") {
            let words = error.get("message").and_then(Value::as_str).map(str::to_owned);
            let message = words.unwrap_or_else(|| error.to_string());
            if theirs.as_u64() != Some(id) {
                return Err(Fault::Broken(format!(
                    "it answered request {theirs} instead of {id}: {message}"
                )));
            }
            let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
            return Err(Fault::Refused { code, message: clipped(&message, 2000) });
        }
        if theirs.as_u64() != Some(id) {
            return Err(Fault::Broken(format!("it answered request {theirs} instead of {id}")));
        }
        match message.get("result") {
            Some(result) => Ok(Some(result.clone())),
            None => Err(Fault::Broken(format!("its answer to request {id} has neither result nor error"))),
        }
    }
}

/// Whether an object is a message of JSON-RPC. An answer to no request (`id` null) complains of what was no request, and
/// memtrial sends none such.
fn speaks_to_us(message: &Map<String, Value>) -> bool {
    let is_complaint = !message.contains_key("method") && message.get("id").is_none_or(Value::is_null);
    message.get("jsonrpc") == Some(&Value::from("2.0")) && !is_complaint
}

/// The head of a text.
pub(super) fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
