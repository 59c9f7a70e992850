//! One file a verb.

mod agent;
mod compare;
mod doctor;
mod gateway;
mod grade;
mod history;
mod image;
mod memory;
mod parse_log;
mod program;
mod registry;
mod rooms;
mod sandbox;
mod study;
mod task;

use std::process::ExitCode;

use clap::Parser;
use memtrial::llm::Protocol;
use serde_json::Value;

use crate::exit::{Failure, Outcome};
use crate::ui;

/// Does memory make a coding agent solve more real repository tasks, and what does it cost?
#[derive(Debug, Parser)]
#[command(name = "memtrial", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Shows what works here, and the command that mends what does not.
    Doctor(doctor::Args),
    /// Lists, shows, checks and audits tasks.
    Task(task::Args),
    /// Shows what a target may learn from.
    History(history::Args),
    /// Fetches, lists and drops published images.
    Image(image::Args),
    /// Runs the agent on one task.
    Agent(agent::Args),
    /// Applies predictions, runs the tests and reaches verdicts.
    Grade(grade::Args),
    /// Reads a test log; lists, detects and learns parsers.
    ParseLog(parse_log::Args),
    /// Runs a study: every target under every condition.
    Study(study::Args),
    /// Tries whether sandboxes hold what they promise.
    Sandbox(sandbox::Args),
    /// Compares two graded runs, paired by task.
    Compare(compare::Args),
    /// Serves one model to other programs: counted, written down, capped.
    Gateway(gateway::Args),
    /// Tries memory systems.
    Memory(memory::Args),
}

/// Parses the command line, runs the verb, prints an error with its hint.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(dispatch(cli.command)),
        Err(error) => Err(Failure::environment(error)),
    };
    let exit = match outcome {
        Ok(exit) => exit,
        Err(failure) => {
            ui::note(&format!("error: {failure}"));
            failure.exit
        }
    };
    ExitCode::from(exit as u8)
}

async fn dispatch(command: Command) -> Outcome {
    match command {
        Command::Doctor(args) => doctor::run(args).await,
        Command::Task(args) => task::run(args).await,
        Command::History(args) => history::run(args).await,
        Command::Image(args) => image::run(args).await,
        Command::Agent(args) => agent::run(args).await,
        Command::Grade(args) => grade::run(args).await,
        Command::ParseLog(args) => parse_log::run(args).await,
        Command::Study(args) => study::run(args).await,
        Command::Sandbox(args) => sandbox::run(args).await,
        Command::Compare(args) => compare::run(args).await,
        Command::Gateway(args) => gateway::run(args).await,
        Command::Memory(args) => memory::run(args).await,
    }
}

/// The wire formats of endpoints.
const APIS: [&str; 2] = ["openai", "anthropic"];

/// The one of this name.
fn api(name: &str) -> Protocol {
    if name == "anthropic" { Protocol::Anthropic } else { Protocol::Openai }
}

/// A parameter of model requests, as KEY=JSON; what is no JSON is a text.
fn param(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected KEY=JSON")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((key.to_owned(), value))
}
