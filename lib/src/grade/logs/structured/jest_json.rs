//! The JSON that jest and vitest write (`--json`, `--reporter=json`).

use serde_json::Value;

use super::super::found::Found;
use super::super::scan::Format;
use super::super::status::Status;
use super::document::{Documents, Syntax};

/// A whole report, in one line (behind what a test may have printed) or in several.
pub(in crate::grade::logs) const JEST_JSON: Format =
    Format { name: "jest JSON", open: || Documents::new(Syntax::Json, begins, read) };

fn begins(line: &str) -> bool {
    line == "{" || line.starts_with("{\"num") || line.starts_with("{ \"num")
}

fn read(document: &str, _: usize, found: &mut Found) -> Result<bool, String> {
    let Ok(report) = serde_json::from_str::<Value>(document) else { return Ok(false) };
    let (Some(files), Some(_)) = (report["testResults"].as_array(), report.get("numTotalTests")) else {
        return Ok(false);
    };
    for file in files {
        let name = file["name"].as_str().or_else(|| file["testFilePath"].as_str()).unwrap_or("a file");
        let tests = file["assertionResults"].as_array().map_or(&[][..], Vec::as_slice);
        for test in tests {
            read_test(name, test, found);
        }
        let failed = file["status"] == "failed";
        let status = if failed { Status::Failed } else { Status::Passed };
        found.group(name, status);
        if failed && !tests.iter().any(|test| test["status"] == "failed") {
            found.broken(format!("{name}: test suite failed to run"), tests.is_empty());
        }
    }
    Ok(true)
}

fn read_test(file: &str, test: &Value, found: &mut Found) {
    let status = match test["status"].as_str() {
        Some("passed") => Status::Passed,
        Some("failed") => Status::Failed,
        Some("pending" | "skipped" | "todo" | "disabled") => Status::Skipped,
        _ => return,
    };
    let suites = test["ancestorTitles"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = suites
        .iter()
        .chain([&test["title"]])
        .filter_map(Value::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    let flat = names.join(" > ");
    found.test(format!("{file} > {flat}"), status).known_as(flat);
}
