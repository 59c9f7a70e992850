//! The process tree below the runner: reaped and ended as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait};
use rustix::thread::sched_yield;

/// A process that the kernel does not let die (in uninterruptible sleep) is waited for no longer than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Collects everything that has ended by now. Returns the status of `main` if it was among it, and whether any child
/// is left.
pub fn reap(main: Option<Pid>) -> (Option<WaitStatus>, bool) {
    let mut status = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, found))) if Some(pid) == main => status = Some(found),
            Ok(Some(_)) => {}
            Ok(None) => return (status, true),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return (status, false),
        }
    }
}

/// Kills every process below this one and waits until none is left. Returns the status of `main` if it was among
/// them.
pub fn end(main: Option<Pid>) -> Option<WaitStatus> {
    let started = Instant::now();
    let mut status = None;
    loop {
        kill_all();
        let (found, left) = reap(main);
        status = status.or(found);
        if !left || started.elapsed() > PATIENCE {
            return status;
        }
        if started.elapsed() < Duration::from_millis(1) {
            sched_yield();
        } else {
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

/// As the first process of a process namespace one call reaches all others at once. Elsewhere orphans come to this
/// process (it is their subreaper), so that the tree of parents below it is complete.
fn kill_all() {
    if getpid() == Pid::INIT {
        let _ = kill_process_group(Pid::INIT, Signal::KILL);
        return;
    }
    for pid in descendants() {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// All processes below this one, by the parents that `/proc` names.
pub fn descendants() -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some(parent) = parent_of(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![getpid().as_raw_nonzero().get()];
    while let Some(pid) = open.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.extend(Pid::from_raw(child));
            open.push(child);
        }
    }
    found
}

/// The fourth field of `/proc/PID/stat`; the second, the name in brackets, may hold anything.
fn parent_of(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_behind_a_hostile_name() {
        assert_eq!(parent_of("12 (a) b) S 1 (x)) R 34 5 6"), Some(34));
        assert_eq!(parent_of("garbage"), None);
    }
}
