//! Performs what the state machine asks for, journals it, and resumes what was interrupted.
//!
//! Resuming runs the same machine again. Model answers come back from the model's own journal; each recorded command
//! is executed again in the fresh sandbox, its return code and the state of the repository are compared with the
//! record, and the machine gets the *recorded* observation at the *recorded* moment. So the messages are the same
//! whether or not a run was interrupted, or the run is given up as [`AgentError::Diverged`].

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::asking::Question;
use super::clock::Clock;
use super::config::Config;
use super::error::{AgentError, class};
use super::event::{Effect, Event, Exception, Moment, Observation, Uname};
use super::journal::{Entry, Journal, JournalError};
use super::machine::{Setup, State};
use super::recall::{self, Delivered, OnDemand, Recalled};
use super::template;
use super::trajectory::{TrajectoryFormat, trajectory_value};
use super::tree;
use crate::context::{self, Policy, View};
use crate::llm::{Cost, LlmError, Model, Reply, Request};
use crate::memory::host::Outcome;
use crate::sandbox::{Ended, Exec, Output, OutputLimit, Place, Sandbox};
use crate::task::SolverView;
use crate::trajectory::{convert_to_atif, write_atomic};

/// One run of the agent on one task.
pub struct Run<'a> {
    /// What the agent may know of the task.
    pub task: &'a SolverView,
    /// Its configuration.
    pub config: &'a Config,
    /// Who answers. Journal its answers (`llm::journal`), or an interrupted run pays again.
    pub model: &'a dyn Model,
    /// The solver's sampling parameters.
    pub params: &'a Map<String, Value>,
    /// The replicate's number, where it is to be sent.
    pub seed: Option<u64>,
    /// A fresh sandbox with the repository in it.
    pub sandbox: &'a mut dyn Sandbox,
    /// Where the repository lies.
    pub place: &'a Place,
    /// What the sandbox calls itself in templates.
    pub uname: Uname,
    /// How much of a command's output is kept.
    pub output: OutputLimit,
    /// The block of text that memory delivered.
    pub memory: Option<&'a str>,
    /// Memory that it may ask while it goes on.
    pub recall: Option<OnDemand<'a>>,
    /// What the model sees of the run.
    pub policy: &'a dyn Policy,
    /// Where the run is written: `events.jsonl`, `messages.jsonl`, `<id>.traj.json`.
    pub folder: &'a Path,
    /// What is written when it ends.
    pub format: TrajectoryFormat,
    /// Where moments come from.
    pub clock: &'a dyn Clock,
    /// More facts for `info.config.memtrial` of the trajectory (condition, solver, replicate, …).
    pub facts: Map<String, Value>,
}

/// A run that came to its end by the agent's doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// `Submitted`, `LimitsExceeded`, `TimeExceeded`, `RepeatedFormatError` or `ContextWindowExceededError`.
    pub exit_status: String,
    /// The patch; empty where none was submitted.
    pub submission: String,
    /// Model calls.
    pub calls: u64,
    /// Commands executed.
    pub commands: u64,
    /// What the model calls cost.
    pub cost: Cost,
    /// Seconds, pauses between an interruption and its resumption left out.
    pub seconds: f64,
    /// Events that were taken from the journal of an interrupted run.
    pub replayed: u64,
    /// The trajectory file.
    pub trajectory: PathBuf,
}

/// Runs the agent to its end, or takes up the run that the folder holds.
///
/// # Errors
/// See [`AgentError`]. A failed command or a malformed reply is no error: the model reads about it.
pub async fn drive(run: Run<'_>) -> Result<Finished, AgentError> {
    let mut driver = Driver::open(run)?;
    let outcome = driver.play().await;
    if let Err(error) = outcome {
        // Not journalled: the same call again goes on at this point.
        if let Some(exception) = error.exception(driver.run.config.dialect)
            && driver.state.step(Event::Failed { exception }, driver.run.policy).is_ok()
        {
            driver.write_trajectory()?;
        }
        return Err(error);
    }
    let trajectory = driver.write_trajectory()?;
    let (exit_status, submission) = driver.state.finished().unwrap_or_default();
    Ok(Finished {
        exit_status: exit_status.to_owned(),
        submission: submission.to_owned(),
        calls: driver.state.calls(),
        commands: driver.commands,
        cost: driver.state.cost(),
        seconds: driver.state.now().elapsed,
        replayed: driver.replayed,
        trajectory,
    })
}

