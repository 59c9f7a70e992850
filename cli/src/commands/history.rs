//! `memtrial history`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memtrial::dataset::{Chronology, Entry, History, HistoryStore, MergeDates, read_tasks};
use memtrial::task::InstanceId;
use memtrial::trajectory::{Limits, Summary, TrajectoryError, convert_to_atif};
use serde_json::{Value, json};

use super::task::table;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// Shows what a target may learn from; converts runs.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Lists exactly the runs that a target may learn from, and what is refused and why.
    List(List),
    /// Converts trajectories to ATIF documents, for tools that read no other format.
    Convert(Convert),
}

#[derive(Debug, clap::Args)]
struct Convert {
    /// Trajectory files, or folders in which every *.traj.json is one
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Where ID.atif.json is written for each ID.traj.json; a folder's own folders are kept
    #[arg(short, long)]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
struct List {
    /// A folder of trajectories: VibeMemBench's `history`, or <id>.traj.json files, each in a folder of its own or not
    dir: PathBuf,
    /// The task that would learn
    #[arg(long, value_parser = InstanceId::parse)]
    target: InstanceId,
    /// Task files that state when pull requests were merged (meta.merged_at)
    #[arg(long)]
    tasks: Vec<PathBuf>,
    /// What "earlier" means
    #[arg(long, value_enum, default_value_t = Order::Number)]
    chronology: Order,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What "earlier" means.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum Order {
    /// The pull request's number is lower
    Number,
    /// The pull request was merged before
    MergedAt,
}

impl From<Order> for Chronology {
    fn from(order: Order) -> Self {
        match order {
            Order::Number => Self::Number,
            Order::MergedAt => Self::MergedAt,
        }
    }
}

pub async fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::List(args) => list(&args),
        Verb::Convert(args) => convert(&args),
    }
}

/// Converts one file after the other; what is wrong with one does not keep the others back.
fn convert(args: &Convert) -> Outcome {
    let mut files = Vec::new();
    for path in &args.paths {
        let before = files.len();
        if path.is_dir() {
            find(path, Path::new(""), &mut files).map_err(Failure::input)?;
        } else {
            let name = path.file_name().map(PathBuf::from).unwrap_or_default();
            files.push((path.clone(), document(&name)));
        }
        if files.len() == before {
            ui::note(&format!("warning: {} holds no *.traj.json", path.display()));
        }
    }
    files.sort();
    let (mut exit, mut converted, mut steps) = (Exit::Done, 0, 0);
    let mut written = BTreeSet::new();
    for (from, name) in files {
        let to = args.out.join(&name);
        if !written.insert(name) {
            ui::note(&format!("error: {}: {} is another run's already", from.display(), to.display()));
            exit = Exit::BadInput;
            continue;
        }
        if let Some(folder) = to.parent() {
            fs_err::create_dir_all(folder).map_err(Failure::environment)?;
        }
        match convert_to_atif(&from, &to) {
            Ok(count) => {
                converted += 1;
                steps += count;
            }
            Err(error @ TrajectoryError::Write { .. }) => return Err(Failure::environment(error)),
            Err(error) => {
                ui::note(&format!("error: {error}"));
                exit = Exit::BadInput;
            }
        }
    }
    ui::data(&format!("{converted} runs with {steps} steps written to {}", args.out.display()));
    Ok(exit)
}

/// Every trajectory below a folder, with the place of its document below the output folder.
fn find(folder: &Path, inside: &Path, files: &mut Vec<(PathBuf, PathBuf)>) -> std::io::Result<()> {
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let place = inside.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            find(&entry.path(), &place, files)?;
        } else if place.to_string_lossy().ends_with(".traj.json") {
            files.push((entry.path(), document(&place)));
        }
    }
    Ok(())
}

fn document(trajectory: &Path) -> PathBuf {
    let name = trajectory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".traj.json").or_else(|| name.strip_suffix(".json")).unwrap_or(&name);
    trajectory.with_file_name(format!("{stem}.atif.json"))
}

/// An entry with what reading it showed.
struct Line<'h> {
    entry: &'h Entry,
    summary: Option<Summary>,
}

