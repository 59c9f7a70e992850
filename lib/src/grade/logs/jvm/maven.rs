//! The reference rules for Maven.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, integer, is_digit, is_space, is_word, pattern, split_lines, trim};
use super::junit_text;

/// The name that a build without `-Dtest=` gives its result.
pub(super) const NO_NAME: &str = "---NO TEST NAME FOUND YET---";

/// The test class that `-Dtest=` names, and whether the build succeeded.
pub(in crate::grade::logs) struct Build {
    current: String,
}

impl Default for Build {
    fn default() -> Self {
        Self { current: NO_NAME.to_owned() }
    }
}

/// What the last `-Dtest=` of a line names.
pub(super) fn named(line: &str) -> Option<&str> {
    line.rmatch_indices("-Dtest=").find_map(|(at, option)| {
        let rest = &line[at + option.len()..];
        let name = &rest[..rest.find(is_space).unwrap_or(rest.len())];
        (!name.is_empty()).then_some(name)
    })
}

impl Build {
    /// The result that a line holds.
    fn result(&mut self, line: &str) -> Option<(&str, Status)> {
        let line = trim(line);
        if let Some(name) = named(line) {
            self.current = name.to_owned();
        }
        let ends = [("BUILD SUCCESS", Status::Passed), ("BUILD FAILURE", Status::Failed)];
        let status = ends.into_iter().find_map(|(end, status)| line.ends_with(end).then_some(status))?;
        Some((&self.current, status))
    }
}

impl Scan for Build {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if let Some((name, status)) = self.result(line) {
            found.set(name, status);
        }
        Ok(())
    }
}

/// The four counts of a summary, of which only whether they are zero matters; as text without leading zeros.
pub(super) struct Counts {
    pub(super) run: String,
    pub(super) failures: String,
    pub(super) errors: String,
    pub(super) skipped: String,
}

impl Counts {
    /// Finds `Tests run: …, Failures: …, Errors: …, Skipped: …` by a pattern with four groups.
    fn of(line: &str, rule: &Pattern) -> Result<Option<Self>, Raised> {
        let Some(found) = rule.captures(line) else { return Ok(None) };
        let number = |group: usize| integer(&found[group]).ok_or(Raised("ValueError"));
        Ok(Some(Self { run: number(1)?, failures: number(2)?, errors: number(3)?, skipped: number(4)? }))
    }

    fn is_clean(&self) -> bool {
        self.failures == "0" && self.errors == "0"
    }
}

static SUMMARY: Pattern =
    LazyLock::new(|| pattern(r"Tests run:ω*(\d+),ω*Failures:ω*(\d+),ω*Errors:ω*(\d+),ω*Skipped:ω*(\d+)"));

/// Surefire: classes, methods in error lines, reports and builds.
#[derive(Default)]
pub(in crate::grade::logs) struct Surefire {
    current: Option<String>,
    running: BTreeSet<String>,
    build: Build,
    builds: BTreeMap<String, (usize, Status)>,
    reports: String,
}

impl Surefire {
    fn one(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static RUNNING: Pattern = LazyLock::new(|| pattern(r"^(?:\[INFO\]ω+)?Runningω+([A-Za-z0-9_$.]+)$"));
        if line.contains("Running")
            && let Some(running) = RUNNING.captures(line)
        {
            self.current = Some(running[1].to_owned());
            self.running.insert(running[1].to_owned());
            return Ok(());
        }
        if let Some((class, method)) = error_line(line) {
            let raised = line.contains("Exception") && !line.contains("AssertionError");
            found.set(format!("{class}.{method}"), if raised { Status::Error } else { Status::Failed });
            found.set_first(class, Status::Failed);
            return Ok(());
        }
        if line.contains("Tests run:")
            && let Some(counts) = Counts::of(line, &SUMMARY)?
        {
            let class = match line.rsplit_once(" in ") {
                Some((_, class)) => trim(class).trim_end_matches(['.', ':', ';']).to_owned(),
                None => self.current.clone().unwrap_or_default(),
            };
            if !class.is_empty() {
                let status = match (counts.is_clean(), counts.skipped == "0") {
                    (true, true) => Status::Passed,
                    (true, false) => Status::Skipped,
                    (false, _) => Status::Failed,
                };
                found.set_first(class, status);
            }
            self.current = None;
        }
        Ok(())
    }
}

impl Scan for Surefire {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if found.line() > 1 {
            self.reports.push('\n');
        }
        self.reports.push_str(line);
        if let Some((name, status)) = self.build.result(line) {
            self.builds.insert(name.to_owned(), (found.line(), status));
        }
        for part in split_lines(line) {
            self.one(trim(part), found)?;
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        let mut reported = BTreeMap::new();
        junit_text::scan(&self.reports, &mut |name, status| drop(reported.insert(name, status)));
        for (name, status) in reported {
            found.set_first(name, status);
        }
        for (name, (line, status)) in std::mem::take(&mut self.builds) {
            found.go_to(line);
            found.set_first(name, status);
        }
        if found.is_empty() {
            for class in &self.running {
                found.set(class, Status::Passed);
            }
        }
        Ok(())
    }
}

