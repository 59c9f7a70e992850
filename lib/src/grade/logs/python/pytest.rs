//! What really happened in a pytest session: whole ids from the short summary, `-v` lines and xdist's lines.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};
use super::pytest_lines::{Line, glued, progress_line, summary_line};

/// The upstream name of the test of this id.
pub(super) type Alias = fn(&str) -> Option<String>;

/// Where in pytest's output a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    /// Before the tests, or their `-v` lines.
    #[default]
    Progress,
    /// Tracebacks and captured output: whatever stands there, the tests printed.
    Report,
    /// The short summary.
    Summary,
}

struct Seen {
    line: usize,
    id: String,
    status: Status,
}

/// A test that runs.
struct Open {
    id: String,
    /// Whether it has a status.
    told: bool,
    /// A status right behind what the test printed, which it may have printed too: it counts if no other comes.
    glued: Option<(usize, Status)>,
}

/// One session after another. Tests may print whole sessions (plugins' tests do): within a report, only the last
/// summary is the session's own, and totals end it only if they are of as many tests as were collected.
#[derive(Default)]
struct Session {
    section: Section,
    /// How many tests were collected, where that is known.
    collected: Option<usize>,
    /// Whether files could not be collected, as far as is known.
    misses: bool,
    ended: bool,
    /// The last line told why the session stops early.
    stopped: bool,
    progress: Vec<Seen>,
    /// The test whose `-v` line has begun.
    open: Option<Open>,
    /// Every test whose `-v` line has begun.
    begun: BTreeSet<String>,
    /// A result that stands where the open test's should: that test may have printed it.
    doubtful: Option<Seen>,
    summary: Vec<Seen>,
    /// Whether the summary lists all passed tests.
    complete: bool,
    /// The passed tests of the summary.
    passed: BTreeSet<String>,
    broken: Vec<(usize, String)>,
}

pub(super) struct Pytest {
    alias: Alias,
    session: Session,
}

/// Strict rules for pytest's output.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Pytest { alias, session: Session::default() })
}

impl Scan for Pytest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let stops = line.starts_with("!!!") && (self.session.misses || !line.contains("during collection"));
        let stopped = std::mem::replace(&mut self.session.stopped, stops);
        if let Some(title) = title(line) {
            self.heading(title, stopped, found);
            return Ok(());
        }
        let (session, at) = (&mut self.session, found.line());
        match session.section {
            Section::Progress => session.progress(line, at),
            Section::Report => {}
            Section::Summary if quiet_totals(line) => {
                session.end(line);
                self.start(found);
            }
            Section::Summary if session.ended => session.outside(line, at),
            Section::Summary => session.summarize(line, at),
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.start(found);
        Ok(())
    }
}

impl Pytest {
    fn heading(&mut self, title: &str, stopped: bool, found: &mut Found) {
        let session = &mut self.session;
        if session.runs_on() {
            return;
        }
        match title {
            "test session starts" => {
                let known = session.collected.is_some();
                if session.ended || session.section == Section::Progress || !known {
                    self.start(found);
                }
            }
            "short test summary info" => {
                session.summary.clear();
                session.passed.clear();
                session.broken.clear();
                session.ended = false;
                session.section = Section::Summary;
            }
            _ if totals(title).is_some() => {
                let all = match (session.collected, totals(title)) {
                    (Some(collected), Some(told)) => told >= collected,
                    _ => session.section != Section::Report,
                };
                if all || stopped {
                    session.end(title);
                    if session.section == Section::Report {
                        session.section = Section::Progress;
                    }
                }
            }
            _ if session.section == Section::Summary || begins_report(title) => {
                session.ended = false;
                session.section = Section::Report;
            }
            _ => {}
        }
    }

