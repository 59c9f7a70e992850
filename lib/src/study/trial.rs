//! One trial: remember, run, grade, record.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::bench::{Bench, Target};
use super::design::Solver;
use super::remember::{Deliveries, RememberError, block};
use super::{MemoryNote, StudyError, TrialKey, TrialRecord, layout};
use crate::agent::{self, AgentError, Finished, SystemClock, Uname};
use crate::context::Full;
use crate::grade::files::{OutError, write, write_json};
use crate::grade::{self, Coding, Graded, VerdictClass};
use crate::llm::{self, Client, Cost, Journaled, LlmError, Model, Replay, recorded_run};
use crate::memory::host::{Outcome, Retrieved};
use crate::sandbox::OutputLimit;
use crate::sandbox::environment::EnvironmentError;

/// How a try at a trial ended.
pub(super) enum Tried {
    /// With a record (also of a failed infrastructure).
    Record(Box<TrialRecord>),
    /// The resumed run left its record: the next attempt starts over.
    Diverged(String),
}

/// What a trial works with.
pub(super) struct Trial<'a> {
    pub(super) bench: &'a Bench,
    pub(super) deliveries: &'a Deliveries,
    pub(super) target: &'a Target,
    pub(super) key: &'a TrialKey,
    /// From 1.
    pub(super) attempt: u32,
    /// What earlier attempts cost.
    pub(super) sunk: Cost,
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
        let folder = self.bench.layout.attempt(self.key, self.attempt);
        std::fs::create_dir_all(&folder).map_err(|error| OutError::new(&folder, error))?;
        let retrieved = match self.deliveries.get(self.bench, &self.key.condition, self.target).await {
            Ok(retrieved) => retrieved,
            Err(error) => return Ok(self.failed(&Fault::Memory(error.into()), None)),
        };
        write_json(&folder.join("memory.json"), retrieved.as_ref())?;
        let ended = folder.join("finished.json");
        let played = match layout::read_json::<Finished>(&ended)? {
            Some(finished) => Ok(finished),
            None => self.play(&folder, block(&retrieved)).await,
        };
        let finished = match played {
            Ok(finished) => finished,
            Err(Fault::Study(error)) => return Err(error),
            Err(Fault::Agent(error)) if is_divergence(&error) => {
                return Ok(Tried::Diverged(error.to_string()));
            }
            Err(fault) => return Ok(self.failed(&fault, Some(&retrieved))),
        };
        write_json(&ended, &finished)?;
        let prediction = json!({
            "instance_id": self.key.instance_id,
            "model_name_or_path": self.key.solver,
            "model_patch": finished.submission,
        });
        write_json(&folder.join("prediction.json"), &prediction)?;
        let graded = match self.judge(&finished).await {
            Ok(graded) => graded,
            Err(fault) => return Ok(self.failed(&fault, Some(&retrieved))),
        };
        write(&folder.join("test_output.txt"), &graded.log)?;
        write_json(&folder.join("graded.json"), &graded)?;
        Ok(Tried::Record(Box::new(self.record(&finished, &graded, &retrieved))))
    }

    /// The agent's run in a fresh sandbox.
    async fn play(&self, folder: &Path, memory: Option<&str>) -> Result<Finished, Fault> {
        if let Some(program) = &self.bench.program {
            return self.play_program(program, folder, memory).await;
        }
        let task = &self.target.task.solver;
        let environment = self.bench.environments.prepare(task).await?;
        let model = self.model(folder)?;
        let mut sandbox = environment.start().await.map_err(EnvironmentError::from)?;
        let params = Map::new();
        let policy = Full { context_limit: self.bench.design.agent.context_limit };
        let outcome = agent::drive(agent::Run {
            task,
            config: &self.bench.agent,
            model: model.as_ref(),
            params: &params,
            seed: Some(u64::from(self.key.replicate)),
            sandbox: sandbox.as_mut(),
            place: environment.place(),
            uname: Uname::default(),
            output: OutputLimit::default(),
            memory,
            policy: &policy,
            folder,
            clock: &SystemClock::start(),
            facts: facts(self.key),
        })
        .await;
        // a sandbox that cannot be closed has nothing more to say about a finished run
        let _ = sandbox.close().await;
        Ok(outcome?)
    }

    /// The solver's model, its answers journalled in the trial's folder.
    fn model(&self, folder: &Path) -> Result<Box<dyn Model>, Fault> {
        let journal = folder.join("calls.jsonl");
        let name = &self.key.solver;
        match self.bench.design.solvers.get(name) {
            Some(Solver::Openai(endpoint)) => {
                let mut model = Client::sharing((**endpoint).clone(), &self.bench.limiter)?;
                if let Some(tell) = &self.bench.on_retry {
                    model = model.telling(tell.clone());
                }
                Ok(Box::new(Journaled::open(&journal, model)?))
            }
            Some(Solver::Replay { .. }) => {
                let answered = llm::spent(&journal)?.calls as usize;
                Ok(Box::new(Journaled::open(&journal, self.replay()?.from_answer(answered))?))
            }
            None => Err(self.no_solver("is not in the study").into()),
        }
    }

    fn replay(&self) -> Result<Replay, Fault> {
        let folder = self.bench.replays.get(&self.key.solver);
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
        let options = self.bench.grading();
        if !agent::exit::hands_in(&finished.exit_status) {
            let reason = format!("the agent ended with {} and submitted nothing", finished.exit_status);
            return Ok(Graded::without_run(VerdictClass::AgentLimit, Some(reason), &options));
        }
        grade_patch(self.bench, task, &finished.submission, &options).await
    }

    fn record(&self, finished: &Finished, graded: &Graded, retrieved: &Retrieved) -> TrialRecord {
        TrialRecord {
            key: self.key.clone(),
            verdict: graded.class,
            reason: graded.reason.clone(),
            exit_status: finished.exit_status.clone(),
            steps: finished.calls,
            solver_cost: self.sunk.plus(finished.cost),
            memory_cost: self.share(retrieved),
            memory: note(retrieved),
            attempts: self.attempt,
            agent_seconds: finished.seconds,
            grade_seconds: graded.seconds,
        }
    }

    /// The record of a trial without an end of its own: the infrastructure failed, or the recorded run that it replays
    /// ended without a submission.
    fn failed(&self, fault: &Fault, retrieved: Option<&Retrieved>) -> Tried {
        let spent = self.bench.spent(self.key, self.attempt);
        Tried::Record(Box::new(TrialRecord {
            key: self.key.clone(),
            verdict: match fault {
                Fault::Agent(AgentError::Model(LlmError::Exhausted { .. })) => VerdictClass::AgentLimit,
                _ => VerdictClass::Infrastructure,
            },
            reason: Some(fault.to_string()),
            exit_status: String::new(),
            steps: spent.calls,
            solver_cost: self.sunk.plus(spent),
            memory_cost: retrieved.map_or(Cost::ZERO, |retrieved| self.share(retrieved)),
            memory: retrieved.map(note).unwrap_or_default(),
            attempts: self.attempt,
            agent_seconds: 0.0,
            grade_seconds: 0.0,
        }))
    }

    /// One store serves every solver and replicate of its target: each trial bears its share.
    fn share(&self, retrieved: &Retrieved) -> Cost {
        let served = self.bench.design.solvers.len() as u64 * u64::from(self.bench.design.replicates);
        retrieved.build.plus(retrieved.retrieve).divided(served)
    }
}

