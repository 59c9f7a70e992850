//! One trial: remember, run, grade, record.

use std::path::Path;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::attempt::{CALLS, FINISHED};
use super::bench::{Bench, Target};
use super::claims::Claim;
use super::design::Solver;
use super::recall::Remembered;
use super::remember::RememberError;
use super::shift::Shift;
use super::{MemoryNote, StudyError, TrialKey, TrialRecord, layout};
use crate::agent::{self, AgentError, Finished, JournalError, SystemClock, Uname};
use crate::context::Full;
use crate::grade::files::{json_bytes, make_folder, write, write_json, write_new};
use crate::grade::{self, Coding, Graded, VerdictClass};
use crate::llm::{self, Client, Cost, Journaled, LlmError, Model, Replay, Reply, Request, recorded_run};
use crate::memory::MEMORY_FOLDER;
use crate::memory::host::{Outcome, Retrieved};
use crate::sandbox::environment::{EnvironmentError, Environments};
use crate::sandbox::{OutputLimit, Sandbox, SandboxError};

/// How a try at a trial ended.
pub(super) enum Tried {
    /// With a record (also of a failed infrastructure).
    Record(Box<TrialRecord>),
    /// The resumed run left its record: the next attempt starts over.
    Diverged(String),
}

/// What a trial works with.
pub(super) struct Trial<'a> {
    pub(super) shift: &'a Shift<'a>,
    pub(super) claim: &'a Claim,
    pub(super) target: &'a Target,
    pub(super) key: &'a TrialKey,
    /// From 1.
    pub(super) attempt: u32,
}