struct Driver<'a> {
    run: Run<'a>,
    state: State,
    journal: Journal,
    workdir: String,
    /// The last recorded moment, and the clock's reading when the run went on from there.
    live: Option<(f64, f64)>,
    events: u64,
    replayed: u64,
    commands: u64,
    delivered: Delivered,
}

impl<'a> Driver<'a> {
    fn open(run: Run<'a>) -> Result<Self, AgentError> {
        let workdir = [Some(&run.place.workdir), run.config.cwd.as_ref()]
            .into_iter()
            .flatten()
            .find(|folder| !folder.is_empty())
            .map_or_else(|| "/".to_owned(), Clone::clone);
        let mut config = run.config.clone();
        // What sandbox and solver decide is what templates and the trajectory show.
        config.environment.insert("cwd".into(), json!(workdir));
        config.model.insert("model_name".into(), json!(run.model.name()));
        config.model.insert("model_kwargs".into(), json!(run.params));
        let setup = Setup {
            config,
            task: run.task.problem_statement.clone(),
            memory: run.memory.map(str::to_owned),
            uname: run.uname.clone(),
            asking: run.recall.map(|recall| recall.asking).unwrap_or_default(),
        };
        setup.asking.check(&setup.config).map_err(AgentError::Asking)?;
        let identity = json!({
            "instance_id": run.task.instance_id,
            "base_commit": run.task.base_commit,
            "setup": setup,
            "seed": run.seed,
            "policy": run.policy.settings(),
        });
        let journal = Journal::open(run.folder, &sha256(&identity))?;
        let state = State::new(setup);
        let mut delivered = Delivered::default();
        if let Some(start) = run.recall.and_then(|recall| recall.start) {
            delivered.add(start);
        }
        let (live, events, replayed, commands) = (None, 0, 0, 0);
        Ok(Self { run, state, journal, workdir, live, events, replayed, commands, delivered })
    }

    async fn play(&mut self) -> Result<(), AgentError> {
        self.go_live();
        self.start_up().await?;
        let at = match self.recorded() {
            Some(Entry::Started { at }) => at,
            Some(other) => return Err(self.diverged("event", format!("{other:?}"), "the start".into())),
            None => {
                let at = self.now();
                self.journal.event(&Entry::Started { at })?;
                at
            }
        };
        let mut effects = VecDeque::from(self.step(Event::Started { at })?);
        while let Some(effect) = effects.pop_front() {
            let event = match effect {
                Effect::Append(message) => {
                    self.append(&message)?;
                    continue;
                }
                Effect::CallModel(view) => match self.ask(view).await {
                    Ok(event) => event,
                    Err(AgentError::Model(error @ LlmError::ContextWindowExceeded { .. })) => {
                        let class = class(&error).to_owned();
                        Event::Failed { exception: Exception { class, text: error.to_string() } }
                    }
                    Err(error) => return Err(error),
                },
                Effect::Run { command, .. } => self.execute(command).await?,
                Effect::Recall(question) => self.recall(question).await?,
                Effect::Finish { .. } => break,
            };
            effects.extend(self.step(event)?);
        }
        Ok(())
    }

    fn step(&mut self, event: Event) -> Result<Vec<Effect>, AgentError> {
        Ok(self.state.step(event, self.run.policy)?)
    }

    fn append(&mut self, message: &Value) -> Result<(), AgentError> {
        if self.journal.message(message)? {
            return Ok(());
        }
        let role = message.get("role").and_then(Value::as_str).unwrap_or("?").to_owned();
        Err(self.diverged("message", "another message".into(), format!("one with role {role}")))
    }

