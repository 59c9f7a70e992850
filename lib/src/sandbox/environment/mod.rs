//! A task's environment: base → repository at its base commit, installed → trial.
//!
//! The second stage is built once, with the network open, and kept as a layer under a digest of all that went into it;
//! every trial and every grading starts on it, without network, and is dropped in one step.

mod addition;
pub mod history;
mod published;
mod recipe;
mod repository;

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

pub use published::Naming;
pub use repository::find as find_clone;

use self::history::{History, HistoryError};
use super::images::{Held, ImageError};
use super::{Backend, Exec, Image, Limits, Mount, Network, Place, Sandbox, SandboxError, Spec};
use crate::task::SolverView;

/// Raised whenever the way an environment is built changes, so that old layers are not used.
const BUILDER: u32 = 2;

/// Where the repository lies, as in SWE-bench's images.
const WORKDIR: &str = "/testbed";

/// Why there is no environment for a task.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The repository or its base commit cannot be had.
    #[error("repository {repo}: {reason}")]
    Repository {
        /// `owner/name`.
        repo: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Commits later than the base commit, or ways to them, are in the repository.
    #[error("{task}: the repository shows the future: {traces}")]
    Future {
        /// The task.
        task: String,
        /// What was found.
        traces: String,
    },
    /// The installation failed.
    #[error("{task}: the environment cannot be built: {reason}; its last output:\n{output}")]
    Install {
        /// The task.
        task: String,
        /// What failed.
        reason: String,
        /// The end of the output.
        output: String,
    },
    /// The task's published image cannot be had.
    #[error("{task}: {source}")]
    Image {
        /// The task.
        task: String,
        /// Why.
        source: ImageError,
    },
    /// The task's published image is not what it should be.
    #[error("{task}: image {image}: {reason}")]
    Published {
        /// The task.
        task: String,
        /// The image.
        image: String,
        /// What is wrong.
        reason: String,
    },
    /// A file of the host cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// What environments start on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Base {
    /// The same for every task; the recipe is installed on it.
    Image(Image),
    /// The image that was published for the task, as it is.
    Published(Naming),
}

impl Base {
    /// Reads `host`, `rootfs:FOLDER`, `image:NAME`, `published` or `published:swe-bench`.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let image = match text.split_once(':') {
            None if text == "host" => Image::Host,
            None if text == "published" => return Ok(Self::Published(Naming::Row)),
            Some(("published", "swe-bench")) => return Ok(Self::Published(Naming::SweBench)),
            Some(("rootfs", folder)) if !folder.is_empty() => Image::Rootfs(folder.into()),
            Some(("image", name)) if !name.is_empty() => Image::Container(name.into()),
            _ => {
                return Err(format!(
                    "sandbox base {text:?}: expected host, rootfs:FOLDER, image:NAME, published or published:swe-bench"
                ));
            }
        };
        Ok(Self::Image(image))
    }
}

impl From<Image> for Base {
    fn from(image: Image) -> Self {
        Self::Image(image)
    }
}

/// How environments are built.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// The folder of bare clones: `<owner>+<name>/repo`, `<owner>__<name>.git` or `<owner>/<name>.git`.
    #[serde(skip)]
    pub repos: PathBuf,
    /// What environments start on.
    pub base: Base,
    /// Read-only folders of the host: toolchains. Where one holds `bin`, it is on the path.
    pub mounts: Vec<Mount>,
    /// Environment variables of every task's installation, agent and tests; the recipe's own win.
    pub env: BTreeMap<String, String>,
    /// Bounds of installation and trials.
    pub limits: Limits,
    /// The network while installing.
    pub install_network: Network,
    /// How long an installation may take.
    pub install_timeout: Duration,
}

impl Settings {
    /// The usual settings for a base.
    pub fn new(repos: PathBuf, base: impl Into<Base>) -> Self {
        Self {
            repos,
            base: base.into(),
            mounts: Vec::new(),
            env: BTreeMap::new(),
            limits: Limits::default(),
            install_network: Network::Host,
            install_timeout: Duration::from_secs(1800),
        }
    }

