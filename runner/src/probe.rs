//! `probe`: tries from inside what a sandbox must refuse, for the conformance suite. It needs no interpreter, so that
//! the same is tried on every image.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use libc::c_long;

use crate::fault::{During, Fault, Result};

/// No address and no descriptor.
const BAD: usize = 1;
const NONE: usize = usize::MAX;

/// Every refused system call with arguments at which it fails or does no harm where it is not refused.
#[rustfmt::skip]
const CALLS: &[(&str, c_long, [usize; 5])] = &[
    ("kexec_load", libc::SYS_kexec_load, [0, NONE, 0, NONE, 0]),
    ("kexec_file_load", libc::SYS_kexec_file_load, [NONE, NONE, 0, 0, NONE]),
    ("init_module", libc::SYS_init_module, [BAD, BAD, BAD, 0, 0]),
    ("finit_module", libc::SYS_finit_module, [NONE, BAD, NONE, 0, 0]),
    ("delete_module", libc::SYS_delete_module, [BAD, 0, 0, 0, 0]),
    ("reboot", libc::SYS_reboot, [0, 0, 0, 0, 0]),
    ("syslog", libc::SYS_syslog, [10, 0, 0, 0, 0]),
    ("swapon", libc::SYS_swapon, [BAD, 0, 0, 0, 0]),
    ("swapoff", libc::SYS_swapoff, [BAD, 0, 0, 0, 0]),
    ("acct", libc::SYS_acct, [BAD, 0, 0, 0, 0]),
    ("quotactl", libc::SYS_quotactl, [NONE, BAD, 0, 0, 0]),
    ("quotactl_fd", libc::SYS_quotactl_fd, [NONE, NONE, 0, 0, 0]),
    ("sethostname", libc::SYS_sethostname, [BAD, NONE, 0, 0, 0]),
    ("setdomainname", libc::SYS_setdomainname, [BAD, NONE, 0, 0, 0]),
    ("settimeofday", libc::SYS_settimeofday, [BAD, 0, 0, 0, 0]),
    ("clock_settime", libc::SYS_clock_settime, [0, BAD, 0, 0, 0]),
    ("adjtimex", libc::SYS_adjtimex, [BAD, 0, 0, 0, 0]),
    ("clock_adjtime", libc::SYS_clock_adjtime, [0, BAD, 0, 0, 0]),
    ("mount", libc::SYS_mount, [BAD, BAD, BAD, 0, 0]),
    ("umount2", libc::SYS_umount2, [BAD, 0, 0, 0, 0]),
    ("pivot_root", libc::SYS_pivot_root, [BAD, BAD, 0, 0, 0]),
    ("open_tree", libc::SYS_open_tree, [NONE, BAD, NONE, 0, 0]),
    ("open_tree_attr", 467, [NONE, BAD, NONE, BAD, 0]),
    ("move_mount", libc::SYS_move_mount, [NONE, BAD, NONE, BAD, NONE]),
    ("fsopen", libc::SYS_fsopen, [BAD, 0, 0, 0, 0]),
    ("fsconfig", libc::SYS_fsconfig, [NONE, NONE, 0, 0, 0]),
    ("fsmount", libc::SYS_fsmount, [NONE, 0, 0, 0, 0]),
    ("fspick", libc::SYS_fspick, [NONE, BAD, NONE, 0, 0]),
    ("mount_setattr", libc::SYS_mount_setattr, [NONE, BAD, NONE, BAD, 32]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [NONE, BAD, 0, 0, 0]),
    ("fanotify_init", libc::SYS_fanotify_init, [NONE, 0, 0, 0, 0]),
    ("setns", libc::SYS_setns, [NONE, 0, 0, 0, 0]),
    ("bpf", libc::SYS_bpf, [NONE, 0, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [BAD, 0, NONE, NONE, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, [NONE, 0, 0, 0, 0]),
    ("add_key", libc::SYS_add_key, [BAD, BAD, 0, 0, 0]),
    ("request_key", libc::SYS_request_key, [BAD, BAD, 0, 0, 0]),
    ("keyctl get_keyring_id", libc::SYS_keyctl, [0, NONE - 4, 0, 0, 0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [1, BAD, 0, 0, 0]),
    ("io_uring_enter", libc::SYS_io_uring_enter, [NONE, 0, 0, 0, 0]),
    ("io_uring_register", libc::SYS_io_uring_register, [NONE, 0, 0, 0, 0]),
    ("clone3", libc::SYS_clone3, [BAD, 64, 0, 0, 0]),
    ("ioctl TIOCSTI", libc::SYS_ioctl, [NONE, 0x5412, BAD, 0, 0]),
    ("ioctl TIOCLINUX", libc::SYS_ioctl, [NONE, 0x541c, BAD, 0, 0]),
    ("setrlimit core", libc::SYS_setrlimit, [4, BAD, 0, 0, 0]),
    ("prlimit64 core", libc::SYS_prlimit64, [0, 4, BAD, 0, 0]),
    ("mknodat block", libc::SYS_mknodat, [NONE, BAD, 0o060_600, 0x800, 0]),
    ("mknodat character", libc::SYS_mknodat, [NONE, BAD, 0o020_600, 0x101, 0]),
    ("socket AF_PACKET", libc::SYS_socket, [17, 3, 0, 0, 0]),
    ("socket AF_VSOCK", libc::SYS_socket, [40, 1, 0, 0, 0]),
    ("socket AF_ALG", libc::SYS_socket, [38, 5, 0, 0, 0]),
    ("socket AF_KEY", libc::SYS_socket, [15, 3, 2, 0, 0]),
    ("socket AF_XDP", libc::SYS_socket, [44, 3, 0, 0, 0]),
    ("socket AF_NETLINK netfilter", libc::SYS_socket, [16, 3, 12, 0, 0]),
    ("socket AF_NETLINK uevents", libc::SYS_socket, [16, 3, 15, 0, 0]),
    ("socket AF_INET raw", libc::SYS_socket, [2, 3, 1, 0, 0]),
    ("personality READ_IMPLIES_EXEC", libc::SYS_personality, [0x40_0000, 0, 0, 0, 0]),
    ("unshare time", libc::SYS_unshare, [0x80, 0, 0, 0, 0]),
    ("unshare user", libc::SYS_unshare, [0x1000_0000, 0, 0, 0, 0]),
    ("unshare mount", libc::SYS_unshare, [0x2_0000, 0, 0, 0, 0]),
    ("unshare network", libc::SYS_unshare, [0x4000_0000, 0, 0, 0, 0]),
    ("unshare processes", libc::SYS_unshare, [0x2000_0000, 0, 0, 0, 0]),
    ("clone user", libc::SYS_clone, [0x1000_0000 | 17, 0, 0, 0, 0]),
];

/// Tries one thing and prints what came of it.
pub fn run(what: &[&str]) -> Result<()> {
    let line = match what {
        ["calls"] => return calls(),
        ["call-of-another-architecture"] => other_architecture(),
        ["trace", pid] => {
            let pid = pid.parse().map_err(|_| Fault("expected a process number".into()))?;
            const SEIZE: usize = 0x4206;
            outcome("ptrace", call(libc::SYS_ptrace, [SEIZE, pid, 0, 0, 0]))
        }
        ["connect-tcp", address] => said(TcpStream::connect(address)),
        ["connect-abstract", name] => {
            said(abstract_name(name).and_then(|name| UnixStream::connect_addr(&name)))
        }
        ["connect-unix", path] => said(UnixStream::connect(path)),
        ["listen", address, name] => return listen(address, name),
        ["run-as", uid, program @ ..] => return run_as(uid, program),
        ["effective-user"] => rustix::process::geteuid().as_raw().to_string(),
        _ => return Err(Fault("nothing is known of this probe".into())),
    };
    say(&line)
}

fn say(line: &str) -> Result<()> {
    writeln!(io::stdout(), "{line}").during("standard output")
}

fn said<T>(result: io::Result<T>) -> String {
    result.map_or_else(|error| error.to_string(), |_| "connected".to_owned())
}

/// A line a call: its name, a colon, and `done` or the error's number and text. Nothing is printed where an ending
/// without a word tells of a killed process.
fn calls() -> Result<()> {
    CALLS.iter().try_for_each(|(name, number, arguments)| say(&outcome(name, call(*number, *arguments))))
}

fn outcome(name: &str, result: io::Result<()>) -> String {
    match result {
        Ok(()) => format!("{name}: done"),
        Err(error) => format!("{name}: {error}"),
    }
}

#[expect(unsafe_code, reason = "the calls that are tried have no safe form")]
fn call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> io::Result<()> {
    // SAFETY: no argument points into this process's memory, so that the kernel can change none of it. This process has
    // one thread: should `clone` succeed, its child is an ordinary copy, which ends below.
    let result = unsafe { libc::syscall(number, a, b, c, d, e) };
    if number == libc::SYS_clone && result == 0 {
        std::process::exit(0);
    }
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The number of this process by the 32-bit entry of the kernel.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "there is no other way to the 32-bit entry")]
fn other_architecture() -> String {
    let answer: i64;
    // SAFETY: getpid takes no argument and touches no memory; the kernel keeps all registers but rax and, at this entry,
    // r8 to r11.
    unsafe {
        std::arch::asm!(
            "int 0x80", inlateout("rax") 20i64 => answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    format!("answered {answer}")
}

#[cfg(not(target_arch = "x86_64"))]
fn other_architecture() -> String {
    "there is none to try".to_owned()
}

fn abstract_name(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

/// Listens at an address and an abstract name, says the port, and waits to be ended.
fn listen(address: &str, name: &str) -> Result<()> {
    let tcp = TcpListener::bind(address).during(address)?;
    let _local = abstract_name(name).and_then(|name| UnixListener::bind_addr(&name)).during(name)?;
    say(&tcp.local_addr().during(address)?.port().to_string())?;
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}

/// Becomes another user and runs a program.
fn run_as(uid: &str, program: &[&str]) -> Result<()> {
    let uid: u32 = uid.parse().map_err(|_| Fault("expected a user number".into()))?;
    let (name, arguments) = program.split_first().ok_or_else(|| Fault("expected a program".into()))?;
    let error = Command::new(name).args(arguments).uid(uid).exec();
    Err(error).during(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp;

    /// In a thread, since a filter cannot be taken off again.
    fn filtered<T: Send + 'static>(look: fn() -> T) -> T {
        let thread = std::thread::spawn(move || {
            seccomp::apply().unwrap();
            look()
        });
        thread.join().unwrap()
    }

    #[test]
    fn every_call_is_refused_by_the_filter() {
        let reached = filtered(|| {
            let tried = CALLS.iter().map(|(name, number, arguments)| (name, call(*number, *arguments)));
            let refused = [libc::EPERM, libc::ENOSYS, libc::EAFNOSUPPORT].map(Some);
            tried
                .filter(|(_, result)| {
                    !result.as_ref().is_err_and(|error| refused.contains(&error.raw_os_error()))
                })
                // Held by a missing capability, not by the filter.
                .filter(|(name, _)| **name != "socket AF_INET raw")
                .map(|(name, result)| outcome(name, result))
                .collect::<Vec<_>>()
        });
        assert_eq!(reached, Vec::<String>::new());
    }

    #[test]
    fn no_refused_call_is_left_untried() {
        let untried: Vec<c_long> = seccomp::refused()
            .filter(|number| !CALLS.iter().any(|(_, tried, _)| tried == number))
            // The first would hang up the terminal of whoever is not refused; the second is gone from new kernels.
            .filter(|number| ![libc::SYS_vhangup, libc::SYS_lookup_dcookie].contains(number))
            .collect();
        assert_eq!(untried, Vec::<c_long>::new());
    }
}
