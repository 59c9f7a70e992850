//! `inner`: the first process inside a sandbox of namespaces. It builds the root file system, gives up its
//! privileges and serves.

use std::io::Read;
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::process::{Signal, set_parent_process_death_signal, setsid, umask};
use rustix::system::sethostname;
use rustix::thread::UnshareFlags;

use crate::fault::{During, Fault, Result};
use crate::outer::{Inner, unshare};
use crate::serve::{Serve, serve};
use crate::{inherited, limits, network, privileges, root};

/// Reads the description from the inherited pipe, becomes the sandbox, serves until the host closes its end.
pub fn run(pipe: &str) -> Result<()> {
    // Ends with the process outside, so that nothing runs on unwatched.
    set_parent_process_death_signal(Some(Signal::KILL)).during("tie to the process outside")?;
    let pipe = pipe.parse().map_err(|_| Fault("`inner` is started by `enter` only".into()))?;
    let mut json = Vec::new();
    inherited::take(pipe)?.read_to_end(&mut json).during("read the description")?;
    let inner: Inner =
        serde_json::from_slice(&json).map_err(std::io::Error::from).during("the description")?;
    let events = inner.events.map(inherited::take).transpose()?;
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
    root::build(&inner)?;
    limits::apply_rlimits(&inner.enter.limits, inner.limits.is_none())?;
    privileges::drop_most()?;
    let gateway = inner.enter.gateway;
    let limits = Some(inner.limits.unwrap_or_else(|| "rlimits".to_owned()));
    serve(Serve { root: PathBuf::from("/"), limits, oom: events, gateway })
}
