//! `memtrial study`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use memtrial::report::Report;
use memtrial::study::{
    AtWork, Bench, Event, KeyLookup, Openings, Owner, Stop, TEMPLATE, TrialRecord, WorkerOptions, unique_name,
};
use serde_json::json;

use super::rooms::{self, CacheArgs};
use crate::exit::{Exit, Failure, Outcome, interrupted};
use crate::progress::Progress;
use crate::ui;

/// Runs a study: every target under every condition.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Writes a commented study file
    Init {
        /// The file to write
        study: PathBuf,
    },
    /// Runs what is left of a study; the same command resumes it, and several may run at once
    Run(Box<RunArgs>),
    /// Shows how much of a study is done, and who is at work on it
    Status {
        #[command(flatten)]
        place: StudyPlace,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Writes report/report.{txt,json,html} and prints the text
    Report {
        #[command(flatten)]
        place: StudyPlace,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    #[command(flatten)]
    place: StudyPlace,
    /// Another address for a solver
    #[arg(long, value_name = "SOLVER=URL", value_parser = endpoint)]
    endpoint: Vec<(String, String)>,
    /// Trials at once in this process, instead of the study file's number
    #[arg(long)]
    jobs: Option<usize>,
    /// Print every event as a line of JSON on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    worker: WorkerArgs,
}

/// How the process takes part where several run one study.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Several workers on one study")]
struct WorkerArgs {
    /// This process's name in the study's folder [default: host name, process number and chance]
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// A worker without a sign of life for so long loses its trials to the others
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    lease: u64,
    /// Leave when nothing is left but what other workers are at, instead of waiting to take over what they lose
    #[arg(long)]
    no_wait: bool,
}

impl WorkerArgs {
    fn options(&self) -> WorkerOptions {
        let name = self.worker.clone().unwrap_or_else(unique_name);
        WorkerOptions { name, lease: Duration::from_secs(self.lease), wait: !self.no_wait }
    }
}

#[derive(Debug, clap::Args)]
struct StudyPlace {
    /// The study file
    study: PathBuf,
    /// The study's folder [default: the study file's]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl StudyPlace {
    fn open(&self, endpoints: &[(String, String)], with_keys: bool) -> Result<Bench, Failure> {
        let key: KeyLookup = match with_keys {
            true => Box::new(|name| std::env::var(name).ok()),
            // a look at what is done needs no key
            false => Box::new(|_| Some("unused".into())),
        };
        let openings = Openings {
            out: self.out.clone(),
            endpoints: endpoints.iter().cloned().collect(),
            mounts: rooms::with_toolchains(Vec::new()),
            key,
        };
        Ok(Bench::open(&self.study, openings)?)
    }
}

pub async fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::Init { study } => init(&study),
        Verb::Run(args) => run_study(&args).await,
        Verb::Status { place, json } => status(&place, json),
        Verb::Report { place, json } => report(&place, json),
    }
}

fn init(path: &Path) -> Outcome {
    let mut file = std::fs::File::create_new(path).map_err(|error| {
        let path = path.display();
        Failure::input(anyhow::anyhow!("{path}: {error}; a study file is not overwritten: name another one"))
    })?;
    std::io::Write::write_all(&mut file, TEMPLATE.as_bytes()).map_err(Failure::environment)?;
    ui::note(&format!("{} written; edit it, then: memtrial study run {}", path.display(), path.display()));
    Ok(Exit::Done)
}

async fn run_study(args: &RunArgs) -> Outcome {
    let mut bench = args.place.open(&args.endpoint, true)?;
    let sandbox = &bench.design().sandbox;
    let mut cache = args.cache.clone();
    cache.images.registry = cache.images.registry.or_else(|| sandbox.registry.clone());
    cache.images.image_disk = cache.images.image_disk.or(sandbox.image_disk);
    let backend = rooms::backend(&sandbox.backend, &cache)?;
    if let Some(jobs) = args.jobs {
        bench.set_jobs(jobs);
    }
    for warning in bench.warnings() {
        ui::note(&format!("warning: {warning}"));
    }
    let stop = Arc::new(Stop::default());
    let progress = Arc::new(Progress::new());
    let told = progress.clone();
    bench.on_retry(Arc::new(move |reason, wait| {
        told.say(&format!("model: {reason}; asking again in {} s", wait.as_secs().max(1)));
    }));
    let tell = |event: &Event| {
        if args.json
            && let Ok(line) = serde_json::to_string(event)
        {
            ui::data(&line);
        }
        progress.show(event);
    };
    let (options, interrupted) = (args.worker.options(), interruptions(stop.clone(), &progress));
    let summary = tokio::select! {
        summary = bench.run(backend, &options, &stop, &tell) => summary?,
        () = interrupted => return Ok(Exit::Interrupted),
    };
    progress.finish();
    let counts =
        format!("{} of {} trials finished, {} missing", summary.finished, summary.trials, summary.missing);
    if summary.elsewhere > 0 {
        ui::note(&format!(
            "{counts}; other workers are at {} more: the last of them writes the report (`memtrial study status` \
             shows them)",
            summary.elsewhere
        ));
    } else {
        let report = write_report(&bench)?;
        ui::note(&format!("{counts}; report: {}", bench.layout().report().join("report.html").display()));
        for conclusion in &report.conclusions {
            ui::note(conclusion);
        }
    }
    if summary.blocked > 0 {
        ui::note(&format!(
            "{} trials were not begun: their targets' gold patches could not be graded (see above; `memtrial doctor` \
             shows what is missing)",
            summary.blocked
        ));
    }
    Ok(match summary {
        summary if summary.finished == 0 && summary.blocked > 0 => Exit::Environment,
        summary if summary.finished + summary.blocked + summary.elsewhere < summary.trials => {
            Exit::Interrupted
        }
        summary if summary.missing > 0 => Exit::PartlyFailed,
        _ => Exit::Done,
    })
}

