//! `memtrial memory`.

mod eval;

use crate::exit::Outcome;

/// Tries memory systems.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Measures offline how well systems find relevant earlier runs, beside recency and random order.
    Eval(eval::Args),
}

pub async fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Eval(args) => eval::run(args).await,
    }
}
