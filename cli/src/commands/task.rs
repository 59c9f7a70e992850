//! `memtrial task`.

use crate::exit::{Exit, Outcome};

/// Lists, shows and checks tasks.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub async fn run(_args: Args) -> Outcome {
    Ok(Exit::Done)
}
