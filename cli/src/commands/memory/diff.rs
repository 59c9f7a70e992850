//! `memtrial memory diff`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use memtrial::memory::host::Setup;
use memtrial::memory::index::Index;
use memtrial::memory::{Budget, MemoryError, Resources};
use serde_json::json;

use super::failure;
use crate::exit::{Exit, Outcome};
use crate::ui;

/// Which indexes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The first index
    left: PathBuf,
    /// The second index
    right: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The texts of an index's records, by repository and name.
type Content = BTreeMap<(String, String), String>;

async fn content(folder: &Path) -> Result<(Index, Content), MemoryError> {
    let index = Index::open(folder)?;
    let mut content = Content::new();
    for repo in index.manifest().repos.keys() {
        let host = index.host_of_repo(repo, &Resources::default(), Setup::plain(Budget::default())).await?;
        content.extend(host.held().into_iter().map(|held| ((repo.clone(), held.id), held.text)));
    }
    Ok((index, content))
}

pub async fn run(args: Args) -> Outcome {
    let (left, before) = content(&args.left).await.map_err(failure)?;
    let (right, after) = content(&args.right).await.map_err(failure)?;
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let mut changes = Vec::new();
    for name in names {
        let change = match (before.get(name), after.get(name)) {
            (Some(_), None) => "only in the first",
            (None, Some(_)) => "only in the second",
            (Some(one), Some(other)) if one != other => "differs",
            _ => continue,
        };
        changes.push((name, change));
    }
    let made = |index: &Index| {
        let manifest = index.manifest();
        json!({ "system": manifest.system, "settings": manifest.settings })
    };
    if args.json {
        let change = |((repo, id), change): &(&(String, String), &str)| json!({ "repo": repo, "id": id, "change": change });
        ui::json(&json!({
            "left": made(&left),
            "right": made(&right),
            "records": [before.len(), after.len()],
            "changes": changes.iter().map(change).collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Done);
    }
    if made(&left) != made(&right) {
        ui::data(&format!("made with {} and with {}", made(&left), made(&right)));
    }
    for ((repo, id), change) in &changes {
        ui::data(&format!("{repo}  {id}: {change}"));
    }
    ui::data(&format!("{} and {} records, {} differences", before.len(), after.len(), changes.len()));
    Ok(Exit::Done)
}