    /// Asks the model. In a resumed run the answer must be the recorded one.
    async fn ask(&mut self, view: View) -> Result<Event, AgentError> {
        self.go_live();
        let request = Request {
            api: self.run.config.api,
            messages: view.messages,
            tools: self.state.tools(),
            params: self.run.params.clone(),
            seed: self.run.seed,
        };
        let reply: Reply = self.run.model.complete(&request).await?;
        self.state.give_back(View { messages: request.messages, tokens: view.tokens });
        let digest = sha256(&reply.message);
        let at = match self.recorded() {
            Some(Entry::Replied { message, at, .. }) if message == digest => at,
            Some(Entry::Replied { message, .. }) => {
                return Err(self.diverged("model reply", message, digest));
            }
            Some(other) => return Err(self.diverged("event", format!("{other:?}"), "a model call".into())),
            None => {
                let at = self.now();
                let call = self.state.calls();
                self.journal.event(&Entry::Replied { call, message: digest, at })?;
                at
            }
        };
        Ok(Event::Replied { reply: Box::new(reply), at })
    }

    /// Executes a command. In a resumed run it must do what it did, and the recorded observation is what counts.
    async fn execute(&mut self, command: String) -> Result<Event, AgentError> {
        self.go_live();
        self.commands += 1;
        let output = self.run.sandbox.exec(&self.exec(&command)).await?;
        let seen = self.observed(&command, &output);
        let tree = tree::state(self.run.sandbox, self.run.place, &self.workdir).await?;
        let (observation, at) = match self.recorded() {
            Some(Entry::Ran { command: recorded, observation, tree: recorded_tree, at, .. }) => {
                if recorded != command {
                    return Err(self.diverged("command", recorded, command));
                }
                if observation.returncode != seen.returncode {
                    let (recorded, now) = (observation.returncode, seen.returncode);
                    return Err(self.diverged("return code", recorded.to_string(), now.to_string()));
                }
                match (recorded_tree, tree) {
                    (Some(recorded), Some(now)) if recorded != now => {
                        return Err(self.diverged("repository", recorded, now));
                    }
                    _ => (observation, at),
                }
            }
            Some(other) => return Err(self.diverged("event", format!("{other:?}"), "a command".into())),
            None => {
                let at = self.now();
                let (number, observation) = (self.commands, seen.clone());
                self.journal.event(&Entry::Ran { number, command, observation, tree, at })?;
                (seen, at)
            }
        };
        Ok(Event::Ran { observation, at })
    }

    /// Asks memory. In a resumed run the recorded answer is what counts, and nobody is asked.
    async fn recall(&mut self, question: Question) -> Result<Event, AgentError> {
        self.go_live();
        let (recalled, at) = match self.recorded() {
            Some(Entry::Recalled { recalled, at }) if recalled.question == question => (*recalled, at),
            Some(other) => {
                return Err(self.diverged("event", format!("{other:?}"), format!("{question:?}")));
            }
            None => {
                let Some(OnDemand { memory, .. }) = self.run.recall else {
                    return Err(self.diverged("event", "no memory to ask".into(), format!("{question:?}")));
                };
                let query = recall::query(&question, self.run.task.into(), self.state.log());
                let retrieved = memory.recall(&query).await?;
                let text = recall::shown(&question, &retrieved.outcome, &mut self.delivered);
                let (step, at) = (self.state.calls(), self.now());
                let recalled = Recalled { question, step, text, retrieved };
                self.journal.event(&Entry::Recalled { recalled: Box::new(recalled.clone()), at })?;
                (recalled, at)
            }
        };
        if let Outcome::Injected(injection) = &recalled.retrieved.outcome {
            self.delivered.add(injection);
        }
        Ok(Event::Recalled { text: recalled.text, at })
    }

