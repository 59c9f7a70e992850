//! No network, no files of the host, no way to the runner.

use futures::FutureExt;
use tokio::net::{TcpListener, TcpStream};

use super::{Bench, Claim, Try, Wrong, bash, must};

pub(super) fn cases<'a>() -> Vec<(&'static str, Option<Claim>, Try<'a>)> {
    vec![
        ("no network", Some(Claim::Isolation), |bench| network(bench).boxed()),
        ("no files of the host", Some(Claim::Isolation), |bench| canaries(bench).boxed()),
        ("no processes of the host", Some(Claim::Isolation), |bench| processes(bench).boxed()),
        ("no answers in the runner's name", Some(Claim::Isolation), |bench| forgery(bench).boxed()),
        ("no settings of the kernel", Some(Claim::Isolation), |bench| kernel(bench).boxed()),
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
    must(output.text().contains("unreachable"), &output)?;
    let output = bash(&mut sandbox, "cat /proc/net/route | wc -l; tail -n +3 /proc/net/dev | wc -l").await?;
    must(
        output.text().split_whitespace().collect::<Vec<_>>() == ["1", "1"],
        ("routes, interfaces", &output),
    )?;
    Ok(sandbox.close().await?)
}

async fn canaries(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    for canary in &bench.options.canaries {
        let planted = fs_err::read_to_string(&canary.path)?;
        must(planted.contains(&canary.word), ("no canary there", &canary.path))?;
        let path = canary.path.display().to_string();
        must(sandbox.get(&path, 1 << 20).await?.is_none(), &path)?;
        // The word is taken apart, so that the search does not find its own command line.
        let (front, back) = canary.word.split_at(canary.word.len() / 2);
        let search =
            format!("grep -rls '{front}''{back}' /home /root /var /tmp /etc /mnt /srv /opt /run 2>/dev/null");
        let output = bash(&mut sandbox, &search).await?;
        must(output.bytes.is_empty(), &output)?;
    }
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

async fn forgery(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let output =
        bash(&mut sandbox, "for fd in /proc/1/fd/*; do (echo forged > $fd) 2>/dev/null && echo $fd; done")
            .await?;
    must(output.bytes.is_empty(), &output)?;
    let output = bash(&mut sandbox, "ls -l /proc/self/fd | grep -c pipe").await?;
    // Standard output and error, and grep's own.
    must(output.text().trim().parse::<u32>().is_ok_and(|pipes| pipes <= 2), &output)?;
    Ok(sandbox.close().await?)
}

async fn kernel(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    for change in [
        "echo x > /proc/sys/kernel/core_pattern",
        "echo h > /proc/sysrq-trigger",
        "mknod /tmp/disk b 8 0",
        "mount -t tmpfs none /mnt",
        "hostname other",
        "head -c 1 /proc/kcore",
    ] {
        let output = bash(&mut sandbox, change).await?;
        must(!output.success(), (change, &output))?;
    }
    Ok(sandbox.close().await?)
}
