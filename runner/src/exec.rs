//! One command: started, fed, watched, its output bounded, its whole process tree ended with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use memtrial_runner::wire::{Command, End, Finished};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, WaitStatus, pidfd_open};

use crate::capture::Capture;
use crate::oom::OomCounter;
use crate::relay::Relay;
use crate::tree;

/// How long output is still read after the command's own process ended while something holds the pipe open.
const GRACE: Duration = Duration::from_millis(200);
/// How often ended orphans are collected and, without a pidfd, the command's end is looked for.
const TICK: Duration = Duration::from_millis(50);
/// What a command gets where neither the sandbox nor the request says otherwise.
const DEFAULTS: [(&str, &str); 4] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
];

/// The host is gone: there is nobody to answer.
pub struct HostGone;

/// Runs a command to its end. What cannot be started ends as a shell would have it: exit 126 or 127 and a line of
/// output.
pub fn run(
    command: &Command,
    cwd: &Path,
    stdin: Vec<u8>,
    oom: &OomCounter,
    mut relay: Option<&mut Relay>,
) -> Result<(Finished, Vec<u8>), HostGone> {
    let started = Instant::now();
    let kills = oom.kills();
    let mut capture = Capture::new(command.head, command.tail);
    let end = match start(command, cwd, stdin) {
        Ok(mut running) => {
            let deadline = started + Duration::from_millis(command.timeout_ms);
            let end = running.watch(&mut capture, deadline, relay.as_deref_mut())?;
            tree::end(None);
            if let Some(relay) = relay {
                relay.clear();
            }
            running.drain(&mut capture);
            end
        }
        Err((code, reason)) => {
            capture.push(format!("memtrial: {reason}\n").as_bytes());
            End::Exited(code)
        }
    };
    let kept = capture.finish();
    let finished = Finished {
        end,
        cut: kept.cut,
        elided: kept.elided,
        wall_us: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        out_of_memory: oom.kills() > kills,
    };
    Ok((finished, kept.bytes))
}

/// A started command.
struct Running {
    pid: Pid,
    pidfd: Option<OwnedFd>,
    output: File,
    output_open: bool,
    input: Option<File>,
    pending: Vec<u8>,
    written: usize,
    chunk: Vec<u8>,
}

/// Starts a command with both its outputs in one pipe, so that they are read in the order written.
fn start(command: &Command, cwd: &Path, stdin: Vec<u8>) -> Result<Running, (i32, String)> {
    let mut process = process(&command.argv, cwd, &command.env)?;
    let pipes = || -> io::Result<_> {
        let (output, write) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((output, Stdio::from(write.try_clone()?), Stdio::from(write)))
    };
    let (output, stdout, stderr) = pipes().map_err(|error| (126, format!("pipe: {error}")))?;
    process.stdout(stdout).stderr(stderr);
    process.stdin(if stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut child = spawn(&mut process)?;
    let pid = Pid::from_child(&child);
    let input = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
    let _ = set_nonblocking(&output);
    input.iter().for_each(|pipe| {
        let _ = set_nonblocking(pipe);
    });
    Ok(Running {
        pid,
        pidfd: pidfd_open(pid, PidfdFlags::empty()).ok(),
        output: File::from(output),
        output_open: true,
        input,
        pending: stdin,
        written: 0,
        chunk: vec![0; 64 << 10],
    })
}

/// A command as it will be started, in a process group of its own.
pub fn process(
    argv: &[String],
    cwd: &Path,
    env: &BTreeMap<String, String>,
) -> Result<Process, (i32, String)> {
    let (program, arguments) = argv.split_first().ok_or((127, "no command given".to_owned()))?;
    if !cwd.is_dir() {
        return Err((127, format!("{}: no such folder to work in", cwd.display())));
    }
    let mut process = Process::new(program);
    process.args(arguments).current_dir(cwd).process_group(0);
    for (name, value) in DEFAULTS {
        if std::env::var_os(name).is_none() {
            process.env(name, value);
        }
    }
    process.envs(env);
    Ok(process)
}

/// Starts it. What cannot be started has the exit code that a shell would give it.
pub fn spawn(process: &mut Process) -> Result<Child, (i32, String)> {
    // The child inherits the mark of the memory killer's first choice; the runner itself takes it off again.
    mark_for_oom("1000");
    let spawned = process.spawn();
    mark_for_oom("0");
    spawned.map_err(|error| {
        let program = process.get_program().to_string_lossy();
        match error.kind() {
            io::ErrorKind::NotFound => (127, format!("{program}: command not found")),
            _ => (126, format!("{program}: {error}")),
        }
    })
}

/// Only a hint to the kernel: where it cannot be set, the runner is as likely to be killed as the command.
fn mark_for_oom(score: &str) {
    let _ = std::fs::write("/proc/self/oom_score_adj", score);
}

fn set_nonblocking(fd: impl AsFd) -> rustix::io::Result<()> {
    fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)
}

