//! `memtrial doctor`.

use crate::exit::{Exit, Outcome};

/// Shows what works here, and the command that mends what does not.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub async fn run(_args: Args) -> Outcome {
    Ok(Exit::Done)
}
