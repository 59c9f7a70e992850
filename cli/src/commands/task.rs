//! `memtrial task`.

mod audit;

use std::collections::BTreeMap;
use std::path::PathBuf;

use memtrial::dataset::{
    CheckReport, DatasetError, Problem, Severity, TaskFile, check, read_tasks, read_tasks_leniently,
};
use memtrial::task::{InstanceId, Task};
use serde_json::{Map, Value, json};

use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// Of more problems than this of one kind in a file, only the first are printed as text.
const SHOWN: usize = 3;

/// Lists, shows, checks and audits tasks.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Lists the tasks of files.
    List(Files),
    /// Shows what the solver may see of a task, and with --reveal the rest.
    Show(Show),
    /// Checks every row of files; exits with 3 where there are errors, warnings alone are no failure.
    Check(Files),
    /// Looks for the answer in tasks' environments, in published images, or in a folder.
    Audit(Box<audit::Args>),
}

#[derive(Debug, clap::Args)]
struct Files {
    /// JSON, JSONL (plain, gzip or zstd) or parquet files of rows
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Show {
    #[command(flatten)]
    files: Files,
    /// The task; without it every task is shown
    #[arg(long, value_parser = InstanceId::parse)]
    id: Option<InstanceId>,
    /// Also show what is kept from the solver
    #[arg(long, value_enum)]
    reveal: Vec<Reveal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Reveal {
    /// What nothing may read at run time
    Hidden,
    /// What only the grading step may read: patches and deciding tests
    Evaluator,
}

pub async fn run(args: Args) -> Outcome {
    match args.verb {
        Verb::List(files) => list(&files),
        Verb::Show(args) => show(&args),
        Verb::Check(files) => run_check(&files),
        Verb::Audit(args) => audit::run(*args).await,
    }
}

fn list(args: &Files) -> Outcome {
    let mut exit = Exit::Done;
    let mut tasks = Vec::new();
    for path in &args.files {
        let file = read_tasks_leniently(path)?;
        for error in &file.errors {
            ui::note(&format!("error: {error}"));
            exit = Exit::BadInput;
        }
        tasks.extend(file.tasks);
    }
    if args.json {
        ui::json(&tasks.iter().map(brief).collect::<Vec<_>>())?;
        return Ok(exit);
    }
    let rows = tasks.iter().map(|task| {
        let solver = &task.solver;
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            task.id().to_string(),
            solver.repo.clone(),
            text(&solver.language),
            text(&parser_name(task)),
            task.evaluator.fail_to_pass.len().to_string(),
            task.evaluator.pass_to_pass.len().to_string(),
        ]
    });
    table(&["ID", "REPO", "LANGUAGE", "PARSER", ">F2P", ">P2P"], rows);
    Ok(exit)
}

fn brief(task: &Task) -> Value {
    json!({
        "instance_id": task.id(),
        "repo": task.solver.repo,
        "language": task.solver.language,
        "log_parser": parser_name(task),
        "fail_to_pass": task.evaluator.fail_to_pass.len(),
        "pass_to_pass": task.evaluator.pass_to_pass.len(),
    })
}

/// The parser's name; some rows hold a program text instead.
fn parser_name(task: &Task) -> Option<String> {
    let name = task.solver.recipe.log_parser.clone()?;
    Some(if name.contains(char::is_whitespace) { "(program text)".to_owned() } else { name })
}

fn show(args: &Show) -> Outcome {
    let files: Vec<TaskFile> =
        args.files.files.iter().map(|path| read_tasks(path)).collect::<Result<_, DatasetError>>()?;
    let all = files.iter().flat_map(|file| &file.tasks);
    let chosen: Vec<&Task> = match &args.id {
        Some(id) => all.filter(|task| task.id() == id).collect(),
        None => all.collect(),
    };
    if let (Some(id), true) = (&args.id, chosen.is_empty()) {
        let names: Vec<_> = args.files.files.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::input(anyhow::anyhow!(
            "no task {id} in {}; `memtrial task list` shows what is there",
            names.join(", ")
        )));
    }
    let views: Vec<Value> = chosen.iter().map(|task| view(task, &args.reveal)).collect::<Result<_, _>>()?;
    if args.files.json {
        ui::json(&views)?;
    } else {
        views.iter().for_each(print_view);
    }
    Ok(Exit::Done)
}

