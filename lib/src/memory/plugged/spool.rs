//! What a program was told, kept outside its reach, so that it can be told again after it ended by itself.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Told {
    pub method: String,
    pub params: Value,
    /// Seconds that its answer may take; `None`: it has none.
    pub seconds: Option<u64>,
}

/// Messages in order, in a file: a history is larger than memory should be.
#[derive(Debug)]
pub(super) struct Spool(PathBuf);

impl Spool {
    /// An empty one at this path.
    pub fn new(path: PathBuf) -> io::Result<Self> {
        fs_err::write(&path, "")?;
        Ok(Self(path))
    }

    pub fn push(&self, told: &Told) -> io::Result<()> {
        let mut line = serde_json::to_vec(told)?;
        line.push(b'\n');
        fs_err::OpenOptions::new().append(true).open(&self.0)?.write_all(&line)
    }

    /// The messages, one at a time.
    pub fn messages(&self) -> io::Result<impl Iterator<Item = io::Result<Told>> + use<>> {
        let lines = BufReader::new(fs_err::File::open(&self.0)?).lines();
        Ok(lines.map(|line| Ok(serde_json::from_str(&line?)?)))
    }
}
