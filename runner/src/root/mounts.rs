//! Mounting.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount, mount_bind_recursive, mount_remount};

use crate::fault::{During, Fault, Result};
use crate::files::Root;

/// Mounts a file system without a source.
pub fn mount_data(kind: &str, target: &Path, flags: MountFlags, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    Ok(mount(kind, target, kind, flags, options.as_c_str())?)
}

/// Mounts a memory file system.
pub fn tmpfs(target: &Path, flags: MountFlags, options: &str) -> Result<()> {
    mount_data("tmpfs", target, flags, options).during(format_args!("mount a tmpfs on {}", target.display()))
}

/// Shows a folder or file of the host at an inside path, read-only with all that is mounted below it. The place is
/// made where it is missing, and no link of the image leads out of the new root.
pub fn bind(root: &Root, host: &Path, inside: &Path) -> Result<()> {
    let action = || format!("show {} at {}", host.display(), inside.display());
    let text = inside.to_str().ok_or_else(|| Fault(format!("{}: not UTF-8", inside.display())))?;
    let folder = fs::metadata(host).during(action())?.is_dir();
    let place = root.place(text, folder)?;
    mount_bind_recursive(host, by_fd(&place)).during(action())?;
    let top = fs::read_link(by_fd(&place)).during(action())?;
    let table = fs::read_to_string("/proc/self/mountinfo").during(action())?;
    for (path, flags) in below(&table, &top) {
        let flags = flags | MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        mount_remount(&path, flags, "").during(format_args!("make {} read-only", path.display()))?;
    }
    Ok(())
}

/// The path of an open file, for system calls that take only paths.
pub fn by_fd(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// The mounts at and below a path in `/proc/self/mountinfo`, with the flags that a user namespace may not take away.
fn below(table: &str, top: &Path) -> Vec<(PathBuf, MountFlags)> {
    let fields = |line: &str| {
        let mut fields = line.split(' ').skip(4);
        let path = PathBuf::from(unescape(fields.next()?));
        let options = fields.next()?;
        path.starts_with(top).then(|| (path, flags(options)))
    };
    table.lines().filter_map(fields).collect()
}

fn flags(options: &str) -> MountFlags {
    let flag = |option| match option {
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "noatime" => MountFlags::NOATIME,
        "nodiratime" => MountFlags::NODIRATIME,
        "relatime" => MountFlags::RELATIME,
        _ => MountFlags::empty(),
    };
    options.split(',').map(flag).collect()
}

/// The table writes blanks and backslashes as three octal digits.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_below_a_path_keep_their_flags() {
        let table = "\
30 1 8:1 / /a rw,relatime - ext4 /dev/x rw
31 30 0:9 / /a/b\\040c rw,nosuid,noexec - tmpfs tmpfs rw
32 1 8:1 / /ab rw - ext4 /dev/x rw
";
        let found = below(table, Path::new("/a"));
        assert_eq!(
            found,
            [
                (PathBuf::from("/a"), MountFlags::RELATIME),
                (PathBuf::from("/a/b c"), MountFlags::NOSUID | MountFlags::NOEXEC)
            ]
        );
    }
}
