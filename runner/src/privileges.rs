//! What root may do in a sandbox: what installing and testing packages asks for, nothing that reaches the host.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities};

use crate::fault::{During, Result};

/// Kept: ownership and permissions of files, signals, user changes, low ports, chroot.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT);

/// Gives every other capability up, for good and for all that is started from here.
pub fn drop_most() -> Result<()> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if KEPT.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            // The kernel knows no such capability.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error).during("drop capabilities"),
        }
    }
    let sets = CapabilitySets { effective: KEPT, permitted: KEPT, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).during("drop capabilities")
}
