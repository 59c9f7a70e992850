//! Tasks of a file: one by one, or all.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::decode;
use super::error::{DatasetError, Problem, RowError, Severity};
use super::fields::Fields;
use super::rows;
use crate::task::{InstanceId, Task};

/// One row of a file.
#[derive(Debug)]
pub struct ReadRow {
    /// The line of a JSONL file, else the place in the file; from 1.
    pub row: u64,
    /// The task, or what is wrong with the row.
    pub task: Result<Task, Box<RowError>>,
    /// What was mended while reading.
    pub warnings: Vec<Problem>,
}

/// The tasks of a file.
#[derive(Debug, Clone)]
pub struct TaskFile {
    /// The file.
    pub path: PathBuf,
    /// Its tasks in the file's order; no id occurs twice.
    pub tasks: Vec<Task>,
    /// What was mended while reading.
    pub warnings: Vec<Problem>,
    /// Rows that were left out, with the reason. Always empty after [`read_tasks`].
    pub errors: Vec<RowError>,
}

impl TaskFile {
    /// The task with this id.
    pub fn get(&self, id: &InstanceId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id() == id)
    }
}

/// Streams the rows of a file. A bad row is handed over as an error and does not stop the reading of the others; the
/// callback may stop early. Duplicates are the caller's to notice.
///
/// # Errors
/// When the file cannot be read to its end. Rows before that place were handed over.
pub fn for_each_row(path: &Path, on: &mut dyn FnMut(ReadRow) -> ControlFlow<()>) -> Result<(), DatasetError> {
    rows::for_each(path, &mut |raw| {
        let place = RowError {
            file: path.to_owned(),
            row: raw.row,
            instance_id: None,
            field: None,
            message: String::new(),
            hint: String::new(),
        };
        let mut warnings = Vec::new();
        let task = raw.columns.and_then(|columns| {
            let fields = Fields::new(columns, place);
            if raw.repaired > 0 {
                let message = format!("{} lone surrogate escapes became U+FFFD", raw.repaired);
                let at = *fields.error(None, message, "nothing to do, unless a test's name holds one");
                warnings.push(Problem { severity: Severity::Warning, kind: "lone-surrogate", at });
            }
            let (task, mended) = decode::task(fields)?;
            warnings.extend(mended);
            Ok(task)
        });
        on(ReadRow { row: raw.row, task, warnings })
    })
}

/// Reads all tasks of a file.
///
/// # Errors
/// At the first row that is wrong or repeats an id, or when the file cannot be read to its end.
pub fn read_tasks(path: &Path) -> Result<TaskFile, DatasetError> {
    let mut first_error = None;
    let file = collect(path, &mut |error| {
        first_error = Some(error);
        ControlFlow::Break(())
    })?;
    match first_error {
        Some(error) => Err(DatasetError::Row(error)),
        None => Ok(file),
    }
}

/// Reads the tasks of a file, leaving out rows that are wrong or repeat an id; they are listed in
/// [`TaskFile::errors`].
///
/// # Errors
/// When the file cannot be read to its end.
pub fn read_tasks_leniently(path: &Path) -> Result<TaskFile, DatasetError> {
    let mut errors = Vec::new();
    let mut file = collect(path, &mut |error| {
        errors.push(*error);
        ControlFlow::Continue(())
    })?;
    file.errors = errors;
    Ok(file)
}

fn collect(
    path: &Path,
    on_error: &mut dyn FnMut(Box<RowError>) -> ControlFlow<()>,
) -> Result<TaskFile, DatasetError> {
    let mut file =
        TaskFile { path: path.to_owned(), tasks: Vec::new(), warnings: Vec::new(), errors: Vec::new() };
    let mut seen = BTreeMap::new();
    for_each_row(path, &mut |row| {
        file.warnings.extend(row.warnings);
        match row.task {
            Ok(task) => match seen.insert(task.id().clone(), row.row) {
                None => {
                    file.tasks.push(task);
                    ControlFlow::Continue(())
                }
                Some(first) => {
                    on_error(Box::new(duplicate(path, row.row, task.id(), &format!("row {first}"))))
                }
            },
            Err(error) => on_error(error),
        }
    })?;
    Ok(file)
}

/// The error of a row whose id occurred before.
pub(super) fn duplicate(path: &Path, row: u64, id: &InstanceId, first: &str) -> RowError {
    RowError {
        file: path.to_owned(),
        row,
        instance_id: Some(id.to_string()),
        field: Some("instance_id".to_owned()),
        message: format!("{id} occurs before, at {first}"),
        hint: "keep one of the rows".to_owned(),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
