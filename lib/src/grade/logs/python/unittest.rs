//! What really happened in a run of unittest, and of the runners that print as it does: Django's and nose2.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim, trim_end, words};
use super::django::MIGRATIONS;

/// A test as the runner prints it: `test (module.Class.test)`.
static NAME: Pattern = LazyLock::new(|| pattern(r"^\w+ \([\w.<>-]+\)(?::\d+)?"));

/// A test that began: its line, or the second one if it has a docstring.
struct Test {
    line: usize,
    /// As the runner prints it: `test (module.Class.test)`.
    name: String,
    /// The text before ` ... `, which upstream takes for the name.
    alias: String,
    status: Option<Status>,
    /// Whether the status stands in the line of the name.
    at_once: bool,
    /// Whether it began before the one above it had a status, so that that one may have printed it.
    doubtful: bool,
    /// A pass right behind what the test printed, which counts if no other status comes.
    glued: bool,
    /// A failure below another status: the test printed that status, or a class fixture failed, whose name no line
    /// has. The headings of a whole run tell.
    below: Option<Status>,
}

/// Results are believed when the run's total comes.
#[derive(Default)]
pub(super) struct Unittest {
    /// Whether a run without total is believed, too: it was cut off.
    cut_off: bool,
    /// The name of a line whose docstring is to follow.
    described: Option<String>,
    open: Option<Test>,
    /// The test without status before the open one.
    lost: Option<Test>,
    /// How many tests began.
    begun: usize,
    closed: Vec<Test>,
    failures: Vec<Test>,
    /// Fixtures and modules that failed, by name.
    broken: BTreeSet<String>,
    heading: bool,
    /// Between the first failure's heading and the total.
    details: bool,
    /// The line before the first rule has nothing but dots and letters: names were printed by tests.
    dots: bool,
    /// The last line, unless it is long.
    last: String,
}

/// Strict rules for the output of unittest, even of a run that was cut off.
pub(super) fn strict() -> Box<dyn Scan> {
    Box::new(Unittest { cut_off: true, ..Unittest::default() })
}

/// Strict rules for the output of whole runs of unittest in the midst of other output.
pub(super) fn whole_runs() -> Box<dyn Scan> {
    Box::new(Unittest::default())
}

impl Scan for Unittest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let heading = std::mem::take(&mut self.heading);
        let is_rule = |line: &str, c: char| line.len() == 70 && line.chars().all(|other| other == c);
        let named = failure(line).filter(|_| heading || self.details && line.starts_with("UNEXPECTED"));
        if is_rule(line, '=') || is_rule(line, '-') {
            self.dots |=
                !self.details && !self.last.is_empty() && self.last.chars().all(|c| ".FEsxu".contains(c));
            self.heading = line.starts_with('=');
        } else if let Some(ran) = total(line).filter(|_| is_rule(&self.last, '-')) {
            self.settle(Some(ran), found);
        } else if let Some((name, status)) = named {
            self.details = true;
            self.failed(line, name, status, found);
        } else if !self.details {
            self.progress(line, found);
        }
        self.last.clear();
        self.last.push_str(Some(trim_end(line)).filter(|line| line.len() <= 200).unwrap_or_default());
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.settle(None, found);
        Ok(())
    }
}

impl Unittest {
    fn progress(&mut self, line: &str, found: &mut Found) {
        if let Some(name) = self.described.take().filter(|_| line.contains(" ... ")) {
            // A docstring may hold dots itself.
            let (before, rest) = match line.rsplit_once(" ... ").filter(|(_, rest)| status(rest).is_some()) {
                Some(parts) => parts,
                None => line.split_once(" ... ").unwrap_or((line, "")),
            };
            self.begin(&name, trim(before), rest, found);
            self.next_ones(line, rest, found);
        } else if start(line).is_some() {
            self.next_ones(line, line, found);
        } else if let Some(status) = subtest(line) {
            if let Some(test) = &mut self.open {
                test.end(status);
            }
        } else if let Some(status) = status(line) {
            self.alone(status);
        } else if let Some((before, name, rest)) = glued(line) {
            let known_as = if before.starts_with(MIGRATIONS) { name } else { before };
            self.begin(name, known_as, rest, found);
            if let Some(test) = &mut self.open {
                test.doubtful = true;
            }
        } else if let Some(test) = &mut self.open {
            test.glued |= line.ends_with("ok");
        }
    }

