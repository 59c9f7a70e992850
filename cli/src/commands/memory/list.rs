//! `memtrial memory list`.

use std::path::PathBuf;

use memtrial::memory::index::{Index, Run};
use serde_json::{Map, json};

use super::super::task::table;
use super::failure;
use crate::exit::{Exit, Outcome};
use crate::ui;

/// Which index.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The index
    index: PathBuf,
    /// The runs of this repository (owner__name)
    #[arg(long, value_name = "REPO")]
    repo: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Outcome {
    let index = Index::open(&args.index).map_err(failure)?;
    let manifest = index.manifest();
    let wanted = |repo: &str| args.repo.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(repo));
    let repos: Vec<(&String, &Vec<Run>)> = manifest.repos.iter().filter(|(repo, _)| wanted(repo)).collect();
    if args.json {
        let repos: Map<_, _> = repos.iter().map(|(repo, runs)| ((*repo).clone(), json!(runs))).collect();
        ui::json(&json!({
            "system": manifest.system,
            "settings": manifest.settings,
            "about": manifest.about,
            "chronology": manifest.chronology,
            "frozen": index.is_frozen(),
            "repos": repos,
        }))?;
        return Ok(Exit::Done);
    }
    let state = if index.is_frozen() { "frozen" } else { "open" };
    ui::data(&format!("{} ({state}), settings {}", manifest.system, manifest.settings));
    if args.repo.is_some() {
        let runs = repos.iter().flat_map(|(_, runs)| runs.iter());
        table(&["RUN", "RESOLVED", "MERGED", "SHA256"], runs.map(run_row));
    } else {
        let rows = repos.iter().map(|(repo, runs)| repo_row(repo, runs));
        table(&["REPOSITORY", ">RUNS", ">RESOLVED", ">FIRST", ">LAST"], rows);
    }
    Ok(Exit::Done)
}

fn repo_row(repo: &str, runs: &[Run]) -> Vec<String> {
    let resolved = runs.iter().filter(|run| run.resolved == Some(true)).count();
    let number = |run: Option<&Run>| run.map(|run| run.id.number().to_string()).unwrap_or_default();
    let (first, last) = (number(runs.first()), number(runs.last()));
    vec![repo.to_owned(), runs.len().to_string(), resolved.to_string(), first, last]
}

fn run_row(run: &Run) -> Vec<String> {
    let resolved = run.resolved.map_or("-", |resolved| if resolved { "yes" } else { "no" });
    let merged = run.merged_at.as_deref().unwrap_or("-");
    vec![run.id.to_string(), resolved.to_owned(), merged.to_owned(), run.sha256.chars().take(12).collect()]
}
