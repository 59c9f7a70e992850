//! Descriptors that came with this process.

use std::fs;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::fault::{During, Result};

/// Keeps every descriptor but the standard three from what this process starts: whoever started memtrial may have left
/// some open, and they must not reach a sandbox.
#[expect(unsafe_code, reason = "numbers in a folder of the kernel name descriptors")]
pub fn keep_back() -> Result<()> {
    let listed: Vec<RawFd> = fs::read_dir("/proc/self/fd")
        .during("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in listed {
        // SAFETY: the descriptor is borrowed for one call that closes nothing. One that is no longer open, as that of
        // the listing itself, only makes the call fail.
        let _ = fcntl_setfd(unsafe { BorrowedFd::borrow_raw(fd) }, FdFlags::CLOEXEC);
    }
    Ok(())
}