    fn exec(&self, command: &str) -> Exec {
        let config = self.run.config;
        let mut env = config.env.clone();
        env.extend(self.run.place.env.clone());
        Exec {
            argv: config.interpreter.iter().cloned().chain([command.to_owned()]).collect(),
            cwd: self.workdir.clone(),
            env,
            stdin: Vec::new(),
            timeout: Duration::from_secs(config.command_timeout),
            output: self.run.output,
        }
    }

    fn observed(&self, command: &str, output: &Output) -> Observation {
        let exception = (output.ended == Ended::TimedOut).then(|| Exception {
            class: "TimeoutExpired".into(),
            text: format!("Command '{command}' timed out after {} seconds", self.run.config.command_timeout),
        });
        Observation {
            output: output.text(),
            returncode: output.ended.code().map_or(-1, i64::from),
            exception,
            out_of_memory: output.out_of_memory,
            elided: output.elided.map_or(0, |cut| cut.bytes),
        }
    }

    /// `run.env_startup_command`: prepares the sandbox, also of a resumed run.
    async fn start_up(&mut self) -> Result<(), AgentError> {
        let Some(template) = &self.run.config.startup_command else { return Ok(()) };
        let task = self.run.task;
        let row = json!({
            "instance_id": task.instance_id,
            "repo": task.repo,
            "base_commit": task.base_commit,
            "problem_statement": task.problem_statement,
            "language": task.language,
            "image_name": task.image_name,
            "version": task.version,
        });
        let row = row.as_object().cloned().unwrap_or_default();
        let command = template::render("run.env_startup_command", template, &row)?;
        let output = self.run.sandbox.exec(&self.exec(&command)).await?;
        let seen = self.observed(&command, &output);
        if seen.returncode == 0 {
            return Ok(());
        }
        Err(AgentError::Startup { returncode: seen.returncode, output: seen.output })
    }

    fn recorded(&mut self) -> Option<Entry> {
        self.events += 1;
        let entry = self.journal.recorded()?;
        self.replayed += 1;
        Some(entry)
    }

    /// From the first thing on that no earlier process has recorded, time runs.
    fn go_live(&mut self) {
        if self.live.is_none() && !self.journal.replaying() {
            self.live = Some((self.state.now().elapsed, self.run.clock.unix()));
        }
    }

    fn now(&self) -> Moment {
        let unix = self.run.clock.unix();
        let elapsed = self.live.map_or(0.0, |(before, since)| before + (unix - since).max(0.0));
        Moment { unix, elapsed }
    }

    fn diverged(&self, what: &'static str, recorded: String, now: String) -> AgentError {
        AgentError::Diverged { event: self.events, what, recorded, now }
    }

    fn write_trajectory(&self) -> Result<PathBuf, AgentError> {
        let run = &self.run;
        let mut facts = run.facts.clone();
        let own = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "solver": run.model.name(),
            "seed": run.seed,
            "policy": run.policy.settings(),
            "memory_tokens": context::estimate(&context::memory_section(run.memory)),
            "limits": run.config.limits,
            "commands": self.commands,
            "cost": self.state.cost(),
            "elapsed_seconds": self.state.now().elapsed,
        });
        facts.extend(own.as_object().cloned().unwrap_or_default());
        let value = trajectory_value(&self.state, &run.task.instance_id, &facts);
        let path = run.folder.join(format!("{}.traj.json", run.task.instance_id));
        serde_json::to_vec_pretty(&value)
            .map_err(std::io::Error::from)
            .and_then(|bytes| write_atomic(&path, &bytes))
            .map_err(|source| JournalError::Io { path: path.clone(), source })?;
        if run.format == TrajectoryFormat::Both {
            let document = run.folder.join(format!("{}.atif.json", run.task.instance_id));
            convert_to_atif(&path, &document)?;
        }
        Ok(path)
    }
}

/// SHA-256 of a value's JSON, in hex.
fn sha256(value: &Value) -> String {
    Sha256::digest(value.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "driver_recall_tests.rs"]
mod recall_tests;

#[cfg(test)]
#[path = "driver_output_tests.rs"]
mod output_tests;
