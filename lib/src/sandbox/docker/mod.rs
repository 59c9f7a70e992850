//! The back end `docker`: containers of Docker or Podman through their command line. The runner is a container's main
//! process and speaks over its standard streams, so that a remote engine will do.

mod cpus;
mod disk;
mod engine;
mod images;
mod owner;

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use memtrial_runner::gateway;
use rustix::process::{Resource, getrlimit};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use super::conformance::Claim;
use super::images::{ImageSettings, Images};
use super::limits::Lease;
use super::link::Link;
use super::namespaces::{check_key, unique};
use super::{
    Backend, Exec, Health, Image, Mount, NOT_KEPT, Network, Output, Sandbox, SandboxError, Spec, program,
};
use cpus::Cpus;
use engine::{Engine, qualified};

const NAME: &str = "docker";
/// Where the runner lies in a container.
const RUNNER: &str = "/.memtrial-runner";
/// What root may do: the same as in the other back ends.
const CAPABILITIES: [&str; 9] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
];
/// How long removing leftovers may take.
const CLEARING: Duration = Duration::from_secs(60);

/// Sandboxes made of containers.
pub struct Docker {
    engine: Engine,
    cache: PathBuf,
    settings: ImageSettings,
    images: OnceLock<Arc<Images>>,
    cleared: OnceCell<()>,
    cpus: OnceCell<Option<Cpus>>,
}

impl Docker {
    /// Uses the program `docker` or `podman` (or a path to one), and this folder for the runner.
    pub fn new(program: impl Into<PathBuf>, cache: PathBuf) -> Self {
        let cache = std::path::absolute(&cache).unwrap_or(cache);
        let engine = Engine { program: program.into(), host: None, folder: cache.clone() };
        let (settings, images) = (ImageSettings::default(), OnceLock::new());
        Self { engine, cache, settings, images, cleared: OnceCell::new(), cpus: OnceCell::new() }
    }

