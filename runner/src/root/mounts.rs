//! Mounting.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
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

/// Folders and files of the host that are shown, but not read-only yet: reading the table of mounts is what costs, so
/// that it is done once for all that do not lie in each other.
#[derive(Default)]
#[must_use]
pub struct Shown(Vec<PathBuf>);

impl Shown {
    /// Shows a folder or file of the host at an inside path. The place is made where it is missing, and no link of the
    /// image leads out of the new root.
    pub fn bind(&mut self, root: &Root, host: &Path, inside: &Path) -> Result<()> {
        let action = || format!("show {} at {}", host.display(), inside.display());
        let text = inside.to_str().ok_or_else(|| Fault(format!("{}: not UTF-8", inside.display())))?;
        let folder = fs::metadata(host).during(action())?.is_dir();
        let place = root.place(text, folder)?;
        mount_bind_recursive(host, by_fd(&place)).during(action())?;
        self.0.push(fs::read_link(by_fd(&place)).during(action())?);
        Ok(())
    }

    /// Makes what is shown read-only, with all that is mounted below it.
    pub fn seal(self) -> Result<()> {
        self.remount(MountFlags::RDONLY, "make read-only:")
    }

    /// Leaves what is shown writable, but without devices and other users' powers.
    pub fn tame(self) -> Result<()> {
        self.remount(MountFlags::empty(), "tame")
    }

    fn remount(self, more: MountFlags, action: &str) -> Result<()> {
        let table = table().during("/proc/self/mountinfo")?;
        for (path, flags) in below(&table, &self.0) {
            let flags = flags | more | MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV;
            mount_remount(&path, flags, "").during(format_args!("{action} {}", path.display()))?;
        }
        Ok(())
    }
}

/// The table of mounts. It has no size beforehand, and the kernel walks all mounts at each read: read in one go.
fn table() -> io::Result<String> {
    let mut table = String::with_capacity(64 << 10);
    File::open("/proc/self/mountinfo")?.read_to_string(&mut table)?;
    Ok(table)
}

/// The path of an open file, for system calls that take only paths.
pub fn by_fd(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// The mounts at and below paths in `/proc/self/mountinfo`, with the flags that a user namespace may not take away.
fn below(table: &str, tops: &[PathBuf]) -> Vec<(PathBuf, MountFlags)> {
    let fields = |line: &str| {
        let mut fields = line.split(' ').skip(4);
        let path = PathBuf::from(unescape(fields.next()?));
        let options = fields.next()?;
        tops.iter().any(|top| path.starts_with(top)).then(|| (path, flags(options)))
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
33 1 8:1 / /c rw - ext4 /dev/x rw
34 33 8:1 / /c/d rw,noatime - ext4 /dev/x rw
";
        let found = below(table, &["/a".into(), "/c/d".into()]);
        assert_eq!(
            found,
            [
                (PathBuf::from("/a"), MountFlags::RELATIME),
                (PathBuf::from("/a/b c"), MountFlags::NOSUID | MountFlags::NOEXEC),
                (PathBuf::from("/c/d"), MountFlags::NOATIME)
            ]
        );
    }
}
