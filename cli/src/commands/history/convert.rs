//! `memtrial history convert`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use memtrial::task::InstanceId;
use memtrial::trajectory::{
    Event, Limits, Message, MiniMessages, RunHead, RunPart, Trajectory, TrajectoryError, convert_to_atif,
    read_runs, write_atomic,
};
use serde_json::{Map, Value, json};

use super::files::{find, stem};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files of runs, or folders of them
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// The format that is written
    #[arg(long, value_enum, default_value_t = To::Atif)]
    to: To,
    /// Where it is written: to ATIF, ID.atif.json for each ID.traj.json, a folder's own folders kept; to mini,
    /// ID/ID.traj.json for each run
    #[arg(short, long)]
    out: PathBuf,
    /// To mini: a JSON object that names the task of files whose runs state none, by the file's name or the session's
    #[arg(long, conflicts_with = "repo")]
    ids: Option<PathBuf>,
    /// To mini: the repository that all sessions without a task are of; they are numbered in the order of their start
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum To {
    /// ATIF documents of mini-swe-agent's runs, for tools that read no other format
    Atif,
    /// mini-swe-agent's trajectories of any agent's runs, for studies and memory systems
    Mini,
}

pub fn run(args: &Args) -> Outcome {
    match args.to {
        To::Mini => to_mini(args),
        To::Atif if args.ids.is_some() || args.repo.is_some() => Err(Failure::usage(anyhow::anyhow!(
            "--ids and --repo name runs for --to mini; ATIF documents keep their files' names"
        ))),
        To::Atif => to_atif(args),
    }
}

