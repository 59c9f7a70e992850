//! One command and what is known of it afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;

use super::Entry;
use super::bench::{Bench, Wrong, bash, exec, must};
use crate::sandbox::{Ended, Exec, OutputLimit, SandboxError};

pub(super) fn cases<'a>() -> Vec<Entry<'a>> {
    vec![
        ("exit-codes", "exit codes come back as they are", None, |bench| exit_codes(bench).boxed()),
        ("signals", "a death by signal is told from an exit code", None, |bench| signals(bench).boxed()),
        (
            "not-started",
            "a missing program or folder is exit 127 with words, and the sandbox goes on",
            None,
            |bench| not_started(bench).boxed(),
        ),
        ("output-order", "standard output and error come in the order written", None, |bench| {
            order(bench).boxed()
        }),
        ("binary-output", "bytes that are no text come back unchanged", None, |bench| binary(bench).boxed()),
        (
            "flood",
            "1 GB without a newline keeps its first and last bytes and counts the rest, within 64 MiB of memory",
            None,
            |bench| flood(bench).boxed(),
        ),
        ("stdin", "megabytes of standard input arrive; without any it is at its end", None, |bench| {
            stdin(bench).boxed()
        }),
        (
            "environment",
            "variables, working folder and defaults are set, and end with their command",
            None,
            |bench| environment(bench).boxed(),
        ),
        ("huge-environment", "a megabyte of environment variables arrives", None, |bench| {
            huge_environment(bench).boxed()
        }),
        (
            "long-command-line",
            "a command line of nearly 2 MB runs, a longer one is refused in words, and the sandbox goes on",
            None,
            |bench| long_command_line(bench).boxed(),
        ),
        (
            "commands-at-once",
            "200 commands in 8 sandboxes at once, and 200 in one, each give their own output",
            None,
            |bench| at_once(bench).boxed(),
        ),
        ("given-up", "a command that nobody waits for any more ends the sandbox", None, |bench| {
            given_up(bench).boxed()
        }),
    ]
}

async fn exit_codes(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    for code in [0, 1, 3, 124, 137, 255] {
        let output = bash(&mut sandbox, &format!("exit {code}")).await?;
        must(output.ended == Ended::Exited(code), &output)?;
        must(output.success() == (code == 0), &output)?;
    }
    Ok(sandbox.close().await?)
}

async fn signals(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    for signal in [9, 15, 6] {
        let output = bash(&mut sandbox, &format!("ulimit -c 0; kill -{signal} $$; sleep 9")).await?;
        must(output.ended == Ended::Signaled(signal), &output)?;
        must(output.ended.code() == Some(128 + signal), &output)?;
    }
    Ok(sandbox.close().await?)
}

async fn not_started(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let mut missing = Exec::bash("", "/");
    missing.argv = vec!["no-such-program".into()];
    let output = exec(&mut sandbox, &missing).await?;
    must(output.ended == Ended::Exited(127) && output.text().contains("no-such-program"), &output)?;
    let output = exec(&mut sandbox, &Exec::bash("true", "/no/such/folder")).await?;
    must(output.ended == Ended::Exited(127) && output.text().contains("/no/such/folder"), &output)?;
    must(bash(&mut sandbox, "true").await?.success(), "the sandbox does not go on")?;
    Ok(sandbox.close().await?)
}

async fn order(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let output = bash(&mut sandbox, "for i in {1..200}; do echo o$i; echo e$i >&2; done").await?;
    let expected: String = (1..=200).map(|i| format!("o{i}\ne{i}\n")).collect();
    must(output.text() == expected, &output)?;
    Ok(sandbox.close().await?)
}

async fn binary(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let output = bash(&mut sandbox, r"printf '\0\377\200\n\r\033'").await?;
    must(output.bytes == b"\0\xff\x80\n\r\x1b", &output)?;
    Ok(sandbox.close().await?)
}

/// With little memory: it must not be held inside either.
async fn flood(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start_with(|spec| spec.limits.memory = 64 << 20).await?;
    let mut command = Exec::bash("printf START; head -c 1000000000 /dev/zero; printf END", "/");
    command.output = OutputLimit { head: 1000, tail: 500 };
    let output = exec(&mut sandbox, &command).await?;
    must(output.success() && !output.out_of_memory, (output.ended, output.out_of_memory))?;
    must(output.bytes.len() == 1500, output.bytes.len())?;
    must(output.bytes.starts_with(b"START\0") && output.bytes.ends_with(b"\0END"), &output)?;
    let cut = output.elided.map(|cut| (cut.at, cut.bytes));
    must(cut == Some((1000, 1_000_000_008 - 1500)), cut)?;
    Ok(sandbox.close().await?)
}

