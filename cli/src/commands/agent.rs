//! `memtrial agent`: one run of the fixed agent on one task.

use std::path::PathBuf;

use memtrial::agent::{AgentError, Config, ConfigError, Finished, Loaded};
use serde::Serialize;

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
    #[arg(long, value_name = "ID")]
    pub id: String,
    /// Who answers: `replay:FOLDER` (recorded runs), or `NAME@URL` (an OpenAI-compatible endpoint).
    #[arg(long, value_name = "S")]
    pub solver: String,
    /// Where the run is written.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// The sandbox back end.
    #[arg(long, value_name = "BACKEND", default_value = "namespaces", value_parser = ["namespaces", "docker", "local"])]
    pub sandbox: String,
    /// Bare clones: <owner>+<name>/repo, <owner>__<name>.git or <owner>/<name>.git.
    #[arg(long, value_name = "DIR")]
    pub repos: Option<PathBuf>,
    /// mini-swe-agent's configuration: a YAML file, an override a.b.c=value, or `memtrial` (the built-in one). May be
    /// given several times; later ones win; giving any drops the built-in one.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: Vec<String>,
    /// Model calls at most (0: no limit), over the configuration.
    #[arg(long, value_name = "N")]
    pub step_limit: Option<u64>,
    /// Prompt and completion tokens of all calls together, at most.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub token_limit: u64,
    /// Prompt tokens of one call at most.
    #[arg(long, value_name = "N")]
    pub context_limit: Option<u64>,
    /// Trajectories of earlier tasks, for memory.
    #[arg(long, value_name = "DIR", required_if_eq("memory", "bm25"))]
    pub history: Option<PathBuf>,
    /// The memory system.
    #[arg(long, value_name = "SYSTEM", default_value = "off", value_parser = ["off", "bm25"])]
    pub memory: String,
    /// Sent to the endpoint as `seed`.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Prints the outcome as JSON.
    #[arg(long)]
    pub json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let Verb::Run(args) = args.verb;
    let config = configuration(&args)?;
    let outcome = assemble(&args, config).await?;
    report(&args, outcome)
}

/// Reads the configuration, prints its warnings, applies the limits of the command line.
fn configuration(args: &RunArgs) -> Result<Config, Failure> {
    let Loaded { mut config, warnings } = Config::load(&args.config).map_err(config_failure)?;
    for warning in warnings {
        ui::note(&format!("warning: agent configuration: {warning}"));
    }
    if let Some(steps) = args.step_limit {
        config.limits.steps = steps;
        config.agent.insert("step_limit".into(), steps.into());
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

/// Puts task, sandbox, model and memory together and drives the run.
async fn assemble(args: &RunArgs, config: Config) -> Result<Result<Finished, AgentError>, Failure> {
    let _ = config;
    let part = format!("solver {} and sandbox {} for task {}", args.solver, args.sandbox, args.id);
    Err(Failure::environment(anyhow::anyhow!("{part}: not wired up in this build")))
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
            instance_id: &args.id,
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