    /// The names from `rest` on, the end of the line: before Python 3.11, no line break followed a test with a failed
    /// subtest.
    fn next_ones(&mut self, line: &str, mut rest: &str, found: &mut Found) {
        while status(rest).is_none()
            && let Some((name, after)) = start(rest)
        {
            let Some(after) = after else {
                self.described = Some(name.to_owned());
                return;
            };
            let told = status(after).and_then(|_| line.rsplit_once(" ... "));
            self.begin(name, told.map_or(name, |(before, _)| before), after, found);
            rest = after;
        }
    }

    fn begin(&mut self, name: &str, alias: &str, rest: &str, found: &mut Found) {
        let told = status(rest);
        if is_fixture(name) {
            if told.is_some_and(|status| status != Status::Passed) {
                self.fixture(name, found);
            }
            return;
        }
        self.begun += 1;
        let before = self.open.take();
        self.closed.extend(self.lost.take().and_then(Test::passed_unseen));
        match before {
            Some(test) if test.status.is_none() => self.lost = Some(test),
            test => self.closed.extend(test),
        }
        self.open = Some(Test {
            line: found.line(),
            name: name.to_owned(),
            alias: alias.to_owned(),
            at_once: told.is_some(),
            glued: told.is_none() && rest.ends_with("ok") && start(rest).is_none(),
            status: told,
            doubtful: self.lost.is_some(),
            below: None,
        });
    }

    /// A status in a line of its own, behind what the test printed.
    fn alone(&mut self, status: Status) {
        if self.open.as_ref().is_some_and(|test| test.at_once)
            && let Some(lost) = self.lost.take()
        {
            self.open = Some(lost);
            self.begun -= 1;
        }
        let Some(test) = &mut self.open else { return };
        if test.status.is_some() && matches!(status, Status::Failed | Status::Error) {
            test.below = Some(status);
        } else if !test.at_once {
            test.end(status);
        }
    }

    fn failed(&mut self, line: &str, name: &str, status: Status, found: &mut Found) {
        if is_fixture(name) {
            self.fixture(name, found);
            return;
        }
        let upstream = words(line).nth(1).filter(|_| !line.starts_with("UNEXPECTED"));
        self.failures.push(Test {
            line: found.line(),
            alias: upstream.unwrap_or(name).to_owned(),
            name: name.to_owned(),
            status: Some(status),
            at_once: true,
            doubtful: false,
            glued: false,
            below: None,
        });
    }

    fn fixture(&mut self, name: &str, found: &mut Found) {
        if self.broken.insert(name.to_owned()) {
            let unloaded = ["_FailedTest", "ModuleImportFailure", "LoadTestsFailure"];
            found.broken(name, unloaded.iter().any(|class| name.contains(class)));
        }
    }

    /// The run is over; how many tests ran is known if it ended well.
    fn settle(&mut self, ran: Option<usize>, found: &mut Found) {
        // Only the first run may be cut off: what follows a total may be output.
        let mut run = std::mem::take(self);
        for test in [run.lost.take(), run.open.take()].into_iter().flatten() {
            match test.status {
                Some(_) => run.closed.push(test),
                None => run.closed.extend(test.passed_unseen()),
            }
        }
        let begun = run.begun;
        let believed = match ran {
            _ if run.dots => false,
            Some(ran) => begun * 2 > ran,
            None => run.cut_off,
        };
        let sure = ran.is_some_and(|ran| begun <= ran);
        let tests = run.closed.into_iter().filter(|test| believed && (sure || !test.doubtful));
        for mut test in tests.chain(run.failures) {
            if let Some(status) = test.below.take().filter(|_| ran.is_none()) {
                test.end(status);
            }
            if let Some(status) = test.status {
                found.test_at(test.line, test.name, status).known_as(test.alias);
            }
        }
    }
}