    /// What was seen of the session is all there is; another begins.
    fn start(&mut self, found: &mut Found) {
        let mut session = std::mem::take(&mut self.session);
        session.settle();
        for (line, text) in session.broken {
            found.broken_at(line, text, true);
        }
        // The summary says how tests ended; a passed test that a whole list of passed tests lacks was printed.
        let complete = session.ended && session.complete;
        let listed: BTreeSet<String> = session.summary.iter().map(|seen| seen.id.clone()).collect();
        session
            .progress
            .retain(|seen| !(listed.contains(&seen.id) || complete && seen.status == Status::Passed));
        for Seen { line, id, status } in session.progress.into_iter().chain(session.summary) {
            let alias = (self.alias)(&id);
            let test = found.test_at(line, id, status);
            if let Some(alias) = alias {
                test.known_as(alias);
            }
        }
    }
}

impl Session {
    fn progress(&mut self, line: &str, at: usize) {
        let Some(told) = progress_line(line) else { return self.outside(line, at) };
        if let Line::Status(status) = told {
            if let Some(open) = &mut self.open {
                open.told = true;
                self.doubtful = None;
                let glued = open.glued.take();
                for (line, status) in glued.into_iter().chain([(at, status)]) {
                    self.progress.push(Seen { line, id: open.id.clone(), status });
                }
            }
            return;
        }
        let (Line::Result(id, _) | Line::Worker(id, _) | Line::Start(id, _)) = told else { return };
        let id = id.to_owned();
        if self.doubtful.is_some() || self.open.as_ref().is_some_and(|open| open.told || open.id == id) {
            self.settle();
        }
        match told {
            Line::Result(_, status) if self.open.is_some() => {
                self.doubtful = Some(Seen { line: at, id, status });
            }
            Line::Result(_, status) => {
                self.begun.insert(id.clone());
                self.open = Some(Open { id: id.clone(), told: true, glued: None });
                self.progress.push(Seen { line: at, id, status });
            }
            Line::Worker(_, status) => {
                self.settle();
                self.progress.push(Seen { line: at, id, status });
            }
            Line::Start(_, glued) => {
                self.settle();
                self.begun.insert(id.clone());
                self.open = Some(Open { id, told: false, glued: glued.map(|status| (at, status)) });
            }
            Line::Status(_) => {}
        }
    }

    /// The open test is over, for another begins; what seemed to be its output is none.
    fn settle(&mut self) {
        if let Some(Open { id, told: false, glued: Some((line, status)) }) = self.open.take() {
            self.progress.push(Seen { line, id, status });
        }
        if let Some(seen) = self.doubtful.take() {
            self.begun.insert(seen.id.clone());
            self.open = Some(Open { id: seen.id.clone(), told: true, glued: None });
            self.progress.push(seen);
        }
    }

    /// Whether a heading must be a test's output: a test runs, and others are to come.
    fn runs_on(&self) -> bool {
        let waits = self.open.as_ref().is_some_and(|open| !open.told && open.glued.is_none());
        waits && self.collected.is_some_and(|collected| self.begun.len() < collected)
    }

    /// The totals came. What the summary lists beyond them stands in the text of a failure.
    fn end(&mut self, totals: &str) {
        self.ended = true;
        let listed = |status: Status| self.summary.iter().filter(|seen| seen.status == status).count();
        let (passed, failed) = (listed(Status::Passed), listed(Status::Failed));
        let bad = |seen: &Seen| matches!(seen.status, Status::Failed | Status::Error);
        self.complete = passed > 0 && count(totals, "passed") == passed;
        if !self.complete
            && let Some(first) = self.summary.iter().position(bad)
        {
            let before = self.summary.drain(..first).collect::<Vec<_>>();
            let after = self.summary.drain(..).filter(|seen| seen.status != Status::Passed);
            self.summary = before.into_iter().chain(after).collect();
        }
        if failed > count(totals, "failed") {
            let passed = self.progress.iter().filter(|seen| seen.status == Status::Passed);
            let failed = self.progress.iter().filter(|seen| bad(seen)).map(|seen| &seen.id);
            let failed: BTreeSet<&String> = failed.collect();
            let passed: BTreeSet<&String> =
                passed.map(|seen| &seen.id).filter(|id| !failed.contains(id)).collect();
            self.summary.retain(|seen| seen.status != Status::Failed || !passed.contains(&seen.id));
        }
    }

