//! TAP, flat and as the tree of node's reporter.

use super::super::super::status::Status;
use super::super::super::text::{is_digit, is_space, strip_duration, trim};
use super::super::rule::{Hit, Rule};

fn status(line: &str) -> Option<(Status, &str)> {
    let passed = line.strip_prefix("ok").map(|rest| (Status::Passed, rest));
    passed.or_else(|| line.strip_prefix("not ok").map(|rest| (Status::Failed, rest)))
}

/// `ok 1 rest` and `not ok 1 rest`, directives not looked at.
pub(in super::super) fn flat(line: &str) -> Option<Hit> {
    let (status, rest) = status(trim(line))?;
    let rest = rest.strip_prefix(' ')?;
    let name = rest.trim_start_matches(is_digit);
    let name = name.strip_prefix(' ').filter(|_| name.len() < rest.len())?;
    (!name.is_empty()).then(|| (name.to_owned(), status))
}

/// Suites open with `{` behind their own result and close with `}`.
pub(in super::super) fn tree() -> Rule {
    let mut suites = Vec::new();
    Box::new(move |line| Ok(in_tree(trim(line), &mut suites).into_iter().collect()))
}

/// What follows one or more such characters.
fn behind(text: &str, such: fn(char) -> bool) -> Option<&str> {
    let rest = text.trim_start_matches(such);
    (rest.len() < text.len()).then_some(rest)
}

fn in_tree(line: &str, suites: &mut Vec<String>) -> Option<Hit> {
    if line.bytes().all(|byte| byte == b'}') {
        suites.truncate(suites.len().saturating_sub(line.len()));
        return None;
    }
    let (line, opens) = match line.strip_suffix('{') {
        Some(line) => (line.trim_end_matches(is_space), true),
        None => (line, false),
    };
    let (status, rest) = status(line)?;
    let rest = behind(rest, is_space)?;
    let rest = behind(rest, is_digit)?;
    let rest = behind(rest, is_space)?.strip_prefix('-')?;
    let raw = behind(rest, is_space).filter(|raw| !raw.is_empty())?;
    let comment = raw.match_indices('#').find(|(at, _)| raw[..*at].ends_with(is_space));
    let raw = comment.map_or(raw, |(at, _)| raw[..at].trim_end_matches(is_space));
    let name = strip_duration(raw);
    if name.is_empty() {
        return None;
    }
    let full = suites.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(" :: ");
    let skipped = raw.contains('#') && {
        let lower = raw.to_lowercase();
        lower.contains("# skip") || lower.contains("# todo")
    };
    if opens {
        suites.push(name.to_owned());
    }
    Some((full, if skipped { Status::Skipped } else { status }))
}
