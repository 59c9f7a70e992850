//! `memtrial history stats`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;

use memtrial::dataset::HistoryStore;
use memtrial::task::InstanceId;
use memtrial::trajectory::{Event, Limits, RunFormat, RunHead, RunPart, Usage, read_runs};
use serde::Serialize;
use serde_json::json;

use super::super::task::table;
use super::files::find;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder of runs, or a file of them
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the runs of a repository hold.
#[derive(Debug, Default, Serialize)]
struct Counts {
    runs: u64,
    resolved: u64,
    unresolved: u64,
    formats: BTreeMap<RunFormat, u64>,
    steps: u64,
    events: u64,
    commands: u64,
    test_runs: u64,
    edits: u64,
    edited_files: u64,
    submissions: u64,
    /// Runs whose tokens are known.
    metered: u64,
    prompt_tokens: u64,
    completion_tokens: u64,
}

#[derive(Debug, Serialize)]
struct Unreadable {
    path: PathBuf,
    reason: String,
}

#[derive(Debug, Default)]
struct Totals {
    repos: BTreeMap<String, Counts>,
    files: u64,
    bytes: u64,
    cut_texts: u64,
    repaired: u64,
    bad_lines: u64,
    unreadable: Vec<Unreadable>,
}

pub fn run(args: &Args) -> Outcome {
    let store = match args.path.is_dir().then(|| HistoryStore::open(&args.path)).transpose() {
        Ok(store) => store.unwrap_or_default(),
        Err(error) => {
            ui::note(&format!("warning: no study can use it as it is: {error}"));
            HistoryStore::default()
        }
    };
    let mut totals = Totals::default();
    for path in find(&args.path).map_err(Failure::input)? {
        totals.files += 1;
        let mut run: Option<Run> = None;
        let read = read_runs(&path, &Limits::default(), &mut |part| {
            match part {
                RunPart::Head(head) => run = Some(Run { head: Some(head.clone()), ..Run::default() }),
                RunPart::Event(event) => {
                    if let Some(run) = &mut run {
                        run.take(&event);
                    }
                }
                RunPart::End(cost) => {
                    if let Some(run) = run.take() {
                        run.into_counts(cost.steps, cost.usage, &store, &mut totals.repos);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        match read {
            Ok(report) => {
                totals.bytes += report.counts.bytes;
                totals.cut_texts += report.counts.cut_texts;
                totals.repaired += report.counts.repaired;
                totals.bad_lines += report.bad_lines as u64;
            }
            Err(error) => {
                let reason = error.to_string();
                let named = format!("{}: ", path.display());
                let reason = reason.strip_prefix(&named).unwrap_or(&reason).to_owned();
                totals.unreadable.push(Unreadable { path, reason });
            }
        }
    }
    if args.json {
        ui::json(&json!({
            "repositories": totals.repos,
            "files": totals.files,
            "bytes": totals.bytes,
            "cut_texts": totals.cut_texts,
            "repaired": totals.repaired,
            "bad_lines": totals.bad_lines,
            "unreadable": totals.unreadable,
        }))?;
    } else {
        print(&totals);
    }
    Ok(Exit::Done)
}

/// A run while it is read.
#[derive(Debug, Default)]
struct Run {
    head: Option<RunHead>,
    counts: Counts,
    edited: BTreeSet<String>,
    resolved: Option<bool>,
}

impl Run {
    fn take(&mut self, event: &Event) {
        self.counts.events += 1;
        match event {
            Event::Command { edits, tests, .. } => {
                self.counts.commands += 1;
                self.counts.test_runs += u64::from(*tests);
                self.counts.edits += edits.len() as u64;
                self.edited.extend(edits.iter().cloned());
            }
            Event::Submission { .. } => self.counts.submissions += 1,
            Event::Ended { resolved, .. } => self.resolved = *resolved,
            Event::Issue { .. } | Event::Thought { .. } | Event::Observation { .. } => {}
        }
    }

    fn into_counts(
        self,
        steps: u64,
        usage: Option<Usage>,
        store: &HistoryStore,
        repos: &mut BTreeMap<String, Counts>,
    ) {
        let Some(head) = self.head else { return };
        let id = head.instance_id.as_deref().and_then(|id| InstanceId::parse(id).ok());
        let resolved = id.and_then(|id| store.outcome(&id)).or(self.resolved);
        let repo = head.repo.unwrap_or_else(|| "-".to_owned());
        let all = repos.entry(repo).or_default();
        all.runs += 1;
        all.resolved += u64::from(resolved == Some(true));
        all.unresolved += u64::from(resolved == Some(false));
        *all.formats.entry(head.format).or_default() += 1;
        all.steps += steps;
        all.events += self.counts.events;
        all.commands += self.counts.commands;
        all.test_runs += self.counts.test_runs;
        all.edits += self.counts.edits;
        all.edited_files += self.edited.len() as u64;
        all.submissions += self.counts.submissions;
        if let Some(usage) = usage {
            all.metered += 1;
            all.prompt_tokens += usage.prompt_tokens;
            all.completion_tokens += usage.completion_tokens;
        }
    }
}

fn print(totals: &Totals) {
    let rows = totals.repos.iter().map(|(repo, counts)| {
        let formats: Vec<&str> = counts.formats.keys().map(|format| format.as_str()).collect();
        let resolved = match counts.resolved + counts.unresolved {
            0 => "-".to_owned(),
            _ => counts.resolved.to_string(),
        };
        let tokens = match counts.metered {
            0 => "-".to_owned(),
            _ => (counts.prompt_tokens + counts.completion_tokens).to_string(),
        };
        vec![
            repo.clone(),
            counts.runs.to_string(),
            resolved,
            counts.steps.to_string(),
            counts.commands.to_string(),
            counts.test_runs.to_string(),
            counts.edited_files.to_string(),
            tokens,
            formats.join(", "),
        ]
    });
    table(
        &[
            "REPOSITORY",
            ">RUNS",
            ">RESOLVED",
            ">STEPS",
            ">COMMANDS",
            ">TESTS",
            ">EDITED",
            ">TOKENS",
            "FORMATS",
        ],
        rows,
    );
    ui::data(&format!(
        "{} files, {} bytes, {} texts cut, {} lines that cannot be read",
        totals.files, totals.bytes, totals.cut_texts, totals.bad_lines
    ));
    if !totals.unreadable.is_empty() {
        ui::data(&format!("no runs ({}):", totals.unreadable.len()));
        for file in &totals.unreadable {
            ui::data(&format!("  {}: {}", file.path.display(), file.reason));
        }
    }
}
