//! `memtrial agent`: one run of the fixed agent on one task.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::PossibleValuesParser;
use memtrial::agent::{
    self, AgentError, Config, ConfigError, Finished, Loaded, SystemClock, TrajectoryFormat, Uname,
};
use memtrial::context::Full;
use memtrial::dataset::{Chronology, History, HistoryStore, MergeDates, read_tasks};
use memtrial::grade::files::write_json;
use memtrial::llm::{self, Client, Endpoint, Journaled, Model, Replay, Secret, recorded_run};
use memtrial::memory::host::{Host, Outcome as Memory, Setup};
use memtrial::memory::{self, BlockTemplate, Budget, Query};
use memtrial::sandbox::OutputLimit;
use memtrial::study;
use memtrial::task::{InstanceId, SolverView};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::rooms::SandboxArgs;
use super::{APIS, api, param};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// Runs the agent on one task.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// One task, one run: the trajectory and the prediction go to a folder. The same command resumes an interrupted
    /// run.
    Run(Box<RunArgs>),
}

/// Which task, which model, where.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Task rows: JSON, JSONL (plain, gzip, zstd) or parquet.
    #[arg(long, value_name = "FILE", required = true)]
    pub tasks: Vec<PathBuf>,
    /// The task: owner__name-NUMBER.
    #[arg(long, value_name = "ID", value_parser = InstanceId::parse)]
    pub id: InstanceId,
    /// Who answers: `replay:FOLDER` (recorded runs), or `MODEL@URL` (a model endpoint).
    #[arg(long, value_name = "SOLVER", value_parser = solver)]
    pub solver: Solver,
    /// What the endpoint speaks: OpenAI chat completions or Anthropic messages.
    #[arg(long, value_name = "API", default_value = "openai", value_parser = APIS)]
    pub api: String,
    /// The environment variable that holds the endpoint's key.
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// A parameter of every request, as KEY=JSON (temperature=0.7).
    #[arg(long, value_name = "KEY=JSON", value_parser = param)]
    pub param: Vec<(String, Value)>,
    /// Where the run is written.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub place: SandboxArgs,
    /// mini-swe-agent's configuration: a YAML file, an override a.b.c=value, or `memtrial` (the built-in one). May be
    /// given several times; later ones win; giving any drops the built-in one.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: Vec<String>,
    /// Another program as the agent: a TOML file with the keys of a study's `agent` (command, prompt, env, mounts,
    /// install, logs, …). It runs inside the sandbox; a gateway to the solver is its only way out.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "context_limit"])]
    pub agent_file: Option<PathBuf>,
    /// Model calls at most (0: no limit), over the configuration.
    #[arg(long, value_name = "N")]
    pub step_limit: Option<u64>,
    /// Prompt and completion tokens of all calls together, at most (0: no limit).
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub token_limit: u64,
    /// Prompt tokens of one call at most [default: no limit].
    #[arg(long, value_name = "N")]
    pub context_limit: Option<u64>,
    /// What tells of the run: mini-swe-agent's trajectory alone, or an ATIF document (ID.atif.json) beside it.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Mini)]
    pub trajectory_format: Format,
    /// Trajectories of earlier tasks, for memory.
    #[arg(long, value_name = "DIR")]
    pub history: Option<PathBuf>,
    /// The memory system.
    #[arg(long, value_name = "SYSTEM", default_value = "off", value_parser = memory_systems())]
    pub memory: String,
    /// Sent to the endpoint as `seed`.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Prints the outcome as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The choices of `--trajectory-format`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Format {
    Mini,
    Both,
}

impl From<Format> for TrajectoryFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Mini => Self::Mini,
            Format::Both => Self::Both,
        }
    }
}

pub async fn run(args: Args) -> Outcome {
    let Verb::Run(args) = args.verb;
    if args.memory != "off" && args.history.is_none() {
        return Err(Failure::usage(anyhow::anyhow!("--memory {} learns from --history DIR", args.memory)));
    }
    let outcome = match &args.agent_file {
        Some(file) => assemble_program(&args, &study::Agent::read(file)?).await?,
        None => {
            let config = configuration(&args)?;
            assemble(&args, config).await?
        }
    };
    report(&args, outcome)
}

/// Reads the configuration, prints its warnings, applies the limits of the command line.
fn configuration(args: &RunArgs) -> Result<Config, Failure> {
    let Loaded { mut config, warnings } = Config::load(&args.config).map_err(config_failure)?;
    for warning in warnings {
        ui::note(&format!("warning: agent configuration: {warning}"));
    }
    if let Some(steps) = args.step_limit {
        config.set_step_limit(steps);
    }
    config.limits.tokens = args.token_limit;
    Ok(config)
}

