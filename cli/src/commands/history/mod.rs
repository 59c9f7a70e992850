//! `memtrial history`.

mod convert;
mod files;
mod list;
mod show;
mod stats;

pub(super) use list::Order;

use crate::exit::Outcome;

/// Shows what a target may learn from; reads and converts the logs of every agent.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Lists exactly the runs that a target may learn from, and what is refused and why.
    List(list::Args),
    /// Shows a run as memory systems read it: its events, whichever agent made it.
    Show(show::Args),
    /// Counts what a folder of runs holds, by repository, and names what cannot be read.
    Stats(stats::Args),
    /// Converts runs: to ATIF documents, or the logs of any agent to a history that studies read.
    Convert(convert::Args),
}

pub async fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::List(args) => list::run(&args),
        Verb::Show(args) => show::run(&args),
        Verb::Stats(args) => stats::run(&args),
        Verb::Convert(args) => convert::run(&args),
    }
}
