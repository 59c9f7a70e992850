//! `memtrial task audit`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use memtrial::audit::{self, Report, Severity, Subject};
use memtrial::dataset::read_tasks;
use memtrial::sandbox::environment::{Base, Environments};
use memtrial::sandbox::{Backend, Exec, Image, Limits, Mount, Network, Sandbox, Spec};
use memtrial::task::{InstanceId, Task};
use serde::Serialize;

use super::super::rooms::{self, SandboxArgs};
use super::count;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// Where a folder lies in the sandbox that looks into it.
const INSIDE: &str = "/testbed";

/// Looks for the answer in tasks' environments, in published images, or in a folder: later commits, later releases of
/// the package, patches, rows of data. Exits with 1 where something is found, and with 4 where something could not be
/// looked at.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files of task rows: JSON, JSONL (plain, gzip or zstd) or parquet
    #[arg(value_name = "TASKS", required_unless_present_any = ["folder", "image"])]
    tasks: Vec<PathBuf>,
    /// Only this task (may be given several times)
    #[arg(long, visible_alias = "instance", value_name = "ID", value_parser = InstanceId::parse)]
    id: Vec<InstanceId>,
    /// Look into this checkout instead, read-only
    #[arg(long, value_name = "DIR", conflicts_with = "image")]
    folder: Option<PathBuf>,
    /// Look into the published image as it is: this one, or the one that each row names
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    image: Option<String>,
    /// Where the repository lies in an image [default: /testbed, or the folder at the top that has the repository's name]
    #[arg(long, value_name = "PATH", requires = "image")]
    workdir: Option<String>,
    /// The commit that nothing may be later than [default: the row's base commit; without a row, HEAD]
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
    /// Take away what can be taken away and look again: an environment or image becomes a new layer; a folder is
    /// changed in place, with --yes
    #[arg(long)]
    fix: bool,
    /// Change the folder. Branches, tags, stashes and reflogs that are later than the commit are gone for good then,
    /// and so are untracked files that hold the answer
    #[arg(long, requires = "fix")]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: SandboxArgs,
}

/// What is printed of one subject.
#[derive(Debug, Serialize)]
struct Audited {
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<InstanceId>,
    /// The folder or image.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(flatten)]
    report: Report,
    /// What `--fix` took away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<String>,
    /// The layer that holds the fixed image.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed_image: Option<String>,
}

pub async fn run(args: Args) -> Outcome {
    if args.place.sandbox == "local" {
        return Err(Failure::usage(anyhow!(
            "--sandbox local has no file system of its own to look into: use namespaces or docker"
        )));
    }
    let tasks = tasks(&args)?;
    let mut all = Vec::new();
    let mut failed = false;
    if let Some(folder) = &args.folder {
        if tasks.len() > 1 {
            return Err(Failure::usage(anyhow!("a folder holds one task: name it with --id")));
        }
        all.push(folder_audit(&args, folder, tasks.first()).await?);
    } else if args.image.as_deref().is_some_and(|name| !name.is_empty()) {
        if tasks.len() > 1 {
            return Err(Failure::usage(anyhow!("one image holds one task: name it with --id")));
        }
        let name = args.image.clone().unwrap_or_default();
        all.push(image_audit(&args, &name, tasks.first()).await?);
    } else {
        let rooms = if args.image.is_none() { Some(args.place.environments()?) } else { None };
        for task in &tasks {
            let audited = match (&rooms, &task.solver.image_name) {
                (Some(rooms), _) => environment_audit(&args, rooms, task).await,
                (None, Some(name)) => image_audit(&args, name, Some(task)).await,
                (None, None) => Err(Failure::input(anyhow!("the row names no image"))),
            };
            match audited {
                Ok(audited) => all.push(audited),
                Err(failure) => {
                    failed = true;
                    ui::note(&format!("error: {}: {failure}", task.id()));
                }
            }
        }
    }
    if args.json {
        ui::json(&all)?;
    } else {
        all.iter().for_each(print);
    }
    let found = all.iter().any(|one| !one.report.findings.is_empty());
    let blind = failed || all.iter().any(|one| !one.report.unchecked.is_empty());
    Ok(match (found, blind) {
        (true, _) => Exit::Negative,
        (false, true) => Exit::Environment,
        (false, false) => Exit::Done,
    })
}