/// Converts one file after the other; what is wrong with one does not keep the others back.
fn to_atif(args: &Args) -> Outcome {
    let mut files = Vec::new();
    for path in &args.paths {
        if !path.is_dir() {
            files.push((path.clone(), document(Path::new(path.file_name().unwrap_or_default()))));
            continue;
        }
        let before = files.len();
        for file in find(path).map_err(Failure::input)? {
            if file.to_string_lossy().ends_with(".traj.json") {
                let inside = file.strip_prefix(path).map(document).unwrap_or_default();
                files.push((file, inside));
            }
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

fn document(trajectory: &Path) -> PathBuf {
    trajectory.with_file_name(format!("{}.atif.json", stem(trajectory)))
}

/// Nothing is cut: a history must hold what the logs hold.
const EVERYTHING: Limits = Limits { file_bytes: u64::MAX, text_chars: usize::MAX };

fn to_mini(args: &Args) -> Outcome {
    let mut files = Vec::new();
    for path in &args.paths {
        files.extend(find(path).map_err(Failure::input)?);
    }
    files.dedup();
    let ids = match &args.ids {
        Some(path) => named(path)?,
        None => BTreeMap::new(),
    };
    let mut names = Names { ids, numbered: BTreeMap::new() };
    if let Some(repo) = &args.repo {
        names.number(repo, &files)?;
    }
    let (mut exit, mut runs, mut events) = (Exit::Done, 0, 0);
    let mut written: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut outcomes = BTreeMap::new();
    let mut failed = |reason: String| {
        ui::note(&format!("error: {reason}"));
        exit = Exit::BadInput;
    };
    for path in &files {
        let mut run: Option<Run> = None;
        let mut broken = None;
        let read = read_runs(path, &EVERYTHING, &mut |part| {
            match part {
                RunPart::Head(head) => match names.of(path, head) {
                    Err(reason) => failed(format!("{}: {reason}", path.display())),
                    Ok(id) => match written.get(&id) {
                        Some(first) => failed(format!(
                            "{}: another run of {id} was written, of {}; this one is left out",
                            path.display(),
                            first.display()
                        )),
                        None => run = Some(Run::new(id, head.clone())),
                    },
                },
                RunPart::Event(event) => {
                    if let Some(run) = &mut run {
                        run.event(event);
                    }
                }
                RunPart::End(cost) => {
                    if let Some(run) = run.take() {
                        outcomes.extend(run.resolved.map(|resolved| (run.id.clone(), resolved)));
                        written.insert(run.id.clone(), path.clone());
                        events += run.events;
                        runs += 1;
                        if let Err(error) = run.write(&args.out, cost.steps) {
                            broken = Some(error);
                            return ControlFlow::Break(());
                        }
                    }
                }
            }
            ControlFlow::Continue(())
        });
        if let Some(error) = broken {
            return Err(Failure::environment(error));
        }
        match read {
            Ok(report) => {
                for bad in &report.bad {
                    ui::note(&format!("warning: {}:{}: {}", path.display(), bad.line, bad.reason));
                }
            }
            Err(error) => failed(error.to_string()),
        }
    }
    if !outcomes.is_empty() {
        let text = serde_json::to_string_pretty(&outcomes).map_err(Failure::environment)?;
        write_atomic(&args.out.join("converted.resolved.json"), text.as_bytes())
            .map_err(Failure::environment)?;
    }
    ui::data(&format!("{runs} runs with {events} events written to {}", args.out.display()));
    Ok(exit)
}

/// The tasks of `--ids`.
fn named(path: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let wrong = |reason: String| Failure::input(anyhow::anyhow!("{}: {reason}", path.display()));
    let text = fs_err::read(path).map_err(Failure::input)?;
    let ids: BTreeMap<String, String> = serde_json::from_slice(&text)
        .map_err(|error| wrong(format!("expected an object of names and instance ids: {error}")))?;
    for id in ids.values() {
        InstanceId::parse(id).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(ids)
}

/// Which task a run is of.
struct Names {
    ids: BTreeMap<String, String>,
    /// Runs that were numbered, by file and line.
    numbered: BTreeMap<(PathBuf, Option<usize>), String>,
}

impl Names {
    /// Numbers the runs that state no task in the order of their start, and says so.
    fn number(&mut self, repo: &str, files: &[PathBuf]) -> Result<(), Failure> {
        let Some((owner, name)) =
            repo.split_once('/').filter(|(owner, name)| !owner.is_empty() && !name.is_empty())
        else {
            return Err(Failure::usage(anyhow::anyhow!("--repo {repo}: expected OWNER/NAME")));
        };
        let mut found = Vec::new();
        for path in files {
            // what cannot be read is named when it is converted
            let _ = read_runs(path, &EVERYTHING, &mut |part| {
                if let RunPart::Head(head) = part
                    && task_of(path, head).is_none()
                {
                    found.push((head.started.clone(), path.clone(), head.line, head.session.clone()));
                }
                ControlFlow::Continue(())
            });
        }
        // a run without a start has no place in the order: it is named when it is converted
        found.retain(|(started, ..)| started.is_some());
        found.sort();
        for (index, (started, path, line, session)) in found.into_iter().enumerate() {
            let id = format!("{owner}__{name}-{}", index + 1);
            InstanceId::parse(&id).map_err(Failure::usage)?;
            ui::note(&format!(
                "{id}: session {} of {}, begun {}",
                session.as_deref().unwrap_or("without a name"),
                path.display(),
                started.unwrap_or_default()
            ));
            self.numbered.insert((path, line), id);
        }
        Ok(())
    }

    fn of(&self, path: &Path, head: &RunHead) -> Result<String, String> {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let given = [Some(file), Some(stem(path)), head.session.clone()];
        let given = given.into_iter().flatten().find_map(|name| self.ids.get(&name).cloned());
        given
            .or_else(|| task_of(path, head))
            .or_else(|| self.numbered.get(&(path.to_owned(), head.line)).cloned())
            .ok_or_else(|| {
                let line = head.line.map(|line| format!("line {line}: ")).unwrap_or_default();
                let start = if head.started.is_none() { " and no start" } else { "" };
                format!(
                    "{line}the run states no task{start}: name it with --ids FILE; --repo OWNER/NAME numbers the runs that \
                     state a start"
                )
            })
    }
}

/// The task that a run states, or that its file is called by.
fn task_of(path: &Path, head: &RunHead) -> Option<String> {
    let is_id = |id: &String| InstanceId::parse(id).is_ok();
    head.instance_id
        .clone()
        .filter(is_id)
        .or_else(|| Some(stem(path)).filter(|id| is_id(id) && head.line.is_none()))
}

/// A run while its messages are collected.
struct Run {
    id: String,
    head: RunHead,
    writer: MiniMessages,
    messages: Vec<Map<String, Value>>,
    submission: String,
    status: String,
    resolved: Option<bool>,
    events: u64,
}

impl Run {
    fn new(id: String, head: RunHead) -> Self {
        Self {
            id,
            head,
            writer: MiniMessages::default(),
            messages: Vec::new(),
            submission: String::new(),
            status: String::new(),
            resolved: None,
            events: 0,
        }
    }

    fn event(&mut self, event: Event) {
        self.events += 1;
        match &event {
            Event::Submission { patch } => self.submission.clone_from(patch),
            Event::Ended { status, resolved } => {
                self.status = status.clone().unwrap_or_default();
                self.resolved = *resolved;
            }
            _ => {}
        }
        let messages = &mut self.messages;
        self.writer.event(event, &mut |message| messages.push(message));
    }

    fn write(self, out: &Path, steps: u64) -> Result<(), TrajectoryError> {
        // as in the exit message: what submitted a patch has submitted it
        let status = if self.submission.is_empty() { self.status.as_str() } else { "Submitted" };
        let info = json!({
            "model_stats": {"api_calls": steps},
            "config": {
                "model": {"model_name": self.head.model},
                "memtrial": {"converted_from": self.head, "exit_status": self.status},
            },
            "exit_status": status,
            "submission": self.submission,
        });
        let info = match info {
            Value::Object(info) => info,
            _ => Map::new(),
        };
        let folder = out.join(&self.id);
        let path = folder.join(format!("{}.traj.json", self.id));
        let failed = |reason| TrajectoryError::Format { path: path.clone(), reason };
        let messages = self.messages.into_iter().map(|raw| Message::from_value(Value::Object(raw)));
        let messages = messages.collect::<Result<_, _>>().map_err(failed)?;
        fs_err::create_dir_all(&folder)
            .map_err(|cause| TrajectoryError::Write { path: folder.clone(), cause })?;
        Trajectory::new_v1_1(info, messages, self.id).write(&path)
    }
}
