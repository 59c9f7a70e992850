//! Trials whose agent is another program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Mutex;

use super::StudyError;
use super::attempt::CALLS;
use super::bench::Bench;
use super::design::{self, Solver};
use super::lock::digest;
use super::remember::block;
use super::trial::{Fault, Trial, facts, lay_out};
use crate::agent::{self, AgentError, CommandRun, Door, Finished, Program};
use crate::grade::files::write_json;
use crate::llm::gateway::{Caller, Caps};
use crate::llm::{self, Cost, LlmError};
use crate::memory::host::Retrieved;
use crate::sandbox::environment::EnvironmentError;

/// What a program's run may take where the study does not say, in seconds.
const TIME_LIMIT: u64 = 3600;

/// The mark of a run that was begun.
const BEGUN: &str = "begun.json";

impl design::Agent {
    /// Reads a file that holds the keys of a study's `agent` alone. Mounts are relative to its folder.
    ///
    /// # Errors
    /// When it cannot be read or does not name what an agent is.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let bad = |reason: String| StudyError::Design { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(StudyError::io(path))?;
        let mut agent: Self =
            toml::from_str(&text).map_err(|error| bad(error.to_string().trim_end().into()))?;
        for mount in &mut agent.mounts {
            mount.host = path.parent().unwrap_or(Path::new("")).join(&mount.host);
        }
        agent.program().map_err(bad)?;
        Ok(agent)
    }

    /// The program that is the agent; `None`: the built-in one is.
    ///
    /// # Errors
    /// What is wrong with it, and under which key.
    pub fn program(&self) -> Result<Option<Program>, String> {
        if self.command.is_empty() {
            let only = [
                ("prompt", self.prompt.is_some()),
                ("prompt-by", self.prompt_by.is_some()),
                ("env", !self.env.is_empty()),
                ("mounts", !self.mounts.is_empty()),
                ("install", self.install.is_some()),
                ("logs", !self.logs.is_empty()),
                ("exclude", !self.exclude.is_empty()),
                ("may-drop", !self.may_drop.is_empty()),
            ];
            return match only.iter().find(|(_, set)| *set) {
                Some((key, _)) => {
                    Err(format!("agent.{key}: it is for another program as the agent: agent.command"))
                }
                None => Ok(None),
            };
        }
        let built_in = [
            ("config", !self.config.is_empty()),
            ("command-timeout", self.command_timeout.is_some()),
            ("context-limit", self.context_limit.is_some()),
        ];
        if let Some((key, _)) = built_in.iter().find(|(_, set)| *set) {
            return Err(format!(
                "agent.{key}: it is for the built-in agent; with agent.command it has no effect"
            ));
        }
        let mut program = Program::new(self.command.clone());
        if let Some(prompt) = &self.prompt {
            program.prompt.clone_from(prompt);
        }
        program.prompt_by = self.prompt_by.unwrap_or_default();
        program.env.clone_from(&self.env);
        program.mounts.clone_from(&self.mounts);
        program.install.clone_from(&self.install);
        program.logs.clone_from(&self.logs);
        program.exclude.clone_from(&self.exclude);
        design::check_mounts("agent.mounts", &program.mounts)?;
        program.check()?;
        Ok(Some(program))
    }

    /// What the gateway lets one run spend.
    pub fn caps(&self) -> Caps {
        Caps {
            calls: self.step_limit.filter(|&limit| limit > 0),
            tokens: self.token_limit.filter(|&limit| limit > 0),
            usd: self.cost_limit.filter(|&limit| limit > 0.0),
        }
    }

    /// How long a program may run; 0 in the study means a year.
    pub fn program_time(&self) -> Duration {
        match self.time_limit.unwrap_or(TIME_LIMIT) {
            0 => Duration::from_secs(365 * 24 * 3600),
            seconds => Duration::from_secs(seconds),
        }
    }
}

/// What goes into the lock of a program: its settings, and which files its mounts hold.
pub(super) fn identity(program: &Program) -> Result<String, StudyError> {
    let mut settings = json!(program);
    let mut mounts = BTreeMap::new();
    for mount in &program.mounts {
        let mut files = Vec::new();
        list(&mount.host, Path::new(""), &mut files).map_err(StudyError::io(&mount.host))?;
        mounts.insert(mount.inside.display().to_string(), digest(files.join("\n").as_bytes()));
    }
    settings["mounts"] = json!(mounts);
    Ok(digest(settings.to_string().as_bytes()))
}

/// Names and sizes of the files below a folder: a tool of hundreds of megabytes is not read for every command.
fn list(folder: &Path, below: &Path, files: &mut Vec<String>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (below.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            list(&entry.path(), &path, files)?;
        } else {
            let size = if kind.is_symlink() { 0 } else { entry.metadata()?.len() };
            files.push(format!("{} {size}", path.display()));
        }
    }
    Ok(())
}

/// The gateways' doors, one a solver, opened when they are first needed.
#[derive(Default)]
pub(super) struct Doors(Mutex<BTreeMap<String, Arc<Door>>>);

impl Doors {
    async fn of(&self, bench: &Bench, solver: &str) -> Result<Arc<Door>, LlmError> {
        let mut doors = self.0.lock().await;
        if let Some(door) = doors.get(solver) {
            return Ok(door.clone());
        }
        let Some(Solver::Openai(endpoint)) = bench.design.solvers.get(solver) else {
            let reason = "another program as the agent needs a model endpoint".into();
            return Err(LlmError::Setup { endpoint: solver.to_owned(), reason });
        };
        let may_drop: BTreeSet<String> = bench.design.agent.may_drop.iter().cloned().collect();
        let endpoint = (**endpoint).clone();
        let door = Arc::new(Door::open(endpoint, &bench.limiter, may_drop, bench.on_retry.clone()).await?);
        doors.insert(solver.to_owned(), door.clone());
        Ok(door)
    }
}

