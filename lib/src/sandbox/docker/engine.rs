//! The command line of Docker or Podman.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::{NAME, failed};
use crate::sandbox::SandboxError;

/// How long any one errand of the engine may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// An engine.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    /// `docker` or `podman`, or a path.
    pub program: PathBuf,
    /// `DOCKER_HOST`, where it is not the environment's.
    pub host: Option<String>,
    /// Where it runs, once that is there: Podman's monitor leaves a file `oom` in the folder it was started in.
    pub folder: PathBuf,
}

impl Engine {
    /// A command of the engine.
    pub(super) fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        if self.folder.is_dir() {
            command.current_dir(&self.folder);
        }
        if let Some(host) = &self.host {
            command.env("DOCKER_HOST", host);
        }
        command
    }

    /// Runs a command and returns what it printed.
    pub(super) async fn run(&self, action: &str, arguments: &[&str]) -> Result<String, SandboxError> {
        self.run_for(action, arguments, PATIENCE).await
    }

    /// The same with another deadline.
    pub(super) async fn run_for(
        &self,
        action: &str,
        arguments: &[&str],
        patience: Duration,
    ) -> Result<String, SandboxError> {
        let mut command = self.command(arguments.iter().copied());
        command.stdin(Stdio::null()).kill_on_drop(true).process_group(0);
        let output = match timeout(patience, command.output()).await {
            Err(_) => return Err(failed(action, format!("no answer within {} s", patience.as_secs()))),
            Ok(Err(error)) => return Err(self.missing(&error.to_string())),
            Ok(Ok(output)) => output,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if reason.contains("Cannot connect to the Docker daemon")
            || reason.contains("permission denied while trying")
        {
            return Err(self.missing(&reason));
        }
        Err(failed(action, reason))
    }

    /// The id of an image by any of its names; `None`: there is no such image here.
    pub(super) async fn image(&self, name: &str) -> Result<Option<String>, SandboxError> {
        let arguments = ["image", "inspect", "--format", "{{.Id}}", name];
        match self.run("look for an image", &arguments).await {
            Ok(id) => Ok(Some(id)),
            Err(SandboxError::Failed { reason, .. }) if absent(&reason) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn missing(&self, reason: &str) -> SandboxError {
        SandboxError::Unavailable {
            backend: NAME,
            reason: format!("{}: {reason}", self.program.display()),
            hint: format!("install and start it: {START}"),
        }
    }
}

/// Starts an engine.
pub(super) const START: &str = "sudo scripts/install-packages.sh --with-docker && export DOCKER_HOST=$(sudo scripts/docker-engine.sh start /var/lib/memtrial-docker)";

/// Whether an engine says that it does not know an image (Docker; Podman).
fn absent(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["no such image", "image not known", "no such object"].iter().any(|words| reason.contains(words))
}

/// What `image inspect` and `history` print, taken apart: variables, labels, command and entry point, steps.
pub(super) fn facts(image: &str, config: &str, steps: &str) -> Vec<(String, String)> {
    let all: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
    let config = all.pointer("/0/Config").cloned().unwrap_or_default();
    let mut facts = Vec::new();
    for variable in config["Env"].as_array().into_iter().flatten().filter_map(|it| it.as_str()) {
        let (name, text) = variable.split_once('=').unwrap_or((variable, ""));
        facts.push((format!("{image} variable {name}"), text.to_owned()));
    }
    for (name, text) in config["Labels"].as_object().into_iter().flatten() {
        facts
            .push((format!("{image} label {name}"), format!("{name} {}", text.as_str().unwrap_or_default())));
    }
    for name in ["Cmd", "Entrypoint"] {
        let words: Vec<&str> =
            config[name].as_array().into_iter().flatten().filter_map(|it| it.as_str()).collect();
        if !words.is_empty() {
            facts.push((format!("{image} {}", name.to_lowercase()), words.join(" ")));
        }
    }
    let steps: Vec<&str> = steps.lines().collect();
    for (number, step) in steps.iter().rev().enumerate() {
        facts.push((format!("{image} step {}", number + 1), (*step).to_owned()));
    }
    facts
}

/// The full name of an image: short names mean different things to different engines.
pub(super) fn qualified(name: &str) -> String {
    let (first, rest) = name.split_once('/').unwrap_or(("", name));
    if first.is_empty() {
        return format!("docker.io/library/{rest}");
    }
    if first.contains(['.', ':']) || first == "localhost" {
        return name.to_owned();
    }
    format!("docker.io/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_qualified() {
        for (short, full) in [
            ("debian:12", "docker.io/library/debian:12"),
            ("swebench/x:latest", "docker.io/swebench/x:latest"),
            ("ghcr.io/a/b", "ghcr.io/a/b"),
            ("localhost/a", "localhost/a"),
            ("registry:5000/a", "registry:5000/a"),
        ] {
            assert_eq!(qualified(short), full);
        }
    }

    #[test]
    fn an_image_says_variables_labels_and_steps() {
        let config = r#"[{"Config": {"Env": ["A=1", "B"], "Labels": {"l": "x"}, "Cmd": ["sh", "-c"], "Entrypoint": null}}]"#;
        let said = facts("i", config, "RUN two\nRUN one");
        let said: Vec<String> = said.iter().map(|(place, text)| format!("{place}: {text}")).collect();
        assert_eq!(
            said,
            [
                "i variable A: 1",
                "i variable B: ",
                "i label l: l x",
                "i cmd: sh -c",
                "i step 1: RUN one",
                "i step 2: RUN two"
            ]
        );
    }

    #[tokio::test]
    async fn an_engine_that_is_not_installed_is_named_with_a_hint() {
        let engine = Engine { program: "/nonexistent/docker".into(), host: None, folder: PathBuf::new() };
        let error = engine.image("x").await.unwrap_err().to_string();
        assert!(error.contains("/nonexistent/docker") && error.contains("docker-engine.sh start"), "{error}");
    }
}
