//! Resource limits: set always for files, and for memory and processes where no control group can be had.

use memtrial_runner::enter::Bounds;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::fault::{During, Result};

/// Bounds this process and all that it starts: the size of one file, no core dumps; with `alone` also each process's
/// own memory and the user's processes.
///
/// One byte of core dump, not none: where the host pipes dumps to a handler, the kernel starts it, as root of the host,
/// at every limit but this.
///
/// Memory is bounded by `RLIMIT_DATA`, not `RLIMIT_AS`: Node and Java reserve far more addresses than they use.
pub fn apply(bounds: &Bounds, alone: bool) -> Result<()> {
    lower(Resource::Core, 1)?;
    lower(Resource::Fsize, bounds.disk)?;
    if alone {
        lower(Resource::Data, bounds.memory)?;
        lower(Resource::Nproc, u64::from(bounds.processes))?;
    }
    Ok(())
}

/// Never raises a limit: that would need a privilege.
fn lower(resource: Resource, to: u64) -> Result<()> {
    let mut limit = getrlimit(resource);
    let least = |old: Option<u64>| Some(old.map_or(to, |old| old.min(to)));
    limit.current = least(limit.current);
    limit.maximum = least(limit.maximum);
    setrlimit(resource, limit).during(format_args!("limit {resource:?}"))
}
