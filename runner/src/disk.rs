//! What a sandbox wrote to its scratch folder: measured, and removed.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use memtrial_runner::enter::{Bounds, KEEP};
use memtrial_runner::tidy;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, open, openat2, statat, statfs, statvfs,
};
use rustix::io::Errno;
use rustix::process::Pid;

/// Below this many free bytes the host counts as full: other programs need some too.
const RESERVE: u64 = 128 << 20;

/// Deeper than this nobody nests folders who builds or tests software.
const DEPTH: usize = 10_000;
/// Folders are opened by paths up to this length, from a folder above that is held open: the kernel takes no longer
/// path, and so few folders are open at once.
const PATH: usize = 3_500;
/// What `statfs` calls an overlay.
const OVERLAY: u64 = 0x794c_7630;

/// What a sandbox wrote.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Bytes held on disk.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
    /// Whether folders lie deeper than can be looked at.
    pub too_deep: bool,
    seen: BTreeSet<(u64, u64)>,
}

impl Used {
    fn exceeds(&self, bounds: &Bounds) -> bool {
        self.bytes > bounds.disk || self.entries > bounds.entries || self.too_deep
    }

    /// Why a sandbox with these bounds must end, if it must.
    pub fn excess(&self, bounds: &Bounds) -> Option<String> {
        let (disk, entries) = (bounds.disk, bounds.entries);
        if self.too_deep {
            return Some(format!("it nested folders deeper than {DEPTH} levels"));
        }
        if self.entries > entries {
            return Some(format!("it wrote more than its disk limit of {entries} files, folders and links"));
        }
        (self.bytes > disk).then(|| format!("it wrote more than its disk limit of {disk} bytes"))
    }

    /// Counts a file once, by however many links or descriptors it is found.
    fn count(&mut self, found: &Stat) {
        let several = found.st_nlink != 1 && !FileType::from_raw_mode(found.st_mode).is_dir();
        if several && !self.seen.insert((found.st_dev, found.st_ino)) {
            return;
        }
        self.entries += 1;
        self.bytes += u64::try_from(found.st_blocks).unwrap_or(0) * 512;
    }
}

/// A folder to be looked at: where it lies below one that is held open.
struct Place {
    above: Rc<OwnedFd>,
    path: Vec<u8>,
    depth: usize,
}

/// Measures what lies in the scratch folder, and the removed files that processes of the sandbox still hold open; stops
/// once it exceeds the bounds.
pub fn used(scratch: &Path, bounds: &Bounds, processes: impl Iterator<Item = Pid>) -> Used {
    let mut used = Used::default();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(top) = open(scratch, flags, Mode::empty()) else { return used };
    let mut places = vec![Place { above: Rc::new(top), path: b".".to_vec(), depth: 0 }];
    while let Some(place) = places.pop() {
        match look(&place, &mut used, &mut places) {
            Ok(()) => {}
            // The folders above are held open: too many, and they are the sandbox's.
            Err(Errno::MFILE | Errno::NFILE) => used.too_deep = true,
            // What vanishes meanwhile is no longer used.
            Err(_) => {}
        }
        if used.exceeds(bounds) {
            return used;
        }
    }
    processes.for_each(|process| removed(process, &mut used));
    used
}

fn look(place: &Place, used: &mut Used, places: &mut Vec<Place>) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let folder = Rc::new(openat2(&*place.above, place.path.as_slice(), flags, Mode::empty(), inside)?);
    for entry in Dir::read_from(&*folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        let Ok(found) = statat(&*folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        used.count(&found);
        if !FileType::from_raw_mode(found.st_mode).is_dir() {
            continue;
        }
        let path = [place.path.as_slice(), name.to_bytes()].join(&b'/');
        let depth = place.depth + 1;
        used.too_deep |= depth > DEPTH;
        places.push(if path.len() > PATH {
            Place { above: Rc::clone(&folder), path: name.to_bytes().to_vec(), depth }
        } else {
            Place { above: Rc::clone(&place.above), path, depth }
        });
    }
    Ok(())
}

/// Files without a name, which a process keeps by its descriptor alone.
fn removed(process: Pid, used: &mut Used) {
    let folder = format!("/proc/{}/fd", process.as_raw_nonzero());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(found) = rustix::fs::stat(&path) else { continue };
        // Files in memory have no name either.
        let on_disk = || statfs(&path).is_ok_and(|found| u64::try_from(found.f_type) == Ok(OVERLAY));
        if found.st_nlink == 0 && FileType::from_raw_mode(found.st_mode).is_file() && on_disk() {
            used.count(&found);
        }
    }
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

    const BOUNDS: Bounds = Bounds { memory: 0, processes: 0, cpus: 0.0, disk: u64::MAX, entries: u64::MAX };

    #[test]
    fn what_lies_deeper_than_any_path_counts() {
        let top = tempfile::tempdir().unwrap();
        let mut folder = open(top.path(), OFlags::PATH, Mode::empty()).unwrap();
        let name = "a folder with a long name".repeat(8);
        for _ in 0..100 {
            rustix::fs::mkdirat(&folder, &name, Mode::RWXU).unwrap();
            folder = rustix::fs::openat(&folder, &name, OFlags::PATH, Mode::empty()).unwrap();
        }
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let file = rustix::fs::openat(&folder, "file", flags, Mode::RUSR).unwrap();
        rustix::io::write(&file, &[1; 100_000]).unwrap();
        let found = used(top.path(), &BOUNDS, std::iter::empty());
        assert_eq!((found.entries, found.too_deep), (101, false));
        assert!(found.bytes >= 100_000, "{found:?}");
        let few = Bounds { entries: 50, ..BOUNDS };
        let excess = used(top.path(), &few, std::iter::empty()).excess(&few).unwrap();
        assert!(excess.contains("50 files, folders and links"), "{excess}");
        tidy::remove(top.path());
    }

    #[test]
    fn hard_links_count_once_and_locked_folders_go() {
        let top = tempfile::tempdir().unwrap();
        let scratch = top.path().join("s");
        fs::create_dir_all(scratch.join("root/a")).unwrap();
        fs::write(scratch.join("root/a/file"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(scratch.join("root/a/file"), scratch.join("root/link")).unwrap();
        let used = used(&scratch, &BOUNDS, std::iter::empty());
        assert!((1 << 20..1 << 21).contains(&used.bytes), "{used:?}");
        assert_eq!((used.entries, used.excess(&BOUNDS)), (3, None));
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
