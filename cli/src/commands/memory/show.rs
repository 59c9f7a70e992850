//! `memtrial memory show`.

use std::path::PathBuf;

use memtrial::memory::host::Setup;
use memtrial::memory::index::Index;
use memtrial::memory::{Budget, Held, MemoryError, Resources};
use memtrial::task::InstanceId;

use super::failure;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// What to show.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The index
    index: PathBuf,
    /// The records of this repository (owner__name) alone
    #[arg(long, value_name = "REPO", conflicts_with = "target")]
    repo: Option<String>,
    /// What this target may see
    #[arg(long, value_name = "ID", value_parser = InstanceId::parse)]
    target: Option<InstanceId>,
    /// When the target was merged, in an index in the order of merging
    #[arg(long, value_name = "DATE", requires = "target")]
    merged_at: Option<String>,
    /// The record of this name alone
    #[arg(long, value_name = "RECORD")]
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let index = Index::open(&args.index).map_err(failure)?;
    let mut held = held(&index, &args).await.map_err(failure)?;
    if let Some(id) = &args.id {
        held.retain(|held| held.id == *id);
        if held.is_empty() {
            return Err(Failure::input(anyhow::anyhow!("{} holds no record {id:?}", args.index.display())));
        }
    }
    if args.json {
        ui::json(&held)?;
        return Ok(Exit::Done);
    }
    for Held { id, sources, text } in &held {
        let sources: Vec<&str> = sources.iter().map(InstanceId::as_str).collect();
        ui::data(&format!("{id}  (from {})", sources.join(", ")));
        for line in text.lines() {
            ui::data(&format!("  {line}"));
        }
        ui::data("");
    }
    ui::data(&format!("{} records", held.len()));
    Ok(Exit::Done)
}

async fn held(index: &Index, args: &Args) -> Result<Vec<Held>, MemoryError> {
    let (resources, setup) = (Resources::default(), || Setup::plain(Budget::default()));
    if let Some(target) = &args.target {
        return Ok(index.host(target, args.merged_at.as_deref(), &resources, setup()).await?.held());
    }
    let repos: Vec<String> = match &args.repo {
        Some(repo) => vec![repo.clone()],
        None => index.manifest().repos.keys().cloned().collect(),
    };
    let mut held = Vec::new();
    for repo in repos {
        held.extend(index.host_of_repo(&repo, &resources, setup()).await?.held());
    }
    Ok(held)
}