fn config_failure(error: ConfigError) -> Failure {
    match error {
        ConfigError::EmptyKey { .. } => Failure::usage(error),
        error => Failure::input(error),
    }
}

/// Who answers.
#[derive(Debug, Clone)]
pub enum Solver {
    /// A folder of recorded runs.
    Replay(PathBuf),
    /// A model at an address.
    Endpoint { model: String, url: String },
}

/// Puts task, sandbox, model and memory together and drives the run.
async fn assemble(args: &RunArgs, config: Config) -> Result<Result<Finished, AgentError>, Failure> {
    let task = task(args)?;
    fs_err::create_dir_all(&args.out).map_err(Failure::environment)?;
    let model = model(args)?;
    let block = block(args, &task).await?;
    let environment = args.place.environments()?.prepare(&task).await.map_err(Failure::environment)?;
    let mut sandbox = environment.start().await.map_err(Failure::environment)?;
    let outcome = agent::drive(agent::Run {
        task: &task,
        config: &config,
        model: model.as_ref(),
        params: &Map::new(),
        seed: args.seed,
        sandbox: sandbox.as_mut(),
        place: environment.place(),
        uname: Uname::default(),
        output: OutputLimit::default(),
        memory: block.as_deref(),
        recall: None,
        policy: &Full { context_limit: args.context_limit },
        folder: &args.out,
        format: args.trajectory_format.into(),
        clock: &SystemClock::start(),
        facts: Map::new(),
    })
    .await;
    // the run has ended: what a sandbox says at its end changes nothing
    let _ = sandbox.close().await;
    write_prediction(args, model.name(), &outcome)?;
    Ok(outcome)
}

/// The same with another program in the agent's place.
async fn assemble_program(
    args: &RunArgs,
    settings: &study::Agent,
) -> Result<Result<Finished, AgentError>, Failure> {
    let task = task(args)?;
    fs_err::create_dir_all(&args.out).map_err(Failure::environment)?;
    let endpoint = match &args.solver {
        Solver::Endpoint { model, url } => endpoint(args, model, url)?,
        Solver::Replay(_) => {
            let reason = "--agent-file: a program asks a model: name one as MODEL@URL with --solver";
            return Err(Failure::usage(anyhow::anyhow!(reason)));
        }
    };
    let block = block(args, &task).await?;
    let model = endpoint.model.clone();
    let outcome = super::program::run(args, settings, endpoint, &task, block.as_deref()).await?;
    write_prediction(args, &model, &outcome)?;
    Ok(outcome)
}

fn write_prediction(
    args: &RunArgs,
    model: &str,
    outcome: &Result<Finished, AgentError>,
) -> Result<(), Failure> {
    if let Ok(finished) = outcome {
        let prediction = json!([{
            "instance_id": args.id,
            "model_name_or_path": model,
            "model_patch": finished.submission,
        }]);
        write_json(&args.out.join("preds.json"), &prediction)?;
    }
    Ok(())
}

fn task(args: &RunArgs) -> Result<SolverView, Failure> {
    for file in &args.tasks {
        if let Some(task) = read_tasks(file)?.get(&args.id) {
            return Ok(task.solver.clone());
        }
    }
    let files: Vec<String> = args.tasks.iter().map(|file| file.display().to_string()).collect();
    Err(Failure::input(anyhow::anyhow!("task {} is in none of the files: {}", args.id, files.join(", "))))
}

/// The model, its answers journalled beside the trajectory.
fn model(args: &RunArgs) -> Result<Box<dyn Model>, Failure> {
    let journal = args.out.join("calls.jsonl");
    match &args.solver {
        Solver::Endpoint { model, url } => {
            let endpoint = endpoint(args, model, url)?;
            let address = url.clone();
            let model =
                Client::new(endpoint).map_err(Failure::input)?.telling(Arc::new(move |reason, wait| {
                    ui::note(&format!("{address}: {reason}; asking again in {} s", wait.as_secs().max(1)));
                }));
            Ok(Box::new(Journaled::open(&journal, model).map_err(Failure::environment)?))
        }
        Solver::Replay(folder) => {
            let path = recorded_run(folder, &args.id).ok_or_else(|| {
                let place = folder.display();
                Failure::input(anyhow::anyhow!(
                    "there is no recorded run of {0} in {place}: expected {0}/{0}.traj.json or {0}.traj.json",
                    args.id
                ))
            })?;
            let answered = llm::recorded(&journal).map_err(Failure::environment)? as usize;
            let replay = Replay::read("replay", &path).map_err(Failure::input)?.from_answer(answered);
            Ok(Box::new(Journaled::open(&journal, replay).map_err(Failure::environment)?))
        }
    }
}

