//! What runners that write one line a test really say: automake, redis, micropython, meson, and those of the parsers
//! that are named after C++.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern};
use super::{lines, words};

/// `PASS: name` of automake, never indented. An unexpected pass fails the run.
pub(super) fn automake(line: &str, found: &mut Found) {
    let Some((word, name)) = line.split_once(": ") else { return };
    let status = match word {
        "PASS" => Status::Passed,
        "FAIL" | "XPASS" => Status::Failed,
        "XFAIL" => Status::Xfail,
        "SKIP" => Status::Skipped,
        "ERROR" => Status::Error,
        _ => return,
    };
    let trimmed = name.trim();
    if !trimmed.is_empty() {
        // Upstream keeps further blanks before a name.
        found.test(trimmed, status).known_as(name.trim_end());
    }
}

/// `[ok]: name (3 ms)` of redis, and what ends a client of its runner.
pub(super) fn redis(line: &str, found: &mut Found) {
    if line.starts_with("[exception]:") || line.starts_with("[timeout]:") {
        found.broken(line, false);
    } else if let Some((alias, status)) = lines::redis_result(line).filter(|_| line.starts_with('[')) {
        found.test(without_duration(alias), status).known_as(alias);
    }
}

/// Without ` (1.2 s)`, which upstream keeps where it has a fraction.
fn without_duration(name: &str) -> &str {
    static DURATION: Pattern = LazyLock::new(|| pattern(r"^\d+(?:\.\d+)? m?s\)$"));
    match name.rsplit_once(" (") {
        Some((before, duration)) if !before.is_empty() && DURATION.is_match(duration) => before,
        _ => name,
    }
}

/// `pass  tests/x.py` of micropython.
pub(super) fn micropython(line: &str, found: &mut Found) {
    let marked = ["pass  ", "FAIL  ", "skip  "].iter().any(|mark| line.starts_with(mark));
    if let Some((name, status)) = lines::micropython_result(line).filter(|_| marked) {
        found.test(name, status);
    }
}

/// ` 3/60 suite - project:name   OK   1.06s` of meson. An unexpected pass fails the run.
pub(super) fn meson(line: &str, found: &mut Found) {
    static RESULT: Pattern = LazyLock::new(|| {
        pattern(concat!(
            r"^ *\d+/\d+ +(\S.*?) +",
            r"(OK|FAIL|ERROR|TIMEOUT|INTERRUPT|SKIP|EXPECTEDFAIL|UNEXPECTEDPASS) +\d+\.\d+ ?s(?: |$)"
        ))
    });
    if !line.contains('/') || !line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        return;
    }
    let Some(result) = RESULT.captures(line) else { return };
    let status = match &result[2] {
        "OK" => Status::Passed,
        "SKIP" => Status::Skipped,
        "EXPECTEDFAIL" => Status::Xfail,
        "ERROR" => Status::Error,
        _ => Status::Failed,
    };
    found.test(&result[1], status);
}

/// `Test name passed`.
pub(super) fn named(line: &str, found: &mut Found) {
    let mut seen = Found::default();
    words::cpp_v2(line, &mut seen);
    for (name, status) in seen.into_map().statuses {
        if !name.is_empty() {
            found.test(name, status);
        }
    }
}

/// `[1/2] name... OK`, and summaries of Botan. Other lines with such words are no results.
pub(super) fn dotted(line: &str, found: &mut Found) {
    let line = line.trim();
    if let Some((name, status)) = words::botan(line) {
        found.test(name, status);
    } else if let Some((name, word)) = words::dotted(line).filter(|(name, _)| !name.is_empty()) {
        let status = match word {
            "OK" => Status::Passed,
            "FAILED" | "FAIL" => Status::Failed,
            "SKIPPED" => Status::Skipped,
            _ => return,
        };
        found.test(name, status);
    }
}

/// `path::test PASSED [ 12%]` of pytest, up to the heading of its failures.
#[derive(Default)]
pub(super) struct Pytest {
    reported: bool,
}

impl Scan for Pytest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static RESULT: Pattern = LazyLock::new(|| {
            pattern(r"^(\S.*::.*) (PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)(?: \(.*\))?(?: +\[ *\d+%\])?$")
        });
        let line = line.trim_end();
        self.reported |=
            line.starts_with("====") && (line.contains(" FAILURES ") || line.contains(" ERRORS "));
        if self.reported || !line.contains("::") {
            return Ok(());
        }
        if let Some(result) = RESULT.captures(line) {
            let alias = result[1].split("::").last().unwrap_or_default().trim_end().to_owned();
            found.test(result[1].trim_end(), Status::from(&result[2])).known_as(alias);
        }
        Ok(())
    }
}
