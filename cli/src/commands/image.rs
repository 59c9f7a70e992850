//! `memtrial image`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use futures::StreamExt;
use memtrial::dataset::read_tasks;
use memtrial::sandbox::environment::{Base, Naming};
use memtrial::sandbox::images::{Images, Listed, Reference, Resolved, order};
use serde_json::json;

use super::registry::shown;
use super::rooms::{self, CacheArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// Fetches, lists and drops published images.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Fetches the images of tasks, those that share layers one after another
    Pull {
        /// Files of task rows
        #[arg(required_unless_present = "name")]
        tasks: Vec<PathBuf>,
        /// An image by its name, instead of tasks or besides (may be given several times)
        #[arg(long, value_name = "NAME")]
        name: Vec<String>,
        /// Which image a task names: published, or published:swe-bench where its row names none
        #[arg(long, value_name = "BASE", default_value = "published")]
        base: String,
        /// Only find out what the names stand for: digest, platform, bytes to transfer
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Lists the images that memtrial keeps or uses, with what they take on disk
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Drops every image that memtrial fetched and no job uses, with the environments on it
    Prune {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The back end whose images are meant
    #[arg(long, value_name = "BACKEND", default_value = "namespaces", value_parser = ["namespaces", "docker"])]
    sandbox: String,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Place {
    fn images(&self) -> Result<Arc<Images>, Failure> {
        let backend = rooms::backend(&self.sandbox, &self.cache)?;
        backend.images().ok_or_else(|| Failure::usage(anyhow!("{} keeps no images", self.sandbox)))
    }
}

pub async fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Pull { tasks, name, base, check, place } => {
            let names = names(&tasks, &name, &base)?;
            pull(&names, check, &place).await
        }
        Verb::List { place } => list(&place),
        Verb::Prune { place } => prune(&place).await,
    }
}

/// The images' names, each once.
fn names(files: &[PathBuf], plain: &[String], base: &str) -> Result<Vec<Reference>, Failure> {
    let Ok(Base::Published(naming)) = Base::parse(base) else {
        return Err(Failure::usage(anyhow!("--base {base:?}: expected published or published:swe-bench")));
    };
    let plain = plain.iter().map(|name| Reference::parse(name).map_err(Failure::usage));
    let mut names = plain.collect::<Result<Vec<_>, _>>()?;
    for file in files {
        for task in read_tasks(file)?.tasks {
            let of_task = Naming::of(naming, &task.solver);
            names.push(of_task.map_err(|error| Failure::input(anyhow!("{}: {error}", task.id())))?);
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

async fn pull(names: &[Reference], check: bool, place: &Place) -> Outcome {
    let images = place.images()?;
    let found: Vec<_> = futures::stream::iter(names)
        .map(|name| {
            let images = images.clone();
            async move { (name, images.resolve(name).await) }
        })
        .buffered(8)
        .collect()
        .await;
    let (mut good, mut failed) = (Vec::new(), BTreeMap::new());
    for (name, found) in found {
        match found {
            Ok(image) => good.push(image),
            Err(error) => drop(failed.insert(name.to_string(), error.to_string())),
        }
    }
    let ranks = order(&good);
    good.sort_by_key(|image| ranks.get(&image.name.to_string()).copied());
    if !check {
        let mut work = futures::stream::iter(good.clone())
            .map(|image| {
                let images = images.clone();
                async move { (image.name.to_string(), images.hold(&image.name).await.map(drop)) }
            })
            .buffered(place.cache.images.pulls.max(1));
        while let Some((name, held)) = work.next().await {
            if let Err(error) = held {
                failed.insert(name, error.to_string());
            }
        }
    }
    good.retain(|image| !failed.contains_key(&image.name.to_string()));
    for (name, error) in &failed {
        ui::note(&format!("error: {name}: {error}"));
    }
    if place.json {
        let images: Vec<_> = good.iter().map(|image| described(image)).collect();
        ui::json(&json!({"images": images, "failed": failed}))?;
    } else {
        for image in &good {
            let bytes: u64 = image.layers.iter().map(|layer| layer.size).sum();
            ui::data(&format!("{}  {}  {}  {}", image.name, image.platform, image.digest, shown(bytes)));
        }
    }
    Ok(match (good.is_empty(), failed.is_empty()) {
        (_, true) => Exit::Done,
        (true, false) => Exit::Environment,
        (false, false) => Exit::PartlyFailed,
    })
}

fn described(image: &Resolved) -> serde_json::Value {
    json!({
        "name": image.name.to_string(),
        "digest": image.digest,
        "platform": image.platform,
        "layers": image.layers,
        "transfer_bytes": image.layers.iter().map(|layer| layer.size).sum::<u64>(),
    })
}

fn list(place: &Place) -> Outcome {
    let images = place.images()?;
    let listed = images.list().map_err(Failure::environment)?;
    let used = images.used().map_err(Failure::environment)?;
    if place.json {
        ui::json(
            &json!({"images": listed, "used_bytes": used, "budget_bytes": place.cache.images.image_disk}),
        )?;
        return Ok(Exit::Done);
    }
    for Listed { image, bytes, alone, in_use, .. } in &listed {
        let name = image.names.first().map_or(image.digest.as_str(), String::as_str);
        let whose = if image.own { "" } else { "  not fetched by memtrial" };
        let state = if *in_use { "  in use" } else { "" };
        let (bytes, alone) = (shown(*bytes), shown(*alone));
        ui::data(&format!("{name}  {}  {bytes}, alone {alone}{state}{whose}", image.platform));
    }
    ui::data(&format!("{} images, {} on disk (shared layers once)", listed.len(), shown(used)));
    Ok(Exit::Done)
}

async fn prune(place: &Place) -> Outcome {
    let images = place.images()?;
    let before = images.used().map_err(Failure::environment)?;
    let dropped = images.prune().await.map_err(Failure::environment)?;
    let freed = before.saturating_sub(images.used().map_err(Failure::environment)?);
    if place.json {
        ui::json(&json!({"dropped": dropped, "freed_bytes": freed}))?;
        return Ok(Exit::Done);
    }
    ui::data(&format!("{} images dropped, {} free", dropped.len(), shown(freed)));
    Ok(Exit::Done)
}
