//! Control groups of version 1: one folder a controller, made at each hierarchy's root.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use memtrial_runner::enter::Bounds;

use super::{Group, Limiter, cpu_list, undo_on_error};

/// By this file one thread enters, by `cgroup.procs` a process. The first process has one thread, and for a thread
/// that moves itself the kernel takes no lock; the other's lock waits until every CPU has passed through the
/// scheduler, 15 ms where it was not taken just before.
const ENTRANCE: &str = "tasks";
/// The scheduler's period in microseconds.
const PERIOD: f64 = 100_000.0;

/// The controllers' folders.
pub struct V1 {
    /// By controller.
    pub roots: BTreeMap<String, PathBuf>,
}

impl Limiter for V1 {
    fn name(&self) -> &'static str {
        "cgroup v1"
    }

    fn make(&self, id: &str, bounds: &Bounds, cpus: &[u32]) -> io::Result<Group> {
        let name = format!("memtrial-{id}");
        let folder = |controller: &str| {
            let root = self.roots.get(controller).ok_or(io::ErrorKind::NotFound)?;
            Ok::<_, io::Error>(root.join(&name))
        };
        let (memory, pids, cpu) = (folder("memory")?, folder("pids")?, folder("cpu")?);
        let mut folders = vec![memory.clone(), pids.clone(), cpu.clone()];
        undo_on_error(&folders, folders.iter().try_for_each(fs::create_dir))?;
        let set = || {
            let bytes = bounds.memory.to_string();
            fs::write(memory.join("memory.limit_in_bytes"), &bytes)?;
            // Only where the kernel accounts for swap.
            let swap = memory.join("memory.memsw.limit_in_bytes");
            if Path::exists(&swap) {
                fs::write(swap, &bytes)?;
            }
            fs::write(pids.join("pids.max"), bounds.processes.to_string())?;
            fs::write(cpu.join("cpu.cfs_period_us"), format!("{PERIOD}"))?;
            fs::write(cpu.join("cpu.cfs_quota_us"), format!("{}", (bounds.cpus * PERIOD).max(1000.0).round()))
        };
        undo_on_error(&folders, set())?;
        folders.extend(self.cpu_set(&name, cpus));
        Ok(Group { events: memory.join("memory.oom_control"), folders, entrance: ENTRANCE })
    }
}

impl V1 {
    /// The folder of a group with CPUs of its own. Without one the affinity that each process inherits must do.
    fn cpu_set(&self, name: &str, cpus: &[u32]) -> Option<PathBuf> {
        let root = self.roots.get("cpuset").filter(|_| !cpus.is_empty())?;
        let folder = root.join(name);
        fs::create_dir(&folder).ok()?;
        let set = || {
            // A group without memory nodes takes no process.
            fs::write(folder.join("cpuset.mems"), fs::read_to_string(root.join("cpuset.mems"))?.trim())?;
            fs::write(folder.join("cpuset.cpus"), cpu_list(cpus))
        };
        undo_on_error(std::slice::from_ref(&folder), set()).ok().map(|()| folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_written_where_the_kernel_reads_them() {
        let top = tempfile::tempdir().unwrap();
        let roots = ["memory", "pids", "cpu", "cpuset"].map(|name| (name.to_owned(), top.path().join(name)));
        roots.iter().for_each(|(_, path)| fs::create_dir(path).unwrap());
        fs::write(top.path().join("cpuset/cpuset.mems"), "0-1\n").unwrap();
        let v1 = V1 { roots: roots.into_iter().collect() };
        let bounds = Bounds { memory: 64 << 20, processes: 50, cpus: 0.5, disk: 0, entries: 0 };
        let group = v1.make("x", &bounds, &[3]).unwrap();
        let read = |path: &str| fs::read_to_string(top.path().join(path)).unwrap();
        assert_eq!(read("memory/memtrial-x/memory.limit_in_bytes"), "67108864");
        assert_eq!(read("pids/memtrial-x/pids.max"), "50");
        assert_eq!(read("cpu/memtrial-x/cpu.cfs_quota_us"), "50000");
        assert_eq!(read("cpuset/memtrial-x/cpuset.mems"), "0-1");
        assert_eq!(read("cpuset/memtrial-x/cpuset.cpus"), "3");
        group.enter().unwrap();
        assert_eq!(read("pids/memtrial-x/tasks"), "0");
        assert_eq!(read("cpuset/memtrial-x/tasks"), "0");
    }

    #[test]
    fn without_cpus_to_set_the_other_bounds_hold() {
        let top = tempfile::tempdir().unwrap();
        let roots = ["memory", "pids", "cpu", "cpuset"].map(|name| (name.to_owned(), top.path().join(name)));
        roots.iter().for_each(|(_, path)| fs::create_dir(path).unwrap());
        let v1 = V1 { roots: roots.into_iter().collect() };
        let bounds = Bounds { memory: 1, processes: 1, cpus: 1.0, disk: 0, entries: 0 };
        // No memory nodes can be read there.
        assert_eq!(v1.make("x", &bounds, &[0]).unwrap().folders().len(), 3);
        assert_eq!(fs::read_dir(top.path().join("cpuset")).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_controller_leaves_nothing_behind() {
        let top = tempfile::tempdir().unwrap();
        let memory = top.path().join("memory");
        fs::create_dir(&memory).unwrap();
        let roots = BTreeMap::from([
            ("memory".to_owned(), memory.clone()),
            ("pids".to_owned(), top.path().join("none")),
            ("cpu".to_owned(), memory.clone()),
        ]);
        let bounds = Bounds { memory: 1, processes: 1, cpus: 1.0, disk: 0, entries: 0 };
        assert!(V1 { roots }.make("x", &bounds, &[]).is_err());
        assert_eq!(fs::read_dir(memory).unwrap().count(), 0);
    }
}