    fn outside(&mut self, line: &str, at: usize) {
        static WORKERS: Pattern =
            LazyLock::new(|| pattern(r"^(?:gw\d+ \[(\d+)\]|\d+ workers? \[(\d+) items?\])"));
        static COLLECTED: Pattern = LazyLock::new(|| {
            pattern(r"^(?:collecting .*)?collected (\d+) items?(?: / (?:(\d+) deselected|[^/]*))*$")
        });
        static SELECTED: Pattern = LazyLock::new(|| pattern(r" / (\d+) selected"));
        if let Some(open) = self.open.as_mut().filter(|open| !open.told) {
            if let Some(status) = glued(line) {
                let worst =
                    open.glued.take().map_or(status.clone(), |(_, known)| known.worse(&status).clone());
                open.glued = Some((at, worst));
            }
        } else if line.starts_with("coll") {
            if let Some(found) = COLLECTED.captures(line) {
                let number = |at| found.get(at).and_then(|text| text.as_str().parse::<usize>().ok());
                let selected = SELECTED.captures(line).and_then(|found| found[1].parse().ok());
                let rest = number(1).map(|all| all.saturating_sub(number(2).unwrap_or(0)));
                self.collected = selected.or(rest);
                self.misses = line.contains(" error");
            }
        } else if let Some(found) = WORKERS.captures(line) {
            let number = found.get(1).or(found.get(2));
            self.collected = number.and_then(|text| text.as_str().parse().ok());
            self.misses = true;
        } else if self.progress.is_empty()
            && (line.starts_with("ERROR: ") || line.starts_with("ImportError while loading conftest"))
        {
            self.broken.push((at, line.to_owned()));
        }
    }

    fn summarize(&mut self, line: &str, at: usize) {
        let Some((id, status)) = summary_line(line) else { return };
        // Statuses come one after another; one that comes back stands in the text of a failure, and so does the
        // failure of a test that passed (failed subtests aside).
        if status == Status::Failed && line.starts_with("FAILED") && self.passed.contains(id) {
            return;
        }
        if status == Status::Passed {
            self.passed.insert(id.to_owned());
        }
        let block = |status: &Status| self.summary.iter().rposition(|seen| seen.status == *status);
        if block(&status).is_some_and(|last| last + 1 < self.summary.len()) {
            return;
        }
        if status == Status::Error && !id.contains("::") {
            self.broken.push((at, line.to_owned()));
        } else {
            // doctest items of text files (`README.rst`) and plugins' own items have no `::`.
            self.summary.push(Seen { line: at, id: id.to_owned(), status });
        }
    }
}

/// The title of a line of `=`.
fn title(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('=')?.strip_suffix('=')?.trim_matches('=');
    rest.strip_prefix(' ').map(trim)
}

fn begins_report(title: &str) -> bool {
    ["ERRORS", "FAILURES", "PASSES", "XPASSES", "XFAILURES", "RERUNS", "warnings summary"].contains(&title)
}

/// How many results a line of totals has.
fn totals(title: &str) -> Option<usize> {
    static TIME: Pattern = LazyLock::new(|| pattern(r"\bin \d+(?:\.\d+)?(?:s| seconds)\b"));
    let kinds = ["failed", "passed", "skipped", "xfailed", "xpassed", "error", "errors"];
    TIME.is_match(title).then(|| kinds.iter().map(|kind| count(title, kind)).fold(0, usize::saturating_add))
}

/// The number before a word of a line of totals.
fn count(totals: &str, kind: &str) -> usize {
    let mut words = totals.split([' ', ',']).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        if words.peek() == Some(&kind) {
            return word.parse().unwrap_or(0);
        }
    }
    0
}

/// The totals of a session with `-q`.
fn quiet_totals(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit()) && totals(line).is_some_and(|told| told > 0)
}
