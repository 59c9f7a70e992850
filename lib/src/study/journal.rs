//! `journal/<worker>.jsonl`: what happened when, written by one worker.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::bench::Bench;
use super::{Event, StudyError};
use crate::grade::files::{OutError, make_folder};

/// A worker's journal.
pub(super) struct Journal {
    file: Mutex<File>,
    path: PathBuf,
}

impl Journal {
    /// Opens it. A last line that a kill left torn is cut off.
    pub(super) fn open(bench: &Bench, worker: &str) -> Result<Self, StudyError> {
        let path = bench.layout.journal(worker);
        make_folder(path.parent().unwrap_or(bench.layout.root()))?;
        let open = || {
            let mut file = File::options().create(true).read(true).append(true).open(&path)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().map_err(|error| OutError::new(&path, error))?;
        Ok(Self { file: Mutex::new(file), path })
    }

    /// Writes an event down. After a failed write (a full disk) the file is brought back to whole lines.
    pub(super) fn write(&self, event: &Event) -> Result<(), StudyError> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let line = format!("{}\n", json!({ "unix": unix, "what": event }));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let write = |file: &mut File| {
            let before = file.metadata()?.len();
            file.write_all(line.as_bytes()).inspect_err(|_| {
                let _ = file.set_len(before);
            })
        };
        Ok(write(&mut file).map_err(|error| OutError::new(&self.path, error))?)
    }
}
