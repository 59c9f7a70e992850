//! The JSON that JavaScript runners write: jest and vitest one shape (`--json`, `--reporter=json`), mocha another (`json`,
//! or `json-stream`, a line an event).

use serde_json::Value;

use super::super::found::Found;
use super::super::scan::{Format, Structured, Take};
use super::super::status::Status;
use super::document::{Documents, Syntax};

/// A whole report of jest, vitest or mocha, in one line or in several.
pub(in crate::grade::logs) const REPORT: Format =
    Format { name: "jest, vitest and mocha JSON", open: || Documents::open(Syntax::Json, begins, read) };

/// mocha's `["pass",{…}]`.
pub(in crate::grade::logs) const MOCHA_STREAM: Format =
    Format { name: "mocha JSON stream", open: || Box::new(Stream::default()) };

fn begins(line: &str) -> bool {
    line == "{" || line.starts_with("{\"num") || line.starts_with("{ \"num")
}

fn read(document: &str, _: usize, found: &mut Found) -> Result<bool, String> {
    let Ok(report) = serde_json::from_str::<Value>(document) else { return Ok(false) };
    Ok(read_jest(&report, found) || read_mocha(&report, found))
}

fn read_jest(report: &Value, found: &mut Found) -> bool {
    let (Some(files), Some(_)) = (report["testResults"].as_array(), report.get("numTotalTests")) else {
        return false;
    };
    for file in files {
        let name = file["name"].as_str().or_else(|| file["testFilePath"].as_str()).unwrap_or("a file");
        let tests = file["assertionResults"].as_array().map_or(&[][..], Vec::as_slice);
        for test in tests {
            read_jest_test(name, test, found);
        }
        let failed = file["status"] == "failed";
        let status = if failed { Status::Failed } else { Status::Passed };
        found.group(name, status);
        if failed && !tests.iter().any(|test| test["status"] == "failed") {
            found.broken(format!("{name}: test suite failed to run"), tests.is_empty());
        }
    }
    true
}

fn read_jest_test(file: &str, test: &Value, found: &mut Found) {
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

fn read_mocha(report: &Value, found: &mut Found) -> bool {
    if report["stats"].get("suites").is_none() {
        return false;
    }
    let lists = [("passes", Status::Passed), ("failures", Status::Failed), ("pending", Status::Skipped)];
    for (list, status) in lists {
        let Some(tests) = report[list].as_array() else { return false };
        for test in tests {
            write_mocha(test, status.clone(), found);
        }
    }
    true
}

/// The full title holds the suites and the title, joined by blanks.
fn write_mocha(test: &Value, status: Status, found: &mut Found) {
    let (Some(full), Some(title)) = (test["fullTitle"].as_str(), test["title"].as_str()) else { return };
    let suites = full.strip_suffix(title).map(str::trim_end).filter(|suites| !suites.is_empty());
    let name = suites.map_or_else(|| full.to_owned(), |suites| format!("{suites} > {title}"));
    found.test(name, status).known_as(full);
}

#[derive(Default)]
struct Stream {
    total: Option<u64>,
    seen: u64,
}

impl Structured for Stream {
    fn take(&mut self, line: &str, found: &mut Found) -> Take {
        if !line.starts_with("[\"") {
            return Take::No;
        }
        let Ok((event, data)) = serde_json::from_str::<(String, Value)>(line) else { return Take::No };
        let status = match event.as_str() {
            "start" => {
                self.total = data["total"].as_u64();
                return Take::Read;
            }
            "end" => {
                self.total = None;
                return Take::Read;
            }
            "pass" => Status::Passed,
            "fail" => Status::Failed,
            _ => return Take::No,
        };
        if self.total.is_none() {
            return Take::No;
        }
        self.seen += 1;
        write_mocha(&data, status, found);
        Take::Read
    }

    fn end(&mut self, found: &mut Found) -> Take {
        if let Some(total) = self.total {
            found.broken(format!("{total} tests were announced, {} ran, and no end", self.seen), false);
        }
        Take::Back
    }
}
