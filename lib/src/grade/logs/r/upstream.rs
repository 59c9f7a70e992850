//! The reference rules for testthat and R CMD check.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim, words};

/// testthat's progress reporter: contexts first, the failures below their heading replace them.
#[derive(Default)]
pub(in crate::grade::logs) struct Progress {
    failures: Section,
    /// Failures, which come after every context, with their lines.
    late: Vec<(usize, String, Status)>,
}

#[derive(Default, PartialEq, Eq)]
enum Section {
    #[default]
    Before,
    In,
    After,
}

/// A name without a bracketed duration.
pub(super) fn without_duration(name: &str) -> &str {
    static DURATION: Pattern = LazyLock::new(|| pattern(r"ω*\[ω*\d+(?:\.\d+)?ω*[a-zA-Z]+\]$"));
    if !name.ends_with(']') {
        return trim(name);
    }
    trim(&name[..DURATION.find(name).map_or(name.len(), |found| found.start())])
}

/// `✔ | 60 | context [1.2s]`.
pub(super) fn context_line(line: &str) -> Option<(&str, Status)> {
    static CONTEXT: Pattern = LazyLock::new(|| pattern(r"^([✔✖])ω+\|[^|]+\|ω+(.+)$"));
    if !line.starts_with(['✔', '✖']) {
        return None;
    }
    let found = CONTEXT.captures(line)?;
    let status = if &found[1] == "✔" { Status::Passed } else { Status::Failed };
    Some((without_duration(found.get(2)?.as_str()), status))
}

/// `Failure ('test-a.R:8:5'): name`.
pub(super) fn failure_line(line: &str) -> Option<(&str, Status)> {
    static FAILURE: Pattern = LazyLock::new(|| pattern(r"^(Failure|Error)ω+\([^)]+\):ω+(.+)$"));
    if !line.starts_with(['F', 'E']) {
        return None;
    }
    let found = FAILURE.captures(line)?;
    let status = if &found[1] == "Failure" { Status::Failed } else { Status::Error };
    Some((without_duration(found.get(2)?.as_str()), status))
}

impl Scan for Progress {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = trim(line);
        if let Some((name, status)) = context_line(line) {
            found.set(name, status);
        }
        if self.failures == Section::Before || self.failures == Section::In {
            if line.starts_with("── Failed tests ──") || line.starts_with("== Failed tests ==") {
                self.failures = Section::In;
            } else if self.failures == Section::In {
                if line.starts_with("[ FAIL") || line.starts_with("══ Results ══") {
                    self.failures = Section::After;
                } else if let Some((name, status)) = failure_line(line) {
                    self.late.push((found.line(), name.to_owned(), status));
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        for (line, name, status) in self.late.drain(..) {
            found.go_to(line);
            found.set(name, status);
        }
        Ok(())
    }
}

/// R CMD check: a check whose result may stand in a later line.
#[derive(Default)]
pub(in crate::grade::logs) struct Check {
    pending: Option<String>,
}

/// `* checking NAME ... OK`, or without the result.
pub(super) fn check_line(line: &str) -> Option<(&str, Option<&str>)> {
    static DONE: Pattern = LazyLock::new(|| pattern(r"^\* checking (.+?) \.\.\. ([A-Z]+)$"));
    static BEGUN: Pattern = LazyLock::new(|| pattern(r"^\* checking (.+?) \.\.\.$"));
    if !line.starts_with("* checking ") {
        return None;
    }
    let groups = |found: regex::Captures<'_>| found.get(1).map(|name| name.range());
    if let Some(found) = DONE.captures(line) {
        let word = found.get(2).map(|word| word.range());
        return Some((&line[groups(found)?], word.map(|word| &line[word])));
    }
    Some((&line[groups(BEGUN.captures(line)?)?], None))
}

pub(super) fn check_status(word: &str) -> Option<Status> {
    Some(match word {
        "OK" | "NOTE" | "NOTES" => Status::Passed,
        "WARNING" | "WARNINGS" | "FAIL" | "FAILED" => Status::Failed,
        "ERROR" | "ERRORS" => Status::Error,
        "SKIPPED" => Status::Skipped,
        _ => return None,
    })
}

impl Scan for Check {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = trim(line);
        if line.is_empty() {
            return Ok(());
        }
        if let Some(name) = &self.pending {
            let stripped = line.trim_matches(['.', ':', '!']);
            let word = words(stripped).next().ok_or(Raised("IndexError"))?;
            if let Some(status) = check_status(&word.to_uppercase()) {
                found.set(name, status);
                self.pending = None;
            }
            return Ok(());
        }
        match check_line(line) {
            Some((name, Some(word))) => found.set(name, check_status(word).unwrap_or(Status::Passed)),
            Some((name, None)) => self.pending = Some(name.to_owned()),
            None => {}
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        if let Some(name) = self.pending.take() {
            found.set_first(name, Status::Passed);
        }
        Ok(())
    }
}
