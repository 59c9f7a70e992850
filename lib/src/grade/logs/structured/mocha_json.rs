//! The JSON that mocha writes: one document (`json`), or a line an event (`json-stream`).

use serde_json::Value;

use super::super::found::Found;
use super::super::scan::{Format, Structured, Take};
use super::super::status::Status;
use super::document::{Documents, Syntax};

/// A whole report.
pub(in crate::grade::logs) const MOCHA_JSON: Format =
    Format { name: "mocha JSON", open: || Documents::new(Syntax::Json, |line| line == "{", read) };

/// `["pass",{…}]`.
pub(in crate::grade::logs) const MOCHA_JSON_STREAM: Format =
    Format { name: "mocha JSON stream", open: || Box::new(Stream::default()) };

fn read(document: &str, _: usize, found: &mut Found) -> Result<bool, String> {
    let Ok(report) = serde_json::from_str::<Value>(document) else { return Ok(false) };
    if report["stats"].get("suites").is_none() {
        return Ok(false);
    }
    let lists = [("passes", Status::Passed), ("failures", Status::Failed), ("pending", Status::Skipped)];
    for (list, status) in lists {
        let Some(tests) = report[list].as_array() else { return Ok(false) };
        for test in tests {
            write(test, status.clone(), found);
        }
    }
    Ok(true)
}

/// The full title holds the suites and the title, joined by blanks.
fn write(test: &Value, status: Status, found: &mut Found) {
    let (Some(full), Some(title)) = (test["fullTitle"].as_str(), test["title"].as_str()) else { return };
    let suites = full.strip_suffix(title).map(str::trim_end).filter(|suites| !suites.is_empty());
    let name = suites.map_or_else(|| full.to_owned(), |suites| format!("{suites} > {title}"));
    found.test(name, status).known_as(title);
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
        write(&data, status, found);
        Take::Read
    }

    fn end(&mut self, found: &mut Found) -> Take {
        if let Some(total) = self.total {
            found.broken(format!("{total} tests were announced, {} ran, and no end", self.seen), false);
        }
        Take::Back
    }
}
