//! mocha's spec reporter, and jasmine's and mocha's lists of failures.

use super::super::super::status::Status;
use super::super::super::text::{is_space, strip_duration, trim, trim_end};
use super::super::rule::Hit;
use super::behind_number;

/// What follows one or more blanks.
fn behind_blanks(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(is_space);
    (rest.len() < text.len()).then_some(rest)
}

fn named(name: &str, status: Status) -> Option<Hit> {
    let name = strip_duration(name);
    (!name.is_empty()).then(|| (name.to_owned(), status))
}

fn pending_or_passed(line: &str) -> Option<Hit> {
    if let Some(rest) = line.strip_prefix('-') {
        return named(behind_blanks(rest)?, Status::Skipped);
    }
    named(behind_blanks(line.strip_prefix('✔')?)?, Status::Passed)
}

/// `✔`, `- pending`, and failures that end with a colon or begin with `[W]`.
pub(in super::super) fn titled(line: &str) -> Option<Hit> {
    let line = trim(line);
    if let Some(rest) = line.strip_prefix("[W]") {
        let rest = behind_number(rest.trim_start_matches(is_space))?;
        return named(behind_blanks(rest)?, Status::Failed);
    }
    if let Some(rest) = behind_number(line) {
        return named(behind_blanks(rest)?.strip_suffix(':')?, Status::Failed);
    }
    pending_or_passed(line)
}

/// `✔`, `- pending`, `1) failure`.
pub(in super::super) fn numbered(line: &str) -> Option<Hit> {
    let line = trim(line);
    match behind_number(line) {
        Some(rest) => named(behind_blanks(rest)?, Status::Failed),
        None => pending_or_passed(line),
    }
}

/// `✔` and `1) failure`, durations of mocha's own form only.
pub(in super::super) fn npx(line: &str) -> Option<Hit> {
    let line = trim(line);
    if let Some(rest) = line.strip_prefix('✔') {
        let name = behind_blanks(rest)?;
        let name = without_time(name).filter(|name| !name.is_empty()).unwrap_or(name);
        return Some((name.to_owned(), Status::Passed));
    }
    let name = behind_blanks(behind_number(line)?)?;
    Some((without_module(name).to_owned(), Status::Failed))
}

/// Without ` (5ms)` or ` (5)`.
fn without_time(name: &str) -> Option<&str> {
    let rest = name.strip_suffix(')')?;
    let rest = super::without_digits(rest.strip_suffix("ms").unwrap_or(rest))?.strip_suffix('(')?;
    let name = trim_end(rest);
    (name.len() < rest.len()).then_some(name)
}

/// Without ` (module)` at the end, from its first bracket on that no bracket closes before.
fn without_module(name: &str) -> &str {
    let Some(inner) = name.strip_suffix(')') else { return name };
    let start = inner.rfind(')').map_or(0, |at| at + 1);
    let bracket = inner[start..]
        .match_indices('(')
        .map(|(at, _)| start + at)
        .find(|at| at + 1 < inner.len() && inner[start..*at].ends_with(is_space));
    bracket.map_or(name, |at| trim_end(&name[..at]))
}

/// `1) failure` at the start of a line.
pub(in super::super) fn failures(line: &str) -> Option<Hit> {
    let name = behind_number(line)?.strip_prefix(is_space)?;
    Some((trim(name).to_owned(), Status::Failed))
}
