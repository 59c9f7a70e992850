//! `/dev`: the few devices that programs expect.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::{MountFlags, mount_bind};

use super::mounts;
use crate::fault::{During, Result};
use crate::inner::Inner;

/// Device files of the host that are shown.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Mounts a new `/dev` there.
pub fn mount(dev: &Path, inner: &Inner) -> Result<()> {
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    mounts::tmpfs(dev, quiet, "mode=755,size=1m,nr_inodes=1k")?;
    for name in NODES {
        let place = dev.join(name);
        File::create(&place).during(place.display())?;
        mount_bind(Path::new("/dev").join(name), &place).during(format_args!("/dev/{name}"))?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name)).during(format_args!("/dev/{name}"))?;
    }
    for name in ["shm", "pts"] {
        fs::create_dir(dev.join(name)).during(format_args!("/dev/{name}"))?;
    }
    let bounds = &inner.enter.limits;
    // What lies here is memory of the sandbox for as long as it lies: were it all of it, every later command would be
    // killed. What is written elsewhere may be memory too, up to a half.
    let size = format!("mode=1777,size={},nr_inodes={}", bounds.memory / 4, bounds.entries);
    mounts::tmpfs(&dev.join("shm"), quiet | MountFlags::NODEV, &size)?;
    // The terminal group exists only where the whole range of groups does.
    let group = if inner.user { "" } else { ",gid=5" };
    let options = format!("newinstance,ptmxmode=0666,mode=620{group}");
    mounts::mount_data("devpts", &dev.join("pts"), quiet, &options).during("mount /dev/pts")
}
