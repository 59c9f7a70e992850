//! `go test -json`: one event a line.
//!
//! Before Go 1.20, whose packages have a `start`, the events were made from the lines of `go test -v` by a program that
//! believes what a test prints, and does not see a result behind text. There the output itself, read as text, has the
//! say.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;

use super::super::found::Found;
use super::super::go::block::Block;
use super::super::go::results::{Told, is_benchmark, root, told};
use super::super::scan::{Format, Structured, Take};
use super::super::status::Status;

/// `go test -json`.
pub(in crate::grade::logs) const FORMAT: Format =
    Format { name: "go test -json", open: || Box::new(Events::default()) };

/// How deep benchmarks are looked at.
const MAX_DEPTH: usize = 32;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: String,
    #[serde(default)]
    output: String,
    #[serde(default)]
    import_path: String,
    #[serde(default)]
    failed_build: String,
}

/// The events of a log; packages run side by side.
#[derive(Default)]
struct Events {
    packages: BTreeMap<String, Package>,
}

#[derive(Default)]
struct Package {
    /// Tests that have begun and have no end yet, with their lines.
    running: HashMap<String, usize>,
    /// How the tests at the top ended.
    ended: HashMap<String, Status>,
    /// It could not be built.
    build: bool,
    /// Go 1.20 or later.
    started: bool,
    /// The results of the events of an earlier version, with their lines.
    results: Vec<(usize, String, Status)>,
    text: Text,
}

/// The output of a package.
#[derive(Default)]
struct Text {
    block: Block,
    /// The line that has no end yet.
    open: String,
    /// Tests whose results stand behind text.
    behind: HashSet<String>,
}

impl Structured for Events {
    fn take(&mut self, line: &str, found: &mut Found) -> Take {
        if !line.starts_with('{') || !line.contains("\"Action\":") {
            return Take::No;
        }
        match serde_json::from_str(line) {
            Ok(event) => {
                self.event(&event, found);
                Take::Read
            }
            Err(_) => Take::No,
        }
    }

    fn end(&mut self, found: &mut Found) -> Take {
        for (name, package) in std::mem::take(&mut self.packages) {
            package.close(&name, true, found);
        }
        Take::No
    }
}

impl Events {
    fn event(&mut self, event: &Event, found: &mut Found) {
        let status = match event.action.as_str() {
            "pass" => Status::Passed,
            "fail" => Status::Failed,
            "skip" => Status::Skipped,
            "build-fail" => return found.broken(format!("{} [build failed]", event.import_path), true),
            _ => {
                let package = self.packages.entry(event.package.clone()).or_default();
                return package.progress(event, found.line());
            }
        };
        if event.test.is_empty() {
            let package = self.packages.remove(&event.package).unwrap_or_default();
            return package.end(event, status, found);
        }
        let package = self.packages.entry(event.package.clone()).or_default();
        package.running.remove(&event.test);
        if root(&event.test) == event.test {
            package.ended.insert(event.test.clone(), status.clone());
        }
        if package.started {
            found.test(full(&event.package, &event.test), status).known_as(&*event.test);
        } else {
            package.results.push((found.line(), event.test.clone(), status));
        }
    }
}

impl Package {
    fn progress(&mut self, event: &Event, line: usize) {
        if event.action == "output" && !self.started {
            self.text.output(&event.output, line);
        }
        match event.action.as_str() {
            "start" => self.started = true,
            "run" => {
                self.running.insert(event.test.clone(), line);
                self.ended.remove(&event.test);
            }
            // The measurement of a benchmark is all the end that it and what it is part of have.
            "bench" => self.measured(&event.test),
            "output" if is_benchmark(&event.test) && event.output.contains(" ns/op") => {
                self.measured(&event.test)
            }
            "output" => {
                let end = event.output.trim_end();
                self.build |= end.ends_with(" [build failed]") || end.ends_with(" [setup failed]");
            }
            _ => {}
        }
    }

    fn measured(&mut self, benchmark: &str) {
        let parts = benchmark.match_indices('/').map(|(slash, _)| &benchmark[..slash]).take(MAX_DEPTH);
        for part in parts.chain([benchmark]) {
            self.running.remove(part);
        }
    }

    fn end(self, event: &Event, status: Status, found: &mut Found) {
        if !event.package.is_empty() {
            found.group(&*event.package, status.clone());
        }
        if status == Status::Failed {
            let build = self.build || !event.failed_build.is_empty();
            found.broken(format!("FAIL {}", event.package), build);
        }
        self.close(&event.package, status == Status::Failed, found);
    }

    /// Writes down what is left to say of a package. What has begun and has no end has failed, but for subtests of a
    /// test that has none itself: how they ended is not told.
    fn close(mut self, package: &str, failed: bool, found: &mut Found) {
        let mut left = std::mem::take(&mut self.results);
        let told = self.text.close(package, failed, &left);
        let settled = |test: &str| told.known.contains(test);
        left.retain(|(_, test, status)| !settled(test) && (told.silent || *status != Status::Passed));
        let open = self.running.into_iter().filter(|(test, _)| {
            let top = root(test);
            (top == test || self.ended.get(top) != Some(&Status::Passed)) && !settled(test)
        });
        left.extend(open.map(|(test, line)| (line, test, Status::Failed)));
        left.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        for (line, test, status) in left.into_iter().chain(told.results) {
            found.test_at(line, full(package, &test), status).known_as(test);
        }
    }
}

impl Text {
    fn output(&mut self, output: &str, at: usize) {
        self.open.push_str(output);
        if !output.ends_with('\n') {
            return;
        }
        for line in std::mem::take(&mut self.open).lines() {
            if let Some((told, name, behind)) = told(line) {
                if behind && matches!(told, Told::Result(_)) {
                    self.behind.insert(name.to_owned());
                }
                self.block.told(told, name, behind, at);
            }
        }
    }

    /// What the output tells, beside the results of the events. A pass at the start of a line has an event of its
    /// own, or is not to be believed.
    fn close(mut self, package: &str, failed: bool, events: &[(usize, String, Status)]) -> Output {
        let silent = self.block.is_empty();
        let events: HashSet<&str> = events.iter().map(|(_, test, _)| test.as_str()).collect();
        let mut known = self.block.take_printed();
        let mut results = self.block.close(Some(package), failed);
        for (_, test, status) in &mut results {
            let behind = self.behind.contains(test) || self.behind.contains(root(test));
            if *status == Status::Passed && !events.contains(test.as_str()) && !behind {
                *status = Status::Failed;
            }
        }
        known.extend(results.iter().map(|(_, test, _)| test.clone()));
        Output { results, known, silent }
    }
}

/// What a package's output tells.
struct Output {
    results: Vec<(usize, String, Status)>,
    /// Tests of which the output tells, or that are mere output.
    known: HashSet<String>,
    /// It tells of no test at all.
    silent: bool,
}

fn full(package: &str, test: &str) -> String {
    if package.is_empty() { test.to_owned() } else { format!("{package}.{test}") }
}
