//! The events of `dart test --reporter json` and `flutter test --machine`, one a line.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::found::Found;
use super::super::scan::{Format, Structured, Take};
use super::super::status::Status;

/// Dart's events.
pub(in crate::grade::logs) const DART_JSON: Format =
    Format { name: "Dart test events", open: || Box::<Events>::default() };

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Event {
    Start {},
    Suite {
        suite: Suite,
    },
    TestStart {
        test: Begun,
    },
    TestDone(Done),
    Done {
        success: Option<bool>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Suite {
    id: u64,
    path: Option<String>,
}

#[derive(Deserialize)]
struct Begun {
    id: u64,
    name: String,
    #[serde(rename = "suiteID")]
    suite: u64,
}

#[derive(Deserialize)]
struct Done {
    #[serde(rename = "testID")]
    test: u64,
    result: String,
    #[serde(default)]
    skipped: bool,
    #[serde(default)]
    hidden: bool,
}

#[derive(Default)]
struct Events {
    suites: BTreeMap<u64, String>,
    running: BTreeMap<u64, (usize, Begun)>,
}

impl Events {
    fn event(&mut self, event: Event, found: &mut Found) {
        match event {
            Event::Start {} => {
                self.end(found);
                self.suites.clear();
            }
            Event::Suite { suite } => {
                self.suites.insert(suite.id, suite.path.unwrap_or_default());
            }
            Event::TestStart { test } => {
                self.running.insert(test.id, (found.line(), test));
            }
            Event::TestDone(done) => self.done(&done, found),
            Event::Done { success: None } => found.broken("the run was interrupted", false),
            Event::Done { success: Some(_) } | Event::Other => {}
        }
    }

    fn done(&mut self, done: &Done, found: &mut Found) {
        let Some((_, begun)) = self.running.remove(&done.test) else { return };
        let status = match done.result.as_str() {
            "success" if done.skipped => Status::Skipped,
            "success" => Status::Passed,
            "failure" => Status::Failed,
            _ => Status::Error,
        };
        // A suite that is loaded is no test, but one that cannot be loaded never runs its tests.
        if begun.name.starts_with("loading ") {
            if status != Status::Passed && status != Status::Skipped {
                found.broken(format!("{} failed", begun.name), true);
            }
        } else if !done.hidden || matches!(status, Status::Failed | Status::Error) {
            found.test(self.name(&begun), status).known_as(begun.name);
        }
    }

    fn name(&self, test: &Begun) -> String {
        match self.suites.get(&test.suite) {
            Some(path) if !path.is_empty() => format!("{path}: {}", test.name),
            _ => test.name.clone(),
        }
    }
}

impl Structured for Events {
    fn take(&mut self, line: &str, found: &mut Found) -> Take {
        let line = line.trim();
        // flutter wraps the events of its own daemon in a list.
        if !line.starts_with('{') || !line.contains("\"type\"") {
            return Take::No;
        }
        let Ok(event) = serde_json::from_str(line) else { return Take::No };
        self.event(event, found);
        Take::Read
    }

    fn end(&mut self, found: &mut Found) -> Take {
        for (_, (line, test)) in std::mem::take(&mut self.running) {
            if !test.name.starts_with("loading ") {
                found.test_at(line, self.name(&test), Status::Error).known_as(test.name);
            }
        }
        Take::No
    }
}
