//! A published image as a task's environment: the image as it is, its repository without the future on top.
//!
//! Nothing is installed again. The repository is where the image's kind keeps it (`/testbed`, `/<name>`, its working
//! folder), its HEAD must be the task's base commit, and commands run in the image's own environment.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::{Base, Environment, EnvironmentError, Environments, SET_ASIDE, last_lines};
use crate::sandbox::images::{Held, ImageError, Reference, Resolved};
use crate::sandbox::{Exec, Image, Network, Output, Place, Sandbox, SandboxError, Spec};
use crate::task::SolverView;

/// Raised whenever the way the layer is made changes.
const BUILDER: u32 = 1;
/// Where the layer says how commands run in it.
const PLACE: &str = "/.memtrial/place.json";
/// Where the environment is written while the layer is made.
const VARIABLES: &str = "/tmp/.memtrial-environment";
/// Variables of the shell that looked, not of the image.
const SHELLS_OWN: [&str; 6] = ["_", "OLDPWD", "PS1", "PWD", "SHLVL", "BASH_ENV"];
/// The path of an image that names none.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Which image a task names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// The row's own (`image_name`, `docker_image`).
    Row,
    /// SWE-bench's for the task's id, where the row names none.
    SweBench,
}

impl Naming {
    /// The image of a task, in full.
    ///
    /// # Errors
    /// When the row names none, or something that is no name.
    pub fn of(self, task: &SolverView) -> Result<Reference, ImageError> {
        match (&task.image_name, self) {
            (Some(name), _) => Reference::parse(name),
            (None, Self::SweBench) => Reference::swebench(&task.instance_id),
            (None, Self::Row) => Err(ImageError::Name {
                name: String::new(),
                reason:
                    "the row names no image; `published:swe-bench` takes SWE-bench's name for the task's id"
                        .to_owned(),
            }),
        }
    }
}

impl Environments {
    /// What a task's published image stands for at the moment; `None`: environments are built here.
    ///
    /// # Errors
    /// When there is no such image for this platform, or its registry does not answer.
    pub async fn image_of(&self, task: &SolverView) -> Result<Option<Arc<Resolved>>, EnvironmentError> {
        let Base::Published(naming) = &self.settings.base else { return Ok(None) };
        let of_image = |source| EnvironmentError::Image { task: task.instance_id.to_string(), source };
        let name = naming.of(task).map_err(of_image)?;
        let backend = self.backend.name();
        let images = self.backend.images().ok_or(ImageError::Unsupported { backend }).map_err(of_image)?;
        images.resolve(&name).await.map(Some).map_err(of_image)
    }

    /// The environment of a task in its published image.
    pub(super) async fn published(
        &self,
        task: &SolverView,
        naming: Naming,
    ) -> Result<Environment, EnvironmentError> {
        let of_image = |source| EnvironmentError::Image { task: task.instance_id.to_string(), source };
        let name = naming.of(task).map_err(of_image)?;
        let backend = self.backend.name();
        let images = self.backend.images().ok_or(ImageError::Unsupported { backend }).map_err(of_image)?;
        let held = images.hold(&name).await.map_err(of_image)?;
        let key = self.published_key(task, &held);
        let turn = self.building.lock().await.entry(key.clone()).or_default().clone();
        // What is known of an earlier layer says nothing: it goes with its image.
        let _turn = turn.lock().await;
        if !self.backend.has_layer(&key).await? {
            let _alone = self.among_processes(&key).await?;
            if !self.backend.has_layer(&key).await? {
                let place = self.build_published(task, &held, &key).await?;
                images.built(&held, &key).await.map_err(of_image)?;
                self.places.lock().await.insert(key.clone(), place);
            }
        }
        let layer = Image::Layer(self.latest(&key).await?.0);
        let spec = Spec { network: Network::None, ..self.spec(layer, false) };
        let known = self.places.lock().await.get(&key).cloned();
        let place = match known {
            Some(place) => place,
            None => self.read_place(task, &spec).await?,
        };
        self.places.lock().await.insert(key.clone(), place.clone());
        Ok(Environment { backend: self.backend.clone(), spec, place, key, held: Some(Arc::new(held)) })
    }

