//! `memtrial memory …`: what earlier runs taught, for agents at work.

mod serve;

use crate::exit::Outcome;

/// Serves what earlier runs taught.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Lets agents search a memory index while they work.
    Serve(serve::Args),
}

pub async fn run(args: Args) -> Outcome {
    match args.command {
        Command::Serve(args) => serve::run(args).await,
    }
}
