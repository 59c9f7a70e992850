//! `memtrial memory eval`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use memtrial::audit::memory::{Evaluation, KS, evaluate};
use memtrial::dataset::{HistoryStore, read_tasks};
use memtrial::memory;
use memtrial::memory::plugged::Site;
use memtrial::sandbox::{self, Limits};
use memtrial::task::InstanceId;
use serde_json::{Map, Value};

use super::super::param;
use super::asked::{EmbedArgs, ModelArgs, plugged};
use super::failure;
use crate::commands::rooms::{CacheArgs, backend};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The memory systems
    #[arg(required_unless_present = "plugged", value_name = "SYSTEM", value_parser = names())]
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
    /// A setting of the systems, as KEY=JSON
    #[arg(long = "set", value_name = "KEY=JSON", value_parser = param)]
    settings: Vec<(String, Value)>,
    /// A plugged-in system besides: a TOML or JSON file, as `memory check --settings` reads it
    #[arg(long, value_name = "FILE")]
    plugged: Vec<PathBuf>,
    /// Where plugged-in systems run: `local` has no isolation
    #[arg(long, value_name = "BACKEND", default_value = "namespaces",
          value_parser = PossibleValuesParser::new(sandbox::BACKENDS))]
    sandbox: String,
    #[command(flatten)]
    cache: CacheArgs,
    /// Turns abstention off, where a system has a gate
    #[arg(long)]
    no_gate: bool,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    embed: EmbedArgs,
    /// Where the replies of the model are kept, so that none is paid for twice
    #[arg(long, value_name = "DIR", default_value = "memtrial-eval")]
    replies: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The names of the systems.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(memory::SYSTEMS.iter().map(|about| about.name))
}

pub async fn run(args: Args) -> Outcome {
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
    let mut resources = args.model.resources(&args.replies)?;
    args.embed.add(&mut resources)?;
    let state = tempfile::tempdir().map_err(Failure::environment)?;
    let mut systems: Vec<(String, String, Map<String, Value>)> =
        args.systems.iter().map(|name| (name.clone(), name.clone(), Map::new())).collect();
    for path in &args.plugged {
        let (kind, settings) = plugged(path)?;
        systems.push((path.display().to_string(), kind, settings));
    }
    if !args.plugged.is_empty() {
        resources.site = Some(Site {
            backend: backend(&args.sandbox, &args.cache)?,
            state: state.path().to_owned(),
            limits: Limits::default(),
            calls: None,
        });
    }
    let mut reports = Vec::new();
    for (name, kind, mut settings) in systems {
        let about = memory::describe(&kind).map_err(failure)?;
        settings.extend(args.settings.iter().cloned());
        if args.no_gate && about.shared.iter().any(|key| key.name == "gate") {
            settings.insert("gate".into(), Value::Bool(false));
        }
        let settings = Value::Object(settings);
        let open = || memory::open(&kind, &settings, &resources);
        open().map_err(failure)?;
        let asked =
            Evaluation { name: &name, open: &open, store: &store, tasks: &tasks, targets: &targets, ks: &ks };
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
