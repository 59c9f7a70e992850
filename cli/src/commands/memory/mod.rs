//! `memtrial memory`: what memory systems learn, hold and find.

mod asked;
mod build;
mod check;
mod describe;
mod diff;
mod eval;
mod freeze;
mod list;
mod retrieve;
mod serve;
mod show;

use memtrial::memory::MemoryError;

use crate::exit::{Failure, Outcome};

/// Builds, searches and compares what memory systems learn from earlier runs.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Lets a system learn from a whole history; the index serves any target, each from its own past alone.
    Build(build::Args),
    /// Lists the repositories of an index, or the runs of one.
    List(list::Args),
    /// Shows what an index holds: all of it, of one repository, or what one target may see.
    Show(show::Args),
    /// Asks an index on behalf of a target: the records with their scores and why, or the reason for abstaining.
    Retrieve(retrieve::Args),
    /// Says in what two indexes differ.
    Diff(diff::Args),
    /// Serves an index to agents at work over MCP: they search it, read records and report what helped.
    Serve(serve::Args),
    /// Ends writing to an index: from then on it is checked against its digests.
    Freeze(freeze::Args),
    /// Says what a system does, what can be set, and what differs from its paper.
    Describe(describe::Args),
    /// Measures offline how well systems find relevant earlier runs, beside recency and random order.
    Eval(Box<eval::Args>),
    /// Tries, check by check, whether a plugged-in memory system holds what every system must.
    Check(check::Args),
}

pub async fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Build(args) => build::run(args).await,
        Verb::List(args) => list::run(&args),
        Verb::Show(args) => show::run(args).await,
        Verb::Retrieve(args) => retrieve::run(args).await,
        Verb::Diff(args) => diff::run(args).await,
        Verb::Serve(args) => serve::run(args).await,
        Verb::Freeze(args) => freeze::run(&args),
        Verb::Describe(args) => describe::run(&args),
        Verb::Eval(args) => eval::run(*args).await,
        Verb::Check(args) => check::run(args).await,
    }
}

/// A wrong name or setting is the command line's, a system's own failure the environment's, all else an input's.
fn failure(error: MemoryError) -> Failure {
    match error {
        MemoryError::UnknownSystem { .. } | MemoryError::Settings { .. } => Failure::usage(error),
        MemoryError::System { .. } => Failure::environment(error),
        _ => Failure::input(error),
    }
}
