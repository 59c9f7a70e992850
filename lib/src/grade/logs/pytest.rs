//! pytest: the short summary (`-rA`), `-v` lines, and xdist.

use std::sync::LazyLock;

use super::text::{Pattern, pattern, split_lines, trim, words};
use super::{Observation, ParseError, Status, SuiteFailure};

const STATUSES: [&str; 4] = ["PASSED", "FAILED", "SKIPPED", "ERROR"];

/// The two tokens of a summary line that upstream reads: status (verbatim) and key.
fn tokens(line: &str) -> Option<(&str, &str)> {
    if !STATUSES.iter().any(|status| line.starts_with(status)) {
        return None;
    }
    // Upstream first turns ` - ` of FAILED lines into a blank: a lone dash is no token there.
    let failed = line.starts_with("FAILED");
    let mut found = words(line).filter(|word| !(failed && *word == "-"));
    Some((found.next()?, found.next()?))
}

/// Summary lines: the second token is the key.
pub(super) fn upstream(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(summary(log, str::to_owned))
}

/// Summary lines: the second token is the key, a path in its parameters cut to its last part.
pub(super) fn options(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(summary(log, shorten_option))
}

fn summary(log: &str, key: fn(&str) -> String) -> Vec<Observation> {
    log.split('\n')
        .zip(1..)
        .filter_map(|(line, at)| {
            let (status, token) = tokens(line)?;
            Some(Observation::new(key(token), Status::from(status), at))
        })
        .collect()
}

fn shorten_option(token: &str) -> String {
    let Some((open, close)) = token.find('[').zip(token.rfind(']')).filter(|(open, close)| open < close)
    else {
        return token.to_owned();
    };
    let (main, option) = (&token[..open], &token[open + 1..close]);
    let is_path = option.starts_with('/') && !option.starts_with("//") && !option.contains('*');
    match option.rsplit_once('/').filter(|_| is_path) {
        Some((_, last)) => format!("{main}[/{last}]"),
        None => format!("{main}[{option}]"),
    }
}

/// A line without colour codes and control characters, as the v2 and nebo parsers clean it.
fn clean(line: &str) -> String {
    static COLOUR: Pattern = LazyLock::new(|| pattern(r"\x1b?\[\d+m"));
    COLOUR.replace_all(line, "").chars().filter(|c| !('\u{1}'..='\u{1f}').contains(c)).collect()
}

/// Summary lines, and lines that end with a status.
pub(super) fn v2(log: &str) -> Result<Vec<Observation>, ParseError> {
    let mut observations = Vec::new();
    for (raw, at) in log.split('\n').zip(1..) {
        let line = clean(raw);
        let first = STATUSES.iter().any(|status| line.starts_with(status));
        if !first && !STATUSES.iter().any(|status| line.ends_with(status)) {
            continue;
        }
        let pair = if first {
            tokens(&line).map(|(status, key)| (key.to_owned(), status.to_owned()))
        } else {
            let mut found = words(&line).map(str::to_owned);
            found.next().zip(found.next())
        };
        let (key, status) = pair.ok_or_else(|| ParseError::Raises {
            parser: "parse_log_pytest_v2",
            line: at,
            text: raw.to_owned(),
            exception: "IndexError",
        })?;
        observations.push(Observation::new(key, Status::from(status), at));
    }
    Ok(observations)
}

fn nebo_line(line: &str) -> Option<(String, Status)> {
    static WORKER: Pattern = LazyLock::new(|| pattern(r"^\[gw\d+\]ω+\[[^\]]*\]ω+([\p{L}\p{N}_]+)ω+(.*)$"));
    static TIMED: Pattern = LazyLock::new(|| {
        pattern(r"^([^ω].*?)ω+(PASSED|FAILED|SKIPPED|ERROR)ω+\[[^\]]*\]ω+inω+\d+(?:\.\d+)?s$")
    });
    static SUMMARY: Pattern = LazyLock::new(|| pattern(r"^(PASSED|FAILED|SKIPPED|ERROR)ω+(.*)$"));
    let until_in = |rest: &str| trim(rest.split(" in ").next().unwrap_or(rest)).to_owned();
    if let Some(found) = WORKER.captures(line).filter(|found| STATUSES.contains(&&found[1])) {
        return Some((until_in(&found[2]), Status::from(&found[1])));
    }
    if let Some(found) = TIMED.captures(line) {
        return Some((trim(&found[1]).to_owned(), Status::from(&found[2])));
    }
    SUMMARY.captures(line).map(|found| (until_in(&found[2]), Status::from(&found[1])))
}

