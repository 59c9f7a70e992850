//! One command and what is known of it afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;

use super::{Bench, Claim, Try, Wrong, bash, must};
use crate::sandbox::{Ended, Exec, OutputLimit, SandboxError};

pub(super) fn cases<'a>() -> Vec<(&'static str, Option<Claim>, Try<'a>)> {
    vec![
        ("exit codes", None, |bench| exit_codes(bench).boxed()),
        ("signals", None, |bench| signals(bench).boxed()),
        ("what cannot be started", None, |bench| not_started(bench).boxed()),
        ("order of standard output and error", None, |bench| order(bench).boxed()),
        ("binary output", None, |bench| binary(bench).boxed()),
        ("1 GB of output", None, |bench| flood(bench).boxed()),
        ("standard input", None, |bench| stdin(bench).boxed()),
        ("environment and working folder", None, |bench| environment(bench).boxed()),
        ("a command given up ends the sandbox", None, |bench| given_up(bench).boxed()),
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
    let output = sandbox.exec(&missing).await?;
    must(output.ended == Ended::Exited(127) && output.text().contains("no-such-program"), &output)?;
    let output = sandbox.exec(&Exec::bash("true", "/no/such/folder")).await?;
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
    let output = sandbox.exec(&command).await?;
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
    let output = sandbox.exec(&command).await?;
    must(output.bytes == command.stdin, ("cat gave bytes", output.bytes.len()))?;
    command.argv = vec!["true".into()];
    must(sandbox.exec(&command).await?.success(), "a command that does not read its input")?;
    let output = bash(&mut sandbox, "cat; echo done").await?;
    must(output.text() == "done\n", &output)?;
    Ok(sandbox.close().await?)
}

async fn environment(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let env = BTreeMap::from([("A_B".to_owned(), "x \"y\"\n'z' ä".to_owned())]);
    let mut command = Exec::bash("printf %s \"$A_B\"", "/").env(env);
    let output = sandbox.exec(&command).await?;
    must(output.text() == "x \"y\"\n'z' ä", &output)?;
    command.argv = vec!["pwd".into()];
    command.cwd = "/tmp".into();
    let output = sandbox.exec(&command).await?;
    must(output.text().ends_with("/tmp\n"), &output)?;
    let output =
        bash(&mut sandbox, "echo $LANG $TZ; test -n \"$PATH\" && test -d \"$HOME\" && date +%Z").await?;
    must(output.text() == "C.UTF-8 UTC\nUTC\n", &output)?;
    let output = bash(&mut sandbox, "env").await?;
    must(!output.text().contains("CARGO") && !output.text().contains("A_B"), &output)?;
    Ok(sandbox.close().await?)
}

async fn given_up(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let command = Exec::bash("sleep 60; echo late", "/");
    let given_up = tokio::time::timeout(Duration::from_millis(200), sandbox.exec(&command)).await;
    must(given_up.is_err(), "it ended by itself")?;
    let next = sandbox.exec(&Exec::bash("echo next", "/")).await;
    must(matches!(next, Err(SandboxError::Lost { .. })), &next)?;
    Ok(sandbox.close().await?)
}
