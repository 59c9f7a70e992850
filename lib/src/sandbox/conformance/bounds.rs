//! Memory, processes, CPUs and disk.

use std::time::Duration;

use futures::FutureExt;

use super::bench::{Bench, Wrong, bash, exec, must};
use super::{Claim, Entry};
use crate::sandbox::{Exec, SandboxError, Spec};

pub(super) fn cases<'a>() -> Vec<Entry<'a>> {
    let (disk, hidden) = (Some(Claim::Disk), Some(Claim::HiddenDisk));
    vec![
        (
            "memory-hog",
            "the memory limit kills, for all processes together too, is reported, and the sandbox goes on",
            Some(Claim::Memory),
            |bench| memory(bench).boxed(),
        ),
        (
            "killed-otherwise",
            "a command that is killed for another reason is not out of memory",
            None,
            |bench| not_memory(bench).boxed(),
        ),
        (
            "fork-bomb",
            "a fork bomb stays within the process limit and ends with its command",
            Some(Claim::Processes),
            |bench| fork_bomb(bench).boxed(),
        ),
        ("cpu-time", "busy loops get no more than the CPU limit's time", Some(Claim::Cpus), |bench| {
            cpus(bench).boxed()
        }),
        (
            "disk-filler",
            "many large files are stopped: a write fails, or the sandbox ends and says why",
            Some(Claim::Disk),
            |bench| disk_filler(bench).boxed(),
        ),
        ("disk-removed", "removed files that are still open count as written", hidden, |bench| {
            filled(bench, REMOVED).boxed()
        }),
        ("disk-deep", "files in folders deeper than a path is long count as written", hidden, |bench| {
            filled(bench, DEEP).boxed()
        }),
        ("inode-filler", "empty files without end are stopped", Some(Claim::Entries), |bench| {
            filled(bench, EMPTY).boxed()
        }),
        ("memory-files", "files in /dev/shm are bounded", disk, |bench| memory_files(bench).boxed()),
        (
            "cpu-count",
            "nproc and the C library count the CPUs of the limit, rounded up",
            Some(Claim::CpuCount),
            |bench| cpu_count(bench).boxed(),
        ),
    ]
}

async fn memory(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start_with(|spec| spec.limits.memory = 96 << 20).await?;
    let hog = "set -o pipefail; head -c 500000000 /dev/zero | tail -n 1 | wc -c";
    let output = bash(&mut sandbox, hog).await?;
    must(!output.success() && output.out_of_memory, &output)?;
    let output = bash(&mut sandbox, "echo alive").await?;
    must(output.text() == "alive\n" && !output.out_of_memory, &output)?;
    // Several processes that each fit, but not together.
    let together =
        "for i in 1 2 3 4; do (head -c 50000000 /dev/zero; sleep 3) | tail -n 1 >/dev/null & done; wait";
    let output = bash(&mut sandbox, together).await?;
    must(output.out_of_memory, &output)?;
    Ok(sandbox.close().await?)
}

async fn not_memory(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let output = bash(&mut sandbox, "kill -9 $$").await?;
    must(!output.out_of_memory, &output)?;
    Ok(sandbox.close().await?)
}

/// Counts without starting a process: the shell itself expands the pattern. Between the first and the last entry that
/// it reads some end and others start, so that it may see more than ever were at once; without a bound it would see
/// thousands.
async fn fork_bomb(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start_with(|spec| spec.limits.processes = 48).await?;
    let bomb = "b() { b | b & }; b 2>/dev/null & until ((SECONDS >= 2)); do p=(/proc/[0-9]*); \
                ((${#p[@]} > most)) && most=${#p[@]}; done; echo $most";
    let output = exec(&mut sandbox, &Exec::bash(bomb, "/").timeout(Duration::from_secs(20))).await?;
    let text = output.text();
    let most = text.lines().rev().find_map(|line| line.trim().parse::<u32>().ok());
    must(most.is_some_and(|most| (20..=96).contains(&most)), (output.ended, most, &text))?;
    let left = bash(&mut sandbox, "p=(/proc/[0-9]*); echo ${#p[@]}").await?;
    must(left.text().trim().parse::<u32>().is_ok_and(|left| left <= 3), &left)?;
    Ok(sandbox.close().await?)
}