/// xdist lines, timed `-v` lines and summary lines, ids whole.
pub(super) fn nebo(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(split_lines(log)
        .into_iter()
        .zip(1..)
        .filter_map(|(line, at)| {
            nebo_line(trim(&clean(line))).map(|(name, status)| Observation::new(name, status, at))
        })
        .collect())
}

/// Where in pytest's output a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Before the tests, or `-v` lines.
    Progress,
    /// Tracebacks and captured output: whatever stands there, the tests printed.
    Report,
    /// The short summary.
    Summary,
}

/// Whole ids from the short summary and from `-v` and xdist lines; alias: the first token.
pub(super) fn strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    whole_ids(log, |id| words(id).next().map(str::to_owned))
}

/// As [`strict`]; alias: the first token, its path option cut.
pub(super) fn options_strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    whole_ids(log, |id| words(id).next().map(shorten_option))
}

/// As [`strict`]; alias: the first token without what the v2 parser takes for colours.
pub(super) fn v2_strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    whole_ids(log, |id| words(&clean(id)).next().map(str::to_owned))
}

/// As [`strict`]; alias: the id up to ` in `.
pub(super) fn nebo_strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    whole_ids(log, |id| id.split(" in ").next().map(|id| trim(id).to_owned()))
}

fn whole_ids(log: &str, alias: fn(&str) -> Option<String>) -> (Vec<Observation>, Vec<SuiteFailure>) {
    static HEADER: Pattern = LazyLock::new(|| pattern(r"^={3,}ω(.*?)ω?={3,}$"));
    let mut section = Section::Progress;
    let mut observations = Vec::new();
    let mut suite_failures = Vec::new();
    for (line, at) in log.split('\n').zip(1..) {
        if let Some(found) = HEADER.captures(line) {
            section = section_of(&found[1], section);
            continue;
        }
        let seen = match section {
            Section::Progress => progress_line(line),
            Section::Report => None,
            Section::Summary if line.starts_with("!!!") => {
                section = Section::Progress;
                None
            }
            Section::Summary => summary_line(line),
        };
        if let Some((id, status)) = seen {
            if id.contains("::") {
                observations.push(Observation::new(id, status, at).with_alias(alias(id)));
            } else if status == Status::Error {
                suite_failures.push(SuiteFailure { line: at, text: line.to_owned(), build: true });
            } else {
                // doctest items of text files (`README.rst`) and plugins' own items have no `::`.
                observations.push(Observation::new(id, status, at).with_alias(alias(id)));
            }
        } else if line.starts_with("ImportError while loading conftest") || line.starts_with("ERROR: ") {
            suite_failures.push(SuiteFailure { line: at, text: line.to_owned(), build: true });
        }
    }
    (observations, suite_failures)
}

fn section_of(title: &str, before: Section) -> Section {
    static TOTALS: Pattern = LazyLock::new(|| pattern(r"\bin \d+(?:\.\d+)?(?:s| seconds)\b"));
    match title {
        "short test summary info" => Section::Summary,
        "test session starts" => Section::Progress,
        // The totals end a session. Inside a report a test may have printed them.
        _ if TOTALS.is_match(title) && before != Section::Report => Section::Progress,
        _ => Section::Report,
    }
}

