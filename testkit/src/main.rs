//! Fixtures for memtrial's tests and its demonstration.

use anyhow::Result;
use clap::{Parser, Subcommand};
use memtrial_testkit::{bundle, plant};

#[derive(Debug, Parser)]
#[command(name = "memtrial-testkit", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Builds the bundled study: repositories, tasks, histories, what the reader knows
    Bundle(bundle::Args),
    /// Plants needles into the histories of real tasks
    Plant(plant::Args),
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Bundle(args) => bundle::run(&args),
        Command::Plant(args) => plant::run(&args),
    }
}
