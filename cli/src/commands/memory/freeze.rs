//! `memtrial memory freeze`.

use std::path::PathBuf;

use memtrial::memory::index::Index;

use super::failure;
use crate::exit::{Exit, Outcome};
use crate::ui;

/// Which index.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The index
    index: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Outcome {
    let digests = Index::open(&args.index).and_then(|index| index.freeze()).map_err(failure)?;
    if args.json {
        ui::json(&digests)?;
    } else {
        digests.iter().for_each(|(file, digest)| ui::data(&format!("{digest}  {file}")));
    }
    Ok(Exit::Done)
}
