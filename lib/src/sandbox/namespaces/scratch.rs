//! Scratch folders: one a running sandbox, locked while it lives, cleared away when its process has died.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fs_err as fs;
use memtrial_runner::tidy;

/// A folder younger than this may belong to a sandbox that is just being made and has not locked it yet.
const TOO_YOUNG: Duration = Duration::from_secs(60);

/// A name that no other sandbox on this machine has.
pub(in crate::sandbox) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count:x}", std::process::id(), now.as_nanos())
}

/// Holds a scratch folder for as long as the file lives.
pub(super) fn hold(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    file.lock_shared()?;
    Ok(file)
}

/// Removes what sandboxes left whose processes were killed. Returns how many.
pub(super) fn clear_stale(scratch: &Path) -> usize {
    let Ok(entries) = fs::read_dir(scratch) else { return 0 };
    let stale = |path: &PathBuf| {
        let age = fs::metadata(path).and_then(|found| found.modified()).ok()?.elapsed().ok()?;
        let lock = File::open(path).ok()?;
        let free = !matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
        (age > TOO_YOUNG && free).then_some(lock)
    };
    let mut cleared = 0;
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(_lock) = stale(&path) else { continue };
        let groups = fs::read_to_string(path.join("groups")).unwrap_or_default();
        for group in groups.lines() {
            let _ = fs::remove_dir(group);
        }
        tidy::remove(&path);
        cleared += 1;
    }
    cleared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_old_folder_that_nobody_holds_is_cleared() {
        let top = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - Duration::from_secs(3600);
        for name in ["old", "held", "new"] {
            fs::create_dir_all(top.path().join(name).join("root")).unwrap();
            if name != "new" {
                File::open(top.path().join(name)).unwrap().set_modified(old).unwrap();
            }
        }
        let _held = hold(&top.path().join("held")).unwrap();
        assert_eq!(clear_stale(top.path()), 1);
        assert!(!top.path().join("old").exists());
        assert!(top.path().join("held/root").exists() && top.path().join("new/root").exists());
    }
}