/// `[ERROR] class.method:12 …`: the class as long, then the method as short as can be, up to where a word begins or
/// ends.
pub(super) fn error_line(line: &str) -> Option<(&str, &str)> {
    let rest =
        line.strip_prefix("[ERROR]").filter(|rest| rest.starts_with(is_space))?.trim_start_matches(is_space);
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let run = &rest[..rest.find(|c| !named(c)).unwrap_or(rest.len())];
    let bytes = run.as_bytes();
    let word = |at: usize| bytes[at] != b'$' && bytes[at] != b'.';
    let after = &rest[run.len()..];
    let mut end = ends_word(bytes.last().is_some_and(|_| word(run.len() - 1)), after).then_some(run.len());
    // From right to left, with the next place where a method may end.
    for dot in (1..run.len()).rev() {
        if bytes[dot] == b'.'
            && let Some(end) = end.filter(|end| *end > dot + 1)
        {
            return Some((&run[..dot], &run[dot + 1..end]));
        }
        if dot + 1 < run.len() && word(dot) != word(dot + 1) {
            end = Some(dot + 1);
        }
    }
    None
}

/// Whether a word begins or ends between a run and what follows it, or behind a line number that follows it.
fn ends_word(word: bool, after: &str) -> bool {
    let numbered = after.strip_prefix(':').is_some_and(|number| {
        let rest = number.trim_start_matches(is_digit);
        rest.len() < number.len() && !rest.starts_with(is_word)
    });
    numbered || word != after.starts_with(is_word)
}

/// A reactor's modules, and one result for all tests.
#[derive(Default)]
pub(in crate::grade::logs) struct Reactor;

/// `[INFO] module ..... SUCCESS`.
pub(super) fn module_line(line: &str) -> Option<(&str, Status)> {
    static MODULE: Pattern =
        LazyLock::new(|| pattern(r"^\[INFO\]ω+(.+?)ω+\.{2,}ω+(SUCCESS|FAILURE|SKIPPED)(?:ω|\[|$)"));
    if !line.starts_with("[INFO]") || !line.contains("..") {
        return None;
    }
    let found = MODULE.captures(line)?;
    let status = match found.get(2)?.as_str() {
        "SUCCESS" => Status::Passed,
        "FAILURE" => Status::Failed,
        _ => Status::Skipped,
    };
    Some((found.get(1)?.as_str(), status))
}

impl Scan for Reactor {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = trim(line);
        if let Some((module, status)) = module_line(line) {
            found.set(module, status);
            return Ok(());
        }
        if line.contains("Tests run:")
            && let Some(counts) = Counts::of(line, &SUMMARY)?
        {
            let status = match () {
                () if counts.failures != "0" => Status::Failed,
                () if counts.errors != "0" => Status::Error,
                () if counts.skipped == counts.run => Status::Skipped,
                () => Status::Passed,
            };
            found.set_first("__suite__", status);
        }
        Ok(())
    }
}

/// Surefire's classes alone.
#[derive(Default)]
pub(in crate::grade::logs) struct Classes {
    current: Option<String>,
}

impl Scan for Classes {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static TESTS: Pattern = LazyLock::new(|| {
            pattern(r"^Tests run:ω+(\d+),ω+Failures:ω+(\d+),ω+Errors:ω+(\d+),ω+Skipped:ω+(\d+)")
        });
        let line = trim(line);
        if let Some(class) = line.strip_prefix("Running")
            && class.starts_with(is_space)
        {
            self.current = Some(trim(class).to_owned());
        } else if self.current.is_some()
            && line.starts_with("Tests run:")
            && let Some(counts) = Counts::of(line, &TESTS)?
            && let Some(class) = self.current.take()
        {
            let status = match (counts.is_clean(), counts.skipped == "0") {
                (false, _) => Status::Failed,
                (true, false) => Status::Skipped,
                (true, true) => Status::Passed,
            };
            found.set(class, status);
        }
        Ok(())
    }
}

/// `[junit] [PASS] name` (ant).
pub(super) fn ant(line: &str, found: &mut Found) {
    static TEST: Pattern = LazyLock::new(|| pattern(r"^\[junit\]ω+\[(PASS|FAIL|ERR)\]ω+(.+)$"));
    let line = trim(line);
    if line.starts_with("[junit]")
        && let Some(test) = TEST.captures(line)
    {
        found.set(&test[2], if &test[1] == "PASS" { Status::Passed } else { Status::Failed });
    }
}
