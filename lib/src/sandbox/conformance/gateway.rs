//! The gateway is reached, by whatever runs inside, and nothing else of the host is.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fs_err as fs;
use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;

use super::bench::{Bench, Wrong, bash, mark, must};
use super::{Claim, Entry};
use crate::sandbox::{GATEWAY_PORT, Network, Sandbox, Spec};

pub(super) fn cases<'a>() -> Vec<Entry<'a>> {
    let isolation = Some(Claim::Isolation);
    vec![
        (
            "gateway",
            "the gateway is reached, whatever a command kills; connections end with it",
            isolation,
            |bench| reached(bench).boxed(),
        ),
        ("gateway-alone", "nothing of the host but the gateway is reached", isolation, |bench| {
            nothing_else(bench).boxed()
        }),
        ("gateway-or-network", "there is no gateway beside an open network", isolation, |bench| {
            no_other_network(bench).boxed()
        }),
    ]
}

/// A socket of the host that greets, reads to the end and says how many bytes that were.
struct Greeter {
    socket: PathBuf,
    /// Connections that have come to their end.
    ended: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Greeter {
    fn start(bench: &Bench<'_>) -> Result<Self, Wrong> {
        let socket = bench.options.scratch.join(format!("gateway-{}", mark()));
        let listener = UnixListener::bind(&socket)?;
        let ended = Arc::new(AtomicUsize::new(0));
        let count = ended.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let ended = count.clone();
                tokio::spawn(async move {
                    let mut all = Vec::new();
                    let _ = stream.write_all(b"hello\n").await;
                    let _ = stream.read_to_end(&mut all).await;
                    let _ = stream.write_all(format!("{} bytes\n", all.len()).as_bytes()).await;
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        Ok(Self { socket, ended, task })
    }

    /// A sandbox whose gateway it is.
    async fn sandbox(&self, bench: &Bench<'_>) -> Result<Box<dyn Sandbox>, Wrong> {
        bench.start_with(|spec| spec.gateway = Some(self.socket.clone())).await
    }
}

impl Drop for Greeter {
    fn drop(&mut self) {
        self.task.abort();
        // a left-over socket lies in the caller's scratch folder
        let _ = fs::remove_file(&self.socket);
    }
}

async fn reached(bench: &Bench<'_>) -> Result<(), Wrong> {
    let greeter = Greeter::start(bench)?;
    let mut sandbox = greeter.sandbox(bench).await?;
    let greeted = format!("exec 3<>/dev/tcp/127.0.0.1/{GATEWAY_PORT}; head -n 1 <&3");
    // One after the other, several at once, and again after a command that killed all it could.
    let several =
        format!("for i in 1 2 3 4 5 6 7 8; do ({greeted}) & done; wait; kill -9 -1 1 2>/dev/null; true");
    for (command, times) in [(&greeted, 1), (&several, 8), (&greeted, 1)] {
        let output = bash(&mut sandbox, command).await?;
        must(output.text() == "hello\n".repeat(times), (command, &output))?;
    }
    // A connection ends with the command that made it.
    let held =
        format!("exec 3<>/dev/tcp/127.0.0.1/{GATEWAY_PORT}; head -n 1 <&3; setsid sleep {} 0<&3 &", mark());
    let output = bash(&mut sandbox, &held).await?;
    must(output.text() == "hello\n", &output)?;
    for _ in 0..600 {
        if greeter.ended.load(Ordering::Relaxed) >= 11 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    must(greeter.ended.load(Ordering::Relaxed) == 11, "a connection outlives its command")?;
    Ok(sandbox.close().await?)
}

async fn nothing_else(bench: &Bench<'_>) -> Result<(), Wrong> {
    let (greeter, other) = (Greeter::start(bench)?, Greeter::start(bench)?);
    let name = format!("memtrial-abstract-{}", mark());
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    let seen_here = fs::read_to_string("/proc/net/unix")?;
    must(seen_here.contains(&name), "the abstract socket is not seen from the host either")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let mut sandbox = greeter.sandbox(bench).await?;
    for (host, port, word) in [("127.0.0.1", port, "refused"), ("192.0.2.1", 80, "unreachable")] {
        let output = bash(&mut sandbox, &format!("exec 3<>/dev/tcp/{host}/{port}")).await?;
        must(!output.success() && output.text().contains(word), (host, port, &output))?;
    }
    let output = bash(&mut sandbox, "cat /proc/net/unix").await?;
    must(output.success() && !output.text().contains(&name), &output)?;
    // Not by `find -type s`: a folder's listing names the kind of what lies below a mount.
    let search = "find / \\( -path /proc -o -path /sys \\) -prune -o -exec stat -c '%F %n' {} + 2>/dev/null |
        grep ^socket";
    let output = bash(&mut sandbox, search).await?;
    must(output.text() == format!("socket {}\n", memtrial_runner::gateway::SOCKET), ("sockets", &output))?;
    let path = other.socket.display().to_string();
    must(!bash(&mut sandbox, &format!("test -e '{path}'")).await?.success(), ("seen inside", &path))?;
    // Its place can be neither changed nor taken.
    let change =
        format!("s={}; rm $s || mv $s /tmp/ || : > $s || umount $s", memtrial_runner::gateway::SOCKET);
    must(!bash(&mut sandbox, &change).await?.success(), "the gateway's socket was replaced")?;
    let mut stream = tokio::net::UnixStream::connect(&other.socket).await?;
    let mut greeting = [0; 6];
    stream.read_exact(&mut greeting).await?;
    must(&greeting == b"hello\n", "the other socket is dead")?;
    Ok(sandbox.close().await?)
}

async fn no_other_network(bench: &Bench<'_>) -> Result<(), Wrong> {
    let greeter = Greeter::start(bench)?;
    let refused = |change: &dyn Fn(&mut Spec)| {
        let mut spec = bench.spec();
        change(&mut spec);
        async move { bench.backend.start(&spec).await.err().map(|error| error.to_string()) }
    };
    let open = refused(&|spec| {
        spec.gateway = Some(greeter.socket.clone());
        spec.network = Network::Host;
    });
    let open = open.await.unwrap_or_default();
    must(open.contains("only way out"), open)?;
    let missing = refused(&|spec| spec.gateway = Some(bench.options.scratch.join("none"))).await;
    must(missing.is_some_and(|error| error.contains("none")), "a missing socket is no error")
}