fn tasks(args: &Args) -> Result<Vec<Task>, Failure> {
    let mut tasks = Vec::new();
    for path in &args.tasks {
        tasks.extend(read_tasks(path)?.tasks);
    }
    if let Some(id) = args.id.iter().find(|id| !tasks.iter().any(|task| task.id() == *id)) {
        return Err(Failure::input(anyhow!(
            "no task {id} in the files; `memtrial task list` shows what is there"
        )));
    }
    if !args.id.is_empty() {
        tasks.retain(|task| args.id.contains(task.id()));
    }
    Ok(tasks)
}

fn with_commit<'a>(args: &Args, mut subject: Subject<'a>) -> Subject<'a> {
    subject.base = args.commit.clone().or(subject.base);
    let toolchains = rooms::with_toolchains(args.place.mount.clone());
    subject.toolchains = toolchains.iter().map(|mount| mount.inside.display().to_string()).collect();
    subject
}

async fn look(sandbox: &mut dyn Sandbox, subject: &Subject<'_>) -> Result<Report, Failure> {
    audit::audit(sandbox, subject).await.map_err(Failure::environment)
}

async fn environment_audit(args: &Args, rooms: &Environments, task: &Task) -> Result<Audited, Failure> {
    let environment = rooms.prepare(&task.solver).await.map_err(Failure::environment)?;
    let mut subject = with_commit(args, Subject::environment(task, &environment.place().workdir));
    if args.place.base == "host" {
        subject = subject.on_the_host();
    }
    let mut sandbox = environment.start_to_change().await.map_err(Failure::environment)?;
    let mut report = look(sandbox.as_mut(), &subject).await?;
    let mut fixed = Vec::new();
    if args.fix && report.findings.iter().any(|finding| finding.fixable) {
        let taken =
            audit::fix(sandbox.as_mut(), &subject, &report.findings).await.map_err(Failure::environment)?;
        fixed = [taken.history, taken.files].concat();
        report = look(sandbox.as_mut(), &subject).await?;
        rooms.replace(&environment, sandbox).await.map_err(Failure::environment)?;
    } else {
        sandbox.close().await.map_err(Failure::environment)?;
    }
    Ok(Audited { instance_id: Some(task.id().clone()), place: None, report, fixed, fixed_image: None })
}

async fn image_audit(args: &Args, name: &str, task: Option<&Task>) -> Result<Audited, Failure> {
    let backend = rooms::backend(&args.place.sandbox, &args.place.cache)?;
    let image = Image::Container(name.to_owned());
    let facts = backend.describe(&image).await.map_err(Failure::environment)?;
    let mut sandbox = start(args, &backend, image, Vec::new(), args.fix).await?;
    let workdir = workdir(args, sandbox.as_mut(), task).await?;
    let mut subject = match task {
        Some(task) => Subject::environment(task, &workdir),
        None => Subject { roots: vec!["/".into()], ..Subject::folder(None, &workdir, None) },
    };
    subject.facts = facts;
    let subject = with_commit(args, subject);
    let mut report = look(sandbox.as_mut(), &subject).await?;
    let (mut fixed, mut fixed_image) = (Vec::new(), None);
    if args.fix && report.findings.iter().any(|finding| finding.fixable) {
        let taken =
            audit::fix(sandbox.as_mut(), &subject, &report.findings).await.map_err(Failure::environment)?;
        fixed = [taken.history, taken.files].concat();
        report = look(sandbox.as_mut(), &subject).await?;
        let key = audit::fixed_key(name, subject.base.as_deref());
        backend.drop_layer(&key).await.map_err(Failure::environment)?;
        backend.commit(sandbox, &key).await.map_err(Failure::environment)?;
        fixed_image = Some(format!("localhost/memtrial/layer:{key}"));
    } else {
        sandbox.close().await.map_err(Failure::environment)?;
    }
    let instance_id = task.map(|task| task.id().clone());
    Ok(Audited { instance_id, place: Some(name.to_owned()), report, fixed, fixed_image })
}

