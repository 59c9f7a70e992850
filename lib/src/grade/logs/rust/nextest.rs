//! cargo-nextest in text.

use std::collections::{BTreeMap, BTreeSet};

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::trim_end;

/// The columns of a line's first word.
const WIDTH: usize = 12;

/// The runs of nextest in a log.
#[derive(Default)]
pub(super) struct Nextest {
    run: Option<Run>,
}

#[derive(Default)]
struct Run {
    /// Its beginning has not been seen, so that lines that are not nextest's need not belong to it.
    headless: bool,
    /// The count of tests to run, as every line repeats it.
    count: Option<usize>,
    /// Of each test the last attempt at it.
    tests: BTreeMap<String, Attempt>,
    /// Tests that have begun, and not ended.
    begun: BTreeSet<String>,
    /// The passes that the summary counts.
    passed: Option<usize>,
}

struct Attempt {
    line: usize,
    number: usize,
    status: Status,
}

impl Nextest {
    /// Reads a line; whether it belongs to a run of nextest.
    pub(super) fn line(&mut self, line: &str, found: &mut Found) -> bool {
        let line = trim_end(line);
        let start = line.strip_prefix("    Starting ").filter(|rest| rest.contains(" test")).and_then(number);
        let begins = line.starts_with(" Nextest run ID ") || (start.is_some() && self.run.is_none());
        if begins || self.run.as_ref().is_some_and(|run| run.is_over(line)) {
            self.end(found);
            self.run = begins.then(Run::default);
        }
        let told = Line::of(line);
        // The head of the log may be missing.
        let run = match &mut self.run {
            Some(run) => run,
            none if told.is_some() => none.insert(Run { headless: true, ..Run::default() }),
            _ => return false,
        };
        run.count = run.count.or(start);
        let is_told = told.is_some();
        run.line(line, told, found.line());
        is_told || !run.headless
    }

    pub(super) fn end(&mut self, found: &mut Found) {
        if let Some(run) = self.run.take() {
            run.end(found);
        }
    }
}

impl Run {
    /// Whether a line is of another run of tests.
    fn is_over(&self, line: &str) -> bool {
        let other =
            line.starts_with("     Running ") && line.ends_with(')') || line.starts_with("   Doc-tests ");
        other || (self.passed.is_some() && line.starts_with("running "))
    }

    fn line(&mut self, line: &str, told: Option<Line>, at: usize) {
        if let Some(rest) = line.strip_prefix("     Summary [") {
            // `12 tests run: 8 passed`, or `1/12 tests run` where it was stopped.
            let Some((tests, counts)) = rest.split_once("] ").and_then(|(_, rest)| rest.split_once(" run: "))
            else {
                return;
            };
            let of = tests.split_once('/').map_or(tests, |(_, of)| of);
            if self.count.is_none() || number(of.trim_start_matches(' ')) == self.count {
                self.passed = number(counts);
            }
        } else if let Some(told) = told.filter(|told| self.counts(told)) {
            self.told(&told, at);
        }
    }

    /// Whether the line's count of tests is that of this run.
    fn counts(&self, told: &Line) -> bool {
        told.of.is_none() || self.count.is_none() || told.of == self.count
    }

    fn told(&mut self, told: &Line, at: usize) {
        let Some(status) = told.status.clone() else {
            self.begun.insert(told.test.to_owned());
            return;
        };
        let number = told.attempt.unwrap_or(usize::MAX);
        match self.tests.get_mut(told.test) {
            Some(last) if last.number > number => {}
            // Two results of one attempt: one was printed.
            Some(last) if last.number == number => last.status = last.status.worse(&status).clone(),
            _ => {
                self.tests.insert(told.test.to_owned(), Attempt { line: at, number, status });
            }
        }
    }

    fn end(mut self, found: &mut Found) {
        for test in &self.begun {
            let failed = Attempt { line: found.line(), number: 0, status: Status::Failed };
            self.tests.entry(test.clone()).or_insert(failed);
        }
        let passed = self.tests.values().filter(|test| test.status == Status::Passed).count();
        let doubt = self.passed.filter(|counted| passed > *counted);
        if let Some(counted) = doubt {
            let why = format!(
                "{passed} tests are said to have passed where {counted} are counted: which, cannot be told"
            );
            found.broken(why, false);
        }
        for (name, Attempt { line, status, .. }) in self.tests {
            if doubt.is_none() || status != Status::Passed {
                let path = name.split_once(' ').map_or(name.as_str(), |(_, path)| path).to_owned();
                found.test_at(line, name, status).known_as(path);
            }
        }
    }
}

/// The number at the start of a text.
fn number(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// `  TRY 2 PASS [   0.006s] ( 3/12) package::binary path::of::test`
struct Line<'a> {
    attempt: Option<usize>,
    /// `None` for a test that goes on.
    status: Option<Status>,
    /// How many tests there are.
    of: Option<usize>,
    test: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (start, rest) = after_bar(line).split_once(" [")?;
        let word = start.trim_start_matches(' ');
        // The word ends in the twelfth column; output of tests is indented.
        if start.len() != WIDTH && (start.len() < WIDTH || word.len() < start.len()) {
            return None;
        }
        let (attempt, word) = match word.strip_prefix("TRY ").and_then(|rest| rest.split_once(' ')) {
            Some((attempt, word)) => (number(attempt), word),
            None => (flaky(word), word),
        };
        let status = status(word)?;
        let (time, rest) = rest.split_once("] ")?;
        if !time.chars().all(|c| c.is_ascii_digit() || " >.:s".contains(c)) {
            return None;
        }
        let (of, test) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((counter, test)) => (counter.split_once('/').and_then(|(_, of)| number(of)), test),
            None => (None, rest),
        };
        let (binary, path) = test.split_once(' ')?;
        (!binary.is_empty() && !path.is_empty()).then_some(Self { attempt, status, of, test })
    }
}

/// What stands behind the bar that shows progress in a terminal, if there is one.
fn after_bar(line: &str) -> &str {
    let cleared = line.len() > 60 && line.as_bytes()[..60].iter().all(|byte| *byte == b' ');
    let bar = cleared || line.starts_with("     Running [ ") || line.starts_with("             [ ");
    let word = line.rfind(" [").filter(|_| bar).and_then(|end| end.checked_sub(WIDTH));
    word.and_then(|at| line.get(at..)).unwrap_or(line)
}

/// The attempt that `FLAKY 2/3` passed in.
fn flaky(word: &str) -> Option<usize> {
    word.strip_prefix("FLAKY ").or_else(|| word.strip_prefix("FLKY-FL "))?.split('/').next()?.parse().ok()
}

/// What a word says: nothing that is known, that the test goes on (`Some(None)`), or how it ended.
fn status(word: &str) -> Option<Option<Status>> {
    Some(match word.split(' ').next().unwrap_or_default() {
        "PASS" | "LEAK" | "FLAKY" | "TIMEOUT-PASS" | "TMPASS" => Some(Status::Passed),
        "SKIP" => Some(Status::Skipped),
        "SLOW" | "TERMINATING" | "TRMNTG" | "RETRY" | "DELAY" | "START" => None,
        "FAIL" | "ABORT" | "ABRT" | "TIMEOUT" | "TMT" | "LEAK-FAIL" | "LKFAIL" | "FLKY-FL" | "EXECFAIL"
        | "XFAIL" => Some(Status::Failed),
        signal if signal.starts_with("SIG") => Some(Status::Failed),
        _ => return None,
    })
}
