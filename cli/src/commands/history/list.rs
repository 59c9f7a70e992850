//! `memtrial history list`.

use std::path::PathBuf;

use memtrial::dataset::{Chronology, Entry, History, HistoryStore, MergeDates, read_tasks};
use memtrial::task::InstanceId;
use memtrial::trajectory::{Limits, Summary};
use serde_json::{Value, json};

use super::super::task::table;
use crate::exit::{Exit, Outcome};
use crate::ui;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder of runs: VibeMemBench's `history`, or files called by their task's id (<id>.traj.json, <id>.traj,
    /// <id>.atif.json, <id>.jsonl), each in a folder of its own or not
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
pub(in super::super) enum Order {
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

/// An entry with what reading it showed.
struct Line<'h> {
    entry: &'h Entry,
    summary: Option<Summary>,
}

pub fn run(args: &Args) -> Outcome {
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
