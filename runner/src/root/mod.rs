//! The root file system of a sandbox: overlays over its base and layers, and what every system has on top.

mod device;
mod host;
mod mounts;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use memtrial_runner::enter::{Base, Enter, Upper};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};

use crate::fault::{During, Result};
use crate::files::Root;
use crate::inner::Inner;
use crate::limits;
use mounts::Shown;

/// Builds the root and makes it this process's own. Whatever is mounted here vanishes with the mount namespace.
pub fn build(inner: &Inner) -> Result<()> {
    let enter = inner.enter;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .during("make mounts private")?;
    let stage = enter.scratch.join("stage");
    fs::create_dir(&stage).during(stage.display())?;
    mounts::tmpfs(&stage, MountFlags::NOSUID | MountFlags::NODEV, "mode=755,size=64m")?;
    let new = stage.join("new");
    fs::create_dir(&new).during(new.display())?;
    let upper = upper(enter, &stage)?;
    let bottom = match &enter.base {
        Base::Host => host::skeleton(&stage.join("skeleton"))?,
        Base::Rootfs(path) => path.clone(),
    };
    overlay(inner, "root", &bottom, &upper, &new)?;
    if enter.base == Base::Host {
        overlay(inner, "usr", Path::new("/usr"), &upper, &new.join("usr"))?;
    }
    let root = Root::new(new.clone());
    let mut shown = Shown::default();
    if enter.base == Base::Host {
        host::mount(&root, &mut shown)?;
    }
    system(inner, &root, &mut shown)?;
    shown.seal()?;
    for bind in &enter.binds {
        // One may lie in another: sealed at once, so that no place is made in a folder of the host.
        let mut shown = Shown::default();
        shown.bind(&root, &bind.host, &bind.inside)?;
        if bind.writable { shown.tame()? } else { shown.seal()? }
    }
    chdir(&new).during("enter the new root")?;
    // The old root comes to lie on the new one, whence it is taken away.
    pivot_root(".", ".").during("change the root")?;
    unmount(".", UnmountFlags::DETACH).during("leave the old root")?;
    chdir("/").during("enter the new root")
}

/// The folder that holds upper and work folders.
fn upper(enter: &Enter, stage: &Path) -> Result<PathBuf> {
    match enter.upper {
        Upper::Disk => Ok(enter.scratch.clone()),
        Upper::Memory => {
            let path = stage.join("upper");
            fs::create_dir(&path).during(path.display())?;
            let size = format!("mode=755,size={},nr_inodes={}", enter.limits.disk, enter.limits.entries);
            mounts::tmpfs(&path, MountFlags::NOSUID | MountFlags::NODEV, &size)?;
            Ok(path)
        }
    }
}

/// Mounts the overlay `name`: the layers' folders of that name over `bottom`, writes to the upper one. Paths are given
/// to the kernel as descriptors: any path will do, and any number fits into the one page of options.
fn overlay(inner: &Inner, name: &str, bottom: &Path, upper: &Path, target: &Path) -> Result<()> {
    let (writes, work) = (upper.join(name), upper.join("work").join(name));
    fs::create_dir(&writes).during(writes.display())?;
    fs::set_permissions(&writes, fs::Permissions::from_mode(0o755)).during(writes.display())?;
    fs::create_dir_all(&work).during(work.display())?;
    let open = |path: &Path| File::open(path).during(path.display());
    let layers = inner.enter.layers.iter().map(|layer| layer.join(name));
    let lowers = layers.chain([bottom.to_owned()]).map(|path| open(&path)).collect::<Result<Vec<_>>>()?;
    let (writes, work) = (open(&writes)?, open(&work)?);
    let by_fd = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
    let lower = lowers.iter().map(by_fd).collect::<Vec<_>>().join(":");
    let mut options = format!("lowerdir={lower},upperdir={},workdir={}", by_fd(&writes), by_fd(&work));
    if inner.user {
        options.push_str(",userxattr");
    }
    // Nobody waits for the disk: a sandbox does not outlive a crash of the machine.
    let quick = format!("{options},volatile");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mounts::mount_data("overlay", target, flags, &quick)
        .or_else(|_| mounts::mount_data("overlay", target, flags, &options))
        .during(format_args!("mount an overlay on {} for {}", bottom.display(), upper.display()))
}

/// `/proc`, `/dev`, `/tmp` and the name resolution of every sandbox.
fn system(inner: &Inner, root: &Root, shown: &mut Shown) -> Result<()> {
    let proc = root.locate("/proc");
    make(&proc)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", &proc, "proc", flags, None).during("mount /proc")?;
    for path in ["sys", "sysrq-trigger", "irq", "bus", "fs"] {
        if proc.join(path).exists() {
            shown.bind(root, &proc.join(path), &Path::new("/proc").join(path))?;
        }
    }
    for path in ["kcore", "keys", "timer_list", "latency_stats", "sched_debug"] {
        if proc.join(path).exists() {
            shown.bind(root, Path::new("/dev/null"), &Path::new("/proc").join(path))?;
        }
    }
    for path in ["acpi", "scsi"] {
        if proc.join(path).exists() {
            mounts::tmpfs(&proc.join(path), flags | MountFlags::RDONLY, "size=0,mode=555")?;
        }
    }
    sys(&root.locate("/sys"), &inner.enter.cpu_set)?;
    let dev = root.locate("/dev");
    make(&dev)?;
    device::mount(&dev, inner)?;
    let tmp = root.locate("/tmp");
    if !tmp.exists() {
        make(&tmp)?;
        fs::set_permissions(&tmp, fs::Permissions::from_mode(0o1777)).during("/tmp")?;
    }
    if inner.enter.network && Path::new("/etc/resolv.conf").exists() {
        shown.bind(root, Path::new("/etc/resolv.conf"), Path::new("/etc/resolv.conf"))?;
    }
    Ok(())
}

/// Of `/sys` the list of CPUs alone: the C library counts them by it, whatever a process may run on.
fn sys(place: &Path, cpus: &[u32]) -> Result<()> {
    make(place)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mounts::tmpfs(place, flags, "mode=755,size=64k")?;
    let folder = place.join("devices/system/cpu");
    fs::create_dir_all(&folder).during(folder.display())?;
    for name in ["online", "possible", "present"].iter().filter(|_| !cpus.is_empty()) {
        fs::write(folder.join(name), format!("{}\n", limits::cpu_list(cpus))).during(name)?;
    }
    mount_remount(place, flags | MountFlags::RDONLY, "").during("make /sys read-only")
}

fn make(folder: &Path) -> Result<()> {
    if folder.is_dir() { Ok(()) } else { fs::create_dir(folder).during(folder.display()) }
}
