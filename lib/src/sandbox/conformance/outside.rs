//! What lies outside: the host's network, files, processes and descriptors, other sandboxes.

use std::fs::File;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Stdio;
use std::time::{Duration, Instant};

use fs_err as fs;
use futures::FutureExt;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::bench::{Bench, Wrong, bash, lay_probe, mark, must, probe, saw};
use super::{Claim, Entry};
use crate::sandbox::namespaces::unique;
use crate::sandbox::{Exec, Sandbox};

/// How long what must happen on the host may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn cases<'a>() -> Vec<Entry<'a>> {
    let isolation = Some(Claim::Isolation);
    vec![
        ("network", "the network is a loopback of its own", isolation, |bench| network(bench).boxed()),
        ("host-sockets", "abstract and named sockets of the host cannot be reached", isolation, |bench| {
            sockets(bench).boxed()
        }),
        ("host-files", "files of the host's home and /var are not there", isolation, |bench| {
            canaries(bench).boxed()
        }),
        ("host-environment", "no environment variable of the caller comes in", isolation, |bench| {
            environment(bench).boxed()
        }),
        ("host-descriptors", "no open file of the caller comes in", isolation, |bench| {
            descriptors(bench).boxed()
        }),
        ("host-processes", "no process of the host is seen", isolation, |bench| processes(bench).boxed()),
        ("host-signals", "no signal reaches a process of the host", isolation, |bench| {
            signals(bench).boxed()
        }),
        (
            "other-sandboxes",
            "files, sockets and processes of another sandbox cannot be reached",
            isolation,
            |bench| others(bench).boxed(),
        ),
        ("killed-memtrial", "a sandbox ends when its memtrial is killed", Some(Claim::Orphans), |bench| {
            killed(bench).boxed()
        }),
    ]
}

async fn network(bench: &Bench<'_>) -> Result<(), Wrong> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    must(TcpStream::connect(address).await.is_ok(), "the listener cannot be reached from the host either")?;
    let mut sandbox = bench.start().await?;
    let connect = |host: &str, port: u16| format!("exec 3<>/dev/tcp/{host}/{port}");
    let output = bash(&mut sandbox, &connect("127.0.0.1", address.port())).await?;
    must(!output.success(), ("the host's loopback was reached", &output))?;
    must(output.text().contains("refused"), ("loopback is not up", &output))?;
    let output = bash(&mut sandbox, &connect("192.0.2.1", 80)).await?;
    must(output.text().contains("unreachable"), output.text())?;
    let output = bash(&mut sandbox, "cat /proc/net/route | wc -l; tail -n +3 /proc/net/dev | wc -l").await?;
    must(
        output.text().split_whitespace().collect::<Vec<_>>() == ["1", "1"],
        ("lines of routes, interfaces", output.text()),
    )?;
    Ok(sandbox.close().await?)
}

async fn sockets(bench: &Bench<'_>) -> Result<(), Wrong> {
    let name = format!("memtrial-{}", unique());
    let path = bench.options.scratch.join("socket");
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    let _ = fs::remove_file(&path);
    let _named = UnixListener::bind(&path)?;
    let mut sandbox = bench.start().await?;
    lay_probe(&mut sandbox).await?;
    let connect = format!("$probe connect-abstract {name}; $probe connect-unix '{}'", path.display());
    let output = probe(&mut sandbox, &connect).await?;
    let text = output.text();
    must(output.success() && text.lines().count() == 2 && !text.contains("connected"), text)?;
    Ok(sandbox.close().await?)
}

async fn canaries(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    for canary in &bench.options.canaries {
        let planted = fs::read_to_string(&canary.path)?;
        must(planted.contains(&canary.word), ("no canary there", &canary.path))?;
        let path = canary.path.display().to_string();
        must(sandbox.get(&path, 1 << 20).await?.is_none(), &path)?;
        // The word is taken apart, so that the search does not find its own command line.
        let (front, back) = canary.word.split_at(canary.word.len() / 2);
        let search =
            format!("grep -rls '{front}''{back}' /home /root /var /tmp /etc /mnt /srv /opt /run 2>/dev/null");
        let output = bash(&mut sandbox, &search).await?;
        must(output.bytes.is_empty(), output.text())?;
    }
    saw(format_args!("{} planted, none found", bench.options.canaries.len()));
    Ok(sandbox.close().await?)
}

/// Those that every sandbox sets itself may happen to be the same.
const OWN: [&str; 10] = ["HOME", "HOSTNAME", "LANG", "OLDPWD", "PATH", "PWD", "SHLVL", "TERM", "TZ", "_"];

async fn environment(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let output = bash(&mut sandbox, "env -0").await?;
    let text = output.text();
    let inside: Vec<&str> = text.split('\0').collect();
    let outside = bench.options.environment.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    let found: Vec<_> = outside
        .clone()
        .filter(|(name, value)| inside.contains(&format!("{name}={value}").as_str()))
        .collect();
    must(output.success() && found.is_empty(), ("found", &found))?;
    saw(format_args!("{} looked for among {}", outside.count(), inside.len()));
    Ok(sandbox.close().await?)
}

