//! The kernel's interface, and the runner, as seen from inside.

use futures::FutureExt;

use super::bench::{Bench, Wrong, bash, exec, lay_probe, must, probe};
use super::{Claim, Entry};
use crate::sandbox::Exec;

pub(super) fn cases<'a>() -> Vec<Entry<'a>> {
    let isolation = Some(Claim::Isolation);
    vec![
        ("runner-answers", "no command answers in the runner's name", isolation, |bench| {
            forgery(bench).boxed()
        }),
        ("runner-trace", "the runner can neither be traced nor read", isolation, |bench| {
            trace(bench).boxed()
        }),
        (
            "privileges",
            "new privileges are barred, a filter is on, and no capability beyond files, users and signals is left",
            isolation,
            |bench| privileges(bench).boxed(),
        ),
        (
            "system-calls",
            "calls for mounts, namespaces, modules, keys, clocks, tracing of the kernel and foreign sockets are refused",
            isolation,
            |bench| calls(bench).boxed(),
        ),
        ("foreign-calls", "the kernel's 32-bit entry is closed", isolation, |bench| foreign(bench).boxed()),
        ("user-namespaces", "no namespace can be made, by a user or by root", isolation, |bench| {
            namespaces(bench).boxed()
        }),
        ("mounts-changed", "nothing can be mounted or unmounted", isolation, |bench| {
            refused(bench, &MOUNTS).boxed()
        }),
        ("proc-writes", "settings of the kernel under /proc cannot be written", isolation, |bench| {
            refused(bench, &PROC).boxed()
        }),
        (
            "sys-writes",
            "neither devices, kernel settings nor control groups can be written under /sys",
            isolation,
            |bench| sys(bench).boxed(),
        ),
        ("device-nodes", "/dev holds harmless devices alone, and no other can be made", isolation, |bench| {
            devices(bench).boxed()
        }),
        (
            "kernel-memory",
            "neither memory, ports nor the log of the kernel can be read",
            isolation,
            |bench| refused(bench, &MEMORY).boxed(),
        ),
        ("clock", "the clock and the host's name cannot be set", isolation, |bench| {
            refused(bench, &CLOCK).boxed()
        }),
        ("setuid", "a setuid program gives no other user's rights", isolation, |bench| setuid(bench).boxed()),
        (
            "core-dumps",
            "a crash leaves no core dump, inside or with a handler of the host",
            isolation,
            |bench| core_dumps(bench).boxed(),
        ),
    ]
}

async fn forgery(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let output = bash(
        &mut sandbox,
        "for fd in /proc/$PPID/fd/*; do (echo forged > $fd) 2>/dev/null && echo $fd; done",
    )
    .await?;
    must(output.bytes.is_empty(), &output)?;
    let output = bash(&mut sandbox, "ls -l /proc/self/fd | grep -c pipe").await?;
    // Standard output and error, and grep's own.
    must(output.text().trim().parse::<u32>().is_ok_and(|pipes| pipes <= 2), &output)?;
    Ok(sandbox.close().await?)
}

async fn trace(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    lay_probe(&mut sandbox).await?;
    let look = "$probe trace $PPID; head -c 1 /proc/$PPID/environ 2>&1; head -c 1 /proc/$PPID/mem 2>&1; \
                readlink /proc/$PPID/exe; true";
    let output = probe(&mut sandbox, look).await?;
    let text = output.text();
    let lines: Vec<&str> = text.lines().collect();
    let denied = |line: &&str| line.contains("not permitted") || line.contains("denied");
    must(lines.len() == 3 && lines.iter().all(denied), text)?;
    Ok(sandbox.close().await?)
}

/// Capabilities that may be left, by their bits: ownership and permissions of files, signals, user changes, low ports,
/// chroot.
const KEPT: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 18;

async fn privileges(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let output = bash(&mut sandbox, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status").await?;
    let text = output.text();
    let field = |name: &str| text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()));
    let set = |name: &str| field(name).and_then(|bits| u64::from_str_radix(bits, 16).ok());
    must(field("NoNewPrivs:") == Some("1") && field("Seccomp:") == Some("2"), &text)?;
    for name in ["CapEff:", "CapPrm:", "CapBnd:"] {
        must(set(name).is_some_and(|bits| bits & !KEPT == 0), (name, &text))?;
    }
    must(set("CapInh:") == Some(0) && set("CapAmb:") == Some(0), &text)?;
    Ok(sandbox.close().await?)
}

/// Refused means: an error that no argument was looked at for.
async fn calls(bench: &Bench<'_>) -> Result<(), Wrong> {
    const REFUSED: [&str; 4] = ["(os error 1)", "(os error 13)", "(os error 38)", "(os error 97)"];
    let mut sandbox = bench.start().await?;
    lay_probe(&mut sandbox).await?;
    let output = probe(&mut sandbox, "$probe calls").await?;
    let text = output.text();
    let reached: Vec<&str> =
        text.lines().filter(|line| !REFUSED.iter().any(|refused| line.ends_with(refused))).collect();
    let tried = text.lines().count();
    must(
        output.success() && tried > 50 && reached.is_empty(),
        ("tried", tried, "reached the kernel", reached),
    )?;
    Ok(sandbox.close().await?)
}

async fn foreign(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    lay_probe(&mut sandbox).await?;
    let output = probe(&mut sandbox, "$probe call-of-another-architecture").await?;
    let text = output.text();
    must(!text.contains("answered") || text.contains("answered -"), (output.ended, text))?;
    Ok(sandbox.close().await?)
}

