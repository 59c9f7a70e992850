//! One file a verb.

mod agent;
mod compare;
mod doctor;
mod grade;
mod history;
mod rooms;
mod sandbox;
mod study;
mod task;

use std::process::ExitCode;

use clap::Parser;

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
    /// Runs the agent on one task.
    Agent(agent::Args),
    /// Applies predictions, runs the tests and reaches verdicts.
    Grade(grade::Args),
    /// Runs a study: every target under every condition.
    Study(study::Args),
    /// Tries whether sandboxes hold what they promise.
    Sandbox(sandbox::Args),
    /// Compares two graded runs, paired by task.
    Compare(compare::Args),
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
        Command::Agent(args) => agent::run(args).await,
        Command::Grade(args) => grade::run(args).await,
        Command::Study(args) => study::run(args).await,
        Command::Sandbox(args) => sandbox::run(args).await,
        Command::Compare(args) => compare::run(args).await,
    }
}