/// Two busy loops for about two seconds: they may not have had more than their share, whatever else runs here.
async fn cpus(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start_with(|spec| spec.limits.cpus = 0.3).await?;
    let busy = "s=$EPOCHREALTIME; f() { until ((SECONDS >= 3)); do :; done; }; f & f; wait; e=$EPOCHREALTIME; \
                times | tail -n 2; times; echo $(( (${e/./} - ${s/./}) / 1000 ))";
    let output = bash(&mut sandbox, busy).await?;
    let text = output.text();
    let wall =
        text.lines().last().and_then(|line| line.trim().parse::<f64>().ok()).unwrap_or_default() / 1000.0;
    // `times` prints the shell's own and its children's, user and system: the last three lines but one.
    let lines: Vec<&str> = text.lines().collect();
    let used: f64 =
        lines.iter().rev().skip(1).take(2).flat_map(|line| line.split(' ')).filter_map(seconds).sum();
    must(wall > 1.0 && used > 0.1 && used < 0.6 * wall, (used, wall, &text))?;
    Ok(sandbox.close().await?)
}

/// `1m2.345s`.
fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.trim().strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

/// Many files: one alone is bounded more simply.
const MANY: &str = "for i in {1..50}; do head -c 4000000 /dev/zero > /tmp/f$i || exit 9; done; sleep 50";

const REMOVED: &str = "for i in {1..50}; do exec {file}>/tmp/f; rm /tmp/f; head -c 4000000 /dev/zero >&$file || exit 9; \
     done; sleep 50";

const DEEP: &str = "n=$(printf %0200d 0); cd /tmp; for i in {1..30}; do mkdir $n && cd $n || exit 8; done 2>/dev/null; \
     for i in {1..50}; do head -c 4000000 /dev/zero > f$i || exit 9; done; sleep 50";

/// In folders of a few hundred, which are quick to make.
const EMPTY: &str = "i=0; while ((i < 400)); do mkdir /tmp/d$i && cd /tmp/d$i && \
     for j in {1..250}; do : > f$j || exit 9; done || exit 9; i=$((i + 1)); done 2>/dev/null; sleep 50";

async fn disk_filler(bench: &Bench<'_>) -> Result<(), Wrong> {
    filled(bench, MANY).await
}

/// Either a write fails, or the sandbox ends and says why: with much memory beside the disk, and with little, where what
/// is written may have to go elsewhere.
async fn filled(bench: &Bench<'_>, script: &str) -> Result<(), Wrong> {
    for memory in [512 << 20, 60 << 20] {
        let change = |spec: &mut Spec| (spec.limits.disk, spec.limits.memory) = (32 << 20, memory);
        let mut sandbox = bench.start_with(change).await?;
        let fill = Exec::bash(script, "/").timeout(Duration::from_secs(100));
        match exec(&mut sandbox, &fill).await {
            Ok(output) => must(output.ended.code() == Some(9), (output.ended, output.text())),
            Err(SandboxError::Lost { reason, .. }) => must(reason.contains("disk limit"), reason),
            Err(other) => Err(other.into()),
        }?;
        sandbox.close().await?;
    }
    Ok(())
}

async fn memory_files(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start_with(|spec| spec.limits.memory = 96 << 20).await?;
    let output = bash(&mut sandbox, "head -c 200000000 /dev/zero > /dev/shm/filler").await?;
    must(!output.success(), (output.ended, output.out_of_memory, output.text()))?;
    let output = bash(&mut sandbox, "rm -f /dev/shm/filler; echo alive").await?;
    must(output.text() == "alive\n", &output)?;
    Ok(sandbox.close().await?)
}

async fn cpu_count(bench: &Bench<'_>) -> Result<(), Wrong> {
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    for (limit, expected) in [(0.5, 1), (1.0, 1), (1.5, 2), (2.0, 2)] {
        let mut sandbox = bench.start_with(|spec| spec.limits.cpus = limit).await?;
        // Not every system has `getconf`.
        let count = "nproc; command -v getconf >/dev/null && getconf _NPROCESSORS_ONLN; true";
        let text = bash(&mut sandbox, count).await?.text();
        let counts: Vec<usize> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let right = counts.iter().all(|count| *count == expected.min(here));
        must(right && !counts.is_empty(), ("limit", limit, "counted", &counts))?;
        sandbox.close().await?;
    }
    Ok(())
}
