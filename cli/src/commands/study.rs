//! `memtrial study`.

use crate::exit::{Exit, Outcome};

/// Runs a study: every target under every condition.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub async fn run(_args: Args) -> Outcome {
    Ok(Exit::Done)
}