async fn folder_audit(args: &Args, folder: &Path, task: Option<&Task>) -> Result<Audited, Failure> {
    let bad = |reason: String| Failure::input(anyhow!("{}: {reason}", folder.display()));
    let host = fs_err::canonicalize(folder).map_err(Failure::input)?;
    if host.join(".git").is_file() {
        return Err(bad(
            "its .git is a file: this is a linked worktree or a submodule; name the main checkout".into(),
        ));
    }
    let backend = rooms::backend(&args.place.sandbox, &args.place.cache)?;
    // without isolation there are no mounts: commands see the folder where it is
    let base = Base::parse(&args.place.base).map_err(|reason| Failure::usage(anyhow!(reason)))?;
    let Base::Image(base) = base else {
        return Err(Failure::usage(anyhow!(
            "a folder is looked into from host, rootfs:FOLDER or image:NAME"
        )));
    };
    let mounts = vec![Mount { host: host.clone(), inside: INSIDE.into() }];
    let subject =
        with_commit(args, Subject::folder(task, INSIDE, task.map(|task| task.solver.base_commit.clone())));
    let look_once = async || {
        let mut sandbox = start(args, &backend, base.clone(), mounts.clone(), false).await?;
        let report = look(sandbox.as_mut(), &subject).await?;
        sandbox.close().await.map_err(Failure::environment)?;
        Ok::<Report, Failure>(report)
    };
    let mut report = look_once().await?;
    let mut fixed = Vec::new();
    if args.fix && args.yes {
        let taken = audit::fix_folder(&host, INSIDE, subject.base.as_deref(), &report.findings);
        let taken = taken.await.map_err(Failure::environment)?;
        fixed = [taken.history, taken.files].concat();
        report = look_once().await?;
    }
    let report = report.relocated(INSIDE, &host.display().to_string());
    if args.fix && !args.yes {
        let fixable = report.findings.iter().filter(|finding| finding.fixable).count() as u64;
        ui::note(&format!(
            "nothing is changed yet: --yes takes away what the {} marked fixable name, for good",
            count(fixable, "finding")
        ));
    }
    let place = Some(host.display().to_string());
    Ok(Audited { instance_id: task.map(|task| task.id().clone()), place, report, fixed, fixed_image: None })
}

async fn start(
    args: &Args,
    backend: &Arc<dyn Backend>,
    image: Image,
    mounts: Vec<Mount>,
    keep: bool,
) -> Result<Box<dyn Sandbox>, Failure> {
    let memory = args.place.memory_limit.saturating_mul(1 << 20);
    let limits = Limits { memory, cpus: args.place.cpus, ..Limits::default() };
    let spec = Spec { image, limits, network: Network::None, mounts, keep, gateway: None };
    backend.start(&spec).await.map_err(Failure::environment)
}

/// The repository's folder in an image: `/testbed` (SWE-bench), or `/NAME` (SWE-rebench V2).
async fn workdir(args: &Args, sandbox: &mut dyn Sandbox, task: Option<&Task>) -> Result<String, Failure> {
    if let Some(place) = &args.workdir {
        return Ok(place.trim_end_matches('/').to_owned());
    }
    let name = task.and_then(|task| task.solver.repo.rsplit('/').next()).unwrap_or("testbed");
    let script = r#"for place in /testbed "/$1" /app /workspace /repo; do
if [ -e "$place/.git" ]; then echo "$place"; exit 0; fi; done; exit 1"#;
    let argv = ["sh", "-c", script, "memtrial", name].map(str::to_owned).into();
    let output = sandbox.exec(&Exec { argv, ..Exec::bash("", "/") }).await.map_err(Failure::environment)?;
    if output.success() {
        return Ok(output.text().trim().to_owned());
    }
    Err(Failure::environment(anyhow!(
        "no repository at /testbed or /{name}: say with --workdir where it lies"
    )))
}

fn print(audited: &Audited) {
    let Audited { instance_id, place, report, fixed, fixed_image } = audited;
    let id = instance_id.as_ref().map(InstanceId::to_string);
    let name = [id, place.clone()].into_iter().flatten().collect::<Vec<_>>().join(" in ");
    fixed.iter().for_each(|line| ui::note(&format!("{name}: taken away: {line}")));
    if let Some(image) = fixed_image {
        ui::note(&format!("{name}: the fixed image is {image}"));
    }
    for finding in &report.findings {
        let severity = if finding.severity == Severity::Leak { "leak" } else { "trace" };
        let fixable = if finding.fixable { " (fixable)" } else { "" };
        ui::data(&format!(
            "{name}: {severity}: {}: {}: {}{fixable}",
            finding.detector, finding.place, finding.what
        ));
    }
    for unchecked in &report.unchecked {
        ui::data(&format!("{name}: not looked at: {}: {}", unchecked.what, unchecked.reason));
    }
    report.notes.iter().for_each(|note| ui::note(&format!("{name}: {note}")));
    let fixable = report.findings.iter().filter(|finding| finding.fixable).count();
    let searched = format!("{} of {} searched", report.searched, count(report.files as u64, "file"));
    ui::data(&match report.findings.len() as u64 {
        0 if report.unchecked.is_empty() => format!("{name}: clean ({searched})"),
        0 => format!("{name}: nothing found, but not everything could be looked at ({searched})"),
        number => format!("{name}: {}, {fixable} of them fixable ({searched})", count(number, "finding")),
    });
}
