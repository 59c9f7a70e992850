//! Attempts at a trial: which one is gone on with, and what those given up cost.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bench::Bench;
use super::{StudyError, TrialKey, layout};
use crate::grade::files::{OutError, make_folder, write_json};
use crate::llm::{self, Cost};

/// The mark of an attempt that is given up.
const ABANDONED: &str = "abandoned.json";

/// The mark of an attempt that goes on from the one before it.
const TAKEN_UP: &str = "taken-up.json";

/// How an attempt that ended by itself says so.
pub(super) const FINISHED: &str = "finished.json";

/// The journal of model calls.
pub(super) const CALLS: &str = "calls.jsonl";

/// An attempt that is given up: its cost is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Abandoned {
    reason: String,
    /// What it had cost by then.
    spent: Cost,
    /// The number of the claim that was taken over, where that is the reason: the next attempt goes on from its
    /// journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim: Option<u64>,
}

/// Where an attempt goes on from.
#[derive(Debug, Serialize, Deserialize)]
struct TakenUp {
    /// The attempt.
    from: u32,
    /// How many of its answered calls were taken up: they are this attempt's cost now.
    calls: u64,
}

impl Bench {
    /// The attempt to go on with, from 1.
    pub(super) fn attempt(&self, key: &TrialKey) -> Result<u32, StudyError> {
        let mut attempt = 1;
        while let Some(before) = self.abandoned(key, attempt)? {
            if before.claim.is_some() {
                self.take_up(key, attempt)?;
            }
            attempt += 1;
        }
        Ok(attempt)
    }

    /// Gives an attempt up that left its record.
    pub(super) fn abandon(&self, key: &TrialKey, attempt: u32, reason: &str) -> Result<(), StudyError> {
        self.mark(key, attempt, reason, None)
    }

    /// Leaves the present attempt to a worker that may come back; `false` where that has been done for its claim.
    pub(super) fn leave(&self, key: &TrialKey, claim: u64, reason: &str) -> Result<bool, StudyError> {
        let mut attempt = 1;
        while let Some(before) = self.abandoned(key, attempt)? {
            if before.claim >= Some(claim) {
                return Ok(false);
            }
            attempt += 1;
        }
        self.mark(key, attempt, reason, Some(claim)).map(|()| true)
    }

    /// Journals of earlier attempts that this one does not hold itself, latest first.
    pub(super) fn earlier_journals(&self, key: &TrialKey, attempt: u32) -> Vec<PathBuf> {
        let holds_the_one_before = |attempt| self.layout.attempt(key, attempt).join(TAKEN_UP).is_file();
        let mut journals = Vec::new();
        let mut attempt = attempt;
        while attempt > 1 && !holds_the_one_before(attempt) {
            attempt -= 1;
            journals.push(self.layout.attempt(key, attempt).join(CALLS));
        }
        journals
    }

    /// Folders of earlier attempts whose record this one does not hold itself, latest first.
    pub(super) fn earlier_attempts(&self, key: &TrialKey, attempt: u32) -> Vec<PathBuf> {
        let folder = |attempt| self.layout.attempt(key, attempt);
        (1..attempt)
            .rev()
            .filter(|&before| !folder(before + 1).join(TAKEN_UP).is_file())
            .map(folder)
            .collect()
    }

    /// What an attempt has spent on model calls so far.
    pub(super) fn spent(&self, key: &TrialKey, attempt: u32) -> Cost {
        self.spent_after(key, attempt, 0)
    }

    /// What the attempts before this one cost: each call once, and those too that a worker made after its trial had
    /// been taken over.
    pub(super) fn sunk(&self, key: &TrialKey, attempt: u32) -> Result<Cost, StudyError> {
        let mut sunk = Cost::ZERO;
        for before in 1..attempt {
            let path = self.layout.attempt(key, before + 1).join(TAKEN_UP);
            let taken = layout::read_json::<TakenUp>(&path)?.map_or(0, |taken| taken.calls);
            sunk = sunk.plus(self.spent_after(key, before, taken));
        }
        Ok(sunk)
    }

    fn spent_after(&self, key: &TrialKey, attempt: u32, calls: u64) -> Cost {
        // a journal that cannot be read is told of when the attempt opens it
        llm::spent(&self.layout.attempt(key, attempt).join(CALLS), calls).unwrap_or(Cost::ZERO)
    }

    fn abandoned(&self, key: &TrialKey, attempt: u32) -> Result<Option<Abandoned>, StudyError> {
        layout::read_json(&self.layout.attempt(key, attempt).join(ABANDONED))
    }

    fn mark(&self, key: &TrialKey, attempt: u32, reason: &str, claim: Option<u64>) -> Result<(), StudyError> {
        let abandoned = Abandoned { reason: reason.to_owned(), spent: self.spent(key, attempt), claim };
        Ok(write_json(&self.layout.attempt(key, attempt).join(ABANDONED), &abandoned)?)
    }

    /// Makes the next attempt's folder with a copy of what this one has recorded. It appears complete or not at all.
    fn take_up(&self, key: &TrialKey, attempt: u32) -> Result<(), StudyError> {
        let (from, to) = (self.layout.attempt(key, attempt), self.layout.attempt(key, attempt + 1));
        if to.is_dir() {
            return Ok(());
        }
        let above = self.layout.trial(key);
        make_folder(&above)?;
        let copy = || {
            let staging = tempfile::Builder::new().prefix(".taking-up-").tempdir_in(&above)?;
            copy_record(&from, staging.path(), key)?;
            let calls = llm::recorded(&staging.path().join(CALLS)).map_err(std::io::Error::other)?;
            let mark = serde_json::to_vec(&TakenUp { from: attempt, calls })?;
            std::fs::write(staging.path().join(TAKEN_UP), mark)?;
            use std::os::unix::fs::PermissionsExt;
            let as_above = std::fs::metadata(&above)?.permissions().mode();
            std::fs::set_permissions(staging.path(), std::fs::Permissions::from_mode(as_above))?;
            rustix::fs::syncfs(std::fs::File::open(staging.path())?)?;
            std::fs::rename(staging.path(), &to)
        };
        Ok(copy().map_err(|error| OutError::new(&to, error))?)
    }
}

/// Copies an attempt's files. Its worker may still be writing: messages are written after events, events after calls,
/// so each is copied before what it stands on, and a last line that is not whole is cut off when it is opened.
fn copy_record(from: &Path, to: &Path, key: &TrialKey) -> std::io::Result<()> {
    let ended = from.join(FINISHED).is_file();
    let trajectory = format!("{}.traj.json", key.instance_id);
    let files = ["messages.jsonl", "events.jsonl", CALLS, &trajectory, "graded.json", "test_output.txt"];
    for name in files.into_iter().chain(ended.then_some(FINISHED)) {
        match std::fs::copy(from.join(name), to.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
