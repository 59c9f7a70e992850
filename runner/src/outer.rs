//! `enter`: the process outside a sandbox of namespaces. It makes the bounds and the first process inside, watches
//! the disk, and clears up when the sandbox has ended, also when memtrial was killed: closing its end of the pipe ends
//! the sandbox.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use memtrial_runner::enter::{Enter, KEEP, Upper, exit};
use memtrial_runner::wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, getegid, geteuid, pidfd_open};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde::{Deserialize, Serialize};

use crate::disk;
use crate::fault::{During, Fault, Result};
use crate::limits::{self, Group};

/// What the first process inside needs to know besides.
#[derive(Debug, Serialize, Deserialize)]
pub struct Inner {
    /// What the host asked for.
    pub enter: Enter,
    /// Whether this is a user namespace of an ordinary user.
    pub user: bool,
    /// What holds the limits; `None`: resource limits must.
    pub limits: Option<String>,
    /// The inherited descriptor of the memory events.
    pub events: Option<i32>,
}

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
    let mut child = start_inner(enter, group, user)?;
    rustix::stdio::dup2_stdout(File::open("/dev/null").during("/dev/null")?).during("/dev/null")?;
    watch(enter, &mut child)
}

/// Leaves namespaces of this process's.
#[expect(unsafe_code, reason = "rustix marks unshare as unsafe because of CLONE_FILES")]
pub fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: only CLONE_FILES is dangerous, and only to other threads; this program has one thread and never asks
    // for CLONE_FILES.
    unsafe { unshare_unsafe(flags) }
}

/// Starts the first process of the new process namespace. It waits for its description, which is sent once it is
/// bounded.
fn start_inner(enter: &Enter, group: Option<&(&'static str, Group)>, user: bool) -> Result<Child> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).during("pipe")?;
    let events: Option<OwnedFd> = group.and_then(|(_, group)| group.events().ok()).map(OwnedFd::from);
    for fd in events.iter().chain([&read]) {
        fcntl_setfd(fd, FdFlags::empty()).during("keep a descriptor open")?;
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0("memtrial-runner").arg("inner").arg(read.as_raw_fd().to_string());
    command.env_clear().stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let child = command.spawn().during("start the first process")?;
    drop(read);
    let inner = Inner {
        enter: enter.clone(),
        user,
        limits: group.map(|(name, _)| (*name).to_owned()),
        events: events.as_ref().map(AsRawFd::as_raw_fd),
    };
    let sent = group.map_or(Ok(()), |(_, group)| group.add(child.id())).during("enter the control group");
    let json = serde_json::to_vec(&inner).map_err(io::Error::from);
    let sent = sent.and_then(|()| {
        json.and_then(|json| File::from(write).write_all(&json)).during("describe the sandbox")
    });
    sent.map(|()| child)
}

/// Waits for the sandbox's end; ends it where it writes too much.
fn watch(enter: &Enter, child: &mut Child) -> Result<u8> {
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok();
    let watched = enter.upper == Upper::Disk;
    let mut pause = Duration::from_millis(250);
    loop {
        let ended = match (&pidfd, watched) {
            (Some(fd), true) => wait_readable(fd, pause),
            (None, true) => {
                std::thread::sleep(pause);
                true
            }
            (_, false) => true,
        };
        if ended {
            let status = if watched { child.try_wait() } else { child.wait().map(Some) };
            if let Some(status) = status.during("wait for the sandbox")? {
                return match status.code() {
                    Some(0) => Ok(exit::DONE),
                    // It has said why.
                    Some(_) => Ok(exit::FAILED),
                    None => Err(Fault(format!(
                        "its first process was killed by signal {} (out of memory as a whole, or from outside)",
                        status.signal().unwrap_or_default()
                    ))),
                };
            }
        }
        if watched {
            let started = Instant::now();
            if let Some((code, reason)) = excess(enter) {
                child.kill().during("end the sandbox")?;
                child.wait().during("wait for the sandbox")?;
                report(&reason);
                return Ok(code);
            }
            // A look costs at most a twentieth of the time.
            pause = (started.elapsed() * 20).max(Duration::from_millis(250));
        }
    }
}

fn wait_readable(fd: &OwnedFd, at_most: Duration) -> bool {
    let timeout = Timespec::try_from(at_most).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// Why the sandbox must end now, if it must.
fn excess(enter: &Enter) -> Option<(u8, String)> {
    let used = disk::used(&enter.scratch, enter.limits.disk);
    if used > enter.limits.disk {
        let limit = enter.limits.disk;
        return Some((exit::DISK_LIMIT, format!("it wrote more than its disk limit of {limit} bytes")));
    }
    disk::nearly_full(&enter.scratch)
        .then(|| (exit::DISK_FULL, format!("no space left under {}", enter.scratch.display())))
}

fn report(reason: &str) {
    let _ = writeln!(io::stderr(), "memtrial-runner: {reason}");
}
