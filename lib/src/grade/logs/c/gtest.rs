//! What GoogleTest really says.

use std::collections::BTreeMap;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::lines;

/// Reads GoogleTest's console, alone or behind CTest's `12: `.
pub(super) fn strict() -> Box<dyn Scan> {
    Box::new(Gtest::default())
}

const MARKS: [(&str, Status); 3] = [
    ("[       OK ] ", Status::Passed),
    ("[  FAILED  ] ", Status::Failed),
    ("[  SKIPPED ] ", Status::Skipped),
];

#[derive(Default)]
struct Gtest {
    /// By the number that CTest puts before each line.
    processes: BTreeMap<String, Process>,
    /// Whether any test has begun; in brief mode none does.
    begun: bool,
}

/// A process runs one test after another.
#[derive(Default)]
struct Process {
    open: Option<Begun>,
    /// Tests that seem to begin and end within the open one: it printed them, unless it never ends.
    inner: Option<Begun>,
    held: Vec<(Begun, Status)>,
}

struct Begun {
    name: String,
    line: usize,
}

impl Scan for Gtest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let Some(at) = line.find('[') else { return Ok(()) };
        let number = if at > 0 { line[..at].split_once(": ").map_or("", |(number, _)| number) } else { "" };
        let (number, text) = match number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty() {
            true => (number, &line[number.len() + 2..]),
            false => ("", line),
        };
        if !self.processes.contains_key(number) {
            self.processes.insert(number.to_owned(), Process::default());
        }
        let Some(process) = self.processes.get_mut(number) else { return Ok(()) };
        if let Some(name) = text.strip_prefix("[ RUN      ] ") {
            self.begun = true;
            process.begin(Begun { name: name.trim_end().to_owned(), line: found.line() });
        } else if text.starts_with("[==========] Running ") {
            process.die(found);
        } else if text.starts_with("[  FAILED  ] ") && text.ends_with(": SetUpTestSuite or TearDownTestSuite")
        {
            found.broken(text, false);
        } else if self.begun {
            process.result(text, found);
        } else if let Some(name) = brief(text) {
            let name = without_value(name).to_owned();
            process.tell(&name, Status::Failed, text, found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        for process in self.processes.values_mut() {
            process.die(found);
        }
        Ok(())
    }
}

impl Process {
    fn begin(&mut self, begun: Begun) {
        if self.open.is_none() {
            self.open = Some(begun);
        } else if let Some(cut) = self.inner.replace(begun) {
            self.held.push((cut, Status::Failed));
        }
    }

    /// A result, at the start of a line or behind what a test printed.
    fn result(&mut self, text: &str, found: &mut Found) {
        for (mark, status) in MARKS {
            for (at, _) in text.match_indices(mark) {
                let rest = &text[at + mark.len()..];
                if self.open.as_ref().is_some_and(|open| is_result_of(rest, &open.name)) {
                    let Some(open) = self.open.take() else { return };
                    self.inner = None;
                    self.held.clear();
                    self.tell(&open.name, status, text, found);
                    return;
                }
                if self.inner.as_ref().is_some_and(|inner| is_result_of(rest, &inner.name)) {
                    self.held.extend(self.inner.take().map(|inner| (inner, status)));
                    return;
                }
            }
        }
    }

    fn tell(&self, name: &str, status: Status, text: &str, found: &mut Found) {
        let alias = lines::googletest_result(text).filter(|(_, told)| *told == status);
        found.test(name, status).known_as(alias.map_or(name, |(alias, _)| alias));
    }

    /// The process is gone: what began and has no end failed.
    fn die(&mut self, found: &mut Found) {
        let cut = [self.open.take(), self.inner.take()];
        for begun in cut.into_iter().flatten() {
            found.test_at(begun.line, begun.name, Status::Failed);
        }
        for (begun, status) in self.held.drain(..) {
            found.test_at(begun.line, begun.name, status);
        }
    }
}

/// Whether the text behind a mark tells of this test: `name`, `name (3 ms)`, `name, where GetParam() = 1 (3 ms)`.
fn is_result_of(rest: &str, name: &str) -> bool {
    rest.strip_prefix(name).is_some_and(|rest| {
        rest.trim_end().is_empty() || rest.starts_with(", where ") || rest.starts_with(" (")
    })
}

/// A failure where no test is said to begin (brief mode, which tells of nothing else): at the start of the line, with
/// its duration.
fn brief(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("[  FAILED  ] ")?;
    let (name, duration) = rest.trim_end().strip_suffix(" ms)")?.rsplit_once(" (")?;
    (!duration.is_empty() && duration.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

/// Without `, where GetParam() = 1`.
fn without_value(name: &str) -> &str {
    name.split_once(", where ").map_or(name, |(name, _)| name)
}