async fn descriptors(bench: &Bench<'_>) -> Result<(), Wrong> {
    let path = bench.options.scratch.join("open on the host");
    fs::write(&path, "x")?;
    let open = File::open(&path)?;
    rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).map_err(std::io::Error::from)?;
    let mut sandbox = bench.start().await?;
    drop(open);
    // The fourth is that of the listing itself.
    let output = bash(&mut sandbox, "p=(/proc/self/fd/*); echo ${#p[@]}; ls -l /proc/self/fd").await?;
    let text = output.text();
    let count = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok());
    must(count.is_some_and(|count| count <= 4) && !text.contains("open on the host"), text)?;
    Ok(sandbox.close().await?)
}

async fn processes(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let output = bash(&mut sandbox, "p=(/proc/[0-9]*); echo ${#p[@]}; kill -9 -1; kill -9 1; true").await?;
    must(
        output.text().lines().next().and_then(|line| line.parse().ok()).is_some_and(|count: u32| count <= 3),
        &output,
    )?;
    must(bash(&mut sandbox, "true").await?.success(), "the sandbox does not go on")?;
    Ok(sandbox.close().await?)
}

async fn signals(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut victim = sleeper(Command::new("sleep").arg(mark().to_string()))?;
    let pid = victim.id().unwrap_or_default();
    let mut sandbox = bench.start().await?;
    let output = bash(&mut sandbox, &format!("kill -9 {pid}; kill -9 -- -{pid}; true")).await?;
    must(output.success(), &output)?;
    must(victim.try_wait()?.is_none(), "a process of the host was killed")?;
    Ok(sandbox.close().await?)
}

fn sleeper(command: &mut Command) -> std::io::Result<Child> {
    command.kill_on_drop(true).process_group(0).stdin(Stdio::null()).spawn()
}

async fn others(bench: &Bench<'_>) -> Result<(), Wrong> {
    let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
    let name = format!("memtrial-{}", unique());
    let (mut one, mut other) = (bench.start().await?, bench.start().await?);
    for sandbox in [&mut one, &mut other] {
        lay_probe(sandbox).await?;
    }
    for path in ["/tmp/secret", "/dev/shm/secret"] {
        one.put(path, b"x", 0o644).await?;
    }
    let listen = Exec::bash(format!("./memtrial-probe probe listen 127.0.0.1:{port} {name}"), "/tmp");
    tokio::select! {
        ended = one.exec(&listen) => return Err(Wrong(format!("it does not listen: {ended:?}"))),
        looked = look_around(&mut other, port, &name) => looked?,
    }
    other.close().await?;
    Ok(())
}

async fn look_around(sandbox: &mut Box<dyn Sandbox>, port: u16, name: &str) -> Result<(), Wrong> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let look = format!(
        "$probe connect-tcp 127.0.0.1:{port}; $probe connect-abstract {name}; \
         grep -l 'probe.liste[n]' /proc/[0-9]*/cmdline 2>/dev/null; ls /tmp/secret /dev/shm/secret 2>/dev/null; true"
    );
    let output = probe(sandbox, &look).await?;
    let text = output.text();
    let refused = text.lines().count() == 2 && text.lines().all(|line| line.contains("refused"));
    must(output.success() && refused, text)
}

/// Kills the process that holds a sandbox, and looks on the host for what ran in it.
async fn killed(bench: &Bench<'_>) -> Result<(), Wrong> {
    let Some(holder) = &bench.options.holder else { return Ok(()) };
    let number = mark();
    let filled = |text: &str| text.replace("{number}", &number.to_string());
    let mut command = Command::new(&holder.program);
    command.args(holder.arguments.iter().map(|argument| filled(argument)));
    command.envs(holder.environment.iter().map(|(name, value)| (name, filled(value))));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = sleeper(&mut command)?;
    let words = process.stderr.take().map(|stream| BufReader::new(stream).lines());
    if let Err(late) = wait_until("the command runs", || is_running(number)).await {
        process.start_kill()?;
        let said = match words {
            Some(mut lines) => lines.next_line().await?.unwrap_or_default(),
            None => String::new(),
        };
        return Err(Wrong(format!("{}: {said}", late.0)));
    }
    process.kill().await?;
    let killed = Instant::now();
    wait_until("the command is gone", || !is_running(number)).await?;
    saw(format_args!("gone {:.1} s after the kill", killed.elapsed().as_secs_f64()));
    Ok(())
}

async fn wait_until(what: &str, holds: impl Fn() -> bool) -> Result<(), Wrong> {
    let started = Instant::now();
    while !holds() {
        must(started.elapsed() < PATIENCE, ("not in time", what))?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Whether this machine runs `sleep` with this number.
fn is_running(number: u64) -> bool {
    let wanted = format!("sleep\0{number}\0");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line == wanted.as_bytes())
}
