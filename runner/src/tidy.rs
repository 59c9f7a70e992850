//! Removing what sandboxes left, whatever they did to its permissions and however deep they nested it.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, unlinkat};
use rustix::io::Errno;

/// Folders deeper than this are moved to the top instead of being followed: neither descriptors nor the stack run out.
const DEPTH: usize = 64;

/// Removes a tree.
pub fn remove(path: &Path) {
    if fs::remove_file(path).is_ok() {
        return;
    }
    let Ok(top) = open(CWD, path) else { return };
    let mut moved = 0;
    loop {
        let mut sweep = Sweep { top: &top, moved, gone: 0 };
        sweep.empty(&top, 0);
        moved = sweep.moved;
        // What cannot be removed stays, and is not tried for ever.
        if sweep.gone == 0 {
            break;
        }
    }
    let _ = fs::remove_dir(path);
}

/// Opens a folder that its owner may then change.
fn open(
    parent: impl std::os::fd::AsFd + Copy,
    name: impl rustix::path::Arg + Copy,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
            openat(parent, name, flags, Mode::empty())?
        }
        other => other?,
    };
    // Only the owner's permission counts, and root needs none.
    let _ = rustix::fs::fchmod(&opened, Mode::RWXU);
    Ok(opened)
}

/// One pass over the tree.
struct Sweep<'a> {
    top: &'a OwnedFd,
    /// Folders moved to the top, in all passes.
    moved: u64,
    /// Entries that are no longer where they were.
    gone: u64,
}

impl Sweep<'_> {
    fn empty(&mut self, folder: &OwnedFd, depth: usize) {
        let Ok(entries) = Dir::read_from(folder) else { return };
        for entry in
            entries.flatten().filter(|entry| ![&b"."[..], b".."].contains(&entry.file_name().to_bytes()))
        {
            let name = entry.file_name();
            let gone = match entry.file_type() {
                FileType::Directory if depth < DEPTH => {
                    if let Ok(child) = open(folder, name) {
                        self.empty(&child, depth + 1);
                    }
                    unlinkat(folder, name, AtFlags::REMOVEDIR).is_ok()
                }
                FileType::Directory => self.lift(folder, name),
                _ => unlinkat(folder, name, AtFlags::empty()).is_ok(),
            };
            self.gone += u64::from(gone);
        }
    }

    fn lift(&mut self, folder: &OwnedFd, name: &std::ffi::CStr) -> bool {
        // A folder that moves is written to: it names its parent.
        let _ = chmodat(folder, name, Mode::RWXU, AtFlags::empty());
        self.moved += 1;
        renameat(folder, name, self.top, format!(".memtrial-moved-{}", self.moved)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn everything_goes_but_what_links_lead_to() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("mine"), "").unwrap();
        let tree = top.path().join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/file"), "").unwrap();
        symlink(top.path(), tree.join("a/up")).unwrap();
        for locked in ["a/b", "a"] {
            fs::set_permissions(tree.join(locked), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove(&tree);
        assert!(!tree.exists() && top.path().join("mine").exists());
        symlink(top.path(), &tree).unwrap();
        remove(&tree);
        assert!(fs::symlink_metadata(&tree).is_err() && top.path().join("mine").exists());
        remove(&tree);
    }

    /// Each of its paths from the top would be longer than the kernel takes.
    #[test]
    fn a_tree_deeper_than_any_path_goes() {
        let top = tempfile::tempdir().unwrap();
        let tree = top.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let mut folder = open(CWD, &tree).unwrap();
        let name = "a folder with quite a long name";
        for _ in 0..200 {
            rustix::fs::mkdirat(&folder, name, Mode::RWXU).unwrap();
            folder = open(&folder, name).unwrap();
        }
        remove(&tree);
        assert!(!tree.exists());
    }
}
