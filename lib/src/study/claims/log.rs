//! The history of one claim: `<number>.json` files in a folder, each made exactly once and never changed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Owner;
use crate::grade::files::{make_folder, write_new};
use crate::study::{StudyError, layout};

/// What an owner did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Deed {
    /// Took it.
    Claimed,
    /// Finished it: the result lies beside, or is about to.
    Finished,
    /// Gave it back unfinished.
    Released,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) what: Deed,
    pub(super) by: Owner,
    /// Unix time in seconds by the owner's clock: for people.
    pub(super) unix: f64,
}

/// The entries of one claim. The newest one holds.
#[derive(Debug, Clone)]
pub(super) struct Log(PathBuf);

impl Log {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    fn path(&self, number: u64) -> PathBuf {
        self.0.join(format!("{number:06}.json"))
    }

    /// Whether there is an entry of this number.
    pub(super) fn has(&self, number: u64) -> bool {
        self.path(number).exists()
    }

    /// An entry; `None` where there is none of this number.
    pub(super) fn entry(&self, number: u64) -> Result<Option<Entry>, StudyError> {
        layout::read_json(&self.path(number))
    }

    /// The newest entry and its number; `None` where there is none.
    pub(super) fn newest(&self) -> Result<Option<(u64, Entry)>, StudyError> {
        let names = match std::fs::read_dir(&self.0) {
            Ok(names) => names,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StudyError::io(&self.0)(error)),
        };
        let number = |name: std::ffi::OsString| name.to_str()?.strip_suffix(".json")?.parse::<u64>().ok();
        let newest = names.flatten().filter_map(|entry| number(entry.file_name())).max();
        let Some(number) = newest else { return Ok(None) };
        Ok(self.entry(number)?.map(|entry| (number, entry)))
    }

    /// Adds the entry of this number; `false` where another process has done so.
    pub(super) fn add(&self, number: u64, entry: &Entry) -> Result<bool, StudyError> {
        make_folder(&self.0)?;
        let path = self.path(number);
        let bytes = serde_json::to_vec(entry).map_err(|error| StudyError::io(&path)(error.into()))?;
        // a file server may do it and, asked again after a lost answer, say that it was there already
        Ok(write_new(&path, &bytes)? || std::fs::read(&path).is_ok_and(|found| found == bytes))
    }
}