async fn stdin(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let mut command = Exec::bash("cat", "/");
    command.stdin = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    let output = exec(&mut sandbox, &command).await?;
    must(output.bytes == command.stdin, ("cat gave bytes", output.bytes.len()))?;
    command.argv = vec!["true".into()];
    must(exec(&mut sandbox, &command).await?.success(), "a command that does not read its input")?;
    let output = bash(&mut sandbox, "cat; echo done").await?;
    must(output.text() == "done\n", &output)?;
    Ok(sandbox.close().await?)
}

async fn environment(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let env = BTreeMap::from([("A_B".to_owned(), "x \"y\"\n'z' ä".to_owned())]);
    let mut command = Exec::bash("printf %s \"$A_B\"", "/").env(env);
    let output = exec(&mut sandbox, &command).await?;
    must(output.text() == "x \"y\"\n'z' ä", &output)?;
    command.argv = vec!["pwd".into()];
    command.cwd = "/tmp".into();
    let output = exec(&mut sandbox, &command).await?;
    must(output.text().ends_with("/tmp\n"), &output)?;
    let output =
        bash(&mut sandbox, "echo $LANG $TZ; test -n \"$PATH\" && test -d \"$HOME\" && date +%Z").await?;
    must(output.text() == "C.UTF-8 UTC\nUTC\n", &output)?;
    let output = bash(&mut sandbox, "env").await?;
    must(!output.text().contains("CARGO") && !output.text().contains("A_B"), &output)?;
    Ok(sandbox.close().await?)
}

async fn huge_environment(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let env = (0..500).map(|i| (format!("HUGE_{i}"), "x".repeat(2000))).collect();
    let output = exec(&mut sandbox, &Exec::bash("env | grep ^HUGE_ | wc -c", "/").env(env)).await?;
    let expected: usize = (0..500).map(|i| format!("HUGE_{i}=\n").len() + 2000).sum();
    must(output.text().trim() == expected.to_string(), output.text())?;
    Ok(sandbox.close().await?)
}

/// Linux takes 128 KiB in one argument and a quarter of the stack's limit, mostly 2 MiB, in all.
async fn long_command_line(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let mut command = Exec::bash("echo ${#*}; echo $(($(printf %s \"$@\" | wc -c)))", "/");
    command.argv.push("bash".into());
    command.argv.extend(std::iter::repeat_n("x".repeat(100_000), 19));
    let output = exec(&mut sandbox, &command).await?;
    must(output.text() == "19\n1900000\n", output.text())?;
    let output = exec(&mut sandbox, &Exec::bash(format!("echo {}", "x".repeat(2_000_000)), "/")).await?;
    must(output.ended == Ended::Exited(126) && output.text().contains("too long"), output.text())?;
    must(bash(&mut sandbox, "true").await?.success(), "the sandbox does not go on")?;
    Ok(sandbox.close().await?)
}

async fn at_once(bench: &Bench<'_>) -> Result<(), Wrong> {
    let one = |number: usize| async move {
        let mut sandbox = bench.start().await?;
        for turn in 0..25 {
            let output = bash(&mut sandbox, &format!("echo {number}.{turn}")).await?;
            must(output.text() == format!("{number}.{turn}\n"), (number, turn, &output))?;
        }
        sandbox.close().await.map_err(Wrong::from)
    };
    futures::future::try_join_all((0..8).map(one)).await?;
    let mut sandbox = bench.start_with(|spec| spec.limits.processes = 1024).await?;
    let output = bash(&mut sandbox, "for i in {1..200}; do { sleep 0.2; echo $i; } & done; wait").await?;
    let text = output.text();
    let mut seen: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    seen.sort_unstable();
    must(seen == (1..=200).collect::<Vec<_>>(), text)?;
    Ok(sandbox.close().await?)
}

async fn given_up(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let command = Exec::bash("sleep 60; echo late", "/");
    let given_up = tokio::time::timeout(Duration::from_millis(200), sandbox.exec(&command)).await;
    must(given_up.is_err(), "it ended by itself")?;
    let next = exec(&mut sandbox, &Exec::bash("echo next", "/")).await;
    must(matches!(next, Err(SandboxError::Lost { .. })), &next)?;
    Ok(sandbox.close().await?)
}