    /// What decides how sandboxes behave, in words: the back end, the base, the toolchains' places, the limits.
    pub fn label(&self, backend: &str) -> String {
        let Self { base, mounts, env, limits, .. } = self;
        let inside: Vec<_> = mounts.iter().map(|mount| mount.inside.display().to_string()).collect();
        format!("{backend} on {base:?} with {inside:?}, {env:?}, {limits:?}")
    }
}

/// Builds environments, each once, and keeps them as layers.
pub struct Environments {
    backend: Arc<dyn Backend>,
    settings: Settings,
    /// One lock a layer: jobs that need the same environment wait for one build. It holds the layer, once that is there.
    building: Mutex<HashMap<String, Arc<Mutex<Option<String>>>>>,
    /// Where the repository lies in layers of published images, by key.
    places: Mutex<HashMap<String, Place>>,
}

impl Environments {
    /// Environments of one back end.
    pub fn new(backend: Arc<dyn Backend>, settings: Settings) -> Self {
        Self { backend, settings, building: Mutex::default(), places: Mutex::default() }
    }

    /// The back end that they run on.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// What decides how its sandboxes behave, in words.
    pub fn label(&self) -> String {
        self.settings.label(self.backend.name())
    }

    /// The environment of a task, built now if its layer is not there yet.
    ///
    /// # Errors
    /// When the repository is missing, shows the future, or the installation fails; nothing is kept then.
    pub async fn prepare(&self, task: &SolverView) -> Result<Environment, EnvironmentError> {
        let image = match &self.settings.base {
            Base::Image(image) => image,
            Base::Published(naming) => return self.published(task, *naming).await,
        };
        let toolchains: Vec<String> =
            self.settings.mounts.iter().map(|mount| mount.inside.to_string_lossy().into_owned()).collect();
        let plan = recipe::plan(task, &toolchains, &self.settings.env);
        let key = self.key(task, image, &plan);
        let turn = self.building.lock().await.entry(key.clone()).or_default().clone();
        let mut turn = turn.lock().await;
        let layer = match turn.as_ref() {
            Some(layer) => layer.clone(),
            None => {
                if !self.backend.has_layer(&key).await? {
                    let _alone = self.among_processes(&key).await?;
                    if !self.backend.has_layer(&key).await? {
                        self.build(task, image, &plan, &key).await?;
                    }
                }
                turn.insert(self.latest(&key).await?.0).clone()
            }
        };
        Ok(Environment {
            backend: self.backend.clone(),
            spec: Spec { network: Network::None, ..self.spec(Image::Layer(layer), false) },
            place: Place { workdir: WORKDIR.into(), env: plan.env },
            key,
            held: None,
        })
    }

    /// Keeps a sandbox that was started by [`Environment::start_to_change`] in the place of the task's environment:
    /// later runs start on it.
    ///
    /// # Errors
    /// When the back end fails; the environment is as before then.
    pub async fn replace(
        &self,
        environment: &Environment,
        sandbox: Box<dyn Sandbox>,
    ) -> Result<(), EnvironmentError> {
        let turn = self.building.lock().await.entry(environment.key.clone()).or_default().clone();
        let mut turn = turn.lock().await;
        let (_, next) = self.latest(&environment.key).await?;
        self.backend.commit(sandbox, &next).await?;
        *turn = Some(next);
        Ok(())
    }

    /// The layer that stands for a key now, and the one to come in its place.
    async fn latest(&self, key: &str) -> Result<(String, String), SandboxError> {
        let mut latest = key.to_owned();
        for number in 1_u32.. {
            let next = format!("{key}-fixed-{number}");
            if !self.backend.has_layer(&next).await? {
                return Ok((latest, next));
            }
            latest = next;
        }
        Ok((latest.clone(), latest))
    }

