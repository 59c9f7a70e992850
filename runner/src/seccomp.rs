//! System calls that are refused to everything in a sandbox: no test needs them, and ways out of sandboxes have led
//! through them.
//!
//! All others are allowed: a list of what may be called would break some program of some task. `ptrace` and
//! `process_vm_readv` are among the allowed. Debuggers, profilers and coverage tools use them, they reach only what the
//! kernel's ptrace check lets them reach (processes of this sandbox, never the runner, which is not dumpable), and since
//! Linux 4.8 the filter is asked again after a tracer has changed a call.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::fault::{Fault, Result};

/// Refused as if a privilege were missing.
const FORBIDDEN: &[c_long] = &[
    // The kernel itself, and the clock of the whole machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    // What is mounted where, and files by handles instead of paths.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Namespaces: see also [`clone`].
    libc::SYS_setns,
    // Large parts of the kernel that few programs use.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Keys belong to a user, not to a namespace.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Of the newest calls libc knows no numbers yet; they are the same on every architecture.
const OPEN_TREE_ATTR: c_long = 467;

#[cfg(target_arch = "x86_64")]
const FORBIDDEN_HERE: &[c_long] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_uselib, libc::SYS_ustat, libc::SYS_sysfs];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_HERE: &[c_long] = &[];

