//! The tests of one binary: what its lines say, settled by the report at its end.

use std::collections::{BTreeSet, HashMap};

use super::super::status::Status;
use super::super::text::trim_end;

/// From `running N tests` on.
pub(super) struct Section {
    first_line: usize,
    /// How many tests there are, where the log says so.
    count: Option<usize>,
    tests: HashMap<String, Told>,
    /// Tests that began and whose line says no more; the last one may be told of by a later line.
    begun: Vec<String>,
    /// The names below the last `failures:`.
    failures: BTreeSet<String>,
    listing: bool,
    /// All results have come: what follows is the output of tests.
    results_over: bool,
}

#[derive(Default)]
struct Told {
    line: usize,
    passed: bool,
    failed: bool,
    ignored: bool,
    measured: bool,
}

/// The line that counts a binary's tests.
pub(super) struct Report {
    tests: usize,
    passed: usize,
    failed: usize,
}

impl Report {
    /// `test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.17s`
    pub(super) fn of(line: &str) -> Option<Self> {
        let (word, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut counts = counts.split("; ");
        let mut count = |word: &str| counts.next()?.strip_suffix(word)?.parse::<u32>().ok();
        let told = [" passed", " failed", " ignored", " measured", " filtered out"].map(&mut count);
        let [passed, failed, ignored, measured, _] = told.map(|count| count.map(|count| count as usize));
        let (passed, failed) = (passed?, failed?);
        matches!(word, "ok" | "FAILED").then_some(Self {
            tests: passed + failed + ignored? + measured?,
            passed,
            failed,
        })
    }
}

/// What a section comes to.
#[derive(Default)]
pub(super) struct End {
    /// Line, name, status.
    pub(super) tests: Vec<(usize, String, Status)>,
    /// Results of files that a test tells of itself (trybuild).
    pub(super) files: Vec<(String, Status)>,
    /// Why passes are not believed.
    pub(super) doubt: Option<String>,
}

impl Section {
    pub(super) fn new(first_line: usize, count: Option<usize>) -> Self {
        Self {
            first_line,
            count,
            tests: HashMap::new(),
            begun: Vec::new(),
            failures: BTreeSet::new(),
            listing: false,
            results_over: false,
        }
    }

    /// Reads a line, the `at`th.
    pub(super) fn line(&mut self, line: &str, at: usize) {
        if matches!(line, "failures:" | "successes:") {
            self.results_over |= self.count.is_none_or(|count| self.tests.len() >= count);
            self.listing = line == "failures:";
            self.failures.clear();
        } else if self.listing && !line.is_empty() {
            match line.strip_prefix("    ") {
                Some(name) => drop(self.failures.insert(name.to_owned())),
                None => self.listing = false,
            }
        }
        if !self.results_over {
            self.result(trim_end(line), at);
        }
    }

    fn result(&mut self, line: &str, at: usize) {
        if let Some(rest) = line.strip_prefix("test ") {
            let Some((name, rest)) =
                rest.split_once(" ... ").or_else(|| Some((rest.strip_suffix(" ...")?, "")))
            else {
                return;
            };
            let name = plain(name);
            match word(rest) {
                Some(word) => self.tell(name, word, at),
                None => self.begin(name, at),
            }
        } else if let Some(word) = word(line) {
            if let Some(name) = self.begun.pop() {
                self.tell(&name, word, at);
            }
        } else if let Some(name) = line.strip_suffix(" --- FAILED") {
            self.tell(name, Word::Failed, at);
        } else if let Some((before, after)) = line.rsplit_once(" ... ")
            && let Some(word) = word(after)
            && let Some((_, name)) = before.rsplit_once("test ")
        {
            // Behind a test's output without a line end.
            self.tell(plain(name), word, at);
        }
    }

    fn begin(&mut self, name: &str, at: usize) {
        self.tests.entry(name.to_owned()).or_insert_with(|| Told { line: at, ..Told::default() });
        self.begun.push(name.to_owned());
    }

    fn tell(&mut self, name: &str, word: Word, at: usize) {
        let told = self.tests.entry(name.to_owned()).or_default();
        told.line = at;
        match word {
            Word::Ok => told.passed = true,
            Word::Failed => told.failed = true,
            Word::Ignored => told.ignored = true,
            Word::Measured => told.measured = true,
        }
    }

