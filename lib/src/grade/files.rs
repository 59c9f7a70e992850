//! The output folder: files written whole or not at all, one run at a time.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::trajectory::{create_atomic, write_atomic};

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutError {
    /// The folder cannot be written to.
    #[error(
        "output folder {path} cannot be written to ({source}): name another one or change its permissions"
    )]
    ReadOnly {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The disk is full.
    #[error("no space left for {path}: free some and run the same command again; what is finished is kept")]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// Another run uses the folder.
    #[error("output folder {path} is in use by another run: wait for it or name another folder")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// Anything else.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl OutError {
    /// What an I/O error at `path` means for a person.
    pub fn new(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { path, source }
            }
            _ => Self::Io { path, source },
        }
    }
}

/// Writes a file through a temporary one beside it; its folder is made. A reader sees the old or the new
/// content.
///
/// # Errors
/// When it cannot be written; what stood there before stays.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), OutError> {
    make_folder(folder_of(path))?;
    write_atomic(path, bytes).map_err(|error| OutError::new(path, error))
}

/// Writes a file like [`write()`] where there is none yet: of several processes exactly one gets `true`.
///
/// # Errors
/// When it cannot be written.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<bool, OutError> {
    make_folder(folder_of(path))?;
    create_atomic(path, bytes).map_err(|error| OutError::new(path, error))
}

/// Makes a folder with those above it. Each new name is flushed to the disk: what is flushed below it is not lost with
/// it in a power cut.
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(path: &Path) -> Result<(), OutError> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let above = folder_of(path);
    make_folder(above)?;
    let made = std::fs::create_dir(path)
        .or_else(|error| if path.is_dir() { Ok(()) } else { Err(error) })
        .and_then(|()| File::open(above)?.sync_all());
    made.map_err(|error| OutError::new(path, error))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a value as indented JSON with a line end.
///
/// # Errors
/// As [`write()`].
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), OutError> {
    write(path, &json_bytes(path, value)?)
}

/// A value as [`write_json`] would write it to `path`.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn json_bytes<T: Serialize>(path: &Path, value: &T) -> Result<Vec<u8>, OutError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| OutError::Io { path: path.to_owned(), source: error.into() })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// An output folder that this run alone writes to. Dropping it lets the next run in.
#[derive(Debug)]
pub struct OutDir {
    path: PathBuf,
    lock: File,
}

impl OutDir {
    /// Makes the folder where needed and takes it.
    ///
    /// # Errors
    /// When it cannot be written to, or another run has it.
    pub fn open(path: &Path) -> Result<Self, OutError> {
        let failed = |error| OutError::new(path, error);
        fs_err::create_dir_all(path).map_err(failed)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(".lock"))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), lock }),
            Err(TryLockError::WouldBlock) => Err(OutError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OutDir {
    fn drop(&mut self) {
        // Closing would do it, but a process that is just being started may still hold a copy of the handle.
        let _ = self.lock.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_whole_files_and_leaves_no_temporary_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.json");
        write_json(&path, &[1]).unwrap();
        write_json(&path, &[2]).unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "[\n  2\n]\n");
        assert_eq!(fs_err::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_there_is_not_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c.json");
        assert!(write_new(&path, b"one").unwrap());
        assert!(!write_new(&path, b"two").unwrap());
        assert_eq!(fs_err::read(&path).unwrap(), b"one");
        assert_eq!(fs_err::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_second_run_on_one_folder_is_refused_until_the_first_ends() {
        let folder = tempfile::tempdir().unwrap();
        let first = OutDir::open(folder.path()).unwrap();
        let error = OutDir::open(folder.path()).unwrap_err();
        assert!(matches!(error, OutError::Locked { .. }), "{error}");
        drop(first);
        assert!(OutDir::open(folder.path()).is_ok());
    }

    #[test]
    fn kinds_of_failure_are_told_apart() {
        let kind = |kind: io::ErrorKind| OutError::new(Path::new("x"), kind.into());
        assert!(matches!(kind(io::ErrorKind::StorageFull), OutError::DiskFull { .. }));
        assert!(matches!(kind(io::ErrorKind::ReadOnlyFilesystem), OutError::ReadOnly { .. }));
        assert!(matches!(kind(io::ErrorKind::PermissionDenied), OutError::ReadOnly { .. }));
        assert!(matches!(kind(io::ErrorKind::NotADirectory), OutError::Io { .. }));
        // A file where the folder should be.
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(OutDir::open(file.path()).is_err());
        assert!(write(&file.path().join("x"), b"").is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_named_and_nothing_is_half_written() {
        let Err(error) = fs_err::write("/dev/full", b"x") else { return };
        assert!(matches!(OutError::new(Path::new("/dev/full"), error), OutError::DiskFull { .. }));
    }
}
