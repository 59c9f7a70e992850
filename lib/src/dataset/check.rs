//! `task check`: what is wrong with the rows of task files.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use diffy::patch_set::{ParseOptions, PatchSet};
use serde::Serialize;

use super::date;
use super::error::{DatasetError, Problem, RowError, Severity};
use super::tasks::{duplicate, for_each_row};
use crate::task::{InstanceId, Task};

/// What was found in a number of files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The files, as given.
    pub files: Vec<FileCount>,
    /// Everything to look at, in the order of files and rows.
    pub problems: Vec<Problem>,
}

/// Counts of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileCount {
    /// The file.
    pub file: PathBuf,
    /// Rows that could be told apart.
    pub rows: u64,
    /// Rows without an error.
    pub good: u64,
    /// Errors.
    pub errors: u64,
    /// Warnings.
    pub warnings: u64,
}

impl CheckReport {
    /// Whether nothing worse than a warning was found.
    pub fn is_good(&self) -> bool {
        self.files.iter().all(|file| file.errors == 0)
    }
}

/// Checks files, each to its end where it can be read; an id may occur once in all of them together.
pub fn check(paths: &[PathBuf]) -> CheckReport {
    let mut report = CheckReport::default();
    let mut seen: BTreeMap<InstanceId, String> = BTreeMap::new();
    for path in paths {
        let first = report.problems.len();
        let (mut rows, mut good) = (0, 0);
        let read = for_each_row(path, &mut |row| {
            rows += 1;
            let mut found = row.warnings;
            match row.task {
                Ok(task) => {
                    let here = format!("{}:{}", path.display(), row.row);
                    if let Some(before) = seen.get(task.id()) {
                        let at = duplicate(path, row.row, task.id(), before);
                        found.push(Problem { severity: Severity::Error, kind: "duplicate-id", at });
                    } else {
                        seen.insert(task.id().clone(), here);
                    }
                    Checker { path, row: row.row, task: &task, found: &mut found }.run();
                }
                Err(error) => {
                    found.push(Problem { severity: Severity::Error, kind: "unreadable-row", at: *error })
                }
            }
            good += u64::from(found.iter().all(|problem| problem.severity == Severity::Warning));
            report.problems.extend(found);
            ControlFlow::Continue(())
        });
        if let Err(error) = read {
            report.problems.push(unreadable(path, rows, &error));
        }
        let count =
            |severity| report.problems[first..].iter().filter(|p| p.severity == severity).count() as u64;
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        report.files.push(FileCount { file: path.clone(), rows, good, errors, warnings });
    }
    report
}

fn unreadable(path: &Path, rows: u64, error: &DatasetError) -> Problem {
    // The error's own text starts with the file's name, which the problem states beside it.
    let text = error.to_string();
    let text = text.strip_prefix(&format!("{}:", path.display())).unwrap_or(&text).trim_start();
    let at = RowError {
        file: path.to_owned(),
        row: rows + 1,
        instance_id: None,
        field: None,
        message: format!("the file cannot be read from here on: {text}"),
        hint: "rows before this place were checked".to_owned(),
    };
    Problem { severity: Severity::Error, kind: "unreadable-file", at }
}

struct Checker<'t> {
    path: &'t Path,
    row: u64,
    task: &'t Task,
    found: &'t mut Vec<Problem>,
}

