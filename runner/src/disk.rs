//! What a sandbox wrote to its scratch folder: measured, and removed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use memtrial_runner::enter::KEEP;
use memtrial_runner::tidy;
use rustix::fs::statvfs;

/// Below this many free bytes the host counts as full: other programs need some too.
const RESERVE: u64 = 128 << 20;

/// Bytes held on disk by what was written; stops counting past `enough`.
pub fn used(scratch: &Path, enough: u64) -> u64 {
    let mut seen = BTreeSet::new();
    let mut total = 0;
    let mut open = vec![scratch.to_owned()];
    while let Some(folder) = open.pop() {
        // What vanishes meanwhile is no longer used.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.nlink() > 1 && !found.is_dir() && !seen.insert((found.dev(), found.ino())) {
                continue;
            }
            total += found.blocks() * 512;
            if found.is_dir() {
                open.push(entry.path());
            }
        }
        if total > enough {
            break;
        }
    }
    total
}

/// Whether the file system of a folder has nearly no room left.
pub fn nearly_full(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|found| found.f_bavail * found.f_frsize < RESERVE)
}

/// Removes a scratch folder, or only what a kept layer does not need.
pub fn clear(scratch: &Path, keep: bool) {
    if !keep {
        tidy::remove(scratch);
        return;
    }
    for name in ["work", "stage", "groups", KEEP] {
        tidy::remove(&scratch.join(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn hard_links_count_once_and_locked_folders_go() {
        let top = tempfile::tempdir().unwrap();
        let scratch = top.path().join("s");
        fs::create_dir_all(scratch.join("root/a")).unwrap();
        fs::write(scratch.join("root/a/file"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(scratch.join("root/a/file"), scratch.join("root/link")).unwrap();
        let bytes = used(&scratch, u64::MAX);
        assert!((1 << 20..1 << 21).contains(&bytes), "{bytes}");
        fs::set_permissions(scratch.join("root/a"), fs::Permissions::from_mode(0o500)).unwrap();
        clear(&scratch, false);
        assert!(!scratch.exists());
    }

    #[test]
    fn a_kept_folder_keeps_only_what_was_written() {
        let top = tempfile::tempdir().unwrap();
        for name in ["root", "usr", "work/root", "stage"] {
            fs::create_dir_all(top.path().join(name)).unwrap();
        }
        fs::write(top.path().join("keep"), "").unwrap();
        clear(top.path(), true);
        let mut left: Vec<_> = fs::read_dir(top.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["root", "usr"]);
    }
}
