//! RSpec's `--format json`.

use serde::Deserialize;

use super::super::found::Found;
use super::super::scan::Format;
use super::super::status::Status;
use super::document::{Documents, Syntax};

/// A report of RSpec.
pub(in crate::grade::logs) const RSPEC_JSON: Format =
    Format { name: "RSpec JSON", open: || Documents::open(Syntax::Json, |line| line.starts_with('{'), read) };

#[derive(Deserialize)]
struct Report {
    examples: Vec<Example>,
    summary: Summary,
}

#[derive(Deserialize)]
struct Example {
    full_description: String,
    status: String,
}

#[derive(Deserialize)]
struct Summary {
    example_count: usize,
    #[serde(default)]
    errors_outside_of_examples_count: usize,
}

fn read(document: &str, line: usize, found: &mut Found) -> Result<bool, String> {
    let Ok(Report { examples, summary }) = serde_json::from_str(document) else { return Ok(false) };
    if summary.example_count != examples.len() {
        return Err(format!(
            "RSpec ran {} examples, its report has {}",
            summary.example_count,
            examples.len()
        ));
    }
    if summary.errors_outside_of_examples_count > 0 {
        let errors = summary.errors_outside_of_examples_count;
        found.broken(format!("{errors} errors occurred outside of examples"), true);
    }
    for Example { full_description, status } in examples {
        let status = match status.as_str() {
            "passed" => Status::Passed,
            "failed" => Status::Failed,
            _ => Status::Skipped,
        };
        found.test_at(line, full_description, status);
    }
    Ok(true)
}
