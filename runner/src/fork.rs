//! A copy of this process that goes its own way.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::process::Pid;

/// Copies this process; `None` in the copy.
#[expect(unsafe_code, reason = "there is no safe way to copy a process without starting another program")]
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this program has one thread, so that the copy finds no lock held by a thread that it does not have.
    pid(libc::c_long::from(unsafe { libc::fork() }))
}

/// Copies this process; the copy begins in the control group of version 2 with this folder. Moving it there later
/// would wait, some 15 ms, until every CPU has passed through the scheduler. Kernels before 5.7 cannot.
#[expect(unsafe_code, reason = "only clone3 starts a process in a control group, and no crate offers it")]
pub fn fork_into(group: &File) -> io::Result<Option<Pid>> {
    let into = u64::try_from(group.as_raw_fd()).map_err(io::Error::other)?;
    // SAFETY: all fields are plain numbers for which zero means "not used".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    arguments.cgroup = into;
    // SAFETY: as with fork: no memory is shared (no CLONE_VM), no stack is given, one thread; `arguments` lives until
    // the call returns.
    pid(unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>()) })
}

/// Of `<linux/sched.h>`.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

fn pid(returned: libc::c_long) -> io::Result<Option<Pid>> {
    match i32::try_from(returned) {
        Ok(0) => Ok(None),
        Ok(number) if number > 0 => Ok(Pid::from_raw(number)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    use rustix::process::{Signal, WaitOptions, kill_process, waitpid};

    /// A folder of version 2, as far as one can be made here.
    fn group() -> Option<PathBuf> {
        let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let line = table.lines().find(|line| line.contains(" - cgroup2 "))?;
        let folder =
            PathBuf::from(line.split(' ').nth(4)?).join(format!("memtrial-test-{}", std::process::id()));
        fs::create_dir(&folder).ok().map(|()| folder)
    }

    #[test]
    fn a_copy_begins_in_the_group_of_version_2() {
        let Some(folder) = group() else { return };
        let copied = fork_into(&File::open(&folder).unwrap());
        if let Ok(None) = copied {
            // The copy of a test with threads must not even allocate.
            loop {
                rustix::event::pause();
            }
        }
        let found = copied.as_ref().ok().copied().flatten().map(|pid| {
            let group = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero()));
            kill_process(pid, Signal::KILL).unwrap();
            waitpid(Some(pid), WaitOptions::empty()).unwrap();
            group.unwrap()
        });
        // The kernel may need a moment to see it empty.
        let gone =
            || fs::remove_dir(&folder).inspect_err(|_| std::thread::sleep(Duration::from_millis(1))).is_ok();
        assert!((0..5000).any(|_| gone()));
        let name = folder.file_name().unwrap().to_str().unwrap();
        match found {
            Some(found) => {
                assert!(found.lines().any(|line| line.starts_with("0::") && line.ends_with(name)), "{found}")
            }
            None => assert_eq!(copied.unwrap_err().kind(), io::ErrorKind::Unsupported),
        }
    }
}