impl Test {
    /// A test whose pass is hidden behind its output; a failure would have a heading.
    fn passed_unseen(self) -> Option<Self> {
        self.glued.then_some(Self { status: Some(Status::Passed), doubtful: true, ..self })
    }

    fn end(&mut self, status: Status) {
        self.status = Some(match &self.status {
            Some(known) => known.worse(&status).clone(),
            None => status,
        });
    }
}

/// `test (module.Class)`, and what follows ` ... `; nothing where a docstring is to follow.
fn start(line: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = line.strip_prefix("_ErrorHolder ... ") {
        return Some(("_ErrorHolder", Some(rest)));
    }
    let (name, rest) = line.split_at(NAME.find(line)?.end());
    if trim(rest).is_empty() { Some((name, None)) } else { Some((name, Some(rest.strip_prefix(" ... ")?))) }
}

/// A whole result behind text that had no line break: all before the status, the name and the status.
fn glued(line: &str) -> Option<(&str, &str, &str)> {
    static LAST: Pattern = LazyLock::new(|| pattern(r"\w+ \([\w.<>-]+\)$"));
    let (before, rest) = line.rsplit_once(" ... ").filter(|(before, _)| before.ends_with(')'))?;
    status(rest)?;
    Some((before, LAST.find(before)?.as_str(), rest))
}

/// `  test (module.Class.test) (i=1) ... FAIL`, of a failed or skipped subtest of the test above.
fn subtest(line: &str) -> Option<Status> {
    let (name, rest) = line.strip_prefix("  ")?.rsplit_once(" ... ")?;
    static NAME: Pattern = LazyLock::new(|| pattern(r"^\w+ \([\w.<>-]+\) [\[(]"));
    NAME.is_match(name).then(|| status(rest))?
}

fn status(text: &str) -> Option<Status> {
    let text = trim(text);
    let reason = ["skipped '", "skipped \"", "skipped "].iter().any(|start| text.starts_with(start));
    Some(match text {
        "ok" => Status::Passed,
        "FAIL" => Status::Failed,
        "ERROR" => Status::Error,
        "expected failure" => Status::Xfail,
        // The run fails.
        "unexpected success" => Status::Failed,
        _ if text == "skipped" || reason => Status::Skipped,
        _ => return None,
    })
}

/// The heading of a failure's traceback.
fn failure(line: &str) -> Option<(&str, Status)> {
    let kinds =
        [("FAIL: ", Status::Failed), ("ERROR: ", Status::Error), ("UNEXPECTED SUCCESS: ", Status::Failed)];
    let (rest, status) =
        kinds.into_iter().find_map(|(kind, status)| Some((line.strip_prefix(kind)?, status)))?;
    match NAME.find(rest) {
        Some(name) => Some((name.as_str(), status)),
        None => (trim(rest) == "_ErrorHolder").then_some(("_ErrorHolder", status)),
    }
}

/// What is no test, but fails as one.
fn is_fixture(name: &str) -> bool {
    let kinds = ["setUpClass (", "tearDownClass (", "setUpModule (", "tearDownModule (", "_ErrorHolder"];
    kinds.iter().any(|kind| name.starts_with(kind))
        || ["_FailedTest", "ModuleImportFailure", "LoadTestsFailure"].iter().any(|class| name.contains(class))
}

/// `Ran 3 tests in 0.002s`
fn total(line: &str) -> Option<usize> {
    let (count, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    (rest.starts_with("test in ") || rest.starts_with("tests in ")).then(|| count.parse().ok())?
}