impl Trial<'_> {
    /// The program's run in a fresh sandbox. One that was interrupted cannot be taken up: the next attempt begins anew, and
    /// is answered from this one's journal where it asks the same.
    pub(super) async fn play_program(
        &self,
        program: &Program,
        folder: &Path,
        retrieved: &Retrieved,
    ) -> Result<Finished, Fault> {
        let (task, key) = (&self.target.task.solver, self.key);
        let begun = folder.join(BEGUN);
        if begun.exists() {
            return Err(AgentError::Diverged {
                event: 1,
                what: "program",
                recorded: "a run that did not come to its end".into(),
                now: "a new one: another program cannot be resumed".into(),
            }
            .into());
        }
        let environment = match &program.install {
            Some(script) => self.shift.environments.with_addition(task, script, &program.mounts).await?,
            None => self.shift.environments.prepare(task).await?,
        };
        let bench = self.bench();
        let door = bench.doors.of(bench, &key.solver).await?;
        let journal = folder.join(CALLS);
        let caller = Caller {
            condition: key.condition.clone(),
            target: key.instance_id.to_string(),
            solver: key.solver.clone(),
            replicate: key.replicate,
            attempt: self.attempt,
        };
        let earlier = bench.earlier_journals(key, self.attempt);
        // What an interrupted worker spent is no part of this run's limits.
        let caps = raised(bench.design.agent.caps(), &llm::spent(&journal, 0)?);
        let admission = door.admit(caller, caps, &journal, &earlier)?;
        let started = environment.start_with_gateway(&program.mounts, door.socket()).await;
        let mut sandbox = started.map_err(EnvironmentError::from)?;
        lay_out(sandbox.as_mut(), retrieved).await.map_err(EnvironmentError::from)?;
        write_json(&begun, &json!({})).map_err(StudyError::from)?;
        let outcome = agent::run_command(CommandRun {
            task,
            program,
            model: self.model_name(),
            seed: Some(u64::from(key.replicate)),
            admission,
            journal,
            sandbox: sandbox.as_mut(),
            place: environment.place(),
            memory: block(retrieved),
            time_limit: bench.design.agent.program_time(),
            folder,
            facts: facts(key),
        })
        .await;
        // a sandbox that cannot be closed has nothing more to say about a finished run
        let _ = sandbox.close().await;
        Ok(outcome?)
    }

    fn model_name(&self) -> &str {
        match self.bench().design.solvers.get(&self.key.solver) {
            Some(Solver::Openai(endpoint)) => &endpoint.model,
            _ => &self.key.solver,
        }
    }
}

/// Caps for a run whose journal holds calls already.
fn raised(caps: Caps, spent: &Cost) -> Caps {
    let usd = spent.list_usd.unwrap_or(0.0).max(spent.paid_usd.unwrap_or(0.0));
    Caps {
        calls: caps.calls.map(|calls| calls + spent.calls),
        tokens: caps.tokens.map(|tokens| tokens + spent.prompt_tokens + spent.completion_tokens),
        usd: caps.usd.map(|most| most + usd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(text: &str) -> Result<Option<Program>, String> {
        toml::from_str::<design::Agent>(text).map_err(|error| error.to_string())?.program()
    }

    #[test]
    fn a_study_names_a_program_or_settings_of_the_built_in_agent_never_both() {
        assert_eq!(agent("step-limit = 3").unwrap(), None);
        let program =
            agent("command = ['t', '-x']\nprompt-by = 'stdin'\nenv = { A = '{{ model }}' }\nlogs = ['~/x']");
        let program = program.unwrap().unwrap();
        assert_eq!((program.command.len(), program.prompt_by), (2, agent::PromptBy::Stdin));
        for (text, word) in [
            ("command = ['t']\ncontext-limit = 5", "agent.context-limit"),
            ("command = ['t']\nconfig = ['x.yaml']", "agent.config"),
            ("install = 'npm i x'", "agent.install"),
            ("command = ['t', '{{ tsak }}']", "agent.command[1]"),
            ("command = ['t']\nprompt-by = 'post'", "prompt-by"),
            ("command = ['t']\nmounts = [{ host = '/x', inside = 'y' }]", "agent.mounts"),
        ] {
            let error = agent(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn caps_are_the_runs_limits_and_zero_is_none() {
        let agent: design::Agent =
            toml::from_str("step-limit = 0\ntoken-limit = 9\ncost-limit = 0.5").unwrap();
        assert_eq!(agent.caps(), Caps { calls: None, tokens: Some(9), usd: Some(0.5) });
        assert_eq!(agent.program_time(), Duration::from_secs(TIME_LIMIT));
    }

    #[test]
    fn a_mounted_tool_of_other_files_is_another_program() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::write(folder.path().join("bin/t"), "1").unwrap();
        let mount = crate::sandbox::Mount { host: folder.path().into(), inside: "/opt/t".into() };
        let program = Program { mounts: vec![mount], ..Program::new(vec!["t".into()]) };
        let before = identity(&program).unwrap();
        assert_eq!(identity(&program).unwrap(), before);
        std::fs::write(folder.path().join("bin/t"), "12").unwrap();
        assert_ne!(identity(&program).unwrap(), before);
    }
}
