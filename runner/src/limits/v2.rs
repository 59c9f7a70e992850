//! Control groups of version 2: one folder, below the nearest group that this process may divide.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use memtrial_runner::enter::Bounds;

use super::{Group, Limiter, cpu_list, undo_on_error};

/// The file that a process enters by.
pub const ENTRANCE: &str = "cgroup.procs";
/// The scheduler's period in microseconds.
const PERIOD: f64 = 100_000.0;

/// The unified hierarchy.
pub struct V2 {
    /// Where it is mounted.
    pub root: PathBuf,
    /// This process's own group, relative.
    pub own: PathBuf,
}

impl Limiter for V2 {
    fn name(&self) -> &'static str {
        "cgroup v2"
    }

    /// Tries each group from this process's own up to the root. A group that holds processes cannot hand on
    /// controllers (the root is exempt), so that usually a parent is the first that works: the folder that a service
    /// manager delegated to the user, or the root.
    fn make(&self, id: &str, bounds: &Bounds, cpus: &[u32]) -> io::Result<Group> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for parent in self.own.ancestors() {
            match make_below(&self.root.join(parent), id, bounds, cpus) {
                Ok(group) => return Ok(group),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn make_below(parent: &Path, id: &str, bounds: &Bounds, cpus: &[u32]) -> io::Result<Group> {
    // To move between groups a process must be allowed to write to their nearest common ancestor.
    rustix::fs::access(parent.join(ENTRANCE), rustix::fs::Access::WRITE_OK)?;
    let own_cpus = hand_on(parent)?;
    let folder = parent.join(format!("memtrial-{id}"));
    fs::create_dir(&folder)?;
    let set = || {
        fs::write(folder.join("memory.max"), bounds.memory.to_string())?;
        // Only where the kernel accounts for swap.
        let swap = folder.join("memory.swap.max");
        if swap.exists() {
            fs::write(swap, "0")?;
        }
        fs::write(folder.join("pids.max"), bounds.processes.to_string())?;
        if own_cpus && !cpus.is_empty() {
            fs::write(folder.join("cpuset.cpus"), cpu_list(cpus))?;
        }
        fs::write(folder.join("cpu.max"), format!("{} {PERIOD}", (bounds.cpus * PERIOD).max(1000.0).round()))
    };
    undo_on_error(std::slice::from_ref(&folder), set())?;
    Ok(Group { events: folder.join("memory.events"), folders: vec![folder], entrance: ENTRANCE })
}

/// Lets the groups below bound memory, processes and CPU time; whether they may have CPUs of their own too: not every
/// group may divide them, and then the affinity that each process inherits must do.
fn hand_on(parent: &Path) -> io::Result<bool> {
    const WANTED: [&str; 3] = ["memory", "pids", "cpu"];
    const CPUS: &str = "cpuset";
    let control = parent.join("cgroup.subtree_control");
    let listed = |text: &str, name: &str| text.split_whitespace().any(|word| word == name);
    let enabled = fs::read_to_string(&control)?;
    if !WANTED.iter().all(|name| listed(&enabled, name)) {
        let available = fs::read_to_string(parent.join("cgroup.controllers"))?;
        if !WANTED.iter().all(|name| listed(&available, name)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if listed(&available, CPUS) && fs::write(&control, "+memory +pids +cpu +cpuset").is_ok() {
            return Ok(true);
        }
        fs::write(&control, "+memory +pids +cpu")?;
    }
    Ok(listed(&enabled, CPUS) || fs::write(&control, "+cpuset").is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a control group, as far as plain files can.
    fn group(path: &Path, controllers: &str, enabled: &str) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("cgroup.controllers"), controllers).unwrap();
        fs::write(path.join("cgroup.subtree_control"), enabled).unwrap();
        fs::write(path.join("cgroup.procs"), "").unwrap();
    }

    const BOUNDS: Bounds = Bounds { memory: 1 << 30, processes: 64, cpus: 1.5, disk: 0, entries: 0 };

    #[test]
    fn hands_controllers_on_and_writes_the_bounds() {
        let top = tempfile::tempdir().unwrap();
        group(top.path(), "cpuset cpu io memory pids", "");
        let set = |name: &str| fs::read_to_string(top.path().join(name)).unwrap_or_default();
        fs::create_dir_all(top.path().join("a/own")).unwrap();
        let v2 = V2 { root: top.path().to_owned(), own: PathBuf::from("a/own") };
        let group = v2.make("x", &BOUNDS, &[1, 2]).unwrap();
        assert_eq!(group.folders(), [top.path().join("memtrial-x")]);
        assert_eq!(set("cgroup.subtree_control"), "+memory +pids +cpu +cpuset");
        assert_eq!(set("memtrial-x/cpuset.cpus"), "1,2");
        assert_eq!(set("memtrial-x/memory.max"), "1073741824");
        assert_eq!(set("memtrial-x/pids.max"), "64");
        assert_eq!(set("memtrial-x/cpu.max"), "150000 100000");
        group.enter().unwrap();
        assert_eq!(set("memtrial-x/cgroup.procs"), "0");
    }

    #[test]
    fn a_group_without_the_controllers_is_passed_over() {
        let top = tempfile::tempdir().unwrap();
        group(top.path(), "hugetlb", "");
        let refused = make_below(top.path(), "x", &BOUNDS, &[]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
        assert!(!top.path().join("memtrial-x").exists());
        let v2 = V2 { root: top.path().to_owned(), own: PathBuf::from("a/b") };
        assert!(v2.make("x", &BOUNDS, &[]).is_err());
    }
}