/// The views of a task that were asked for, by name.
fn view(task: &Task, reveal: &[Reveal]) -> Result<Value, Failure> {
    let Value::Object(mut all) = serde_json::to_value(task).map_err(Failure::input)? else {
        return Ok(Value::Null);
    };
    all.retain(|name, _| match name.as_str() {
        "hidden" => reveal.contains(&Reveal::Hidden),
        "evaluator" => reveal.contains(&Reveal::Evaluator),
        _ => true,
    });
    Ok(Value::Object(all))
}

fn print_view(view: &Value) {
    for (name, fields) in view.as_object().into_iter().flatten() {
        ui::data(match name.as_str() {
            "solver" => "== solver",
            "hidden" => "== hidden: nothing may read this at run time",
            _ => "== evaluator: only the grading step may read this",
        });
        print_fields(fields.as_object().unwrap_or(&Map::new()), "");
    }
}

/// Prints what is there: short values on one line, long texts indented below their name.
fn print_fields(fields: &Map<String, Value>, prefix: &str) {
    for (name, value) in fields {
        let name = format!("{prefix}{name}");
        match value {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(inner) => print_fields(inner, &format!("{name}.")),
            Value::String(text) if !text.contains('\n') => ui::data(&format!("{name}: {text}")),
            Value::String(text) => {
                ui::data(&format!("{name}:"));
                text.lines().for_each(|line| ui::data(&format!("    {line}")));
            }
            Value::Array(items) => {
                ui::data(&format!("{name}:"));
                for item in items {
                    ui::data(&format!(
                        "  - {}",
                        item.as_str().map_or_else(|| item.to_string(), str::to_owned)
                    ));
                }
            }
            other => ui::data(&format!("{name}: {other}")),
        }
    }
}

fn run_check(args: &Files) -> Outcome {
    let report = check(&args.files);
    if args.json {
        ui::json(&report)?;
    } else {
        print_report(&report);
    }
    Ok(if report.is_good() { Exit::Done } else { Exit::BadInput })
}

fn print_report(report: &CheckReport) {
    let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
    let kind = |problem: &Problem| (problem.at.file.clone(), problem.severity, problem.kind);
    for problem in &report.problems {
        *kinds.entry(kind(problem)).or_default() += 1;
    }
    let mut printed: BTreeMap<_, usize> = BTreeMap::new();
    for problem in &report.problems {
        let kind = kind(problem);
        let total = kinds.get(&kind).copied().unwrap_or_default();
        let count = printed.entry(kind).or_default();
        *count += 1;
        if total <= SHOWN + 1 || *count <= SHOWN {
            print_problem(problem);
        } else if *count == SHOWN + 1 {
            let more = total - SHOWN;
            ui::data(&format!(
                "{}: {}: {more} more problems of the kind {} (--json lists them)",
                label(problem.severity),
                problem.at.file.display(),
                problem.kind
            ));
        }
    }
    for file in &report.files {
        ui::data(&format!(
            "{}: {}, {} good, {}, {}",
            file.file.display(),
            count(file.rows, "row"),
            file.good,
            count(file.errors, "error"),
            count(file.warnings, "warning")
        ));
    }
    if report.is_good() {
        ui::note("rows alone were checked: `memtrial task audit` looks for answers in the environments");
    }
}

fn print_problem(problem: &Problem) {
    let id = problem.at.instance_id.as_ref().map(|id| format!(" [{id}]")).unwrap_or_default();
    ui::data(&format!("{}: {}{id}", label(problem.severity), problem.at));
}

pub(super) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn label(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// Prints a table; a column whose heading starts with `>` is set to the right.
pub(super) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let first = headings.iter().map(|heading| heading.trim_start_matches('>').to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(first).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).zip(headings).map(|((cell, width), heading)| {
            if heading.starts_with('>') { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        ui::data(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