    /// Waits until no other process on this machine builds this layer; the file's end lets the next one in. Where a
    /// build outlasts every installation its process is suspended: the layer is built here as well, and the first one
    /// committed stays.
    async fn among_processes(&self, key: &str) -> Result<File, EnvironmentError> {
        let folder = self.backend.cache().join("building");
        let path = folder.join(format!("{key}.lock"));
        let failed = |source| EnvironmentError::Io { path: path.clone(), source };
        fs_err::create_dir_all(&folder).map_err(failed)?;
        let file = File::create(&path).map_err(failed)?;
        let began = Instant::now();
        while began.elapsed() < self.settings.install_timeout {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        Ok(file)
    }

    /// The digest of all that goes into a task's environment, in hex.
    fn key(&self, task: &SolverView, image: &Image, plan: &recipe::Plan) -> String {
        let base = match image {
            // an upgraded host is another base
            Image::Host => format!("host {:?}", ["/usr/bin", "/usr/lib", "/etc/os-release"].map(modified)),
            Image::Rootfs(dir) => format!("rootfs {} {:?}", dir.display(), modified(dir)),
            other => format!("{other:?}"),
        };
        let mounts: Vec<_> =
            self.settings.mounts.iter().map(|mount| (mount, modified(&mount.host))).collect();
        let parts = format!("{BUILDER}\n{base}\n{mounts:?}\n{}\n{}\n{plan:?}", task.repo, task.base_commit);
        let digest = Sha256::digest(parts.as_bytes());
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    fn spec(&self, image: Image, keep: bool) -> Spec {
        Spec {
            image,
            limits: self.settings.limits.clone(),
            network: self.settings.install_network,
            mounts: self.settings.mounts.clone(),
            keep,
            gateway: None,
        }
    }

    async fn build(
        &self,
        task: &SolverView,
        image: &Image,
        plan: &recipe::Plan,
        key: &str,
    ) -> Result<(), EnvironmentError> {
        let clone = repository::find(&self.settings.repos, &task.repo)?;
        let scratch = tempfile::tempdir()
            .map_err(|source| EnvironmentError::Io { path: "the temporary folder".into(), source })?;
        let bundle = repository::bundle(&clone, &task.repo, &task.base_commit, scratch.path()).await?;
        let bytes = fs_err::tokio::read(&bundle.path)
            .await
            .map_err(|source| EnvironmentError::Io { path: bundle.path.clone(), source })?;
        let mut sandbox = self.backend.start(&self.spec(image.clone(), true)).await?;
        let work = Work { task, plan, timeout: self.settings.install_timeout };
        match work.all(sandbox.as_mut(), &bundle, &bytes).await {
            Ok(()) => Ok(self.backend.commit(sandbox, key).await?),
            Err(error) => {
                // the first error is the one to tell
                let _ = sandbox.close().await;
                Err(error)
            }
        }
    }
}

/// The steps of one build.
struct Work<'a> {
    task: &'a SolverView,
    plan: &'a recipe::Plan,
    timeout: Duration,
}

impl Work<'_> {
    async fn all(
        &self,
        sandbox: &mut dyn Sandbox,
        bundle: &repository::Bundle,
        bytes: &[u8],
    ) -> Result<(), EnvironmentError> {
        sandbox.put("/tmp/repository.bundle", bytes, 0o600).await?;
        let (branch, commit) = (&bundle.branch, &bundle.commit);
        self.run(sandbox, "/", "the repository", &CHECK_OUT.replace("@WORKDIR@", WORKDIR), &[branch, commit])
            .await?;
        self.assert_no_future(sandbox, commit).await?;
        self.run(sandbox, WORKDIR, "installation", &self.plan.script, &[]).await?;
        self.run(sandbox, WORKDIR, "setting the installation's traces aside", SET_ASIDE, &[]).await?;
        // what an installation fetched must not bring the future back
        self.history(sandbox).strip(commit).await.map_err(|error| self.no_history(error))?;
        self.assert_no_future(sandbox, commit).await
    }

    async fn run(
        &self,
        sandbox: &mut dyn Sandbox,
        cwd: &str,
        what: &str,
        script: &str,
        args: &[&str],
    ) -> Result<String, EnvironmentError> {
        let mut exec = Exec::bash(script, cwd).timeout(self.timeout).env(self.plan.env.clone());
        exec.argv.push("memtrial".into());
        exec.argv.extend(args.iter().map(|&arg| arg.to_owned()));
        let output = sandbox.exec(&exec).await?;
        if output.success() {
            return Ok(output.text());
        }
        let text = output.text();
        Err(EnvironmentError::Install {
            task: self.task.instance_id.to_string(),
            reason: format!("{what}: {:?}", output.ended),
            output: last_lines(&text, 30),
        })
    }