impl Running {
    /// Feeds and reads until the command has ended and its output is complete, or its time is over.
    fn watch(
        &mut self,
        capture: &mut Capture,
        deadline: Instant,
        mut relay: Option<&mut Relay>,
    ) -> Result<End, HostGone> {
        let mut ended: Option<(End, Instant)> = None;
        loop {
            let now = Instant::now();
            let limit = match ended {
                Some((end, _)) if !self.output_open => return Ok(end),
                Some((end, at)) if now >= at + GRACE => return Ok(end),
                Some((_, at)) => at + GRACE,
                None if now >= deadline => return Ok(End::TimedOut),
                None => deadline,
            };
            self.wait_for_something((limit - now).min(TICK), ended.is_none(), relay.as_deref())?;
            if let Some(relay) = &mut relay {
                relay.turn();
            }
            self.feed();
            self.read_some(capture);
            if let (Some(status), _) = tree::reap(Some(self.pid)) {
                ended = Some((end_of(status), Instant::now()));
                self.input = None;
                self.pidfd = None;
            }
        }
    }

    /// Sleeps until output, room for input, the command's end, the host's end or `at_most`.
    fn wait_for_something(
        &self,
        at_most: Duration,
        running: bool,
        relay: Option<&Relay>,
    ) -> Result<(), HostGone> {
        let stdin = rustix::stdio::stdin();
        // No event asked for: a closed pipe is reported all the same.
        let mut fds = vec![PollFd::new(&stdin, PollFlags::empty())];
        if self.output_open {
            fds.push(PollFd::new(&self.output, PollFlags::IN));
        }
        if let Some(input) = &self.input {
            fds.push(PollFd::new(input, PollFlags::OUT));
        }
        if let Some(pidfd) = self.pidfd.as_ref().filter(|_| running) {
            fds.push(PollFd::new(pidfd, PollFlags::IN));
        }
        if let Some(relay) = relay {
            relay.watch(&mut fds);
        }
        let at_most =
            if running && self.pidfd.is_none() { at_most.min(Duration::from_millis(2)) } else { at_most };
        let timeout = Timespec::try_from(at_most).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let _ = poll(&mut fds, Some(&timeout));
        if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(HostGone);
        }
        Ok(())
    }

    /// Writes what the command's standard input takes. A command that does not read it loses it.
    fn feed(&mut self) {
        let Some(input) = &mut self.input else { return };
        while self.written < self.pending.len() {
            match input.write(&self.pending[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.input = None;
    }

    /// Reads what is there, a bounded number of times so that an endless writer cannot hide a deadline.
    fn read_some(&mut self, capture: &mut Capture) {
        for _ in 0..64 {
            match self.output.read(&mut self.chunk) {
                Ok(0) => {
                    self.output_open = false;
                    return;
                }
                Ok(read) => capture.push(&self.chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.output_open = false;
                    return;
                }
            }
        }
    }

    /// Takes what the dead left in the pipe: at most what a pipe holds.
    fn drain(&mut self, capture: &mut Capture) {
        if self.output_open {
            self.read_some(capture);
        }
    }
}

fn end_of(status: WaitStatus) -> End {
    match status.terminating_signal() {
        Some(signal) => End::Signaled(signal),
        None => End::Exited(status.exit_status().unwrap_or(-1)),
    }
}
