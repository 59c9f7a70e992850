//! What happened under ExUnit: the trace's modules and tests, and the failures that every format lists.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern};
use super::upstream;

/// A test that began in the module that runs.
struct Test {
    line: usize,
    status: Option<Status>,
    alias: Option<String>,
    /// Whether it may be a name that ends like a result, of a test that begins, or else something that a test printed.
    doubtful: bool,
}

/// Reads ExUnit's output.
#[derive(Default)]
pub(super) struct Trace {
    module: String,
    /// The tests of the module by their name with their line, while it runs.
    tests: BTreeMap<String, Test>,
    /// Whether the log has lines of tests that begin.
    begins: bool,
    /// A failure whose place the next line has to name.
    failure: Option<(usize, String, String)>,
}

impl Trace {
    /// `  * test name (0.1ms) [L#3]`, with the name as the same line had it before the test ran.
    fn traced(&mut self, line: &str, found: &Found) {
        static TRACED: Pattern = LazyLock::new(|| {
            pattern(r"^  \* (.+?)( \((?:\d+\.\d+ms|skipped|excluded|invalid)\))?( \[L#\d+\])$")
        });
        let Some(traced) = TRACED.captures(line) else { return };
        let key = format!("{}{}", &traced[1], &traced[3]);
        let alias = || upstream::trace_line(line).map(|(name, _)| name.to_owned());
        let status = match traced.get(2).map(|end| end.as_str()) {
            None => {
                self.begins = true;
                let test = Test { line: found.line(), status: None, alias: alias(), doubtful: false };
                self.tests.insert(key, test);
                return;
            }
            Some(" (skipped)" | " (excluded)") => Status::Skipped,
            Some(" (invalid)") => Status::Error,
            Some(_) => Status::Passed,
        };
        // A result of a test that did not begin is something that a test printed.
        match self.tests.get_mut(&key) {
            Some(test) => (test.status, test.alias) = (Some(status), alias()),
            None if !self.begins => {
                let test = Test { line: found.line(), status: Some(status), alias: alias(), doubtful: false };
                self.tests.insert(key, test);
            }
            None => {
                let name = format!("{}{}{}", &traced[1], &traced[2], &traced[3]);
                let test = Test { line: found.line(), status: None, alias: alias(), doubtful: true };
                self.tests.entry(name).or_insert(test);
            }
        }
    }

    /// The module is over; none of its tests ran where its set-up failed.
    fn flush(&mut self, found: &mut Found) {
        for (name, test) in std::mem::take(&mut self.tests) {
            if test.doubtful && test.status.is_none() {
                continue;
            }
            let name = format!("{}: {}", self.module, without_line(&name));
            let status = test.status.unwrap_or(Status::Error);
            found.test_at(test.line, &name, status).known_as(test.alias.unwrap_or(name));
        }
    }

    /// `  1) test name (Module)`, and below it the file.
    fn failed(&mut self, line: &str, found: &mut Found) {
        static FAILED: Pattern = LazyLock::new(|| pattern(r"^ +\d+\) (.+) \(([A-Z][\w.]*)\)$"));
        static SET_UP: Pattern =
            LazyLock::new(|| pattern(r"^ +\d+\) ([A-Z][\w.]*): failure on setup_all callback"));
        if let Some((at, name, alias)) = self.failure.take()
            && line.starts_with("     ")
            && line.contains(':')
        {
            found.test_at(at, name, Status::Failed).known_as(alias);
        }
        if let Some(failed) = FAILED.captures(line) {
            let name = format!("{}: {}", &failed[2], &failed[1]);
            let alias =
                upstream::trace_line(line).map_or_else(|| name.clone(), |(alias, _)| alias.to_owned());
            self.failure = Some((found.line(), name, alias));
        } else if let Some(broken) = SET_UP.captures(line) {
            found.broken(line, false);
            if broken[1] == self.module {
                self.tests.values_mut().for_each(|test| test.status = Some(Status::Error));
            }
        }
    }
}

/// A test's name without ` [L#3]`.
fn without_line(name: &str) -> &str {
    name.rfind(" [L#").map_or(name, |at| &name[..at])
}

impl Scan for Trace {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static MODULE: Pattern = LazyLock::new(|| pattern(r"^([A-Z][\w.]*)(?: \[.+\])?$"));
        if let Some(module) = MODULE.captures(line) {
            self.flush(found);
            module[1].clone_into(&mut self.module);
        } else if line.starts_with("  * ") {
            self.traced(line, found);
        } else if line.starts_with("== Compilation error in file ") || line.starts_with("** (CompileError)") {
            found.broken(line, true);
        } else {
            self.failed(line, found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.flush(found);
        Ok(())
    }
}
