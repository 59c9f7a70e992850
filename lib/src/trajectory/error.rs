//! Why a trajectory cannot be read or written.

use std::io;
use std::path::PathBuf;

/// Why a trajectory cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TrajectoryError {
    /// The file cannot be opened or read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// The file is no valid JSON; a truncated file ends up here.
    #[error("{}:{line}:{column}: no valid JSON: {reason}; if the run was killed while writing, run it again", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The parser's words.
        reason: String,
    },
    /// Valid JSON, but no trajectory that memtrial knows.
    #[error("{}: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is missing or unknown, and what to do.
        reason: String,
    },
    /// A message has an unexpected shape.
    #[error("{}: message {number}: {reason}", path.display())]
    Message {
        /// The file.
        path: PathBuf,
        /// Its place in `messages`, from 1.
        number: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file is larger than the caller allows.
    #[error("{}: {bytes} bytes, more than the limit of {limit}; raise the limit to read it", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The file cannot be written; the previous one, if any, is untouched.
    #[error("{}: cannot be written: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
}
