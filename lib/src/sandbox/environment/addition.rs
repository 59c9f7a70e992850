//! What the agent needs beside a task's environment: a layer of its own on top, mounts, a gateway. Grading starts on the
//! environment without it.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::{Environment, EnvironmentError, Environments, modified};
use crate::sandbox::{Exec, Image, Mount, Network, Sandbox, SandboxError, Spec};
use crate::task::SolverView;

/// The state of the repository: an agent's installation may not change it.
const STATE: &str =
    "git -c safe.directory='*' rev-parse HEAD && git -c safe.directory='*' status --porcelain";

impl Environments {
    /// The task's environment with what a script installs on top, the network open, in a layer of its own; built now if
    /// it is not there yet.
    ///
    /// # Errors
    /// When the script fails or changes the repository; nothing is kept then.
    pub async fn with_addition(
        &self,
        task: &SolverView,
        script: &str,
        mounts: &[Mount],
    ) -> Result<Environment, EnvironmentError> {
        let below = self.prepare(task).await?;
        let mounted: Vec<_> = mounts.iter().map(|mount| (mount, modified(&mount.host))).collect();
        let parts = format!("addition\n{:?}\n{script}\n{mounted:?}", below.spec.image);
        let digest = Sha256::digest(parts.as_bytes());
        let key: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let turn = self.building.lock().await.entry(key.clone()).or_default().clone();
        let _turn = turn.lock().await;
        if !self.backend.has_layer(&key).await? {
            let _alone = self.among_processes(&key).await?;
            if !self.backend.has_layer(&key).await? {
                self.add(task, script, &below, mounts, &key).await?;
            }
        }
        Ok(Environment { spec: Spec { image: Image::Layer(key), ..below.spec.clone() }, ..below })
    }

    async fn add(
        &self,
        task: &SolverView,
        script: &str,
        below: &Environment,
        mounts: &[Mount],
        key: &str,
    ) -> Result<(), EnvironmentError> {
        let mut spec = Spec { keep: true, network: self.settings.install_network, ..below.spec.clone() };
        spec.mounts.extend_from_slice(mounts);
        let mut sandbox = self.backend.start(&spec).await?;
        match self.install(task, script, below, sandbox.as_mut()).await {
            Ok(()) => Ok(self.backend.commit(sandbox, key).await?),
            Err(error) => {
                // the first error is the one to tell
                let _ = sandbox.close().await;
                Err(error)
            }
        }
    }

    async fn install(
        &self,
        task: &SolverView,
        script: &str,
        environment: &Environment,
        sandbox: &mut dyn Sandbox,
    ) -> Result<(), EnvironmentError> {
        let place = &environment.place;
        let exec = |script: &str, cwd: &str| {
            Exec::bash(script, cwd).timeout(self.settings.install_timeout).env(place.env.clone())
        };
        let failed = |reason: String, text: String| EnvironmentError::Install {
            task: task.instance_id.to_string(),
            reason,
            output: super::last_lines(&text, 30),
        };
        let before = sandbox.exec(&exec(STATE, &place.workdir)).await?;
        let output = sandbox.exec(&exec(script, "/root")).await?;
        if !output.success() {
            return Err(failed(format!("agent.install: {:?}", output.ended), output.text()));
        }
        let after = sandbox.exec(&exec(STATE, &place.workdir)).await?;
        if before.bytes != after.bytes {
            return Err(failed("agent.install changed the repository".into(), after.text()));
        }
        Ok(())
    }
}

impl Environment {
    /// Starts a fresh sandbox on it with these mounts besides, whose one way out is the gateway at this socket.
    ///
    /// # Errors
    /// When the back end fails, or has no gateways.
    pub async fn start_with_gateway(
        &self,
        mounts: &[Mount],
        socket: &Path,
    ) -> Result<Box<dyn Sandbox>, SandboxError> {
        let mut spec = Spec { network: Network::None, gateway: Some(socket.to_owned()), ..self.spec.clone() };
        spec.mounts.extend_from_slice(mounts);
        self.backend.start(&spec).await
    }
}