/// Refused as if the kernel did not know them, so that programs use what they used before: `clone3` passes its flags in
/// memory, where a filter cannot see them.
const UNKNOWN: &[c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// New namespaces: all of the kernel that only root may reach outside can be reached in one.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// For `unshare` only: to `clone` this bit is part of a signal.
const NEW_TIME: libc::c_int = 0x80;

/// Execution domains: Linux, as it is on 32 bits of kernel version 2.6 for old programs, without randomised addresses
/// (debuggers), and the question for the present one.
const PERSONALITIES: [u64; 6] = [0, 0x0008, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff];

/// Typing into the terminal of somebody else.
const TERMINAL_INPUT: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Socket families that are there. Others are refused as if the kernel lacked them: `AF_VSOCK` knows no namespaces and
/// reaches the hypervisor, most of the rest is seldom used and often faulty.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Puts the filter on this thread and all that it starts, for good, with `no_new_privs`.
pub fn apply() -> Result<()> {
    let fault = |error: String| Fault(format!("filter system calls: {error}"));
    let filter = filter().map_err(|error| fault(error.to_string()))?;
    apply_filter(&filter).map_err(|error| fault(error.to_string()))
}

/// One program after another, each with its error number. No call is in two of them, so that all that a program does
/// not know may go on to the next instead of being allowed at its end.
fn filter() -> std::result::Result<BpfProgram, BackendError> {
    let whole = |calls: &[c_long]| calls.iter().map(|call| (*call, Vec::new())).collect::<Vec<_>>();
    let mut forbidden = whole(FORBIDDEN);
    forbidden.extend(whole(FORBIDDEN_HERE));
    forbidden.push((libc::SYS_clone, any_flag(0, &NAMESPACES)?));
    forbidden.push((libc::SYS_unshare, any_flag(0, &[NAMESPACES.as_slice(), &[NEW_TIME]].concat())?));
    forbidden.push((libc::SYS_personality, vec![none_of(0, &PERSONALITIES)?]));
    forbidden.push((libc::SYS_ioctl, any_of(1, &TERMINAL_INPUT)?));
    forbidden.extend(core_limit()?);
    forbidden.extend(device_nodes()?);
    let mut filter = if cfg!(target_arch = "x86_64") { no_x32().to_vec() } else { Vec::new() };
    filter.extend(program(forbidden, libc::EPERM)?);
    for (rules, errno) in [(whole(UNKNOWN), libc::ENOSYS), (sockets()?, libc::EAFNOSUPPORT)] {
        filter.pop();
        filter.extend(program(rules, errno)?);
    }
    Ok(filter)
}

type Rules = Vec<(c_long, Vec<SeccompRule>)>;

/// A call of another architecture (32-bit programs) has numbers of its own, and the process is killed.
fn program(rules: Rules, errno: libc::c_int) -> std::result::Result<BpfProgram, BackendError> {
    let rules: BTreeMap<i64, _> = rules.into_iter().collect();
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}

/// The x32 calls of `x86_64` are the same calls under other numbers: unknown.
fn no_x32() -> [seccompiler::sock_filter; 3] {
    const X32: u32 = 0x4000_0000;
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let refuse = u32::from(SeccompAction::Errno(libc::ENOSYS.unsigned_abs()));
    let statement = |code, jf, k| seccompiler::sock_filter { code, jt: 0, jf, k };
    [statement(LOAD_NUMBER, 0, 0), statement(JUMP_IF_AT_LEAST, 1, X32), statement(RETURN, 0, refuse)]
}

/// The limit of core dumps may not be changed: at one byte, where the runner has set it, neither a file is written nor
/// a crash handler of the host started, which any other limit, zero too, would allow.
fn core_limit() -> std::result::Result<Rules, BackendError> {
    let core = u64::from(libc::RLIMIT_CORE);
    let set = SeccompRule::new(vec![equal(0, core)?])?;
    let new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let change = SeccompRule::new(vec![equal(1, core)?, new])?;
    Ok(vec![(libc::SYS_setrlimit, vec![set]), (libc::SYS_prlimit64, vec![change])])
}

/// Block and character devices: pipes, sockets and files may be made.
fn device_nodes() -> std::result::Result<Rules, BackendError> {
    let of_kind = |argument| {
        let kind = |value: libc::mode_t| {
            let masked = SeccompCmpOp::MaskedEq(u64::from(libc::S_IFMT));
            let condition =
                SeccompCondition::new(argument, SeccompCmpArgLen::Dword, masked, u64::from(value))?;
            SeccompRule::new(vec![condition])
        };
        [libc::S_IFBLK, libc::S_IFCHR].into_iter().map(kind).collect::<std::result::Result<Vec<_>, _>>()
    };
    let mut rules = vec![(libc::SYS_mknodat, of_kind(2)?)];
    #[cfg(target_arch = "x86_64")]
    rules.push((libc::SYS_mknod, of_kind(1)?));
    Ok(rules)
}

/// Families other than [`FAMILIES`], and of netlink all but routes and addresses.
fn sockets() -> std::result::Result<Rules, BackendError> {
    let families = FAMILIES.map(|family| u64::from(family.unsigned_abs()));
    let netlink = equal(0, u64::from(libc::AF_NETLINK.unsigned_abs()))?;
    let other = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    let socket = vec![none_of(0, &families)?, SeccompRule::new(vec![netlink, other])?];
    Ok(vec![(libc::SYS_socket, socket), (libc::SYS_socketpair, vec![none_of(0, &families)?])])
}

fn equal(argument: u8, value: u64) -> std::result::Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// A rule for each value.
fn any_of(argument: u8, values: &[u64]) -> std::result::Result<Vec<SeccompRule>, BackendError> {
    values.iter().map(|value| SeccompRule::new(vec![equal(argument, *value)?])).collect()
}

/// One rule that no value is.
fn none_of(argument: u8, values: &[u64]) -> std::result::Result<SeccompRule, BackendError> {
    let other =
        |value: &u64| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *value);
    SeccompRule::new(values.iter().map(other).collect::<std::result::Result<Vec<_>, _>>()?)
}

/// A rule for each flag.
fn any_flag(argument: u8, flags: &[libc::c_int]) -> std::result::Result<Vec<SeccompRule>, BackendError> {
    let set = |flag: &libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        let masked = SeccompCmpOp::MaskedEq(flag);
        SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, masked, flag)?])
    };
    flags.iter().map(set).collect()
}

/// The numbers of the calls that are refused whatever their arguments, on every architecture.
#[cfg(test)]
pub fn refused() -> impl Iterator<Item = c_long> {
    FORBIDDEN.iter().chain(UNKNOWN).copied()
}
