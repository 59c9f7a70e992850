//! Which process: its name in the study, and what tells whether it still lives.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A process that works on a study.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// The worker's name.
    pub worker: String,
    /// Which process of this name, from 1.
    pub run: u64,
    /// The machine's name: for people.
    pub host: String,
    /// The machine since it was started, and the part of it whose process numbers these are.
    pub machine: String,
    /// The process.
    pub pid: u32,
    /// When the process was started, in clock ticks since the machine was.
    pub started: u64,
    /// After so many seconds without a sign of life its claims may be taken over.
    pub lease: u64,
}

impl Owner {
    /// This process.
    pub(super) fn here(worker: String, lease: u64) -> Self {
        let pid = std::process::id();
        let host = host_name();
        let machine = machine();
        Self { worker, run: 0, host, machine, pid, started: started(pid).unwrap_or(0), lease }
    }

    /// Whether its process is known to have ended: it ran on this machine, and is not there any more.
    pub(super) fn is_known_dead(&self, here: &Self) -> bool {
        !self.machine.is_empty() && self.machine == here.machine && started(self.pid) != Some(self.started)
    }

    /// The next process of the same name.
    pub(super) fn with_run(&self, run: u64) -> Self {
        Self { run, ..self.clone() }
    }
}

/// A worker's name that no other process has: the host's, the process's number and a little chance.
pub fn unique_name() -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let host: String = host_name().chars().map(plain).take(64).collect();
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    format!("{}-{}-{:04x}", host.trim_matches('-'), std::process::id(), (nanos >> 6) & 0xffff)
}

/// Why a text is no worker's name: it becomes the name of files.
pub(super) fn fault(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let good =
        !name.is_empty() && name.len() <= 128 && name.chars().all(fits) && !name.starts_with(['.', '-']);
    (!good).then(|| {
        format!(
            "worker {name:?}: expected up to 128 letters, digits, -, _ and dots, a letter or digit or _ first"
        )
    })
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The machine's boot and the process-number namespace; empty where they are not known.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    match std::fs::read_link("/proc/self/ns/pid") {
        Ok(space) if !boot.is_empty() => format!("{} {}", boot.trim(), space.display()),
        _ => String::new(),
    }
}

/// When a process was started; `None`: there is none of this number, or it has ended and is only not yet reaped.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name may hold anything, brackets too
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_another_of_its_number() {
        let here = Owner::here("w".into(), 60);
        assert!(here.started > 0 && !here.machine.is_empty(), "{here:?}");
        assert!(!here.is_known_dead(&here));
        let earlier = Owner { started: here.started - 1, ..here.clone() };
        assert!(earlier.is_known_dead(&here));
        let elsewhere = Owner { machine: "another".into(), ..earlier.clone() };
        assert!(!elsewhere.is_known_dead(&here));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = Owner { pid: child.id(), started: started(child.id()).unwrap_or(1), ..here.clone() };
        child.wait().unwrap();
        assert!(ended.is_known_dead(&here));
    }

    #[test]
    fn names_are_safe_as_file_names() {
        assert_eq!(fault(&unique_name()), None);
        for name in ["", ".hidden", "-x", "a/b", "é", &"x".repeat(129)] {
            assert!(fault(name).is_some(), "{name}");
        }
    }
}