/// Ends at the second interruption; the first one drains.
async fn interruptions(stop: Arc<Stop>, progress: &Progress) {
    interrupted().await;
    stop.drain();
    progress.say("finishing the trials in flight; interrupt again to stop at once (they are resumed later)");
    interrupted().await;
}

fn status(place: &StudyPlace, as_json: bool) -> Outcome {
    let bench = place.open(&[], false)?;
    bench.expect_begun()?;
    let records = bench.records()?;
    let excluded = bench.excluded()?;
    let left_out = |id: &memtrial::task::InstanceId| excluded.iter().any(|excluded| excluded.target == *id);
    let mut arms: BTreeMap<(String, String), Tally> = BTreeMap::new();
    for key in bench.grid() {
        let tally = arms.entry((key.condition.clone(), key.solver.clone())).or_default();
        match records.get(&key) {
            _ if left_out(&key.instance_id) => tally.excluded += 1,
            Some(record) => tally.count(record),
            None => tally.waiting += 1,
        }
    }
    let workers = bench.at_work()?;
    if as_json {
        let arms: Vec<_> = arms
            .iter()
            .map(|((condition, solver), tally)| json!({"condition": condition, "solver": solver, "trials": tally}))
            .collect();
        ui::json(
            &json!({"study": bench.design().name, "arms": arms, "excluded": excluded, "workers": workers}),
        )?;
        return Ok(Exit::Done);
    }
    ui::data(&format!(
        "{:<24} {:<16} {:>8} {:>8} {:>8} {:>8}",
        "condition", "solver", "resolved", "finished", "missing", "waiting"
    ));
    for ((condition, solver), tally) in &arms {
        ui::data(&format!(
            "{condition:<24} {solver:<16} {:>8} {:>8} {:>8} {:>8}",
            tally.resolved, tally.finished, tally.missing, tally.waiting
        ));
    }
    for excluded in &excluded {
        ui::data(&format!("excluded: {}: {}", excluded.target, excluded.reason));
    }
    for at_work in &workers {
        ui::data(&worker_line(at_work));
    }
    Ok(Exit::Done)
}

/// A worker, its last sign of life, and what it is at.
fn worker_line(at_work: &AtWork) -> String {
    let Owner { worker, host, pid, .. } = &at_work.worker;
    let heartbeat = at_work
        .heartbeat_age
        .map_or_else(|| "no heartbeat".to_owned(), |age| format!("last heartbeat {age:.0} s ago"));
    let lost = if at_work.lost { ", lost: its trials are free to be taken over" } else { "" };
    let trials: Vec<_> = at_work
        .trials
        .iter()
        .map(|key| format!("{} {} {} #{}", key.instance_id, key.condition, key.solver, key.replicate))
        .collect();
    let trials = if trials.is_empty() { "no trial".to_owned() } else { trials.join(", ") };
    format!("worker {worker} (process {pid} on {host}, {heartbeat}{lost}): {trials}")
}

/// Trials of one arm.
#[derive(Debug, Default, serde::Serialize)]
struct Tally {
    resolved: usize,
    finished: usize,
    missing: usize,
    waiting: usize,
    excluded: usize,
}

impl Tally {
    fn count(&mut self, record: &TrialRecord) {
        use memtrial::grade::Coding;
        match record.verdict.coding() {
            Coding::One => (self.resolved, self.finished) = (self.resolved + 1, self.finished + 1),
            Coding::Zero => self.finished += 1,
            Coding::Missing => self.missing += 1,
            Coding::Excluded => self.excluded += 1,
        }
    }
}

fn report(place: &StudyPlace, as_json: bool) -> Outcome {
    let bench = place.open(&[], false)?;
    let report = write_report(&bench)?;
    if as_json {
        ui::json(&report)?;
    } else {
        ui::data(report.text().trim_end());
        ui::note(&format!("report: {}", bench.layout().report().join("report.html").display()));
    }
    Ok(Exit::Done)
}

fn write_report(bench: &Bench) -> Result<Report, Failure> {
    let report = Report::of(bench)?;
    report.write(&bench.layout().report())?;
    Ok(report)
}

fn endpoint(text: &str) -> Result<(String, String), String> {
    let (name, url) = text.split_once('=').ok_or("expected SOLVER=URL")?;
    Ok((name.to_owned(), url.to_owned()))
}
