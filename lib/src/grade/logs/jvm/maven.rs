//! Maven: surefire's and failsafe's lines, the reactor's summary, and the end of a build.

use std::collections::{BTreeSet, VecDeque};
use std::sync::LazyLock;

use super::super::Status;
use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::text::{self, Pattern, pattern};
use super::junit_text;

/// What upstream calls a build of no known test.
const NO_NAME: &str = "---NO TEST NAME FOUND YET---";

/// The last `-Dtest=` of a line that has a value.
fn asked(line: &str) -> Option<&str> {
    line.rmatch_indices("-Dtest=").find_map(|(at, mark)| {
        let rest = &line[at + mark.len()..];
        let value = rest.find(text::is_space).map_or(rest, |end| &rest[..end]);
        (!value.is_empty()).then_some(value)
    })
}

fn build(line: &str) -> Option<Status> {
    let (before, status) = [("SUCCESS", Status::Passed), ("FAILURE", Status::Failed)]
        .into_iter()
        .find_map(|(word, status)| Some((line.strip_suffix(word)?, status)))?;
    before.ends_with("BUILD ").then_some(status)
}

/// `parse_log_maven`.
pub(super) struct Builds {
    current: String,
}

impl Default for Builds {
    fn default() -> Self {
        Self { current: NO_NAME.to_owned() }
    }
}

impl Scan for Builds {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = text::trim(line);
        if let Some(name) = asked(line) {
            name.clone_into(&mut self.current);
        }
        if let Some(status) = build(line) {
            found.set(self.current.as_str(), status);
        }
        Ok(())
    }
}

/// `parse_log_maven` of SWE-bench 5: the first asked for is the first built.
#[derive(Default)]
pub(super) struct Builds5 {
    tests: VecDeque<String>,
    unmatched: VecDeque<Status>,
}

impl Scan for Builds5 {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = text::trim(line);
        self.tests.extend(asked(line).map(str::to_owned));
        if let Some(status) = build(line) {
            match self.tests.pop_front() {
                Some(name) => found.set(name, status),
                None => self.unmatched.push_back(status),
            }
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        while let (Some(_), Some(_)) = (self.tests.front(), self.unmatched.front()) {
            if let (Some(name), Some(status)) = (self.tests.pop_front(), self.unmatched.pop_front()) {
                found.set(name, status);
            }
        }
        Ok(())
    }
}

/// Run, failures, errors, skipped; `None` where a line has no summary.
fn summary(line: &str) -> Option<Result<[String; 4], Raised>> {
    static SUMMARY: Pattern =
        LazyLock::new(|| pattern(r"Tests run:ω*(\d+),ω*Failures:ω*(\d+),ω*Errors:ω*(\d+),ω*Skipped:ω*(\d+)"));
    if !line.contains("Tests run:") {
        return None;
    }
    let found = SUMMARY.captures(line)?;
    Some(counts(found.extract::<4>().1))
}

pub(super) fn counts(digits: [&str; 4]) -> Result<[String; 4], Raised> {
    let [Some(run), Some(failures), Some(errors), Some(skipped)] = digits.map(text::integer) else {
        return Err(Raised("ValueError"));
    };
    Ok([run, failures, errors, skipped])
}

pub(super) fn class_status([_, failures, errors, skipped]: &[String; 4]) -> Status {
    match (failures == "0" && errors == "0", skipped == "0") {
        (false, _) => Status::Failed,
        (true, true) => Status::Passed,
        (true, false) => Status::Skipped,
    }
}

fn is_id(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.')
}

/// The class of `Running a.B`.
fn running(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("[INFO]").map_or(Some(line), blanks)?;
    let class = blanks(rest.strip_prefix("Running")?)?;
    (!class.is_empty() && class.chars().all(is_id)).then_some(class)
}

/// What follows one or more blanks.
fn blanks(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(text::is_space);
    (rest.len() < text.len()).then_some(rest)
}

/// Class and method of `[ERROR] a.B.method:12`.
fn failure(line: &str) -> Option<(String, String)> {
    static ID: Pattern = LazyLock::new(|| pattern(r"^([A-Za-z0-9_$.]+)\.([A-Za-z0-9_$.]+?)(?::[0-9]+)?\b"));
    let rest = blanks(line.strip_prefix("[ERROR]")?)?;
    let end = rest.find(|c| !is_id(c)).unwrap_or(rest.len());
    let mut id = rest[..end].to_owned();
    let mut behind = &rest[end..];
    if let Some(number) = behind.strip_prefix(':') {
        behind = number.trim_start_matches(text::is_digit);
        id.push(':');
        id.extend(number.chars().take_while(|c| text::is_digit(*c)).map(|_| '0'));
    }
    // Python's word characters, of which Rust's boundary has others.
    id.push(if behind.chars().next().is_some_and(text::is_word) { 'é' } else { ' ' });
    let found = ID.captures(&id)?;
    Some((found[1].to_owned(), found[2].to_owned()))
}

