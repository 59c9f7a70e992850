//! What really happened in a run of sympy's own runner (`bin/test`).

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim, trim_end, words};

/// Tests come below the line of their file; failures once more above their tracebacks.
#[derive(Default)]
pub(super) struct BinTest {
    file: Option<String>,
    /// A test whose status a later line may have.
    open: Option<Test>,
    /// A result that stands where the open test's should: that test may have printed it.
    doubtful: Option<(Test, Status)>,
}

struct Test {
    line: usize,
    file: String,
    name: String,
}

/// Strict rules for the output of `bin/test`.
pub(super) fn strict() -> Box<dyn Scan> {
    Box::new(BinTest::default())
}

impl Scan for BinTest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if let Some(file) = file(line) {
            self.leave(Some(file), found);
            if line.contains("Failed to import") {
                found.broken(trim(line), true);
            }
        } else if let Some(test) = heading(line) {
            self.leave(None, found);
            // With `-v` the test's line has told the status.
            if found.status(test).is_none() {
                found.test(test, Status::Failed);
            }
        } else if let Some(file) = self.file.clone() {
            self.test(file, line, found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.leave(None, found);
        Ok(())
    }
}

impl BinTest {
    fn leave(&mut self, next: Option<String>, found: &mut Found) {
        self.settle(found);
        (self.file, self.open) = (next, None);
    }

    fn test(&mut self, file: String, line: &str, found: &mut Found) {
        let Some(name) = words(line).next().filter(|_| line.starts_with("test_")) else {
            if let Some(status) = status(trim(line))
                && let Some(test) = self.open.take()
            {
                self.doubtful = None;
                test.tell(status, found);
            }
            return;
        };
        let test = Test { line: found.line(), file, name: name.to_owned() };
        let told = status(trim(&line[name.len()..]));
        self.settle(found);
        match told {
            None => self.open = Some(test),
            Some(status) if self.open.is_some() => self.doubtful = Some((test, status)),
            Some(status) => test.tell(status, found),
        }
    }

    /// What seemed to be the open test's output is none, for no status of that test came.
    fn settle(&mut self, found: &mut Found) {
        if let Some((test, status)) = self.doubtful.take() {
            self.open = None;
            test.tell(status, found);
        }
    }
}

impl Test {
    fn tell(self, status: Status, found: &mut Found) {
        let id = format!("{}:{}", self.file, self.name);
        found.test_at(self.line, id, status).known_as(self.name);
    }
}

/// `file.py[3]`, above its tests.
fn file(line: &str) -> Option<String> {
    static FILE: Pattern = LazyLock::new(|| pattern(r"^([^ω]+\.py)\[(?:\d+|\?)\]"));
    FILE.captures(line).map(|found| found[1].to_owned())
}

/// `____ file.py:test ____`, above a traceback.
fn heading(line: &str) -> Option<&str> {
    let name = trim_end(line).trim_matches('_');
    let framed = line.starts_with('_') && name.starts_with(' ') && name.ends_with(' ');
    (framed && name.contains(".py:")).then(|| trim(name))
}

/// The status at the end of a test's line, before the file's.
fn status(text: &str) -> Option<Status> {
    let own = ["[OK]", "[FAIL]"].iter().find_map(|end| text.strip_suffix(end)).map_or(text, trim);
    let (reason, word) = own.rsplit_once(' ').unwrap_or(("", own));
    Some(match word {
        "ok" if reason.is_empty() => Status::Passed,
        "F" if reason.is_empty() => Status::Failed,
        "E" if reason.is_empty() => Status::Error,
        "f" if reason.is_empty() => Status::Xfail,
        "X" if reason.is_empty() => Status::Xpass,
        "s" | "w" => Status::Skipped,
        _ => return None,
    })
}
