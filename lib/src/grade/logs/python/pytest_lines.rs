//! The lines of pytest's output that tell of tests.

use std::sync::LazyLock;

use super::super::status::Status;
use super::super::text::{Pattern, is_space, pattern, trim, trim_end};

/// A line of the progress.
pub(super) enum Line<'a> {
    /// `id PASSED [ 50%]`
    Result(&'a str, Status),
    /// `[gw0] [ 50%] PASSED id`
    Worker(&'a str, Status),
    /// `id `, and what the test printed; the status that this ends with.
    Start(&'a str, Option<Status>),
    /// `PASSED [ 50%]`, behind what the test printed.
    Status(Status),
}

const WORDS: &str = "PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS|SUBFAIL(?:ED)?";

/// What `-v` prints while tests run.
pub(super) fn progress_line(line: &str) -> Option<Line<'_>> {
    static WORKER: Pattern = LazyLock::new(|| {
        pattern(&format!(r"^\[gw\d+\]ω+\[ *\d+%\]ω+({WORDS})(?:ω?\([^)]*\)|\[[^\]]*\])*ω+([^ω].*)$"))
    });
    if line.starts_with("[gw") {
        let found = WORKER.captures(line)?;
        return Some(Line::Worker(trim_end(found.get(2)?.as_str()), status(&found[1])));
    }
    if !line.contains("::") || line.starts_with(is_space) {
        return tail(line).map(Line::Status);
    }
    let cuts = cuts(line);
    let with_status = cuts.iter().filter(|at| begins_with_status(line[**at..].trim_start_matches(is_space)));
    let fitting: Vec<usize> = with_status.copied().take(MOST_CUTS + 1).collect();
    if fitting.len() > MOST_CUTS {
        return None;
    }
    let mut results = fitting.iter().filter_map(|at| Some(Line::Result(&line[..*at], tail(&line[*at..])?)));
    match (results.next(), results.next()) {
        (Some(_), Some(_)) => None,
        (Some(result), None) => Some(result),
        _ if !line.contains(".py::") => None,
        _ => fitting.first().or(cuts.first()).map(|at| Line::Start(&line[..*at], glued(&line[*at..]))),
    }
}

/// How many places of a line are tried for the end of an id.
const MOST_CUTS: usize = 8;

/// The status at the end of a line, whatever stands before it.
pub(super) fn glued(text: &str) -> Option<Status> {
    let words = ["PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL", "XPASS"];
    words.into_iter().find(|word| text.ends_with(word)).map(Status::from)
}

/// Where the id may end: at the first blank, or behind a bracket where it has brackets.
fn cuts(line: &str) -> Vec<usize> {
    let first = line.find(is_space).unwrap_or(line.len());
    if !line[..first].contains('[') && line.contains(".py::") {
        return Vec::from_iter(line[..first].contains("::").then_some(first));
    }
    let bracket = line[..first].contains('[');
    let end = trim_end(line).len();
    let blanks = line.match_indices(is_space).map(|(at, _)| at).chain([line.len()]);
    let ends = blanks.filter(|at| *at <= end && (!bracket || line[..*at].ends_with(']')));
    ends.filter(|at| !line[..*at].ends_with(is_space)).collect()
}

fn begins_with_status(text: &str) -> bool {
    static STATUS: Pattern = LazyLock::new(|| pattern(&format!(r"^(?:{WORDS})(?:[ω(\[]|$)")));
    text.starts_with(['P', 'F', 'S', 'E', 'X']) && STATUS.is_match(&text[..text.floor_char_boundary(16)])
}

/// A status, a reason, and how far the session is, to the end of the line.
fn tail(text: &str) -> Option<Status> {
    static TAIL: Pattern = LazyLock::new(|| {
        pattern(&format!(
            r"^({WORDS})(?:\([^)]*\)|\[[^\]]*\])*(?:ω+\(.*\))?(?:ω+\[ *(?:\d+%|\d+/\d+|\d[\d.]*m?s)\])?(?:ω+inω+[\d.]+s)?$"
        ))
    });
    static REASON: Pattern = LazyLock::new(|| pattern(r"^(SKIPPED|XFAIL|XPASS)ω+\("));
    let text = trim(text);
    if !begins_with_status(text) {
        return None;
    }
    let found = TAIL.captures(text).or_else(|| REASON.captures(text))?;
    Some(status(&found[1]))
}

/// A test with a failed subtest failed.
fn status(word: &str) -> Status {
    if word.starts_with("SUBFAIL") { Status::Failed } else { Status::from(word) }
}

/// `STATUS id - reason`. `SKIPPED [2] file:line: reason` names no test.
pub(super) fn summary_line(line: &str) -> Option<(&str, Status)> {
    static SUMMARY: Pattern =
        LazyLock::new(|| pattern(&format!(r"^({WORDS})(?:ω?\([^)]*\)|\[[^\]]*\])*ω+([^ω].*)$")));
    static COUNT: Pattern = LazyLock::new(|| pattern(r"^\[\d+\]ω"));
    if !begins_with_status(line) {
        return None;
    }
    let found = SUMMARY.captures(line)?;
    let (word, rest) = (&found[1], trim_end(found.get(2)?.as_str()));
    let id = match word {
        "SKIPPED" if COUNT.is_match(rest) => return None,
        "PASSED" => rest,
        "XPASS" => without_reason(rest.get(..first_end(rest)).unwrap_or(rest)),
        _ => without_reason(rest),
    };
    Some((id, status(word)))
}

/// Where an id without brackets ends, if a reason follows it without a dash.
fn first_end(rest: &str) -> usize {
    let blank = rest.find(is_space).unwrap_or(rest.len());
    if rest[..blank].contains(".py::") && !rest[..blank].contains('[') { blank } else { rest.len() }
}

/// The id before ` - reason`. A dash inside of the parameters belongs to the id: the cut is behind a closing
/// bracket where the id has brackets.
fn without_reason(rest: &str) -> &str {
    let mut cuts = rest.match_indices(" - ").map(|(at, _)| &rest[..at]);
    let Some(first) = cuts.next() else { return rest };
    if !first.contains('[') || first.ends_with(']') {
        return first;
    }
    // No later cut behind a bracket: either the whole rest is an id, or its bracket is never closed.
    cuts.find(|id| id.ends_with(']')).unwrap_or(if rest.ends_with(']') { rest } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_reasons() {
        for (rest, id) in [
            ("t.py::a - b - c", "t.py::a"),
            ("t.py::a[x - y] - z - ]", "t.py::a[x - y]"),
            ("t.py::a[x - y]", "t.py::a[x - y]"),
            ("t.py::a[x] - assert [1 - 2]", "t.py::a[x]"),
            ("t.py::a", "t.py::a"),
        ] {
            assert_eq!(without_reason(rest), id);
        }
    }
}