/// The endpoint as the flags say.
fn endpoint(args: &RunArgs, model: &str, url: &str) -> Result<Endpoint, Failure> {
    let mut endpoint = Endpoint::new(url, model);
    endpoint.api = api(&args.api);
    endpoint.params = args.param.iter().cloned().collect();
    if let Some(name) = &args.api_key_env {
        let key = std::env::var(name).map_err(|_| {
            Failure::environment(anyhow::anyhow!("the environment variable {name} is not set"))
        })?;
        endpoint = endpoint.with_key(Secret::new(key));
    }
    Ok(endpoint)
}

/// The names of memory systems.
fn memory_systems() -> PossibleValuesParser {
    PossibleValuesParser::new(memory::SYSTEMS.iter().map(|about| about.name))
}

/// What memory has to say, where it is asked.
async fn block(args: &RunArgs, task: &SolverView) -> Result<Option<String>, Failure> {
    let Some(history) = args.history.as_deref().filter(|_| args.memory != "off") else { return Ok(None) };
    let store = HistoryStore::open(history)?;
    let history = History::for_target(&store, &args.id, Chronology::Number, &MergeDates::default())?;
    let system =
        memory::open(&args.memory, &Value::Null, &memory::Resources::default()).map_err(Failure::input)?;
    let setup = Setup {
        condition: args.memory.clone(),
        seed: args.seed.unwrap_or(0),
        budget: Budget::default(),
        template: BlockTemplate::default(),
    };
    let mut host = Host::build(system, &history, setup).await.map_err(Failure::environment)?;
    let retrieved = host.retrieve(&Query::at_start(task.into())).await.map_err(Failure::environment)?;
    write_json(&args.out.join("memory.json"), &retrieved)?;
    host.cleanup().await.map_err(Failure::environment)?;
    match retrieved.outcome {
        Memory::Injected(injection) if !injection.files.is_empty() => Err(Failure::usage(anyhow::anyhow!(
            "--memory {} lays files out for the agent, which a study does",
            args.memory
        ))),
        Memory::Injected(injection) => Ok(Some(injection.block)),
        Memory::Abstained { reason } => {
            ui::note(&format!("memory abstained: {reason}"));
            Ok(None)
        }
    }
}

fn solver(text: &str) -> Result<Solver, String> {
    if let Some(folder) = text.strip_prefix("replay:") {
        return Ok(Solver::Replay(folder.into()));
    }
    match text.split_once('@') {
        Some((model, url)) if !model.is_empty() && url.starts_with("http") => {
            Ok(Solver::Endpoint { model: model.into(), url: url.into() })
        }
        _ => Err("expected replay:FOLDER or MODEL@URL, for example my-model@http://127.0.0.1:8000/v1".into()),
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Summary<'a> {
    instance_id: &'a str,
    exit_status: &'a str,
    submitted: bool,
    calls: u64,
    commands: u64,
    replayed: u64,
    seconds: f64,
    cost: memtrial::llm::Cost,
    trajectory: &'a std::path::Path,
}

fn report(args: &RunArgs, outcome: Result<Finished, AgentError>) -> Outcome {
    let finished = match outcome {
        Ok(finished) => finished,
        Err(error @ (AgentError::Template(_) | AgentError::Startup { .. } | AgentError::Journal(_))) => {
            return Err(Failure::input(error));
        }
        Err(error) => return Err(Failure::environment(error)),
    };
    if args.json {
        ui::json(&Summary {
            instance_id: args.id.as_str(),
            exit_status: &finished.exit_status,
            submitted: !finished.submission.trim().is_empty(),
            calls: finished.calls,
            commands: finished.commands,
            replayed: finished.replayed,
            seconds: finished.seconds,
            cost: finished.cost,
            trajectory: &finished.trajectory,
        })?;
        return Ok(Exit::Done);
    }
    let money = finished.cost.list_usd.map_or_else(|| "price unknown".into(), |usd| format!("${usd:.4}"));
    ui::data(&format!(
        "{}: {} after {} calls and {} commands ({} prompt + {} completion tokens, {money}, {:.1} s)",
        args.id,
        finished.exit_status,
        finished.calls,
        finished.commands,
        finished.cost.prompt_tokens,
        finished.cost.completion_tokens,
        finished.seconds,
    ));
    ui::data(&format!("trajectory: {}", finished.trajectory.display()));
    if finished.submission.trim().is_empty() {
        ui::note("nothing was submitted");
    }
    Ok(Exit::Done)
}
