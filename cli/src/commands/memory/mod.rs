//! `memtrial memory`: what memory systems know and hold.

mod check;

use crate::exit::Outcome;

/// Tries memory systems.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Tries, check by check, whether a plugged-in memory system holds what every system must.
    Check(check::Args),
}

pub async fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Check(args) => check::run(args).await,
    }
}