    /// Whether it is the report of this section: its counts are those of its tests.
    pub(super) fn is_told_by(&self, report: &Report) -> bool {
        self.count.is_none_or(|count| report.tests == count)
    }

    /// The section is over, with its report if it has one.
    pub(super) fn end(mut self, report: Option<&Report>) -> End {
        let mut end = End::default();
        for (name, told) in self.tests.extract_if(|name, _| file(name).is_some()) {
            let status = if told.failed || !told.passed { Status::Failed } else { Status::Passed };
            end.files.push((file(&name).unwrap_or(&name).to_owned(), status));
        }
        match report {
            Some(report) => self.settle(report, &mut end),
            None => self.unfinished(&mut end),
        }
        end.tests.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        end.files.sort_by(|a, b| a.0.cmp(&b.0));
        end
    }

    /// With a report: the tests that it names have failed, and as many as it counts have passed.
    fn settle(self, report: &Report, end: &mut End) {
        let named = self.failures.len() == report.failed;
        let failed = |name: &str, told: &Told| self.failures.contains(name) || (told.failed && !named);
        let last = self.tests.values().map(|told| told.line).max().unwrap_or(self.first_line);
        let unseen = self.failures.iter().filter(|name| !self.tests.contains_key(*name));
        end.tests.extend(unseen.map(|name| (last, name.clone(), Status::Failed)));
        let (mut sure, mut maybe) = (Vec::new(), Vec::new());
        for (name, told) in &self.tests {
            if failed(name, told) {
                end.tests.push((told.line, name.clone(), Status::Failed));
            } else if told.ignored {
                end.tests.push((told.line, name.clone(), Status::Skipped));
            } else if told.passed {
                sure.push((told.line, name.clone(), Status::Passed));
            } else if !told.measured && !told.failed {
                maybe.push((told.line, name.clone(), Status::Passed));
            }
        }
        if sure.len() > report.passed {
            end.doubt = Some(format!(
                "{} tests are said to have passed where {} are counted: which, cannot be told",
                sure.len(),
                report.passed
            ));
            return;
        }
        // A test whose result is lost in its own output is among those that the report counts.
        if sure.len() + maybe.len() == report.passed {
            sure.append(&mut maybe);
        }
        end.tests.append(&mut sure);
    }

    /// Without one: a test that began has failed unless it is said to have passed.
    fn unfinished(self, end: &mut End) {
        end.tests.extend(self.tests.into_iter().filter_map(|(name, told)| {
            let status = match told {
                Told { failed: false, passed: true, .. } => Status::Passed,
                Told { failed: false, ignored: true, .. } => Status::Skipped,
                Told { failed: false, measured: true, .. } => return None,
                _ => Status::Failed,
            };
            Some((told.line, name, status))
        }));
    }
}

enum Word {
    Ok,
    Failed,
    Ignored,
    Measured,
}

/// The word of a result, with the time and the reason that may follow it.
fn word(text: &str) -> Option<Word> {
    if text.starts_with("bench: ") {
        return Some(Word::Measured);
    }
    let words = [("ok", Word::Ok), ("FAILED", Word::Failed), ("ignored", Word::Ignored)];
    let (rest, word) = words.into_iter().find_map(|(word, is)| Some((text.strip_prefix(word)?, is)))?;
    let timed = rest.strip_prefix(" <").is_some_and(|time| time.ends_with("s>") && !time.contains(' '));
    let reason = matches!(word, Word::Ignored) && rest.starts_with(", ");
    (rest.is_empty() || timed || reason).then_some(word)
}

/// A test's name without what libtest adds of its kind.
fn plain(name: &str) -> &str {
    let kinds = [" - should panic", " - compile fail", " - compile"];
    kinds.iter().find_map(|kind| name.strip_suffix(kind)).unwrap_or(name)
}

/// The source file that a test case of trybuild is named after (`tests/ui/a.rs [should pass]`).
fn file(name: &str) -> Option<&str> {
    let path = name.split_once(" [should ").map_or(name, |(path, _)| path);
    (path.ends_with(".rs") && path.contains('/') && !path.contains(' ')).then_some(path)
}