fn is_divergence(error: &AgentError) -> bool {
    matches!(error, AgentError::Diverged { .. } | AgentError::Model(LlmError::Diverged { .. }))
}

/// Grades a patch in a fresh sandbox.
async fn grade_patch(
    bench: &Bench,
    task: &crate::task::Task,
    patch: &str,
    options: &grade::Options,
) -> Result<Graded, Fault> {
    if let Some(graded) = grade::without_sandbox(task, Some(patch), options) {
        return Ok(graded);
    }
    let environment = bench.environments.prepare(&task.solver).await?;
    let mut sandbox = environment.start().await.map_err(EnvironmentError::from)?;
    let graded = grade::grade(sandbox.as_mut(), environment.place(), task, Some(patch), options).await;
    // the verdict stands whether or not the sandbox closes well
    let _ = sandbox.close().await;
    Ok(graded)
}

/// The verdict on a target's gold patch, graded once for a study and kept.
pub(super) async fn check_gold(bench: &Bench, target: &Target) -> Result<Graded, StudyError> {
    let folder = bench.layout.gold(target.task.id());
    if let Some(kept) = layout::read_json::<Graded>(&folder.join("graded.json"))? {
        return Ok(kept);
    }
    let options = bench.grading();
    let mut retries = bench.design.budget.retries;
    let graded = loop {
        let graded = match grade_patch(bench, &target.task, &target.task.evaluator.patch, &options).await {
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
    if graded.class.coding() != Coding::Missing {
        write(&folder.join("test_output.txt"), &graded.log)?;
        write_json(&folder.join("graded.json"), &graded)?;
    }
    Ok(graded)
}

fn note(retrieved: &Retrieved) -> MemoryNote {
    let (injected_tokens, abstained, sources) = match &retrieved.outcome {
        Outcome::Injected(injection) => (injection.injected_tokens, None, injection.sources.clone()),
        Outcome::Abstained { reason } => (0, Some(reason.clone()), Vec::new()),
    };
    MemoryNote { eligible: retrieved.eligible, injected_tokens, abstained, sources }
}

pub(super) fn facts(key: &TrialKey) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("condition".into(), json!(key.condition));
    facts.insert("solver".into(), json!(key.solver));
    facts.insert("replicate".into(), json!(key.replicate));
    facts
}
