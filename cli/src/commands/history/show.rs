//! `memtrial history show`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use memtrial::trajectory::{Event, Limits, RunHead, RunPart, read_runs};
use serde_json::{Value, json};

use super::files::{find, stem};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file of any agent's runs, or a folder of them
    path: PathBuf,
    /// The run: its task's id, its session's, or its file's name without the ending; needed where there are several
    #[arg(long)]
    id: Option<String>,
    /// Show these kinds only
    #[arg(long, value_delimiter = ',', value_enum)]
    events: Vec<Kind>,
    /// Print JSON: the head and the whole events
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// What the agent was asked
    Issue,
    /// What it said and thought
    Thought,
    /// What it did
    Command,
    /// What came back
    Observation,
    /// The patch it submitted
    Submission,
    /// How it ended
    Ended,
}

/// Observations are shown up to so many lines of text.
const LINES: usize = 12;

pub fn run(args: &Args) -> Outcome {
    let files = find(&args.path).map_err(Failure::input)?;
    let mut shown = 0;
    let mut exit = Exit::Done;
    for path in &files {
        let named = args.id.as_deref().is_none_or(|id| id == stem(path));
        if !named
            && files.len() > 1
            && stem(path).rsplit_once('-').is_some_and(|(repo, _)| repo.contains("__"))
        {
            // called by another task's id
            continue;
        }
        let mut run = None;
        let read = read_runs(path, &Limits::default(), &mut |part| {
            match part {
                RunPart::Head(head) => {
                    let is = |stated: &Option<String>| stated.is_some() && *stated == args.id;
                    let wanted = named || is(&head.instance_id) || is(&head.session);
                    run = wanted.then(|| Shown { head: head.clone(), events: Vec::new() });
                }
                RunPart::Event(event) => {
                    if let Some(run) = &mut run
                        && (args.events.is_empty() || args.events.contains(&kind(&event)))
                    {
                        run.events.push(event);
                    }
                }
                RunPart::End(_) => {
                    if let Some(run) = run.take() {
                        shown += 1;
                        run.show(args.json);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        match read {
            Ok(report) => {
                for bad in &report.bad {
                    ui::note(&format!("warning: {}:{}: {}", path.display(), bad.line, bad.reason));
                }
            }
            Err(error) if named => {
                ui::note(&format!("error: {error}"));
                exit = Exit::BadInput;
            }
            Err(_) => {}
        }
    }
    if shown == 0 && exit == Exit::Done {
        let what = args.id.as_deref().map_or_else(|| "no run".to_owned(), |id| format!("no run of {id}"));
        return Err(Failure::input(anyhow::anyhow!("{}: holds {what}", args.path.display())));
    }
    Ok(exit)
}

fn kind(event: &Event) -> Kind {
    match event {
        Event::Issue { .. } => Kind::Issue,
        Event::Thought { .. } => Kind::Thought,
        Event::Command { .. } => Kind::Command,
        Event::Observation { .. } => Kind::Observation,
        Event::Submission { .. } => Kind::Submission,
        Event::Ended { .. } => Kind::Ended,
    }
}

/// A run that is shown when it is complete.
struct Shown {
    head: RunHead,
    events: Vec<Event>,
}

impl Shown {
    fn show(&self, as_json: bool) {
        if as_json {
            let value: Value = json!({"head": self.head, "events": self.events});
            ui::data(&value.to_string());
            return;
        }
        let head = &self.head;
        let name = head.instance_id.as_deref().or(head.session.as_deref()).unwrap_or("a run");
        let more = [head.model.as_deref(), head.started.as_deref()];
        let more: Vec<&str> = more.into_iter().flatten().collect();
        ui::data(format!("== {name} ({}) {}", head.format, more.join(", ")).trim_end());
        for event in &self.events {
            match event {
                Event::Issue { text } => block("issue", text, usize::MAX),
                Event::Thought { text } => block("thought", text, usize::MAX),
                Event::Command { text, edits, tests } => {
                    block("command", text, usize::MAX);
                    if !edits.is_empty() {
                        ui::data(&format!("    edits: {}", edits.join(", ")));
                    }
                    if *tests {
                        ui::data("    runs tests");
                    }
                }
                Event::Observation { text, exit_code } => {
                    let code = exit_code.map_or_else(String::new, |code| format!(" ({code})"));
                    block(&format!("observation{code}"), text, LINES);
                }
                Event::Submission { patch } => block("submission", patch, usize::MAX),
                Event::Ended { status, resolved } => {
                    let status = status.as_deref().unwrap_or("not recorded how");
                    let resolved = match resolved {
                        Some(true) => ", resolved",
                        Some(false) => ", not resolved",
                        None => "",
                    };
                    ui::data(&format!("ended: {status}{resolved}"));
                }
            }
        }
    }
}

fn block(title: &str, text: &str, lines: usize) {
    ui::data(&format!("{title}:"));
    let all = text.lines().count();
    for line in text.lines().take(lines) {
        ui::data(&format!("    {line}"));
    }
    if all > lines {
        ui::data(&format!("    … {} more lines", all - lines));
    }
}
