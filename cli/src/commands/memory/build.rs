//! `memtrial memory build`.

use std::path::PathBuf;

use memtrial::dataset::{HistoryStore, MergeDates, read_tasks};
use memtrial::memory::index::{Built, Index, Plan};
use serde_json::{Map, Value, json};

use super::super::history::Order;
use super::super::param;
use super::super::task::table;
use super::asked::{EmbedArgs, ModelArgs};
use super::failure;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// What learns from what.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The memory system (`memtrial memory describe` lists them)
    system: String,
    /// The earlier runs: a folder of trajectories
    #[arg(long, value_name = "DIR")]
    history: PathBuf,
    /// Where the index goes; an index that is there takes in what is new
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// A setting of the system, as KEY=JSON
    #[arg(long = "set", value_name = "KEY=JSON", value_parser = param)]
    settings: Vec<(String, Value)>,
    /// Task files that state when pull requests were merged (meta.merged_at)
    #[arg(long, value_name = "FILE")]
    tasks: Vec<PathBuf>,
    /// What "earlier" means
    #[arg(long, value_enum, default_value_t = Order::Number)]
    chronology: Order,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    embed: EmbedArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let mut tasks = Vec::new();
    for path in &args.tasks {
        tasks.extend(read_tasks(path)?.tasks);
    }
    let dates = MergeDates::from_tasks(&tasks);
    let store = HistoryStore::open(&args.history)?;
    if store.is_empty() {
        let place = args.history.display();
        return Err(Failure::input(anyhow::anyhow!("{place} holds no run that is named by its task's id")));
    }
    let settings = Value::Object(args.settings.into_iter().collect::<Map<_, _>>());
    let mut resources = args.model.resources(&args.out)?;
    args.embed.add(&mut resources)?;
    let mut all = Vec::new();
    let mut on = |built: &Built| {
        if !args.json {
            ui::note(&format!("{}: {} runs, {} new", built.repo, built.runs, built.new));
        }
        all.push(built.clone());
    };
    let plan = Plan {
        system: &args.system,
        settings: &settings,
        resources: &resources,
        store: &store,
        chronology: args.chronology.into(),
        dates: &dates,
    };
    Index::build(&args.out, plan, &mut on).await.map_err(failure)?;
    if args.json {
        ui::json(&json!({ "index": args.out, "system": args.system, "repos": all }))?;
        return Ok(Exit::Done);
    }
    let row = |built: &Built| {
        let counts = [
            built.runs as u64,
            built.new as u64,
            built.records,
            built.bytes,
            built.unusable,
            built.cost.calls,
        ];
        let mut row = vec![built.repo.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row.push(format!("{:.2}", built.cost.seconds));
        row
    };
    let headings = ["REPOSITORY", ">RUNS", ">NEW", ">RECORDS", ">BYTES", ">UNUSABLE", ">CALLS", ">SECONDS"];
    table(&headings, all.iter().map(row));
    Ok(Exit::Done)
}
