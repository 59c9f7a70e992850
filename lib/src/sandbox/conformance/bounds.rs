//! Memory, processes, CPUs and disk.

use std::time::Duration;

use futures::FutureExt;

use super::{Bench, Claim, Try, Wrong, bash, must};
use crate::sandbox::{Exec, SandboxError};

pub(super) fn cases<'a>() -> Vec<(&'static str, Option<Claim>, Try<'a>)> {
    vec![
        ("the memory limit kills, is reported, and the sandbox goes on", Some(Claim::Memory), |bench| {
            memory(bench).boxed()
        }),
        ("a command that is killed for another reason is not out of memory", None, |bench| {
            not_memory(bench).boxed()
        }),
        ("a fork bomb is bounded and ends", Some(Claim::Processes), |bench| fork_bomb(bench).boxed()),
        ("the CPU limit", Some(Claim::Cpus), |bench| cpus(bench).boxed()),
        ("the disk limit", Some(Claim::Disk), |bench| disk(bench).boxed()),
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
    let output = sandbox.exec(&Exec::bash(bomb, "/").timeout(Duration::from_secs(20))).await?;
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

/// Many files: one alone is bounded more simply. Either the write fails, or the sandbox ends and says why.
async fn disk(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start_with(|spec| spec.limits.disk = 32 << 20).await?;
    let fill = "for i in {1..50}; do head -c 4000000 /dev/zero > /tmp/f$i || exit 9; done; sleep 50";
    match sandbox.exec(&Exec::bash(fill, "/")).await {
        Ok(output) => must(output.ended.code() == Some(9), &output),
        Err(SandboxError::Lost { reason, .. }) => must(reason.contains("disk limit"), reason),
        Err(other) => Err(other.into()),
    }?;
    Ok(sandbox.close().await?)
}
