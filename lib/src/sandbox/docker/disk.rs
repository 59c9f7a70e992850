//! What a container wrote, watched: few storage drivers can bound it themselves.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::engine::Engine;
use crate::sandbox::Limits;

/// How often it is measured.
const EVERY: Duration = Duration::from_secs(10);

/// Kills a container that has written more than it may, and says so.
pub(super) async fn watch(engine: Engine, name: String, limits: Limits, excess: Arc<Mutex<Option<String>>>) {
    loop {
        tokio::time::sleep(EVERY).await;
        if let Some(reason) = too_much(&engine, &name, &limits).await {
            *excess.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            let _ = engine.run("end a container", &["kill", &name]).await;
            return;
        }
    }
}

async fn too_much(engine: &Engine, name: &str, limits: &Limits) -> Option<String> {
    let arguments = ["container", "inspect", "--size", "--format", "{{.SizeRw}}", name];
    let size =
        engine.run("measure a container", &arguments).await.ok().and_then(|size| size.parse::<u64>().ok());
    if size.is_some_and(|size| size > limits.disk) {
        return Some(format!("it wrote more than its disk limit of {} bytes", limits.disk));
    }
    let entries = limits.entries();
    let more = changed(engine, name, entries).await > entries;
    more.then(|| format!("it wrote more than its disk limit of {entries} files, folders and links"))
}

/// How many paths a container has changed, a line each of the engine's list; no more than `enough` are waited for.
async fn changed(engine: &Engine, name: &str, enough: u64) -> u64 {
    let mut command = engine.command(["diff", name]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let Ok(mut child) = command.process_group(0).spawn() else { return 0 };
    let Some(mut stream) = child.stdout.take() else { return 0 };
    let (mut lines, mut chunk) = (0, vec![0; 64 << 10]);
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        lines += chunk[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
        if lines > enough {
            break;
        }
    }
    lines
}