    /// Fetches and keeps published images in this way.
    #[must_use]
    pub fn images(mut self, settings: ImageSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Speaks to the engine at this address (`DOCKER_HOST`) instead of the environment's.
    #[must_use]
    pub fn host(mut self, address: impl Into<String>) -> Self {
        self.engine.host = Some(address.into());
        self
    }

    /// What the engine's machine has, asked for once.
    async fn cpus(&self) -> Option<&Cpus> {
        self.cpus.get_or_init(|| Cpus::of(&self.engine)).await.as_ref()
    }

    /// Removes containers that dead processes of memtrial left. Returns how many.
    async fn clear_stale(&self) -> Result<usize, SandboxError> {
        let filter = format!("label={}", owner::LABEL);
        let all = self.engine.run("look for leftovers", &["ps", "-aq", "--filter", &filter]).await?;
        let mut stale = Vec::new();
        for id in all.split_whitespace() {
            let label = format!("{{{{index .Config.Labels \"{}\"}}}}", owner::LABEL);
            // One that vanishes meanwhile needs no clearing.
            let Ok(label) = self.engine.run("look for leftovers", &["inspect", "--format", &label, id]).await
            else {
                continue;
            };
            if owner::is_dead(&label) {
                stale.push(id);
            }
        }
        if !stale.is_empty() {
            let arguments: Vec<&str> = ["rm", "-f"].into_iter().chain(stale.iter().copied()).collect();
            let _ = tokio::time::timeout(CLEARING, self.engine.run("remove leftovers", &arguments)).await;
        }
        Ok(stale.len())
    }

    /// The id of the image to start on.
    async fn image(&self, image: &Image) -> Result<String, SandboxError> {
        let unavailable =
            |reason: String, hint: String| SandboxError::Unavailable { backend: NAME, reason, hint };
        let name = match image {
            Image::Container(name) => name.clone(),
            Image::Layer(key) => layer(key)?,
            Image::Host | Image::Rootfs(_) => {
                let hint = "name a container image (one can be made by scripts/base-image.sh ROOTFS_DIR memtrial/base)";
                return Err(unavailable("it starts on container images only".to_owned(), hint.to_owned()));
            }
        };
        match self.engine.image(&name).await? {
            Some(id) => Ok(id),
            None if matches!(image, Image::Layer(_)) => {
                Err(failed("start on a layer", format!("there is no layer image {name}")))
            }
            None => {
                let program = self.engine.program.display();
                let hint = format!("fetch it: {program} pull {}", qualified(&name));
                Err(unavailable(format!("there is no image {name} here"), hint))
            }
        }
    }

    async fn open(&self, spec: &Spec) -> Result<DockerSandbox, SandboxError> {
        if let Some(reason) = spec.misplaced_gateway() {
            return Err(failed("start a container", reason));
        }
        self.cleared
            .get_or_init(async || {
                let _ = self.clear_stale().await;
            })
            .await;
        let runner =
            program::runner(&self.cache).map_err(|error| failed("lay out the runner", error.to_string()))?;
        let image = self.image(&spec.image).await?;
        let name = format!("memtrial-{}", unique());
        let cpus = self.cpus().await;
        let lease = cpus.map_or_else(Lease::default, |cpus| cpus.lend(spec.limits.cpus));
        let mut flags = Vec::new();
        if let Some(cpus) = cpus {
            let given = cpus.flags(&lease, &self.cache);
            flags = given.map_err(|error| failed("lay out the list of CPUs", error.to_string()))?;
        }
        let arguments = create(spec, flags, &name, &image);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.engine.run("create a container", &arguments).await?;
        // From here on the container goes when this does.
        let mut guard = Container { engine: self.engine.clone(), name, gone: false };
        let place = format!("{}:{RUNNER}", guard.name);
        let runner = runner.display().to_string();
        self.engine.run("lay the runner into a container", &["cp", &runner, &place]).await?;
        let command = self.engine.command(["start", "--attach", "--interactive", &guard.name]);
        let started = Link::start(NAME, command).await;
        let mut link = started.map_err(|error| failed("start a container", error.to_string()))?;
        if let Err(error) = link.ping().await {
            guard.remove().await;
            return Err(failed("start a container", reason(&error)));
        }
        let excess = Arc::new(Mutex::new(None));
        let watch =
            disk::watch(self.engine.clone(), guard.name.clone(), spec.limits.clone(), Arc::clone(&excess));
        let watch = tokio::spawn(watch);
        Ok(DockerSandbox { link, keep: spec.keep, container: guard, excess, watch, _cpus: lease })
    }
}

fn failed(action: &str, reason: String) -> SandboxError {
    SandboxError::Failed { backend: NAME, action: action.to_owned(), reason }
}

fn reason(error: &SandboxError) -> String {
    match error {
        SandboxError::Lost { reason, .. }
        | SandboxError::Failed { reason, .. }
        | SandboxError::Unavailable { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

/// The image that holds a layer. `localhost` is no registry: the name can never be fetched by mistake.
fn layer(key: &str) -> Result<String, SandboxError> {
    check_key(key).map_err(|error| failed("name a layer", error.to_string()))?;
    Ok(format!("localhost/memtrial/layer:{key}"))
}

/// The arguments that create a container. Nothing of it goes through the engine's log: all output would be kept there.
fn create(spec: &Spec, cpus: Vec<String>, name: &str, image: &str) -> Vec<String> {
    let limits = &spec.limits;
    let memory = limits.memory.to_string();
    let mut flags = BTreeMap::from([
        ("--cap-drop", "ALL".to_owned()),
        ("--cpus", format!("{:.2}", limits.cpus.max(0.01))),
        ("--entrypoint", RUNNER.to_owned()),
        ("--label", format!("{}={}", owner::LABEL, owner::own())),
        ("--log-driver", "none".to_owned()),
        ("--memory", memory.clone()),
        ("--memory-swap", memory),
        ("--name", name.to_owned()),
        ("--network", if spec.network == Network::Host { "host" } else { "none" }.to_owned()),
        ("--pids-limit", limits.processes.to_string()),
        ("--security-opt", "no-new-privileges".to_owned()),
        ("--user", "0:0".to_owned()),
        ("--workdir", "/".to_owned()),
    ]);
    if spec.network == Network::None {
        flags.insert("--hostname", "memtrial".to_owned());
    }
    let mut arguments = vec!["create".to_owned(), "--interactive".to_owned(), "--rm".to_owned()];
    arguments.extend(flags.into_iter().map(|(flag, value)| format!("{flag}={value}")));
    arguments.extend(CAPABILITIES.map(|capability| format!("--cap-add={capability}")));
    arguments.push(format!("--ulimit=fsize={0}:{0}", limits.disk));
    // As the runner sets it in the other back ends, which says why not zero.
    arguments.push("--ulimit=core=1:1".to_owned());
    arguments.extend(cpus);
    // Podman's own defaults may lie above what this process may grant, which then fails.
    for (name, resource, most) in [("nofile", Resource::Nofile, 65_536), ("nproc", Resource::Nproc, 32_768)] {
        let limit = getrlimit(resource).maximum.unwrap_or(most).min(most);
        arguments.push(format!("--ulimit={name}={limit}:{limit}"));
    }
    let socket =
        spec.gateway.iter().map(|socket| Mount { host: socket.clone(), inside: gateway::SOCKET.into() });
    for mount in spec.mounts.iter().cloned().chain(socket) {
        let (host, inside) = (mount.host.display(), mount.inside.display());
        arguments.push(format!("--mount=type=bind,\"source={host}\",\"target={inside}\",readonly"));
    }
    arguments.extend([image.to_owned(), "serve".to_owned()]);
    arguments.extend(spec.gateway.iter().map(|_| gateway::FLAG.to_owned()));
    arguments
}

#[async_trait]
impl Backend for Docker {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cache(&self) -> &Path {
        &self.cache
    }

    async fn check(&self) -> Health {
        let format = "{{.Server.Version}}";
        let version = match self.engine.run("ask for its version", &["version", "--format", format]).await {
            Ok(version) => version,
            Err(error) => {
                return Health::fails(reason(&error), Some(engine::START.to_owned()));
            }
        };
        let mut notes = vec![format!("{} {version}", self.engine.program.display())];
        match self.clear_stale().await {
            Ok(0) => {}
            Ok(count) => notes.push(format!("{count} left-over containers removed")),
            Err(error) => return Health::fails(reason(&error), None),
        }
        if let Ok(info) =
            self.engine.run("ask for its limits", &["info", "--format", "{{json .Warnings}}"]).await
        {
            let warnings: Option<Vec<String>> = serde_json::from_str(&info).unwrap_or_default();
            notes.extend(warnings.unwrap_or_default());
        }
        notes.push("the disk limit is measured every 10 s, and exact for one file".to_owned());
        let mut unclaimed = vec![Claim::HiddenDisk];
        if !self.cpus().await.is_some_and(|cpus| cpus.local) {
            notes.push("the engine is not on this machine: the C library counts all of its CPUs".to_owned());
            unclaimed.extend([Claim::CpuCount, Claim::Orphans]);
        }
        Health { unclaimed, ..Health::works(notes) }
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.open(spec).await?))
    }

    fn images(&self) -> Option<Arc<Images>> {
        let make = || {
            let pulls = images::Pulls::new(self.engine.clone(), self.settings.clone());
            Arc::new(Images::new(self.cache.join(NAME).join("images"), pulls, self.settings.clone()))
        };
        Some(self.images.get_or_init(make).clone())
    }

    async fn has_layer(&self, key: &str) -> Result<bool, SandboxError> {
        Ok(self.engine.image(&layer(key)?).await?.is_some())
    }

    async fn commit(&self, sandbox: Box<dyn Sandbox>, key: &str) -> Result<(), SandboxError> {
        let image = layer(key)?;
        let Ok(sandbox) = sandbox.as_any().downcast::<DockerSandbox>() else {
            return Err(failed("commit", "the sandbox belongs to another back end".to_owned()));
        };
        if !sandbox.keep {
            return Err(failed("commit", NOT_KEPT.to_owned()));
        }
        // The container still runs, but nothing in it: every command ended with all that it had started.
        let committed = self.engine.run("commit", &["commit", &sandbox.container.name, &image]).await;
        sandbox.close().await?;
        committed.map(drop)
    }

    async fn describe(&self, image: &Image) -> Result<Vec<(String, String)>, SandboxError> {
        // told by the name that was asked for, not by its digest
        let asked = match image {
            Image::Container(name) => Some(name),
            _ => None,
        };
        let image = self.image(image).await?;
        let config = self.engine.run("read an image", &["image", "inspect", &image]).await?;
        let steps = ["history", "--no-trunc", "--format", "{{.CreatedBy}}", &image];
        let steps = self.engine.run("read an image's history", &steps).await?;
        Ok(engine::facts(asked.unwrap_or(&image), &config, &steps))
    }

    async fn drop_layer(&self, key: &str) -> Result<(), SandboxError> {
        let image = layer(key)?;
        if self.engine.image(&image).await?.is_some() {
            self.engine.run("drop a layer", &["rmi", "--force", &image]).await?;
        }
        Ok(())
    }
}

/// A container that is removed when this is dropped.
struct Container {
    engine: Engine,
    name: String,
    gone: bool,
}

impl Container {
    async fn remove(&mut self) {
        self.gone = true;
        let _ = self.engine.run("remove a container", &["rm", "-f", &self.name]).await;
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.gone {
            return;
        }
        let mut command = self.engine.command(["rm", "-f", &self.name]).into_std();
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        // Not waited for; where it cannot be started, the next start clears up.
        if let Ok(mut child) = command.spawn() {
            std::thread::spawn(move || child.wait());
        }
    }
}

/// A container with a runner.
struct DockerSandbox {
    link: Link,
    keep: bool,
    container: Container,
    excess: Arc<Mutex<Option<String>>>,
    watch: JoinHandle<()>,
    _cpus: Lease,
}

impl DockerSandbox {
    fn judge<T>(&self, result: Result<T, SandboxError>) -> Result<T, SandboxError> {
        let excess = self.excess.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (result, excess) {
            (Err(SandboxError::Lost { backend, .. }), Some(reason)) => {
                Err(SandboxError::Lost { backend, reason })
            }
            (result, _) => result,
        }
    }
}

impl Drop for DockerSandbox {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

#[async_trait]
impl Sandbox for DockerSandbox {
    async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError> {
        let result = self.link.exec(command).await;
        self.judge(result)
    }

    async fn put(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        let result = self.link.put(path, bytes, mode).await;
        self.judge(result)
    }

    async fn get(&mut self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SandboxError> {
        let result = self.link.get(path, limit).await;
        self.judge(result)
    }

    async fn close(mut self: Box<Self>) -> Result<(), SandboxError> {
        self.watch.abort();
        self.link.finish().await;
        // The engine removes it when it has ended; this waits for that.
        self.container.remove().await;
        Ok(())
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Limits;

    #[test]
    fn a_container_is_created_with_every_bound() {
        let spec = Spec {
            image: Image::Container("x".into()),
            limits: Limits { memory: 1 << 30, processes: 99, cpus: 0.5, disk: 1 << 20 },
            network: Network::None,
            mounts: vec![Mount { host: "/a,b".into(), inside: "/c".into() }],
            keep: false,
            gateway: Some("/run/g".into()),
        };
        let arguments = create(&spec, vec!["--cpuset-cpus=1".to_owned()], "n", "sha256:1").join("\n");
        for expected in [
            "--cap-drop=ALL",
            "--cpus=0.50",
            "--cpuset-cpus=1",
            "--memory=1073741824",
            "--memory-swap=1073741824",
            "--network=none",
            "--pids-limit=99",
            "--security-opt=no-new-privileges",
            "--ulimit=fsize=1048576:1048576",
            "--mount=type=bind,\"source=/a,b\",\"target=/c\",readonly",
            "--mount=type=bind,\"source=/run/g\",\"target=/.memtrial-gateway\",readonly",
        ] {
            assert!(arguments.lines().any(|line| line == expected), "{expected} in\n{arguments}");
        }
        assert!(arguments.ends_with("sha256:1\nserve\n--gateway"));
    }

    #[tokio::test]
    async fn a_base_that_is_no_container_image_is_refused_with_a_hint() {
        let cache = tempfile::tempdir().unwrap();
        let docker = Docker::new("/nonexistent/docker", cache.path().to_owned());
        let error = docker.image(&Image::Host).await.unwrap_err().to_string();
        assert!(error.contains("name a container image"), "{error}");
    }
}
