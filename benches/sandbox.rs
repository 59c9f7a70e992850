//! What a sandbox costs: start, `true` and close; one command in a live one. Beside bubblewrap and Docker, in turn.
//!
//! `MEMTRIAL_DOCKER_IMAGE` names an image of the engine that `DOCKER_HOST` leads to; without it Docker is left out.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark ends where it panics, and tells people"
)]

mod measure;

use std::time::{Duration, Instant};

use measure::{Subject, is_there, rounds, run, table};
use memtrial::sandbox::{Backend, Docker, Exec, Image, Limits, Namespaces, Network, Sandbox, Spec};
use tokio::runtime::Runtime;

/// What every container gets, as near to memtrial's default limits as Docker's command line can say.
const DOCKER: [&str; 8] = [
    "--network=none",
    "--memory=4g",
    "--memory-swap=4g",
    "--pids-limit=1024",
    "--cpus=2",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--rm",
];

/// Programs of the host, read-only: no place to write to, no limits.
const BUBBLEWRAP: &str = "--unshare-all --die-with-parent --ro-bind /usr /usr --symlink usr/bin /bin \
                          --symlink usr/lib /lib --symlink usr/lib64 /lib64 --dev /dev --proc /proc true";

fn main() {
    let runtime = Runtime::new().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let namespaces = Namespaces::new(cache.path().to_owned());
    let image = std::env::var("MEMTRIAL_DOCKER_IMAGE").ok();
    let docker = Docker::new("docker", cache.path().to_owned());
    whole(&runtime, &namespaces, image.as_deref());
    live(&runtime, &namespaces, &docker, image.as_deref());
}

/// Start, `true`, close.
fn whole(runtime: &Runtime, namespaces: &Namespaces, image: Option<&str>) {
    let usual = Limits::default();
    let small = Limits { disk: usual.memory / 2, ..usual.clone() };
    let mut subjects = vec![
        Subject::new("namespaces", || runtime.block_on(once(namespaces, &spec(Image::Host, &usual)))),
        Subject::new("namespaces, written to memory", || {
            runtime.block_on(once(namespaces, &spec(Image::Host, &small)))
        }),
        // Trials start seconds apart: what the kernel does once and then has at hand counts here.
        Subject::new("namespaces, after a second's rest", || {
            std::thread::sleep(Duration::from_secs(1));
            runtime.block_on(once(namespaces, &spec(Image::Host, &usual)))
        }),
    ];
    if is_there("bwrap") {
        let arguments: Vec<&str> = BUBBLEWRAP.split_whitespace().collect();
        subjects.push(Subject::program("bwrap, read-only, no limits", "bwrap", &arguments));
    }
    if let Some(image) = image {
        let arguments: Vec<&str> = ["run"].into_iter().chain(DOCKER).chain([image, "true"]).collect();
        subjects.push(Subject::program("docker run --rm", "docker", &arguments));
    }
    table("start + true + close", rounds(20), subjects);
}

/// `true` in a live sandbox.
fn live(runtime: &Runtime, namespaces: &Namespaces, docker: &Docker, image: Option<&str>) {
    let mut sandbox = runtime.block_on(namespaces.start(&spec(Image::Host, &Limits::default()))).unwrap();
    let mut container = None;
    let name = format!("memtrial-bench-{}", std::process::id());
    let mut subjects = vec![
        Subject::new("namespaces", || runtime.block_on(exec(sandbox.as_mut()))),
        Subject::program("true, without a sandbox", "true", &[]),
    ];
    if let Some(image) = image {
        let spec = spec(Image::Container(image.to_owned()), &Limits::default());
        let sandbox = container.insert(runtime.block_on(docker.start(&spec)).unwrap());
        subjects.push(Subject::new("memtrial's docker", || runtime.block_on(exec(sandbox.as_mut()))));
        let start: Vec<&str> = ["run", "--detach", "--name", &name]
            .into_iter()
            .chain(DOCKER)
            .chain([image, "sleep", "infinity"])
            .collect();
        run("docker", &start);
        subjects.push(Subject::program("docker exec", "docker", &["exec", &name, "true"]));
    }
    table("one command", rounds(20) * 2, subjects);
    if let Some(container) = container {
        run("docker", &["rm", "--force", &name]);
        runtime.block_on(container.close()).unwrap();
    }
    runtime.block_on(sandbox.close()).unwrap();
}

fn spec(image: Image, limits: &Limits) -> Spec {
    Spec {
        image,
        limits: limits.clone(),
        network: Network::None,
        mounts: Vec::new(),
        keep: false,
        gateway: None,
    }
}

async fn once(backend: &dyn Backend, spec: &Spec) -> Duration {
    let began = Instant::now();
    let mut sandbox = backend.start(spec).await.unwrap();
    exec(sandbox.as_mut()).await;
    sandbox.close().await.unwrap();
    began.elapsed()
}

async fn exec(sandbox: &mut dyn Sandbox) -> Duration {
    let command = Exec { argv: vec!["true".into()], ..Exec::bash("", "/") };
    let began = Instant::now();
    assert!(sandbox.exec(&command).await.unwrap().success());
    began.elapsed()
}
