//! A program that is given this process's own standard streams: it talks to the host, and the sandbox ends with it.

use std::path::Path;
use std::time::Duration;

use memtrial_runner::wire::Program;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::exec::{process, spawn};
use crate::fault::{Fault, Result};
use crate::relay::Relay;
use crate::tree;

/// How often the program's end is looked for where the kernel does not tell of it.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long the program may take to end once the host has closed its end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs the program until it ends or the host closes its end; nothing that it started outlives it.
pub fn run(program: &Program, cwd: &Path, mut relay: Option<&mut Relay>) -> Result<()> {
    let started = process(&program.argv, cwd, &program.env).and_then(|mut process| spawn(&mut process));
    let child = started.map_err(|(_, reason)| Fault(reason))?;
    let main = Pid::from_child(&child);
    let pidfd = pidfd_open(main, PidfdFlags::empty()).ok();
    let stdin = rustix::stdio::stdin();
    let mut parted = None;
    let status = loop {
        if let (Some(status), _) = tree::reap(Some(main)) {
            break Some(status);
        }
        if parted.is_some_and(|at: std::time::Instant| at.elapsed() > FAREWELL) {
            break None;
        }
        let mut fds = Vec::new();
        if parted.is_none() {
            // No event asked for: the program reads it. A closed pipe is reported all the same.
            fds.push(PollFd::new(&stdin, PollFlags::empty()));
        }
        fds.extend(pidfd.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        if let Some(relay) = &relay {
            relay.watch(&mut fds);
        }
        let _ = poll(&mut fds, Some(&TICK));
        let closed = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        if parted.is_none() && fds[0].revents().intersects(closed) {
            parted = Some(std::time::Instant::now());
        }
        if let Some(relay) = &mut relay {
            relay.turn();
        }
    };
    tree::end(None);
    match status.map(|status| (status.exit_status(), status.terminating_signal())) {
        None | Some((Some(0), _)) => Ok(()),
        Some((Some(code), _)) => Err(Fault(format!("the program ended with code {code}"))),
        Some((None, signal)) => {
            Err(Fault(format!("the program ended by signal {}", signal.unwrap_or_default())))
        }
    }
}
