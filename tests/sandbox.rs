//! The conformance suite on every back end, and what is left after memtrial was killed.
//!
//! Some of it needs a process to kill, or one of an ordinary user: the test binary runs itself, with what to do in
//! `MEMTRIAL_TEST_ROLE`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use memtrial::sandbox::conformance::{self, Canary, Holder, Options, Outcome};
use memtrial::sandbox::{Backend, Docker, Exec, Image, Limits, Local, Mount, Namespaces, Network, Spec};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

#[expect(clippy::print_stderr, reason = "what a test tells a person")]
fn say(line: &str) {
    eprintln!("{line}");
}

/// Files that no sandbox may see; removed at the end.
struct Planted(Vec<Canary>);

impl Planted {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let word = format!("canary{:x}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into()));
        let places = [home, PathBuf::from("/var/tmp")].map(|folder| folder.join(format!(".memtrial-{word}")));
        let canaries = places.map(|path| {
            std::fs::write(&path, format!("{word}\n")).unwrap();
            Canary { path, word: word.clone() }
        });
        Self(canaries.into())
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        for canary in &self.0 {
            let _ = std::fs::remove_file(&canary.path);
        }
    }
}

fn conforms(backend: &dyn Backend, image: Image, base: &str, cache: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    let planted = Planted::new();
    let health = block_on(backend.check());
    assert!(health.works, "{}: {health:?}", backend.name());
    let options = Options {
        canaries: planted.0.clone(),
        environment: std::env::vars().collect(),
        holder: Some(holder(backend.name(), base, cache)),
        unclaimed: health.unclaimed,
        ..Options::new(image, scratch.path().to_owned())
    };
    let table = block_on(conformance::run(backend, &options, |case| say(&case.to_string())));
    let count = |outcome| table.iter().filter(|case| case.outcome == outcome).count();
    let (passed, unclaimed) = (count(Outcome::Passed), count(Outcome::Unclaimed));
    say(&format!(
        "{} on {base}: {} cases, {passed} passed, {unclaimed} not promised",
        backend.name(),
        table.len()
    ));
    assert!(count(Outcome::Failed) == 0, "cases failed on {}", backend.name());
}

/// This test binary again: see [`role`].
fn holder(name: &str, base: &str, cache: &Path) -> Holder {
    let role = format!("hold {name} {base} {{number}} {}", cache.display());
    Holder {
        program: std::env::current_exe().unwrap(),
        arguments: ["--exact", "sandbox::role", "--include-ignored", "--nocapture"].map(str::to_owned).into(),
        environment: [("MEMTRIAL_TEST_ROLE".to_owned(), role)].into(),
    }
}

fn docker(cache: &Path) -> Option<(Docker, Image)> {
    match std::env::var("MEMTRIAL_DOCKER_IMAGE") {
        Ok(image) => {
            let program = std::env::var("MEMTRIAL_ENGINE").unwrap_or_else(|_| "docker".to_owned());
            Some((Docker::new(program, cache.to_owned()), Image::Container(image)))
        }
        Err(_) => {
            say("skipped: MEMTRIAL_DOCKER_IMAGE names no image");
            None
        }
    }
}

#[test]
fn namespaces_conform() {
    let cache = tempfile::tempdir().unwrap();
    let backend = Namespaces::new(cache.path().to_owned());
    conforms(&backend, Image::Host, "host", cache.path());
    wait_until("no scratch folder is left", || {
        std::fs::read_dir(cache.path().join("namespaces/scratch")).unwrap().count() == 0
    });
}

#[test]
fn a_small_disk_limit_is_exact() {
    let cache = tempfile::tempdir().unwrap();
    let backend = Namespaces::new(cache.path().to_owned());
    let mut spec = spec(Image::Host);
    spec.limits.disk = 8 << 20;
    let output = block_on(async {
        let mut sandbox = backend.start(&spec).await.unwrap();
        sandbox
            .exec(&Exec::bash("for i in 1 2 3; do head -c 4000000 /dev/zero > /usr/f$i; done", "/"))
            .await
            .unwrap()
    });
    assert!(output.text().contains("No space left on device"), "{output:?}");
}

