//! Frames: `u32` header length, `u32` body length (both little-endian), a JSON header, the body's bytes.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// No header is longer: a command line with its environment is at most 2 MiB on Linux, escaped in JSON.
pub const MAX_HEADER: u32 = 16 << 20;

/// What memtrial asks for. The answer carries the same id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the asker.
    pub id: u64,
    /// What to do.
    pub call: Call,
}

/// A request's kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Is the sandbox up?
    Ping,
    /// Run a command; the body is its standard input.
    Exec(Command),
    /// Write the body to a file.
    Put {
        /// Absolute.
        path: String,
        /// Permission bits.
        mode: u32,
    },
    /// Read a regular file.
    Get {
        /// Absolute.
        path: String,
        /// The most bytes that it may hold.
        limit: u64,
    },
    /// Hand the connection to a program: after the answer both streams are its own, and the sandbox ends with it.
    Hand(Program),
}

/// A program that talks to the host itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The working folder: absolute.
    pub cwd: String,
    /// Environment variables besides the sandbox's own.
    pub env: BTreeMap<String, String>,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The working folder: absolute.
    pub cwd: String,
    /// Environment variables besides the sandbox's own.
    pub env: BTreeMap<String, String>,
    /// Milliseconds until its process tree is killed.
    pub timeout_ms: u64,
    /// Bytes kept from the start of its output.
    pub head: u64,
    /// Bytes kept from the end.
    pub tail: u64,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The request's id.
    pub id: u64,
    /// What came of it.
    pub answer: Answer,
}

/// An answer's kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The sandbox is up, and its limits are held by this.
    Pong {
        /// `cgroup v1`, `cgroup v2`, `rlimits`, or nothing where the runner did not set them.
        limits: Option<String>,
    },
    /// The command ended; the body is its output.
    Ended(Finished),
    /// The file is written.
    Written,
    /// The body is the file.
    File,
    /// There is no regular file there.
    Absent,
    /// What follows is the program's.
    Handed,
    /// It could not be done.
    Failed {
        /// Why.
        reason: String,
    },
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// By exit, signal or time-out.
    pub end: End,
    /// Length of the head in the body, where something was left out after it.
    pub cut: Option<u64>,
    /// Bytes left out there.
    pub elided: u64,
    /// Wall-clock microseconds.
    pub wall_us: u64,
    /// Whether the memory limit killed something meanwhile.
    pub out_of_memory: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// With this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// It was killed: its time had run out.
    TimedOut,
}

/// Writes one frame and flushes.
///
/// # Errors
/// When the writer fails, or header or body are too long for the format.
pub fn write<T: Serialize>(to: &mut impl Write, header: &T, body: &[u8]) -> io::Result<()> {
    let header = encode(header, body.len())?;
    to.write_all(&header)?;
    to.write_all(body)?;
    to.flush()
}

/// A frame up to its body.
///
/// # Errors
/// When header or body are too long for the format.
pub fn encode<T: Serialize>(header: &T, body: usize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(header)?;
    let head = u32::try_from(json.len()).ok().filter(|length| *length <= MAX_HEADER);
    let head = head.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the header is too long"))?;
    let body = u32::try_from(body);
    let body = body.map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "4 GiB are the most at once"))?;
    let mut frame = Vec::with_capacity(8 + json.len());
    frame.extend_from_slice(&head.to_le_bytes());
    frame.extend_from_slice(&body.to_le_bytes());
    frame.extend_from_slice(&json);
    Ok(frame)
}

/// The two lengths that open a frame: header and body.
///
/// # Errors
/// When the header is longer than [`MAX_HEADER`]: this is no frame.
pub fn lengths(prefix: [u8; 8]) -> io::Result<(usize, usize)> {
    let [a, b, c, d, e, f, g, h] = prefix;
    let (head, body) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    if head > MAX_HEADER {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a frame of memtrial's runner"));
    }
    Ok((head as usize, body as usize))
}

/// Reads a frame up to its body, whose length is returned; `None` at the end of the stream. Never reads further, so
/// that another process may read on.
///
/// # Errors
/// When the reader fails or the bytes are no frame.
pub fn read_header<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<(T, usize)>> {
    let mut prefix = [0; 8];
    match from.read_exact(&mut prefix) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let (head, body) = lengths(prefix)?;
    let mut json = vec![0; head];
    from.read_exact(&mut json)?;
    Ok(Some((serde_json::from_slice(&json)?, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_written_and_not_further() {
        let request = Request { id: 7, call: Call::Put { path: "/ä".into(), mode: 0o644 } };
        let mut bytes = Vec::new();
        write(&mut bytes, &request, b"\0\xff").unwrap();
        write(&mut bytes, &Request { id: 8, call: Call::Ping }, b"").unwrap();
        let mut reader = bytes.as_slice();
        let (read, body) = read_header::<Request>(&mut reader).unwrap().unwrap();
        assert_eq!((read, body), (request, 2));
        assert_eq!(&reader[..2], b"\0\xff");
        reader = &reader[2..];
        let (read, body) = read_header::<Request>(&mut reader).unwrap().unwrap();
        assert_eq!((read.id, body), (8, 0));
        assert!(read_header::<Request>(&mut reader).unwrap().is_none());
    }

    #[test]
    fn what_is_no_frame_is_refused_before_memory_is_taken() {
        let error = read_header::<Request>(&mut b"HTTP/1.1 200 OK\r\n".as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
