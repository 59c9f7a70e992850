//! The CPUs that a sandbox may run on.

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::fault::{During, Result};

/// As the kernel reads and writes it: `0,2,3`.
pub fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Keeps this process and all that it starts on these CPUs; none: on all. A process may undo that as far as a control
/// group lets it.
pub fn pin(cpus: &[u32]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter_map(|cpu| usize::try_from(*cpu).ok()) {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).during(format_args!("keep to the CPUs {}", list(cpus)))
}
