//! What agents report of records: `feedback.jsonl` beside the index, a line a report.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::llm::take_alone;
use crate::memory::MemoryError;

/// The file's name in the index's folder.
pub const FEEDBACK_FILE: &str = "feedback.jsonl";

/// How long a report waits for another process that writes one.
const PATIENCE: Duration = Duration::from_secs(10);

/// One report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    /// When: Unix time in seconds.
    pub at: f64,
    /// The record.
    pub id: String,
    /// Whether it helped.
    pub helped: bool,
    /// The agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The reports of an index. Several processes may add to one file.
#[derive(Debug)]
pub struct Feedbacks {
    path: PathBuf,
    turn: Mutex<()>,
}

impl Feedbacks {
    /// The reports of the index in this folder; the file is made with the first one.
    pub fn beside(index: &Path) -> Self {
        Self { path: index.join(FEEDBACK_FILE), turn: Mutex::new(()) }
    }

    /// Adds a report and has it on disk before it returns. A line that a kill or a full disk left torn is cut off.
    ///
    /// # Errors
    /// When the file cannot be written, or another process holds it for 10 seconds.
    pub fn add(&self, feedback: &Feedback) -> Result<(), MemoryError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.append(feedback).map_err(|error| self.wrong(&error))
    }

    /// All reports, in order; a torn last line is none, a missing file holds none.
    ///
    /// # Errors
    /// When the file cannot be read; a line that is no report is named.
    pub fn all(&self) -> Result<Vec<Feedback>, MemoryError> {
        let text = match fs_err::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.wrong(&error)),
        };
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let read = whole.enumerate().map(|(n, line)| {
            serde_json::from_str(line).map_err(|error| self.wrong(&format!("line {}: {error}", n + 1)))
        });
        read.collect()
    }

    fn append(&self, feedback: &Feedback) -> io::Result<()> {
        let mut line = serde_json::to_vec(feedback)?;
        line.push(b'\n');
        let mut file =
            fs_err::OpenOptions::new().read(true).append(true).create(true).open(&self.path)?.into_parts().0;
        take(&file)?;
        let whole = whole_lines(&mut file)?;
        file.set_len(whole)?;
        let written = file.write_all(&line).and_then(|()| file.sync_data());
        if written.is_err() {
            // A full disk still lets a file shrink; if even that fails, the next report cuts the torn line off.
            let _ = file.set_len(whole);
        }
        // Closing alone would keep the lock while a process that was forked meanwhile has not yet replaced itself.
        let _ = file.unlock();
        written
    }

    fn wrong(&self, reason: &dyn std::fmt::Display) -> MemoryError {
        MemoryError::Index { path: self.path.clone(), reason: reason.to_string() }
    }
}

/// Waits for the file to be this process's alone.
fn take(file: &File) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match take_alone(file) {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "another process holds it"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// The bytes of a file up to its last end of line.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 4096;
    let mut end = file.seek(SeekFrom::End(0))?;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        Read::by_ref(file).take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(id: &str) -> Feedback {
        Feedback { at: 1.5, id: id.into(), helped: true, note: Some("so\nit was".into()) }
    }

    #[test]
    fn reports_survive_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let reports = Feedbacks::beside(folder.path());
        assert_eq!(reports.all().unwrap(), []);
        reports.add(&report("a")).unwrap();
        let path = folder.path().join(FEEDBACK_FILE);
        for torn in ["{\"at\": 2".to_owned(), "x".repeat(5000)] {
            let mut text = fs_err::read_to_string(&path).unwrap();
            text.push_str(&torn);
            fs_err::write(&path, text).unwrap();
            reports.add(&report("b")).unwrap();
        }
        assert_eq!(reports.all().unwrap(), [report("a"), report("b"), report("b")]);
        fs_err::write(&path, "torn").unwrap();
        assert_eq!(reports.all().unwrap(), []);
        fs_err::write(&path, "{}\n").unwrap();
        let error = reports.all().unwrap_err().to_string();
        assert!(error.contains("feedback.jsonl: line 1: missing field"), "{error}");
    }

    #[test]
    fn several_writers_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let reports = Feedbacks::beside(folder.path());
                scope.spawn(move || {
                    (0..10).for_each(|n| reports.add(&report(&format!("{writer}-{n}"))).unwrap());
                });
            }
        });
        let mut ids: Vec<String> =
            Feedbacks::beside(folder.path()).all().unwrap().into_iter().map(|report| report.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 40);
    }
}
