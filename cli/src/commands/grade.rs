//! `memtrial grade`.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use futures::StreamExt;
use memtrial::dataset::read_tasks;
use memtrial::grade::expect::{Expected, ResolveRule};
use memtrial::grade::files::OutDir;
use memtrial::grade::logs::{LogParser, Rules};
use memtrial::grade::predictions::Predictions;
use memtrial::grade::run::{Event, Finished, GradeRun, Plan, RunError, Source};
use memtrial::grade::{Coding, Options, VerdictClass};
use memtrial::sandbox::environment::Environments;
use memtrial::sandbox::images::order;
use memtrial::task::{InstanceId, Task};
use tokio::sync::watch;

use super::rooms::SandboxArgs;
use crate::exit::{Exit, Failure, Outcome, interrupted};
use crate::ui;

/// Applies predictions, runs the tests and reaches verdicts.
///
/// An interrupted or repeated command reuses every verdict that still holds.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub struct Args {
    /// File of task rows: JSON, JSONL (plain, gzip or zstd) or parquet
    #[arg(long, value_name = "FILE")]
    tasks: PathBuf,
    /// Predictions: a .json list or object, or .jsonl
    #[arg(long, value_name = "FILE", group = "source")]
    predictions: Option<PathBuf>,
    /// Grade each task's own patch: all must be resolved
    #[arg(long, group = "source")]
    gold: bool,
    /// Run the tests without any patch: none may be resolved
    #[arg(long, group = "source")]
    empty: bool,
    /// Where report.json and one folder an instance go
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    place: SandboxArgs,
    /// Sandboxes at a time [default: half of the CPUs]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Grade each instance this often; stability.json tells what is flaky, the worst verdict counts
    #[arg(long, value_name = "K", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Only this task (may be given several times)
    #[arg(long, value_name = "ID", value_parser = InstanceId::parse)]
    id: Vec<InstanceId>,
    /// Seconds for an instance's test commands together
    #[arg(long, value_name = "SECONDS", default_value = "1800", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// How logs are read
    #[arg(long, value_enum, default_value_t = RulesName::Strict)]
    rules: RulesName,
    /// Read every log with this parser, whatever the tasks name: a name of `parse-log --list`, or a .toml file that
    /// describes one
    #[arg(long, value_name = "NAME|FILE")]
    parser: Option<String>,
    /// What counts as passing
    #[arg(long, value_enum, default_value_t = ResolveName::SweBench5)]
    resolve: ResolveName,
    /// Tell where the reference parser's rules lead to other results of expected tests than strict rules, and why
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// Print report.json's content instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum RulesName {
    /// Exactly as the reference parsers read them
    Upstream,
    /// What really happened
    Strict,
}

