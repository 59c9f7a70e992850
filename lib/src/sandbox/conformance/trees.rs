//! The whole process tree ends with its command.

use std::time::Duration;

use futures::FutureExt;

use super::Entry;
use super::bench::{Bench, Wrong, bash, exec, mark, must, must_be_gone};
use crate::sandbox::{Ended, Exec};

pub(super) fn cases<'a>() -> Vec<Entry<'a>> {
    vec![
        ("ignored-sigterm", "children that ignore SIGTERM end at the time-out", None, |bench| {
            stubborn(bench).boxed()
        }),
        ("double-fork", "daemons by double fork and setsid end with the command", None, |bench| {
            double_forked(bench).boxed()
        }),
        ("stopped", "stopped processes end at the time-out", None, |bench| stopped(bench).boxed()),
        ("background", "a background process does not hold a command up, and ends with it", None, |bench| {
            background(bench).boxed()
        }),
        (
            "time-out-output",
            "output before a time-out is kept, and endless output does not delay it",
            None,
            |bench| kept(bench).boxed(),
        ),
        ("orphans", "hundreds of orphans leave no zombies", None, |bench| orphans(bench).boxed()),
    ]
}

async fn stubborn(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let mark = mark();
    let script =
        format!("trap '' TERM INT HUP; (trap '' TERM; sleep {mark}) & while :; do sleep {mark}; done");
    let output = exec(&mut sandbox, &Exec::bash(script, "/").timeout(Duration::from_millis(700))).await?;
    must(output.ended == Ended::TimedOut && output.ended.code().is_none(), &output)?;
    must(output.wall < Duration::from_secs(15), output.wall)?;
    must_be_gone(&mut sandbox, mark).await?;
    Ok(sandbox.close().await?)
}

async fn double_forked(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let mark = mark();
    let script = format!(
        "(setsid bash -c 'setsid sleep {mark} </dev/null >/dev/null 2>&1 & exit 0' &) >/dev/null 2>&1; sleep 0.3; \
         grep -c 'sleep.{mark}' /proc/[0-9]*/cmdline 2>/dev/null | grep -c ':1'"
    );
    let output = bash(&mut sandbox, &script).await?;
    must(output.text().trim().parse::<u32>().is_ok_and(|found| found > 0), ("it did run", &output))?;
    must_be_gone(&mut sandbox, mark).await?;
    Ok(sandbox.close().await?)
}

async fn stopped(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let mark = mark();
    let script = format!("sleep {mark} & kill -STOP $!; kill -STOP $$");
    let output = exec(&mut sandbox, &Exec::bash(script, "/").timeout(Duration::from_millis(700))).await?;
    must(output.ended == Ended::TimedOut, &output)?;
    must_be_gone(&mut sandbox, mark).await?;
    Ok(sandbox.close().await?)
}

/// It holds the pipe open, so that waiting for the end of the output would wait for it.
async fn background(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let mark = mark();
    let output = bash(&mut sandbox, &format!("sleep {mark} & disown; echo started; exit 5")).await?;
    must(output.ended == Ended::Exited(5) && output.text() == "started\n", &output)?;
    must(output.wall < Duration::from_secs(15), output.wall)?;
    must_be_gone(&mut sandbox, mark).await?;
    Ok(sandbox.close().await?)
}

async fn kept(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let command = Exec::bash("echo before; sleep 60; echo after", "/").timeout(Duration::from_millis(700));
    let output = exec(&mut sandbox, &command).await?;
    must(output.ended == Ended::TimedOut && output.text() == "before\n", &output)?;
    let endless = Exec::bash("while :; do echo y; done", "/").timeout(Duration::from_millis(300));
    let output = exec(&mut sandbox, &endless).await?;
    must(output.ended == Ended::TimedOut && output.wall < Duration::from_secs(15), output.wall)?;
    Ok(sandbox.close().await?)
}

/// More than the process limit allows at once: whoever is not collected would count.
async fn orphans(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start_with(|spec| spec.limits.processes = 64).await?;
    let script =
        "for i in {1..40}; do (for j in {1..5}; do true & done); read -t 0.02 <> /dev/zero; done; echo done";
    let output = bash(&mut sandbox, script).await?;
    must(output.success() && output.text().ends_with("done\n"), &output)?;
    let zombies = bash(&mut sandbox, "grep -l '^State:.*zombie' /proc/[0-9]*/status | wc -l").await?;
    must(zombies.text().trim().parse::<u32>().is_ok_and(|found| found < 10), &zombies)?;
    Ok(sandbox.close().await?)
}
