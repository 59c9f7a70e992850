//! `memtrial memory eval`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use memtrial::audit::memory::{Evaluation, KS, evaluate};
use memtrial::dataset::{HistoryStore, read_tasks};
use memtrial::memory::{self, Resources};
use memtrial::task::InstanceId;
use serde_json::Value;

use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The memory systems
    #[arg(required = true, value_name = "SYSTEM", value_parser = memory::SYSTEMS)]
    systems: Vec<String>,
    /// A folder of trajectories, as for `history list`; the outcomes beside it say which runs are resolved
    #[arg(long)]
    history: PathBuf,
    /// Task files: their gold patches are the references. Where a target's row is not known, the submission of its own
    /// resolved run is
    #[arg(long)]
    tasks: Vec<PathBuf>,
    /// The targets; none: every run of the history, and every task of its repositories
    #[arg(long, value_parser = InstanceId::parse, num_args = 1..)]
    targets: Vec<InstanceId>,
    /// Records that are looked at, at most
    #[arg(short, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    k: u16,
    /// Settings of the systems, as a JSON object
    #[arg(long, value_name = "JSON")]
    settings: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let settings: Value = match &args.settings {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Failure::usage(anyhow::anyhow!("--settings: {error}")))?,
        None => Value::Null,
    };
    let store = HistoryStore::open(&args.history)?;
    let mut tasks = BTreeMap::new();
    for path in &args.tasks {
        tasks.extend(read_tasks(path)?.tasks.into_iter().map(|task| (task.id().clone(), task)));
    }
    let mut targets = args.targets.clone();
    if targets.is_empty() {
        targets.extend(store.ids().cloned());
        targets.extend(tasks.keys().filter(|task| store.ids().any(|run| run.same_repo(task))).cloned());
        targets.sort();
        targets.dedup();
    }
    let most = usize::from(args.k);
    let ks: Vec<usize> = KS.into_iter().filter(|k| *k < most).chain([most]).collect();
    let resources = Resources::default();
    let mut reports = Vec::new();
    for name in &args.systems {
        #[expect(clippy::result_large_err, reason = "the error of the library's own opener")]
        let open = || memory::open(name, &settings, &resources);
        open().map_err(Failure::input)?;
        let asked =
            Evaluation { name, open: &open, store: &store, tasks: &tasks, targets: &targets, ks: &ks };
        reports.push(evaluate(asked).await.map_err(Failure::input)?);
    }
    if args.json {
        ui::json(&reports)?;
    } else {
        let texts: Vec<String> = reports.iter().map(|report| report.text()).collect();
        ui::data(texts.join("\n").trim_end());
    }
    Ok(Exit::Done)
}