    fn published_key(&self, task: &SolverView, held: &Held) -> String {
        let Resolved { key, platform, .. } = held.resolved.as_ref();
        let super::Settings { mounts, env, .. } = &self.settings;
        let own = &task.recipe.env;
        let parts = format!(
            "published {BUILDER}\n{key}\n{platform}\n{mounts:?}\n{env:?}\n{own:?}\n{}\n{}",
            task.repo, task.base_commit
        );
        let digest = Sha256::digest(parts.as_bytes());
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    async fn build_published(
        &self,
        task: &SolverView,
        held: &Held,
        key: &str,
    ) -> Result<Place, EnvironmentError> {
        let spec = Spec { network: Network::None, ..self.spec(held.image.clone(), true) };
        let mut sandbox = self.backend.start(&spec).await?;
        let mut work =
            Work { environments: self, task, image: held.resolved.as_ref(), sandbox: sandbox.as_mut() };
        match work.all().await {
            Ok(place) => {
                self.backend.commit(sandbox, key).await?;
                Ok(place)
            }
            Err(error) => {
                // the first error is the one to tell
                let _ = sandbox.close().await;
                Err(error)
            }
        }
    }

    async fn read_place(&self, task: &SolverView, spec: &Spec) -> Result<Place, EnvironmentError> {
        let mut sandbox = self.backend.start(spec).await?;
        let found = sandbox.get(PLACE, 1 << 20).await;
        let _ = sandbox.close().await;
        let place = found?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        place.ok_or_else(|| EnvironmentError::Published {
            task: task.instance_id.to_string(),
            image: task.image_name.clone().unwrap_or_default(),
            reason: format!("its layer holds no {PLACE}: drop it with `memtrial image prune`"),
        })
    }
}

/// The steps of making one layer.
struct Work<'a> {
    environments: &'a Environments,
    task: &'a SolverView,
    image: &'a Resolved,
    sandbox: &'a mut dyn Sandbox,
}

impl Work<'_> {
    async fn all(&mut self) -> Result<Place, EnvironmentError> {
        let env = self.activate().await?;
        let (workdir, commit) = self.find(&env).await?;
        let place = Place { workdir, env };
        self.run(
            &place,
            "taking the future out of the repository",
            include_str!("published/strip.sh"),
            &commit,
        )
        .await?;
        self.run(&place, "setting the image's own changes aside", SET_ASIDE, &commit).await?;
        self.run(&place, "dropping the future's objects", include_str!("published/prune.sh"), &commit)
            .await?;
        let traces = self
            .run(
                &place,
                "the proof that no later commit is there",
                include_str!("published/prove.sh"),
                &commit,
            )
            .await?;
        if !traces.trim().is_empty() {
            let traces = last_lines(&traces, 10).replace('\n', "; ");
            return Err(EnvironmentError::Future { task: self.task.instance_id.to_string(), traces });
        }
        let json = serde_json::to_vec(&place).map_err(|error| self.wrong(error.to_string()))?;
        self.sandbox.put(PLACE, &json, 0o644).await?;
        Ok(place)
    }

    fn wrong(&self, reason: String) -> EnvironmentError {
        EnvironmentError::Published {
            task: self.task.instance_id.to_string(),
            image: self.image.name.to_string(),
            reason,
        }
    }

    /// The environment of the image's commands: its own, conda's where it is used, then what the user and the row say.
    async fn activate(&mut self) -> Result<BTreeMap<String, String>, EnvironmentError> {
        let mut env =
            BTreeMap::from([("HOME".to_owned(), "/root".to_owned()), ("PATH".to_owned(), PATH.to_owned())]);
        let pairs = self.image.config.env.iter().filter_map(|pair| pair.split_once('='));
        env.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let mut exec = script(include_str!("published/activate.sh"), "/", [VARIABLES.to_owned()]);
        exec.env = env;
        let output = self.sandbox.exec(&exec).await?;
        self.expect(&output, "activating its environment (has it bash and env?)")?;
        let bytes = self.sandbox.get(VARIABLES, 8 << 20).await?.unwrap_or_default();
        let mut env = variables(&bytes);
        self.sandbox.exec(&Exec::bash(format!("rm -f {VARIABLES}"), "/")).await?;
        let settings = &self.environments.settings;
        let path = env.entry("PATH".to_owned()).or_default();
        for mount in &settings.mounts {
            // Behind the image's own programs.
            path.push_str(&format!(":{}/bin", mount.inside.display()));
        }
        prefer_ipv4(&mut env);
        env.extend(settings.env.clone());
        env.extend(self.task.recipe.env.clone());
        Ok(env)
    }

    /// The folder of the repository, and the base commit's full name.
    async fn find(&mut self, env: &BTreeMap<String, String>) -> Result<(String, String), EnvironmentError> {
        let name = self.task.repo.rsplit('/').next().unwrap_or_default();
        let mut folders = vec![self.image.config.workdir.clone(), "/testbed".to_owned(), format!("/{name}")];
        folders.extend(["/app", "/workspace", "/repo"].map(str::to_owned));
        folders.retain(|folder| folder.starts_with('/') && folder != "/");
        let told = folders.join(", ");
        let arguments = std::iter::once(self.task.base_commit.clone()).chain(folders);
        let exec = script(include_str!("published/find.sh"), "/", arguments).env(env.clone());
        let output = self.sandbox.exec(&exec).await?;
        self.expect(&output, "looking for the repository (has it git?)")?;
        let text = output.text();
        let found = text.lines().find_map(|line| line.strip_prefix("found ")?.rsplit_once(' '));
        if let Some((folder, commit)) = found {
            return Ok((folder.to_owned(), commit.to_owned()));
        }
        let other = text.trim().replace('\n', "; ");
        let reason = if other.is_empty() { format!("no repository lies at {told}") } else { other };
        Err(self.wrong(format!("it is not this task's image: {reason}")))
    }

    async fn run(
        &mut self,
        place: &Place,
        what: &str,
        text: &str,
        commit: &str,
    ) -> Result<String, EnvironmentError> {
        let exec = script(text, &place.workdir, [commit.to_owned()])
            .env(place.env.clone())
            .timeout(self.environments.settings.install_timeout);
        let output = self.sandbox.exec(&exec).await?;
        self.expect(&output, what)?;
        Ok(output.text())
    }

    fn expect(&self, output: &Output, what: &str) -> Result<(), EnvironmentError> {
        if output.success() {
            return Ok(());
        }
        Err(self.wrong(format!("{what}: {:?}: {}", output.ended, last_lines(&output.text(), 20))))
    }
}