    fn history<'a>(&self, sandbox: &'a mut dyn Sandbox) -> History<'a> {
        History::new(sandbox, WORKDIR, self.timeout)
    }

    fn no_history(&self, error: HistoryError) -> EnvironmentError {
        match error {
            HistoryError::Sandbox(error) => error.into(),
            error => EnvironmentError::Repository { repo: self.task.repo.clone(), reason: error.to_string() },
        }
    }

    /// The commit that sets the installation's traces aside may be there besides the base commit's past.
    async fn assert_no_future(&self, sandbox: &mut dyn Sandbox, base: &str) -> Result<(), EnvironmentError> {
        let traces = self.history(sandbox).probe(base).await.map_err(|error| self.no_history(error))?;
        if traces.is_empty() {
            return Ok(());
        }
        Err(EnvironmentError::Future { task: self.task.instance_id.to_string(), traces: told(&traces) })
    }
}

/// Clones the bundle into the work folder: no remote, no reflog, no FETCH_HEAD.
///
/// Files get the commit's date: where git finds one of the same second as its index, it reads the file to tell whether
/// it changed, in every sandbox again.
const CHECK_OUT: &str = r#"set -eu
branch=$1 base=$2
git config --system --add safe.directory '*' 2>/dev/null || git config --global --add safe.directory '*'
mkdir -p @WORKDIR@ && cd @WORKDIR@
git init -q . && git symbolic-ref HEAD "refs/heads/$branch"
git config core.logAllRefUpdates false && git config gc.auto 0 && git config advice.detachedHead false
git config user.name memtrial && git config user.email memtrial@localhost
git -c protocol.file.allow=always fetch -q --no-write-fetch-head --update-head-ok /tmp/repository.bundle \
  'refs/heads/*:refs/heads/*' 'refs/tags/*:refs/tags/*'
rm -f /tmp/repository.bundle
git reset -q --hard "$base"
git ls-files -z | xargs -0 -r touch -h -c -d "@$(git log -1 --format=%ct)"
git update-index -q --refresh || true
rm -f .git/ORIG_HEAD
"#;

/// What the installation left must not show up in the agent's diff: new files are excluded, changed ones committed
/// with a fixed date (so the layer's commit is the same each time).
const SET_ASIDE: &str = r#"set -eu
export GIT_NO_REPLACE_OBJECTS=1
git -c core.quotePath=false ls-files --others --exclude-standard --directory |
  sed -e 's/[][*?!#\\]/\\&/g' -e 's/^/\//' >> .git/info/exclude
if ! git diff --quiet HEAD; then
  export GIT_AUTHOR_DATE='2000-01-01T00:00:00Z' GIT_COMMITTER_DATE='2000-01-01T00:00:00Z'
  git commit -q --no-verify -am 'Environment set up'
fi
"#;

/// A task's environment: a layer and where the repository lies in it.
pub struct Environment {
    backend: Arc<dyn Backend>,
    spec: Spec,
    place: Place,
    /// The digest of what it was built from.
    key: String,
    /// A published image, held while this or a sandbox on it lives.
    held: Option<Arc<Held>>,
}

impl Environment {
    /// Starts a fresh sandbox on it, without network.
    ///
    /// # Errors
    /// When the back end fails.
    pub async fn start(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        let inner = self.backend.start(&self.spec).await?;
        Ok(match &self.held {
            Some(held) => Box::new(published::Keeping { inner, held: held.clone() }),
            None => inner,
        })
    }

    /// Starts a fresh sandbox on it, without network, that [`Environments::replace`] may keep.
    ///
    /// # Errors
    /// When the back end fails.
    pub async fn start_to_change(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.backend.start(&Spec { keep: true, ..self.spec.clone() }).await
    }

    /// Where the repository lies, and the environment of commands there.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// The first traces, for a message.
fn told(traces: &[history::Trace]) -> String {
    let told: Vec<String> = traces.iter().take(10).map(ToString::to_string).collect();
    told.join("; ")
}

fn modified(path: impl AsRef<Path>) -> Option<Duration> {
    let time = std::fs::metadata(path).and_then(|meta| meta.modified()).ok()?;
    time.duration_since(std::time::UNIX_EPOCH).ok()
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