/// Why a trial has no verdict of its own.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("memory: {0}")]
    Memory(Box<RememberError>),
    #[error("environment: {0}")]
    Environment(#[from] EnvironmentError),
    #[error("agent: {0}")]
    Agent(#[from] AgentError),
    #[error("model: {0}")]
    Model(#[from] LlmError),
    #[error("{0}")]
    Study(#[from] StudyError),
}

impl Trial<'_> {
    /// Runs it, or takes it up where a killed process left it.
    pub(super) async fn run(self) -> Result<Tried, StudyError> {
        let folder = self.bench().layout.attempt(self.key, self.attempt);
        make_folder(&folder)?;
        let remembered = match self.remember().await {
            Ok(remembered) => remembered,
            Err(error) => return self.failed(&Fault::Memory(error.into()), None).await,
        };
        self.account(&remembered)?;
        let ended = folder.join(FINISHED);
        let played = match layout::read_json::<Finished>(&ended)? {
            Some(finished) => Ok(finished),
            None => self.play(&folder, &remembered).await,
        };
        let finished = match played {
            Ok(finished) => finished,
            Err(Fault::Study(error)) => return Err(error),
            Err(Fault::Agent(error)) if is_divergence(&error) => {
                return Ok(Tried::Diverged(error.to_string()));
            }
            Err(fault) => return self.failed(&fault, Some(&remembered)).await,
        };
        write_json(&ended, &finished)?;
        let prediction = json!({
            "instance_id": self.key.instance_id,
            "model_name_or_path": self.key.solver,
            "model_patch": finished.submission,
        });
        write_json(&folder.join("prediction.json"), &prediction)?;
        let kept = layout::read_json::<Graded>(&folder.join("graded.json"))?;
        let graded = match kept.filter(|kept| kept.class.coding() != Coding::Missing) {
            Some(graded) => graded,
            None => match self.judge(&finished).await {
                Ok(graded) => {
                    write(&folder.join("test_output.txt"), &graded.log)?;
                    write_json(&folder.join("graded.json"), &graded)?;
                    graded
                }
                Err(fault) => return self.failed(&fault, Some(&remembered)).await,
            },
        };
        Ok(Tried::Record(Box::new(self.record(&finished, &graded, &remembered).await?)))
    }

    pub(super) fn bench(&self) -> &Bench {
        self.shift.bench
    }

    /// The agent's run in a fresh sandbox.
    async fn play(&self, folder: &Path, remembered: &Remembered) -> Result<Finished, Fault> {
        if let Some(program) = &self.bench().program {
            return self.play_program(program, folder, remembered.start()).await;
        }
        let task = &self.target.task.solver;
        let environment = self.shift.environments.prepare(task).await?;
        let model = self.model(folder)?;
        let mut sandbox = environment.start().await.map_err(EnvironmentError::from)?;
        lay_out(sandbox.as_mut(), remembered.start()).await.map_err(EnvironmentError::from)?;
        let params = Map::new();
        let policy = Full { context_limit: self.bench().design.agent.context_limit };
        let outcome = agent::drive(agent::Run {
            task,
            config: &self.bench().agent,
            model: model.as_ref(),
            params: &params,
            seed: Some(u64::from(self.key.replicate)),
            sandbox: sandbox.as_mut(),
            place: environment.place(),
            uname: Uname::default(),
            output: OutputLimit::default(),
            memory: remembered.block(),
            recall: remembered.on_demand(),
            policy: &policy,
            folder,
            format: self.bench().design.agent.trajectory_format,
            clock: &SystemClock::start(),
            facts: facts(self.key),
        })
        .await;
        // a sandbox that cannot be closed has nothing more to say about a finished run
        let _ = sandbox.close().await;
        Ok(outcome?)
    }

    /// The solver's model, its answers journalled in the trial's folder.
    fn model(&self, folder: &Path) -> Result<Box<dyn Model + '_>, Fault> {
        let journal = folder.join(CALLS);
        let claim = self.claim;
        let name = &self.key.solver;
        match self.bench().design.solvers.get(name) {
            Some(Solver::Openai(endpoint)) => {
                let mut model = Client::sharing((**endpoint).clone(), &self.bench().limiter)?;
                if let Some(tell) = &self.bench().on_retry {
                    model = model.telling(tell.clone());
                }
                Ok(Box::new(Journaled::open(&journal, Fenced { model, claim })?))
            }
            Some(Solver::Replay { .. }) => {
                let answered = llm::recorded(&journal)? as usize;
                let model = self.replay()?.from_answer(answered);
                Ok(Box::new(Journaled::open(&journal, Fenced { model, claim })?))
            }
            None => Err(self.no_solver("is not in the study").into()),
        }
    }

    fn replay(&self) -> Result<Replay, Fault> {
        let folder = self.bench().replays.get(&self.key.solver);
        let path =
            folder.and_then(|folder| recorded_run(folder, &self.key.instance_id)).ok_or_else(|| {
                self.no_solver(&format!("there is no recorded run of {}", self.key.instance_id))
            })?;
        Ok(Replay::read(&self.key.solver, &path)?)
    }

    fn no_solver(&self, reason: &str) -> StudyError {
        StudyError::Solver { solver: self.key.solver.clone(), reason: reason.to_owned() }
    }

    /// Grades the submission in a second fresh sandbox.
    async fn judge(&self, finished: &Finished) -> Result<Graded, Fault> {
        let task = &self.target.task;
        let options = self.bench().grading();
        if !agent::exit::hands_in(&finished.exit_status) {
            let reason = format!("the agent ended with {} and submitted nothing", finished.exit_status);
            return Ok(Graded::without_run(VerdictClass::AgentLimit, Some(reason), &options));
        }
        grade_patch(&self.shift.environments, task, &finished.submission, &options).await
    }

    async fn record(
        &self,
        finished: &Finished,
        graded: &Graded,
        remembered: &Remembered,
    ) -> Result<TrialRecord, StudyError> {
        let during = self.account(remembered)?;
        let sunk = self.bench().sunk(self.key, self.attempt)?;
        Ok(TrialRecord {
            key: self.key.clone(),
            verdict: graded.class,
            reason: graded.reason.clone(),
            exit_status: finished.exit_status.clone(),
            steps: finished.calls,
            solver_cost: sunk.plus(finished.cost),
            abandoned_cost: sunk,
            memory_cost: self.memory_cost(remembered, &during),
            memory: remembered.note(&during),
            leak: self.scan(remembered.start(), &during).await,
            attempts: self.attempt,
            agent_seconds: finished.seconds,
            grade_seconds: graded.seconds,
        })
    }

    /// The record of a trial without an end of its own: the infrastructure failed, or the recorded run that it replays
    /// ended without a submission.
    async fn failed(&self, fault: &Fault, remembered: Option<&Remembered>) -> Result<Tried, StudyError> {
        self.assert_writable()?;
        let (mut memory_cost, mut memory, mut leak) = (Cost::ZERO, MemoryNote::default(), None);
        if let Some(remembered) = remembered {
            let during = self.account(remembered)?;
            (memory_cost, memory) = (self.memory_cost(remembered, &during), remembered.note(&during));
            leak = self.scan(remembered.start(), &during).await;
        }
        let sunk = self.bench().sunk(self.key, self.attempt)?;
        let spent = self.bench().spent(self.key, self.attempt);
        Ok(Tried::Record(Box::new(TrialRecord {
            key: self.key.clone(),
            verdict: match fault {
                Fault::Agent(AgentError::Model(LlmError::Exhausted { .. })) => VerdictClass::AgentLimit,
                _ => VerdictClass::Infrastructure,
            },
            reason: Some(fault.to_string()),
            exit_status: String::new(),
            steps: spent.calls,
            solver_cost: sunk.plus(spent),
            abandoned_cost: sunk,
            memory_cost,
            memory,
            leak,
            attempts: self.attempt,
            agent_seconds: 0.0,
            grade_seconds: 0.0,
        })))
    }

    /// Where the study's folder cannot be written to, every trial would fail, and every answer paid for be lost.
    fn assert_writable(&self) -> Result<(), StudyError> {
        let probe = self.bench().layout.attempt(self.key, self.attempt).join(".writable");
        write(&probe, &[b'x'; 4096])?;
        std::fs::remove_file(&probe).map_err(StudyError::io(&probe))
    }
}

/// Puts the files that memory delivered where the agent finds them: outside the repository.
pub(super) async fn lay_out(sandbox: &mut dyn Sandbox, retrieved: &Retrieved) -> Result<(), SandboxError> {
    let Outcome::Injected(injection) = &retrieved.outcome else { return Ok(()) };
    for file in &injection.files {
        sandbox.put(&format!("{MEMORY_FOLDER}/{}", file.path), file.content.as_bytes(), 0o644).await?;
    }
    Ok(())
}

/// Whether the attempt's record cannot be gone on with.
fn is_divergence(error: &AgentError) -> bool {
    matches!(
        error,
        AgentError::Diverged { .. }
            | AgentError::Model(LlmError::Diverged { .. })
            | AgentError::Journal(JournalError::Corrupt { .. })
    )
}

/// Grades a patch in a fresh sandbox.
async fn grade_patch(
    environments: &Environments,
    task: &crate::task::Task,
    patch: &str,
    options: &grade::Options,
) -> Result<Graded, Fault> {
    if let Some(graded) = grade::without_sandbox(task, Some(patch), options) {
        return Ok(graded);
    }
    let environment = environments.prepare(&task.solver).await?;
    let mut sandbox = environment.start().await.map_err(EnvironmentError::from)?;
    let graded = grade::grade(sandbox.as_mut(), environment.place(), task, Some(patch), options).await;
    // the verdict stands whether or not the sandbox closes well
    let _ = sandbox.close().await;
    Ok(graded)
}

/// Grades a target's gold patch, once for a study: the first verdict stays.
pub(super) async fn check_gold(shift: &Shift<'_>, target: &Target) -> Result<Graded, StudyError> {
    let bench = shift.bench;
    let options = bench.grading();
    let mut retries = bench.design.budget.retries;
    let gold = &target.task.evaluator.patch;
    let graded = loop {
        let graded = match grade_patch(&shift.environments, &target.task, gold, &options).await {
            Ok(graded) => graded.of_gold(),
            Err(Fault::Study(error)) => return Err(error),
            Err(fault) => {
                Graded::without_run(VerdictClass::Infrastructure, Some(fault.to_string()), &options)
            }
        };
        if graded.class.coding() != Coding::Missing || retries == 0 {
            break graded;
        }
        retries -= 1;
    };
    // a failed infrastructure says nothing about gold: it is tried again next time
    if graded.class.coding() == Coding::Missing {
        return Ok(graded);
    }
    let id = target.task.id();
    write(&bench.layout.gold(id).join("test_output.txt"), &graded.log)?;
    let path = bench.layout.gold_verdict(id);
    if write_new(&path, &json_bytes(&path, &graded)?)? {
        return Ok(graded);
    }
    Ok(bench.kept_gold(id)?.unwrap_or(graded))
}

/// A model that is asked only while the trial is this worker's own. A trial that was taken over goes no further: whoever
/// watches the claim ends it.
#[derive(Debug)]
struct Fenced<'a, M> {
    model: M,
    claim: &'a Claim,
}

#[async_trait]
impl<M: Model> Model for Fenced<'_, M> {
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        if !self.claim.is_mine() {
            std::future::pending::<()>().await;
        }
        self.model.complete(request).await
    }

    fn name(&self) -> &str {
        self.model.name()
    }
}

pub(super) fn facts(key: &TrialKey) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("condition".into(), json!(key.condition));
    facts.insert("solver".into(), json!(key.solver));
    facts.insert("replicate".into(), json!(key.replicate));
    facts
}
