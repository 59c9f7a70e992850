//! libtest's JSON: one event a line, as libtest and nextest (`--message-format libtest-json`) write it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::found::Found;
use super::super::rust::homes::Homes;
use super::super::scan::{Format, Structured, Take};
use super::super::status::Status;

/// libtest's JSON.
pub(in crate::grade::logs) const FORMAT: Format =
    Format { name: "libtest JSON", open: || Box::new(Events::default()) };

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    event: Option<String>,
    #[serde(default)]
    name: String,
    nextest: Option<Suite>,
}

/// What nextest says of a binary (`libtest-json-plus`).
#[derive(Deserialize)]
struct Suite {
    #[serde(rename = "crate")]
    package: String,
    test_binary: String,
    kind: String,
}

#[derive(Default)]
struct Events {
    homes: Homes,
    suite: Option<Suite>,
    /// Tests of libtest, and of nextest, that have begun and have no end yet, with their lines.
    running: BTreeMap<String, usize>,
    running_nextest: BTreeMap<(String, String), usize>,
}

impl Structured for Events {
    fn take(&mut self, line: &str, found: &mut Found) -> Take {
        if let Some(home) = self.homes.header(line) {
            self.unfinished();
            self.homes.enter(home);
            return Take::No;
        }
        // A test may have printed text without a line end before it.
        let Some(at) = line.find("{ \"type\":").or_else(|| line.find("{\"type\":")) else { return Take::No };
        match serde_json::from_str::<Event>(&line[at..]) {
            Ok(Event { kind, event: Some(event), name, .. }) if kind == "test" => {
                self.test(&event, name, found)
            }
            Ok(Event { kind, event: Some(_), nextest, .. }) if kind == "suite" => self.suite = nextest,
            _ => return Take::No,
        }
        Take::Read
    }

    fn end(&mut self, found: &mut Found) -> Take {
        self.unfinished();
        self.homes.write(found);
        // nextest may report an end in a later suite, so that nothing is missing before the log is over.
        for ((name, path), line) in std::mem::take(&mut self.running_nextest) {
            found.test_at(line, name, Status::Failed).known_as(path);
        }
        Take::No
    }
}

impl Events {
    fn test(&mut self, event: &str, name: String, found: &mut Found) {
        let status = match event {
            "ok" => Some(Status::Passed),
            "failed" => Some(Status::Failed),
            "ignored" => Some(Status::Skipped),
            "started" => None,
            _ => return, // it takes long
        };
        let nextest = self.nextest(&name);
        match (status, nextest) {
            (Some(status), None) => {
                self.running.remove(&name);
                self.homes.add(found.line(), name, status);
            }
            (None, None) => {
                self.running.insert(name, found.line());
            }
            (Some(status), Some(test)) => {
                self.running_nextest.remove(&test);
                found.test(test.0, status).known_as(test.1);
            }
            (None, Some(test)) => {
                self.running_nextest.insert(test, found.line());
            }
        }
    }

    /// What has begun and has no end when the binary is over has failed.
    fn unfinished(&mut self) {
        for (name, line) in std::mem::take(&mut self.running) {
            self.homes.add(line, name, Status::Failed);
        }
    }

    /// The name that nextest writes in text for its `package::binary$path#attempt`, and the path.
    fn nextest(&self, name: &str) -> Option<(String, String)> {
        let (binary, path) = name.split_once('$').filter(|(binary, _)| !binary.contains(' '))?;
        let (package, target) = binary.split_once("::")?;
        let path = match path.rsplit_once('#') {
            Some((path, attempt)) if attempt.parse::<u32>().is_ok() => path,
            _ => path,
        };
        let suite =
            self.suite.as_ref().filter(|suite| suite.package == package && suite.test_binary == target);
        let kind = suite.map_or_else(|| guess(package, target), |suite| suite.kind.as_str());
        let binary = match kind {
            "lib" => package.to_owned(),
            "test" => binary.to_owned(),
            kind => format!("{package}::{kind}/{target}"),
        };
        Some((format!("{binary} {path}"), path.to_owned()))
    }
}

/// The kind of a binary: a library has the name of its package, with `_` for `-`, and a program may have it as it is.
fn guess(package: &str, target: &str) -> &'static str {
    match package {
        _ if package.replace('-', "_") == target => "lib",
        _ if package == target => "bin",
        _ => "test",
    }
}