fn list(args: &List) -> Outcome {
    let mut tasks = Vec::new();
    for path in &args.tasks {
        tasks.extend(read_tasks(path)?.tasks);
    }
    let dates = MergeDates::from_tasks(&tasks);
    let store = HistoryStore::open(&args.dir)?;
    let history = History::for_target(&store, &args.target, args.chronology.into(), &dates)?;
    if !store.ids().any(|id| id.same_repo(&args.target)) {
        ui::note(&format!(
            "warning: {} holds no run of {}/{}",
            args.dir.display(),
            args.target.owner(),
            args.target.name()
        ));
    }
    let mut exit = Exit::Done;
    let mut lines = Vec::new();
    for (entry, summary) in history.entries().iter().zip(history.summaries(&Limits::default())) {
        let summary = match summary {
            Ok(summary) => Some(summary),
            Err(error) => {
                ui::note(&format!("error: {error}"));
                exit = Exit::BadInput;
                None
            }
        };
        lines.push(Line { entry, summary });
    }
    if args.json {
        ui::json(&as_json(&store, &history, &dates, &lines))?;
    } else {
        print(&store, &history, &dates, &lines);
    }
    Ok(exit)
}

fn as_json(store: &HistoryStore, history: &History, dates: &MergeDates, lines: &[Line<'_>]) -> Value {
    let entry = |line: &Line<'_>| {
        json!({
            "instance_id": line.entry.id(),
            "number": line.entry.number(),
            "path": line.entry.path(),
            "bytes": line.entry.bytes(),
            "resolved": line.entry.resolved(),
            "readable": line.summary.is_some(),
            "format": line.summary.as_ref().map(|summary| summary.format),
            "messages": line.summary.as_ref().map(|summary| summary.messages),
            "api_calls": line.summary.as_ref().map(|summary| summary.api_calls),
            "instance_cost": line.summary.as_ref().map(|summary| summary.instance_cost),
            "exit_status": line.summary.as_ref().map(|summary| &summary.exit_status),
            "submission_bytes": line.summary.as_ref().map(|s| s.submission.as_ref().map(String::len)),
            "submission_cut": line.summary.as_ref().map(|summary| summary.submission_cut),
            "cut_texts": line.summary.as_ref().map(|summary| summary.counts.cut_texts),
        })
    };
    json!({
        "target": history.target(),
        "chronology": history.chronology(),
        "entries": lines.iter().map(entry).collect::<Vec<_>>(),
        "refused": history.refused(),
        "disagreements": history.disagreements(),
        "merge_dates_known": dates.len(),
        "runs_in_store": store.len(),
        "nameless": store.nameless(),
    })
}

fn print(store: &HistoryStore, history: &History, dates: &MergeDates, lines: &[Line<'_>]) {
    let order = match history.chronology() {
        Chronology::Number => "pull request number",
        Chronology::MergedAt => "time of merging",
    };
    ui::data(&format!(
        "{} may learn from {} of {} stored runs (order: {order})",
        history.target(),
        lines.len(),
        store.len()
    ));
    if !lines.is_empty() {
        let resolved = |entry: &Entry| match entry.resolved() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        let rows = lines.iter().map(|line| {
            let of = |field: &dyn Fn(&Summary) -> String| line.summary.as_ref().map_or("-".to_owned(), field);
            vec![
                line.entry.id().to_string(),
                of(&|summary| summary.messages.to_string()),
                of(&|summary| summary.api_calls.to_string()),
                line.entry.bytes().to_string(),
                match &line.summary {
                    Some(summary) => summary.exit_status.clone().unwrap_or_else(|| "-".to_owned()),
                    None => "unreadable".to_owned(),
                },
                resolved(line.entry).to_owned(),
            ]
        });
        table(&["ID", ">MESSAGES", ">CALLS", ">BYTES", "EXIT", "RESOLVED"], rows);
    }
    if !history.refused().is_empty() {
        ui::data(&format!("refused ({}):", history.refused().len()));
        for refusal in history.refused() {
            ui::data(&format!("  {}: {}", refusal.id, refusal.reason));
        }
    }
    if lines.is_empty() && history.refused().is_empty() {
        ui::data(&format!("no stored run is of the repository {}", history.target().repo_key()));
    }
    for name in store.nameless() {
        ui::data(&format!("  {name}: its file name is no instance id"));
    }
    if dates.is_empty() {
        ui::data("merge order: not known here (--tasks FILE states it)");
        return;
    }
    ui::data(&format!(
        "runs about which number order and merge order disagree: {}",
        history.disagreements().len()
    ));
    for disagreement in history.disagreements() {
        let by_number = if disagreement.earlier_by_number { "earlier" } else { "later" };
        let by_merge = if disagreement.earlier_by_merge { "before" } else { "not before" };
        ui::data(&format!(
            "  {}: {by_number} by number, merged {} ({by_merge} the target)",
            disagreement.id, disagreement.merged_at
        ));
    }
}
