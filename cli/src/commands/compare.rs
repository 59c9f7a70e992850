//! `memtrial compare`.

use crate::exit::{Exit, Outcome};

/// Compares two graded runs, paired by task.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub async fn run(_args: Args) -> Outcome {
    Ok(Exit::Done)
}