#[test]
fn a_sandbox_that_cannot_be_made_says_why() {
    let cache = tempfile::tempdir().unwrap();
    let backend = Namespaces::new(cache.path().to_owned());
    let mut spec = spec(Image::Host);
    spec.mounts = vec![Mount { host: "/no/such".into(), inside: "/m".into() }];
    let error = block_on(backend.start(&spec)).err().unwrap().to_string();
    assert!(error.contains("/no/such") && error.contains("No such file or directory"), "{error}");
}

#[test]
fn namespaces_conform_on_a_root_file_system() {
    let Ok(rootfs) = std::env::var("MEMTRIAL_ROOTFS") else {
        return say("skipped: MEMTRIAL_ROOTFS names no folder");
    };
    let cache = tempfile::tempdir().unwrap();
    let backend = Namespaces::new(cache.path().to_owned());
    let base = format!("rootfs:{rootfs}");
    conforms(&backend, Image::Rootfs(rootfs.into()), &base, cache.path());
}

#[test]
fn namespaces_conform_as_an_ordinary_user() {
    if !is_root() {
        return say("skipped: this is an ordinary user already");
    }
    let folder = public_folder();
    let program = folder.path().join("end_to_end");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let status = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(["--exact", "sandbox::role", "--include-ignored", "--nocapture"])
        .env("MEMTRIAL_TEST_ROLE", "conform")
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn docker_conforms() {
    let cache = tempfile::tempdir().unwrap();
    if let Some((backend, image)) = docker(cache.path()) {
        conforms(&backend, image, "image", cache.path());
    }
}

#[test]
fn local_conforms_in_what_it_promises() {
    let cache = tempfile::tempdir().unwrap();
    conforms(&Local::new(cache.path().to_owned()), Image::Host, "host", cache.path());
}

/// Each case must be able to fail: without isolation these do, and do no harm.
#[test]
fn what_local_does_not_hold_is_seen() {
    const HARMLESS: [&str; 15] = [
        "network",
        "host-sockets",
        "host-signals",
        "other-sandboxes",
        "runner-answers",
        "runner-trace",
        "privileges",
        "system-calls",
        "foreign-calls",
        "user-namespaces",
        "setuid",
        "core-dumps",
        "cpu-count",
        "device-nodes",
        "mount-read-only",
    ];
    if !is_root() || std::thread::available_parallelism().is_ok_and(|count| count.get() == 1) {
        return say("skipped: an ordinary user cannot do all of it, and one CPU is always told rightly");
    }
    let (cache, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let backend = Local::new(cache.path().to_owned());
    let only = HARMLESS.map(str::to_owned).into();
    let options = Options { only, ..Options::new(Image::Host, scratch.path().to_owned()) };
    let table = block_on(conformance::run(&backend, &options, |case| say(&case.to_string())));
    let held: Vec<_> =
        table.iter().filter(|case| case.outcome == Outcome::Passed).map(|case| case.name).collect();
    assert_eq!(held, Vec::<&str>::new());
}

#[test]
fn nothing_is_left_when_memtrial_is_killed() {
    let cache = tempfile::tempdir().unwrap();
    kill_while_running("namespaces", cache.path());
    wait_until("the scratch folder is gone", || {
        std::fs::read_dir(cache.path().join("namespaces/scratch")).unwrap().count() == 0
    });
}

#[test]
fn no_container_is_left_when_memtrial_is_killed() {
    let cache = tempfile::tempdir().unwrap();
    let Some((backend, _)) = docker(cache.path()) else { return };
    let owner = kill_while_running("docker", cache.path());
    let engine = std::env::var("MEMTRIAL_ENGINE").unwrap_or_else(|_| "docker".to_owned());
    wait_until("the container is gone", || {
        let format = "{{.Names}} {{.Labels}}";
        let listed = Command::new(&engine).args(["ps", "-a", "--format", format]).output().unwrap();
        !String::from_utf8_lossy(&listed.stdout).contains(&format!(".{owner}."))
    });
    assert!(block_on(backend.check()).works);
}

#[test]
fn doctor_names_every_back_end_and_what_mends_a_missing_one() {
    let cache = tempfile::tempdir().unwrap();
    let mut doctor = assert_cmd::Command::cargo_bin("memtrial").unwrap();
    doctor.args(["doctor", "--json", "--engine", "/nonexistent/docker", "--cache"]).arg(cache.path());
    let output = doctor.output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let back_end = |name: &str| {
        let all = report["sandboxes"].as_array().unwrap();
        all.iter().find(|found| found["name"] == name).unwrap().clone()
    };
    assert_eq!(back_end("docker")["works"], false);
    assert!(back_end("docker")["mend"].as_str().unwrap().contains("docker-engine.sh start"));
    assert_eq!(back_end("local")["works"], true);
    assert_eq!(report["usable"], back_end("namespaces")["works"]);
    let expected = if report["usable"] == true { 0 } else { 4 };
    assert_eq!(output.status.code(), Some(expected));
}

/// Starts a process that runs a command in a sandbox, kills it, and waits until the command is gone. Returns the
/// process's number.
fn kill_while_running(backend: &str, cache: &Path) -> u32 {
    let mark = format!("77{}", std::process::id());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::role", "--include-ignored", "--nocapture"])
        .env("MEMTRIAL_TEST_ROLE", format!("hold {backend} host {mark} {}", cache.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("sandbox is up")), "no sandbox came up");
    wait_until("the command runs", || is_running(&mark));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the command is gone", || !is_running(&mark));
    wait_until("the control groups are gone", || !has_group(child.id()));
    child.id()
}

/// What the test binary does when it runs itself.
#[test]
#[ignore = "run by the other tests"]
fn role() {
    let Ok(role) = std::env::var("MEMTRIAL_TEST_ROLE") else { return };
    match role.split(' ').collect::<Vec<_>>().as_slice() {
        ["conform"] => namespaces_conform(),
        ["hold", name, base, mark, cache] => {
            let (backend, image): (Box<dyn Backend>, Image) = match *name {
                "docker" => {
                    docker(Path::new(cache)).map(|(backend, image)| (Box::new(backend) as _, image)).unwrap()
                }
                "local" => (Box::new(Local::new(cache.into())), Image::Host),
                _ => {
                    let rootfs = base.strip_prefix("rootfs:").map(|folder| Image::Rootfs(folder.into()));
                    (Box::new(Namespaces::new(cache.into())), rootfs.unwrap_or(Image::Host))
                }
            };
            block_on(hold(backend.as_ref(), image, mark));
        }
        other => panic!("unknown role {other:?}"),
    }
}

/// Runs a command that ends only with the sandbox, its children in sessions of their own.
async fn hold(backend: &dyn Backend, image: Image, mark: &str) {
    let mut sandbox = backend.start(&spec(image)).await.unwrap();
    announce();
    let script = format!("trap '' TERM HUP; setsid sleep {mark} & sleep {mark}");
    let _ = sandbox.exec(&Exec::bash(script, "/").timeout(Duration::from_secs(600))).await;
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn announce() {
    println!("\nsandbox is up");
}

fn spec(image: Image) -> Spec {
    Spec {
        image,
        limits: Limits::default(),
        network: Network::None,
        mounts: Vec::new(),
        keep: false,
        gateway: None,
    }
}

/// A folder that an ordinary user may use.
fn public_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0)
}

fn is_running(mark: &str) -> bool {
    let wanted = format!("sleep\0{mark}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line == wanted.as_bytes())
}

/// Whether a control group of a sandbox that this process made is left.
fn has_group(pid: u32) -> bool {
    let prefix = format!("memtrial-{pid:x}-");
    ["memory", "pids", "cpu", "cpuset", ""].iter().any(|controller| {
        let groups = std::fs::read_dir(Path::new("/sys/fs/cgroup").join(controller));
        groups
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
    })
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