/// `id STATUS (reason) [ 50%]` or `[gw0] [ 50%] STATUS id`.
fn progress_line(line: &str) -> Option<(&str, Status)> {
    static WORKER: Pattern = LazyLock::new(|| {
        pattern(r"^\[gw\d+\]ω+\[ *\d+%\]ω+(PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)ω+(.*[^ω])ω*$")
    });
    static VERBOSE: Pattern = LazyLock::new(|| {
        pattern(
            r"^([^ω].*?::.*[^ω])ω+(PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)(?:ω+\(.*\))?(?:ω+\[ *(?:\d+%|\d+/\d+|\d[\d.]*m?s)\])?ω*$",
        )
    });
    if let Some(found) = WORKER.captures(line) {
        return Some((found.get(2)?.as_str(), Status::from(found.get(1)?.as_str())));
    }
    let found = VERBOSE.captures(line)?;
    Some((found.get(1)?.as_str(), Status::from(found.get(2)?.as_str())))
}

/// `STATUS id - reason`. `SKIPPED [2] file:line: reason` names no test.
fn summary_line(line: &str) -> Option<(&str, Status)> {
    static SUMMARY: Pattern = LazyLock::new(|| {
        pattern(
            r"^(PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS|SUBFAIL(?:ED)?(?:\([^)]*\)|\[[^\]]*\])*)ω+(.*[^ω])ω*$",
        )
    });
    static COUNT: Pattern = LazyLock::new(|| pattern(r"^\[\d+\]ω"));
    let found = SUMMARY.captures(line)?;
    let (word, rest) = (found.get(1)?.as_str(), found.get(2)?.as_str());
    if word == "SKIPPED" && COUNT.is_match(rest) {
        return None;
    }
    let status = if word.starts_with("SUBFAIL") { Status::Failed } else { Status::from(word) };
    Some((if status == Status::Passed { rest } else { without_reason(rest) }, status))
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
    use crate::grade::logs::{Rules, parse_log};

    const LOG: &str = "\
============================= test session starts ==============================
t.py::test_verbose[a b] PASSED                                           [ 50%]
t.py::test_skip SKIPPED (not now)                                        [ 75%]
[gw0] [100%] FAILED t.py::test_worker 
=================================== PASSES ====================================
----------------------------- Captured stdout call -----------------------------
PASSED t.py::spoofed
=========== 99 passed in 0.01s ===========
FAILED t.py::test_verbose[a b] - spoof
=========================== short test summary info ============================
PASSED t.py::test_verbose[a b]
PASSED t.py::test_teardown
SKIPPED [2] t.py:5: not now
XFAIL t.py::test_xf - known
XPASS t.py::test_xp
ERROR t.py::test_teardown - ValueError: x
ERROR other.py - ImportError: y
FAILED t.py::test_p[1 - 2] - assert 1 == 2
FAILED t.py::T::test_q - assert [1 - 2]
SUBFAILED(i=1) t.py::test_sub - AssertionError
=== 3 failed, 10 passed in 0.60s ===
FAILED t.py::after
";

    #[test]
    fn strict_reads_whole_ids_and_ignores_what_tests_print() {
        let map = parse_log("parse_log_pytest", LOG, Rules::Strict).unwrap();
        insta::assert_json_snapshot!(map.statuses, @r#"
        {
          "t.py::T::test_q": "FAILED",
          "t.py::test_p[1 - 2]": "FAILED",
          "t.py::test_skip": "SKIPPED",
          "t.py::test_sub": "FAILED",
          "t.py::test_teardown": "ERROR",
          "t.py::test_verbose[a b]": "PASSED",
          "t.py::test_worker": "FAILED",
          "t.py::test_xf": "XFAIL",
          "t.py::test_xp": "XPASS"
        }
        "#);
        assert_eq!(map.suite_failures.len(), 1);
        let cut = map.observations.iter().find(|seen| seen.name == "t.py::test_p[1 - 2]").unwrap();
        assert_eq!((cut.alias.as_deref(), cut.line), (Some("t.py::test_p[1"), 18));
    }

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