impl Checker<'_> {
    fn run(mut self) {
        self.solver();
        self.patches();
        self.tests();
        self.hidden();
    }

    fn solver(&mut self) {
        let solver = &self.task.solver;
        let hex = solver.base_commit.bytes().all(|b| b.is_ascii_hexdigit());
        if !hex || !matches!(solver.base_commit.len(), 40 | 64) {
            let message = format!("{:?} is no full commit hash", solver.base_commit);
            self.error("bad-base-commit", "base_commit", message, "give all 40 hexadecimal digits");
        }
        if solver.problem_statement.trim().is_empty() {
            self.error(
                "blank-problem",
                "problem_statement",
                "is blank".into(),
                "the solver has nothing to go by",
            );
        }
        if solver.recipe.test_cmd.is_empty() {
            let hint = "without it the task can be attempted, not graded here; add install_config.test_cmd";
            self.warn("no-test-command", "test_cmd", "no test command is given".into(), hint);
        }
        match &solver.recipe.log_parser {
            None => {
                let hint = "add install_config.log_parser, for example parse_log_pytest";
                self.warn("no-log-parser", "log_parser", "no log parser is named".into(), hint);
            }
            Some(name) if name.contains(char::is_whitespace) => {
                let message = "is a program text, not the name of a parser".to_owned();
                self.warn(
                    "parser-is-code",
                    "log_parser",
                    message,
                    "name a parser; memtrial runs no code of a row",
                );
            }
            Some(_) => {}
        }
    }

    fn patches(&mut self) {
        let evaluator = &self.task.evaluator;
        for (field, patch) in [("patch", &evaluator.patch), ("test_patch", &evaluator.test_patch)] {
            if patch.trim().is_empty() {
                self.warn("empty-patch", field, "is empty".into(), "fine only if nothing is to be applied");
                continue;
            }
            if !patch.ends_with('\n') {
                let message = "does not end with a newline".to_owned();
                self.warn(
                    "patch-without-newline",
                    field,
                    message,
                    "git apply calls such a patch corrupt; add it",
                );
            }
            if let Some(reason) = patch_fault(patch) {
                let message = format!("is no patch that can be parsed: {reason}");
                self.warn("unparsable-patch", field, message, "try it with git apply --check");
            }
        }
    }

    fn tests(&mut self) {
        let evaluator = &self.task.evaluator;
        let (fail, pass) = (&evaluator.fail_to_pass, &evaluator.pass_to_pass);
        if fail.is_empty() {
            let hint =
                "no test would decide the task; run the tests before and after the gold patch to find them";
            self.error("no-deciding-test", "FAIL_TO_PASS", "is missing or empty".into(), hint);
        }
        let deciding: BTreeSet<_> = fail.iter().collect();
        let both: Vec<_> = pass.iter().filter(|name| deciding.contains(name)).collect();
        if let Some(name) = both.first() {
            let message = format!("{} tests are in FAIL_TO_PASS too, first {name:?}", both.len());
            self.warn(
                "test-in-both-lists",
                "PASS_TO_PASS",
                message,
                "a test is either failing or passing before",
            );
        }
        for (field, names) in [("FAIL_TO_PASS", fail), ("PASS_TO_PASS", pass)] {
            let cut: Vec<_> = names.iter().filter(|name| looks_cut(name)).collect();
            if let Some(name) = cut.first() {
                let message = format!("{} names look cut off, first {name:?}", cut.len());
                let hint =
                    "SWE-bench's pytest parser cuts names at blanks; grade with the parser that made them";
                self.warn("truncated-test-name", field, message, hint);
            }
            let repeated = names.len() - names.iter().collect::<BTreeSet<_>>().len();
            if repeated > 0 {
                let message = format!("{repeated} names occur more than once");
                self.warn("repeated-test-name", field, message, "different tests may share a cut name");
            }
        }
    }

    fn hidden(&mut self) {
        let hidden = &self.task.hidden;
        if let Some(value) = hidden.created_at.as_ref().filter(|value| date::millis(value).is_none()) {
            let message = format!("{value} is no date");
            self.warn(
                "bad-date",
                "created_at",
                message,
                "expected ISO 8601, or epoch seconds or milliseconds",
            );
        }
        if let Some(text) =
            hidden.merged_at.as_ref().filter(|text| date::millis(&(*text).clone().into()).is_none())
        {
            let message = format!("{text:?} is no date");
            self.warn(
                "bad-date",
                "merged_at",
                message,
                "expected ISO 8601; without it `merged-at` cannot order the task",
            );
        }
    }

    fn error(&mut self, kind: &'static str, field: &str, message: String, hint: &str) {
        self.add(Severity::Error, kind, field, message, hint);
    }

    fn warn(&mut self, kind: &'static str, field: &str, message: String, hint: &str) {
        self.add(Severity::Warning, kind, field, message, hint);
    }

    fn add(&mut self, severity: Severity, kind: &'static str, field: &str, message: String, hint: &str) {
        let at = RowError {
            file: self.path.to_owned(),
            row: self.row,
            instance_id: Some(self.task.id().to_string()),
            field: Some(field.to_owned()),
            message,
            hint: hint.to_owned(),
        };
        self.found.push(Problem { severity, kind, at });
    }
}

/// Why a patch cannot be parsed.
fn patch_fault(patch: &str) -> Option<String> {
    let is_git = patch.starts_with("diff --git ") || patch.contains("\ndiff --git ");
    let options = if is_git { ParseOptions::gitdiff() } else { ParseOptions::unidiff() };
    let mut files = 0;
    let fault = PatchSet::parse(patch, options).inspect(|_| files += 1).find_map(Result::err);
    fault.map(|error| error.to_string()).or_else(|| (files == 0).then(|| "it changes no file".to_owned()))
}

/// A pytest id whose parameters never end: `t.py::test_x[a` comes from `t.py::test_x[a b]`.
fn looks_cut(name: &str) -> bool {
    name.split_once("::")
        .and_then(|(_, test)| test.split_once('['))
        .is_some_and(|(_, rest)| !rest.contains(']'))
}