impl From<RulesName> for Rules {
    fn from(name: RulesName) -> Self {
        match name {
            RulesName::Upstream => Self::Upstream,
            RulesName::Strict => Self::Strict,
        }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ResolveName {
    /// SWE-bench 5: PASSED and XFAIL; SKIPPED keeps a PASS_TO_PASS test
    SweBench5,
    /// SWE-rebench V2: PASSED only
    SweRebench2,
}

pub async fn run(args: Args) -> Outcome {
    let tasks = tasks(&args)?;
    let source = source(&args)?;
    let rooms = args.place.environments()?;
    let tasks = by_image(&rooms, tasks).await?;
    let out = OutDir::open(&args.out).map_err(Failure::environment)?;
    let plan = plan(&args)?;
    let grading = GradeRun { out: &out, rooms: &rooms, source: &source, plan: &plan };
    let (stop, cancel) = watch::channel(false);
    let total = tasks.len() * args.repeat as usize;
    let done = std::sync::atomic::AtomicUsize::new(0);
    let on_event = |event: Event| tell(&event, &done, total);
    let finished = tokio::select! {
        finished = grading.run(&tasks, &on_event, &cancel) => finished,
        () = interrupts(&stop) => return Ok(Exit::Interrupted),
    };
    let finished = finished.map_err(|error| match error {
        RunError::Out(error) => Failure::environment(error),
        RunError::TwoRows(_) => Failure::input(error),
    })?;
    for id in &finished.unknown {
        ui::note(&format!("warning: the prediction for {id} is for no task of {}", args.tasks.display()));
    }
    if args.json {
        ui::json(&finished.report)?;
    } else {
        print(&finished);
        if args.explain {
            explain(&finished);
        }
    }
    Ok(exit(&finished))
}

/// Finds out what every task's published image is, before anything runs, and puts tasks whose images share layers
/// one after another. Where none can be had there is nothing to run; a task without one is graded as infrastructure.
async fn by_image(rooms: &Environments, mut tasks: Vec<Task>) -> Result<Vec<Task>, Failure> {
    let asked = tasks.iter().map(|task| async { (task.id().clone(), rooms.image_of(&task.solver).await) });
    let found: Vec<_> = futures::stream::iter(asked).buffered(8).collect().await;
    let (mut images, mut failed) = (BTreeMap::new(), None);
    for (id, image) in found {
        match image {
            Ok(Some(image)) => drop(images.insert(id, image)),
            Ok(None) => {}
            Err(error) => {
                ui::note(&format!("warning: {error}"));
                failed.get_or_insert(error);
            }
        }
    }
    if let (true, Some(error)) = (images.is_empty(), failed) {
        return Err(Failure::environment(error));
    }
    let ranks = order(&images.values().cloned().collect::<Vec<_>>());
    let rank = |task: &Task| ranks.get(&images.get(task.id())?.name.to_string()).copied();
    tasks.sort_by_cached_key(rank);
    Ok(tasks)
}

/// The first interruption lets what is in flight finish; the second ends at once. Verdicts reached stay in either
/// case.
async fn interrupts(stop: &watch::Sender<bool>) {
    interrupted().await;
    stop.send_replace(true);
    ui::note("finishing what is in flight; interrupt again to stop at once");
    interrupted().await;
}

fn tasks(args: &Args) -> Result<Vec<Task>, Failure> {
    let mut tasks = read_tasks(&args.tasks)?.tasks;
    let wanted: BTreeSet<&InstanceId> = args.id.iter().collect();
    let known: BTreeSet<&InstanceId> = tasks.iter().map(Task::id).collect();
    if let Some(id) = wanted.difference(&known).next() {
        let list = format!("memtrial task list {}", args.tasks.display());
        return Err(Failure::input(anyhow!(
            "{} holds no task {id}; `{list}` shows its tasks",
            args.tasks.display()
        )));
    }
    if !wanted.is_empty() {
        tasks.retain(|task| args.id.contains(task.id()));
    }
    Ok(tasks)
}

fn source(args: &Args) -> Result<Source, Failure> {
    let Some(path) = &args.predictions else {
        return Ok(if args.gold { Source::Gold } else { Source::Empty });
    };
    let predictions = Predictions::read(path).map_err(Failure::input)?;
    for warning in &predictions.warnings {
        ui::note(&format!("warning: {warning}"));
    }
    Ok(Source::Predictions(predictions))
}

fn plan(args: &Args) -> Result<Plan, Failure> {
    let parser = args.parser.as_deref().map(LogParser::choose).transpose().map_err(Failure::input)?;
    let half = || std::thread::available_parallelism().map_or(1, |cpus| cpus.get().div_ceil(2));
    Ok(Plan {
        options: Options {
            rules: args.rules.into(),
            parser,
            resolve_rule: match args.resolve {
                ResolveName::SweBench5 => ResolveRule::SweBench5,
                ResolveName::SweRebench2 => ResolveRule::SweRebench2,
            },
            timeout: Duration::from_secs(args.timeout),
            ..Options::default()
        },
        jobs: args.jobs.map_or_else(half, NonZeroUsize::get),
        repeat: args.repeat,
        ..Plan::default()
    })
}

/// One line a step for people.
fn tell(event: &Event, done: &std::sync::atomic::AtomicUsize, total: usize) {
    match event {
        Event::Started { .. } => {}
        Event::Retrying { id, reason } => ui::note(&format!("{id}: {reason}; trying again")),
        Event::Finished { id, class, reason, reused, .. } => {
            let count = 1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let reused = if *reused { " (reached before)" } else { "" };
            let why =
                reason.as_deref().map_or_else(String::new, |reason| format!(": {}", first_line(reason)));
            ui::note(&format!("[{count}/{total}] {id} {}{reused}{why}", name(*class)));
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn name(class: VerdictClass) -> String {
    serde_json::to_value(class).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn print(finished: &Finished) {
    let width = finished.verdicts.keys().map(|id| id.as_str().len()).max().unwrap_or(0);
    for (id, one) in &finished.verdicts {
        let flaky = if one.consistent { "" } else { "  flaky" };
        ui::data(&format!("{:width$}  {}{flaky}", id.as_str(), name(one.class)));
    }
    let report = &finished.report;
    ui::data(&format!(
        "{} of {} resolved, {} unresolved, {} empty, {} errors, {} without a prediction",
        report.resolved_instances,
        report.total_instances,
        report.unresolved_instances,
        report.empty_patch_instances,
        report.error_instances,
        report.incomplete_ids.len()
    ));
}

/// Every instance on whose expected tests strict and upstream rules differ.
fn explain(finished: &Finished) {
    let explained = finished.verdicts.iter().filter_map(|(id, one)| Some((id, one.explanation.as_ref()?)));
    let mut differ = 0;
    for (id, explanation) in explained {
        let word = |resolved: bool| if resolved { "resolved" } else { "unresolved" };
        let upstream = explanation.upstream.map_or("no verdict", word);
        differ += usize::from(explanation.upstream != Some(explanation.strict));
        let raises = explanation.raises.as_deref().map_or_else(String::new, |raises| format!(" ({raises})"));
        ui::data(&format!(
            "\n{id}: strict rules {}, upstream rules {upstream}{raises}",
            word(explanation.strict)
        ));
        for (name, test) in &explanation.tests {
            let list = match test.expected {
                Expected::FailToPass => "FAIL_TO_PASS",
                Expected::PassToPass => "PASS_TO_PASS",
            };
            ui::data(&format!(
                "  {name} ({list}): strict {}, upstream {}: {}",
                test.strict, test.upstream, test.reason
            ));
            for line in &test.lines {
                ui::data(&format!("    line {}: {}", line.line, line.text));
            }
        }
    }
    ui::data(&format!(
        "\nstrict and upstream verdicts differ on {differ} of {} instances",
        finished.verdicts.len()
    ));
}

fn exit(finished: &Finished) -> Exit {
    let missing = finished.verdicts.values().any(|one| one.class.coding() == Coding::Missing);
    match (finished.interrupted, missing) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::PartlyFailed,
        (false, false) => Exit::Done,
    }
}