fn script(text: &str, cwd: &str, arguments: impl IntoIterator<Item = String>) -> Exec {
    let mut exec = Exec::bash(text, cwd);
    exec.argv.push("memtrial".to_owned());
    exec.argv.extend(arguments);
    exec
}

/// Reads what `env -0` wrote; functions of a shell are left out.
fn variables(bytes: &[u8]) -> BTreeMap<String, String> {
    let pairs =
        bytes.split(|byte| *byte == 0).filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='));
    pairs
        .filter(|(name, _)| !SHELLS_OWN.contains(name) && !name.starts_with("BASH_FUNC_"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// SWE-rebench V2's images make Java prefer IPv6; its evaluator takes that back, for there is no network.
fn prefer_ipv4(env: &mut BTreeMap<String, String>) {
    if let Some(options) = env.get_mut("_JAVA_OPTIONS") {
        *options = options.replace("preferIPv6Addresses=true", "preferIPv6Addresses=false");
    }
}

/// A sandbox whose image stays while it lives.
pub(super) struct Keeping {
    pub(super) inner: Box<dyn Sandbox>,
    pub(super) held: Arc<Held>,
}

#[async_trait]
impl Sandbox for Keeping {
    async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError> {
        self.inner.exec(command).await
    }

    async fn put(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        self.inner.put(path, bytes, mode).await
    }

    async fn get(&mut self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SandboxError> {
        self.inner.get(path, limit).await
    }

    async fn close(self: Box<Self>) -> Result<(), SandboxError> {
        let Self { inner, held } = *self;
        let closed = inner.close().await;
        drop(held);
        closed
    }

    fn as_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self.inner.as_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_the_images_own() {
        let text = b"A=1\0B=two\nlines\0PWD=/x\0_=env\0BASH_FUNC_f%%=() { :; }\0bad\0";
        let expected = [("A", "1"), ("B", "two\nlines")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(variables(text), BTreeMap::from(expected));
    }

    #[test]
    fn java_is_given_back_ipv4() {
        let mut env =
            BTreeMap::from([("_JAVA_OPTIONS".to_owned(), "-Djava.net.preferIPv6Addresses=true".to_owned())]);
        prefer_ipv4(&mut env);
        assert_eq!(env["_JAVA_OPTIONS"], "-Djava.net.preferIPv6Addresses=false");
    }
}