/// `parse_java_mvn`.
pub(super) fn upstream(log: &str, found: &mut Found) -> Result<(), Raised> {
    let mut seen = BTreeSet::new();
    let mut current = None;
    for line in log.split(text::is_line_break).map(text::trim) {
        if let Some(class) = running(line) {
            seen.insert(class);
            current = Some(class);
        } else if let Some((class, method)) = failure(line) {
            let error = line.contains("Exception") && !line.contains("AssertionError");
            found.set(format!("{class}.{method}"), if error { Status::Error } else { Status::Failed });
            found.set_first(class, Status::Failed);
        } else if let Some(counts) = summary(line) {
            let status = class_status(&counts?);
            let named = line
                .rsplit_once(" in ")
                .map(|(_, class)| text::trim(class).trim_end_matches(['.', ':', ';']));
            if let Some(class) = named.or(current).filter(|class| !class.is_empty()) {
                found.set_first(class, status);
            }
            current = None;
        }
    }
    let mut later = Found::default();
    junit_text::upstream(log, &mut later)?;
    let mut builds = Builds::default();
    let mut last = Found::default();
    for line in log.split('\n') {
        builds.line(line, &mut last)?;
    }
    for map in [later.into_map(), last.into_map()] {
        for (name, status) in map.statuses {
            found.set_first(name, status);
        }
    }
    if found.is_empty() {
        for class in seen {
            found.set(class, Status::Passed);
        }
    }
    Ok(())
}

/// `parse_java_mvn_v2`.
#[derive(Default)]
pub(super) struct Modules;

impl Scan for Modules {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = text::trim(line);
        if let Some((name, status)) = module(line) {
            found.set(name, status);
        } else if let Some(counts) = summary(line) {
            let [run, failures, errors, skipped] = counts?;
            let status = match (failures == "0", errors == "0", skipped == run) {
                (false, ..) => Status::Failed,
                (_, false, _) => Status::Error,
                (_, _, true) => Status::Skipped,
                _ => Status::Passed,
            };
            found.set_first("__suite__", status);
        }
        Ok(())
    }
}

/// A line of the reactor's summary.
fn module(line: &str) -> Option<(&str, Status)> {
    static MODULE: Pattern =
        LazyLock::new(|| pattern(r"^\[INFO\]ω+(.+?)ω+\.\.+ω+(SUCCESS|FAILURE|SKIPPED)(?:ω|\[|$)"));
    if !line.starts_with("[INFO]") || !line.contains("..") {
        return None;
    }
    let found = MODULE.captures(line)?;
    let status = match &found[2] {
        "SUCCESS" => Status::Passed,
        "FAILURE" => Status::Failed,
        _ => Status::Skipped,
    };
    Some((found.get(1)?.as_str(), status))
}

/// Classes and builds are groups; only a failed test has a line of its own (`a.B.method … <<< FAILURE!`). A build
/// passes that succeeded and in which nothing failed.
#[derive(Default)]
pub(super) struct Strict {
    failed: bool,
    asked: Option<String>,
}

impl Scan for Strict {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = text::trim(line);
        if let Some(name) = asked(line) {
            self.asked = Some(name.to_owned());
        }
        if let Some(status) = broken_test(line) {
            self.failed = true;
            if let Some(name) = failed_name(line) {
                let alias = failure(line).map(|(class, method)| format!("{class}.{method}"));
                let test = found.test(&name, status);
                if let Some(alias) = alias {
                    test.known_as(alias);
                }
            }
        } else if let Some(Ok(counts)) = summary(line) {
            let status = class_status(&counts);
            self.failed |= status == Status::Failed;
            if let Some((_, class)) = line.rsplit_once(" in ") {
                found.group(text::trim(class), status);
            }
        } else if let Some((name, status)) = module(line) {
            found.group(name, status);
        } else if matches!(line, "[INFO] BUILD SUCCESS" | "[INFO] BUILD FAILURE" | "[ERROR] BUILD FAILURE") {
            let passed = build(line) == Some(Status::Passed) && !self.failed;
            let name = self.asked.as_deref().unwrap_or(NO_NAME);
            found.group(name, if passed { Status::Passed } else { Status::Failed });
            self.failed = false;
        }
        Ok(())
    }
}

fn broken_test(line: &str) -> Option<Status> {
    if !line.contains("Time elapsed:") || line.contains("Tests run:") {
        return None;
    }
    let ends = [("<<< FAILURE!", Status::Failed), ("<<< ERROR!", Status::Error)];
    ends.into_iter().find_map(|(end, status)| line.ends_with(end).then_some(status))
}

/// `a.B.method` of surefire 3's `a.B.method -- Time elapsed: …`, or of surefire 2's `method(a.B)  Time elapsed: …`.
fn failed_name(line: &str) -> Option<String> {
    let (before, _) = line.strip_prefix("[ERROR]").unwrap_or(line).split_once("Time elapsed:")?;
    let name = text::trim(text::trim(before).trim_end_matches('-'));
    let old = name.strip_suffix(')').and_then(|name| name.rsplit_once('('));
    match old {
        Some((method, class)) if class.contains('.') && class.chars().all(is_id) => {
            Some(format!("{class}.{method}"))
        }
        _ => (!name.is_empty()).then(|| name.to_owned()),
    }
}
