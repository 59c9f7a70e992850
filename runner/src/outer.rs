//! `enter`: the process outside a sandbox of namespaces. It makes the bounds and the first process inside, watches
//! the disk, and clears up when the sandbox has ended, also when memtrial was killed: closing its end of the pipe ends
//! the sandbox.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, Instant};

use memtrial_runner::enter::{Enter, KEEP, Upper, exit};
use memtrial_runner::wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getegid, geteuid, getpid, kill_process, pidfd_open,
    waitpid,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::disk;
use crate::fault::{During, Fault, Result};
use crate::fork::{fork, fork_into};
use crate::inner::{self, Inner};
use crate::limits::{self, Group};
use crate::tree;

/// Makes, watches and clears up one sandbox. Returns the exit code.
pub fn run() -> Result<u8> {
    let mut stdin = File::from(fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).during("standard input")?);
    let Some((enter, _)) = wire::read_header::<Enter>(&mut stdin).during("read what to make")? else {
        return Ok(exit::DONE);
    };
    drop(stdin);
    fs::DirBuilder::new().mode(0o700).create(&enter.scratch).during(enter.scratch.display())?;
    let lock = File::open(&enter.scratch).during(enter.scratch.display())?;
    flock(&lock, FlockOperation::LockShared).during("lock the scratch folder")?;
    let group = limits::make(&enter.id, &enter.limits, &enter.cpu_set);
    let outcome = run_in(&enter, group.as_ref());
    if let Some((_, group)) = &group {
        group.remove();
    }
    disk::clear(&enter.scratch, enter.scratch.join(KEEP).exists());
    outcome
}

fn run_in(enter: &Enter, group: Option<&(&'static str, Group)>) -> Result<u8> {
    if let Some((_, group)) = group {
        let folders: Vec<_> = group.folders().iter().map(|path| path.display().to_string()).collect();
        fs::write(enter.scratch.join("groups"), folders.join("\n")).during("note the control groups")?;
    }
    let user = !geteuid().is_root();
    let flags = if user { UnshareFlags::NEWUSER | UnshareFlags::NEWPID } else { UnshareFlags::NEWPID };
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(flags).during("unshare (are user namespaces allowed here?)")?;
    if user {
        fs::write("/proc/self/setgroups", "deny").during("/proc/self/setgroups")?;
        fs::write("/proc/self/uid_map", format!("0 {uid} 1")).during("/proc/self/uid_map")?;
        fs::write("/proc/self/gid_map", format!("0 {gid} 1")).during("/proc/self/gid_map")?;
    }
    let child = start_inner(enter, group, user)?;
    // The first process alone holds the output: its end tells the host that nothing runs any more. The kernel's and
    // the disk's work that remains need not be waited for.
    rustix::stdio::dup2_stdout(File::open("/dev/null").during("/dev/null")?).during("/dev/null")?;
    watch(enter, child)
}

/// Leaves namespaces of this process's.
#[expect(unsafe_code, reason = "rustix marks unshare as unsafe because of CLONE_FILES")]
pub fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: only CLONE_FILES is dangerous, and only to other threads; this program has one thread and never asks
    // for CLONE_FILES.
    unsafe { unshare_unsafe(flags) }
}

/// Starts the first process of the new process namespace: a copy of this one, which never returns from here.
fn start_inner(enter: &Enter, group: Option<&(&'static str, Group)>, user: bool) -> Result<Pid> {
    let outer = pidfd_open(getpid(), PidfdFlags::empty()).during("tie the first process to this one")?;
    let begun = group.and_then(|(_, group)| fork_into(&group.unified()?).ok());
    let copied = begun.map_or_else(fork, Ok).during("start the first process")?;
    if let Some(pid) = copied {
        return Ok(pid);
    }
    let outcome = inner::run(&Inner { enter, user, group, entered: begun.is_some(), outer: &outer });
    std::process::exit(i32::from(crate::code_of(outcome.map(|()| exit::DONE))))
}

/// Waits for the sandbox's end; ends it where it writes too much.
fn watch(enter: &Enter, child: Pid) -> Result<u8> {
    let pidfd = pidfd_open(child, PidfdFlags::empty()).ok();
    if enter.upper == Upper::Memory {
        return ended(wait(child, WaitOptions::empty())?);
    }
    let mut pause = Duration::from_millis(250);
    loop {
        match &pidfd {
            Some(fd) => wait_readable(fd, pause),
            None => std::thread::sleep(pause),
        }
        if let Some(status) = wait(child, WaitOptions::NOHANG)? {
            return ended(Some(status));
        }
        let started = Instant::now();
        if let Some((code, reason)) = excess(enter) {
            kill_process(child, Signal::KILL).during("end the sandbox")?;
            wait(child, WaitOptions::empty())?;
            report(&reason);
            return Ok(code);
        }
        // A look costs at most a twentieth of the time.
        pause = (started.elapsed() * 20).max(Duration::from_millis(250));
    }
}

fn wait(child: Pid, options: WaitOptions) -> Result<Option<WaitStatus>> {
    let found = rustix::io::retry_on_intr(|| waitpid(Some(child), options)).during("wait for the sandbox")?;
    Ok(found.map(|(_, status)| status))
}

/// What the end of the first process means.
fn ended(status: Option<WaitStatus>) -> Result<u8> {
    match status.and_then(WaitStatus::exit_status) {
        Some(0) => Ok(exit::DONE),
        // It has said why.
        Some(_) => Ok(exit::FAILED),
        None => Err(Fault(format!(
            "its first process was killed by signal {} (out of memory as a whole, or from outside)",
            status.and_then(WaitStatus::terminating_signal).unwrap_or_default()
        ))),
    }
}

fn wait_readable(fd: &OwnedFd, at_most: Duration) {
    let timeout = Timespec::try_from(at_most).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let _ = poll(&mut fds, Some(&timeout));
}

/// Why the sandbox must end now, if it must.
fn excess(enter: &Enter) -> Option<(u8, String)> {
    // Everything in the sandbox descends from its first process, and that from this one.
    let used = disk::used(&enter.scratch, &enter.limits, tree::descendants().into_iter());
    if let Some(reason) = used.excess(&enter.limits) {
        return Some((exit::DISK_LIMIT, reason));
    }
    disk::nearly_full(&enter.scratch)
        .then(|| (exit::DISK_FULL, format!("no space left under {}", enter.scratch.display())))
}

fn report(reason: &str) {
    let _ = writeln!(io::stderr(), "memtrial-runner: {reason}");
}