async fn namespaces(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    lay_probe(&mut sandbox).await?;
    // The last is what an ordinary user could do by a namespace of users; where there is one user only it is root's.
    let attempts = "unshare --user true && echo user; unshare --mount true && echo mount; \
                    unshare --net true && echo net; unshare --pid --fork true && echo pid; \
                    nsenter --target 1 --mount true && echo enter; \
                    $probe run-as 65534 unshare --user true && echo unprivileged; true";
    let output = probe(&mut sandbox, &format!("exec 2>/dev/null; {attempts}")).await?;
    must(output.success() && output.bytes.is_empty(), ("made", output.text()))?;
    Ok(sandbox.close().await?)
}

const MOUNTS: [&str; 7] = [
    "mount -t tmpfs none /mnt",
    "mount --bind /usr /mnt",
    "mount -t proc none /mnt",
    "mount -o remount,rw /proc/sys",
    "umount /proc/sys",
    "umount -l /proc",
    "pivot_root / /mnt",
];

const PROC: [&str; 9] = [
    "echo x > /proc/sys/kernel/core_pattern",
    "echo 1 > /proc/sys/vm/drop_caches",
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "echo other > /proc/sys/kernel/hostname",
    "echo h > /proc/sysrq-trigger",
    "echo 0 > /proc/irq/default_smp_affinity",
    "echo -1000 > /proc/$PPID/oom_score_adj",
    "head -c 1 /proc/kcore | grep -q .",
    "grep -q . /proc/keys",
];

const MEMORY: [&str; 7] = [
    "head -c 1 /dev/mem",
    "head -c 1 /dev/kmem",
    "head -c 1 /dev/port",
    "head -c 1 /dev/kmsg",
    "dmesg",
    "head -c 1 /proc/kmsg",
    "head -c 1 /proc/kcore | grep -q .",
];

const CLOCK: [&str; 4] = [
    "date -s '2001-01-01 00:00:00'",
    "date +%s -s @1000000000",
    "hostname other",
    "echo 1 > /proc/sys/kernel/ngroups_max",
];

/// Each of these must fail.
async fn refused(bench: &Bench<'_>, attempts: &[&str]) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    for attempt in attempts {
        let output = bash(&mut sandbox, attempt).await?;
        must(!output.success(), (attempt, &output))?;
    }
    Ok(sandbox.close().await?)
}

/// What is no file system of the kernel may be written: it is the sandbox's own.
async fn sys(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let attempts = "for place in /sys/fs/cgroup /sys/fs/cgroup/* /sys/kernel /sys/kernel/* /sys/class/* /sys/power \
                    /sys/module /sys/devices; do \
                    case $(stat -f -c %T $place 2>/dev/null) in sysfs|cgroup*|securityfs|debugfs|tracefs|bpf*) ;; *) continue;; esac; \
                    n=$((n+1)); mkdir $place/memtrial && echo made $place; \
                    for file in $place/*; do test -f $file || continue; \
                    case $file in */cgroup.procs|*/tasks|*.limit_in_bytes|*.max|*/state|*/uevent_helper|*/profiling) \
                    (echo 0 >> $file) && echo wrote $file;; esac; done; done 2>/dev/null; echo looked at $n";
    let output = bash(&mut sandbox, attempts).await?;
    let text = output.text();
    must(output.success() && text.lines().count() == 1, text)?;
    Ok(sandbox.close().await?)
}

async fn devices(bench: &Bench<'_>) -> Result<(), Wrong> {
    const HARMLESS: [&str; 10] =
        ["console", "full", "null", "ptmx", "random", "stderr", "stdin", "stdout", "tty", "urandom"];
    let mut sandbox = bench.start().await?;
    let list = "for file in $(find /dev -type b -o -type c); do echo ${file##*/}; done; \
                mknod disk b 8 0 && head -c 1 disk >/dev/null && echo made a disk; \
                mknod memory c 1 1 && head -c 1 memory >/dev/null && echo made the memory; true";
    let output = exec(&mut sandbox, &Exec::bash(format!("exec 2>/dev/null; {list}"), "/tmp")).await?;
    let text = output.text();
    let other: Vec<&str> = text
        .lines()
        .filter(|name| !HARMLESS.contains(name) && *name != "zero" && name.parse::<u32>().is_err())
        .collect();
    must(output.success() && other.is_empty(), ("also", &other))?;
    Ok(sandbox.close().await?)
}

/// Where there is one user only, no other can be become.
async fn setuid(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    lay_probe(&mut sandbox).await?;
    let become_root = "cp memtrial-probe raised; chmod 4755 raised; chmod 755 .; \
                       $probe run-as 65534 ./raised probe effective-user || echo no other user";
    let output = probe(&mut sandbox, become_root).await?;
    let text = output.text();
    let last = text.lines().last().unwrap_or_default();
    must(["65534", "no other user"].contains(&last), text)?;
    Ok(sandbox.close().await?)
}

async fn core_dumps(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    // A shell says whether the kernel dumped, to a file or to a handler, which is started at a limit of zero too.
    let crash = "(ulimit -Sc 0; bash -c 'kill -SEGV $$'); (ulimit -Sc $(ulimit -Hc); bash -c 'kill -SEGV $$'); ls -d core*";
    let output = exec(&mut sandbox, &Exec::bash(crash, "/tmp")).await?;
    let text = output.text();
    must(text.contains("Segmentation fault") && !text.contains("core dumped"), &text)?;
    must(!output.success(), ("a core file", &text))?;
    Ok(sandbox.close().await?)
}
