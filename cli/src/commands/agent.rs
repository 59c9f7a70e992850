//! `memtrial agent`.

use crate::exit::{Exit, Outcome};

/// Runs the agent on one task.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub async fn run(_args: Args) -> Outcome {
    Ok(Exit::Done)
}
