//! `memtrial history`.

use crate::exit::{Exit, Outcome};

/// Shows what a target may learn from.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub async fn run(_args: Args) -> Outcome {
    Ok(Exit::Done)
}
