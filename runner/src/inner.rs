//! The first process inside a sandbox of namespaces. It builds the root file system, gives up its privileges and
//! serves.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use memtrial_runner::enter::Enter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::process::{Signal, set_parent_process_death_signal, setsid, umask};
use rustix::system::sethostname;
use rustix::thread::UnshareFlags;

use crate::fault::{During, Fault, Result};
use crate::limits::{self, Group};
use crate::outer::unshare;
use crate::serve::{Serve, serve};
use crate::{network, privileges, root, seccomp};

/// What the first process inside is told.
pub struct Inner<'a> {
    /// What the host asked for.
    pub enter: &'a Enter,
    /// Whether this is a user namespace of an ordinary user.
    pub user: bool,
    /// What holds the limits, and its group; `None`: resource limits must.
    pub group: Option<&'a (&'static str, Group)>,
    /// Whether this process began in the group.
    pub entered: bool,
    /// The process outside.
    pub outer: &'a OwnedFd,
}

/// Becomes the sandbox, serves until the host closes its end.
pub fn run(inner: &Inner) -> Result<()> {
    tie(inner.outer)?;
    let mut events = None;
    if let Some((_, group)) = inner.group {
        if !inner.entered {
            group.enter().during("enter the control group")?;
        }
        events = group.events().ok();
    }
    let _ = setsid();
    umask(Mode::from_raw_mode(0o022));
    let mut flags =
        UnshareFlags::NEWNS | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC | UnshareFlags::NEWCGROUP;
    if !inner.enter.network {
        flags |= UnshareFlags::NEWNET;
    }
    unshare(flags).during("unshare")?;
    if !inner.enter.network {
        network::loopback_up().during("bring loopback up")?;
    }
    sethostname(b"memtrial").during("set the host name")?;
    root::build(inner)?;
    limits::pin(&inner.enter.cpu_set)?;
    limits::apply_rlimits(&inner.enter.limits, inner.group.is_none())?;
    privileges::drop_most()?;
    seccomp::apply()?;
    let limits = Some(inner.group.map_or("rlimits", |(name, _)| name).to_owned());
    let gateway = inner.enter.gateway;
    serve(Serve { root: PathBuf::from("/"), limits, oom: events, gateway })
}

/// Ends this process with the one outside, so that nothing runs on unwatched.
fn tie(outer: &OwnedFd) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).during("tie to the process outside")?;
    let mut fds = [PollFd::new(outer, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec::default())) {
        Ok(0) => Ok(()),
        _ => Err(Fault("the process outside has ended".into())),
    }
}
