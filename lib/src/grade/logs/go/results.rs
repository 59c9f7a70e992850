//! The lines in which `go test` tells of one test.

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::{trim, trim_end};

/// Upstream: every `--- PASS: NAME (TIME)` line; packages are not part of the name.
pub(super) fn upstream(line: &str, found: &mut Found) {
    if let Some((status, name)) = upstream_result(trim(line)) {
        found.set(name, status);
    }
}

fn upstream_result(line: &str) -> Option<(Status, &str)> {
    let (status, rest) = status(line)?;
    let body = rest.strip_suffix(')')?;
    // The last ` (` with something on both sides.
    let (at, _) = body.rmatch_indices(" (").find(|(at, _)| *at > 0 && at + 2 < body.len())?;
    Some((status, &body[..at]))
}

fn status(line: &str) -> Option<(Status, &str)> {
    let rest = line.strip_prefix("--- ")?;
    [("PASS: ", Status::Passed), ("FAIL: ", Status::Failed), ("SKIP: ", Status::Skipped)]
        .into_iter()
        .find_map(|(word, status)| Some((status, rest.strip_prefix(word)?)))
}

/// What a line of `go test -v` tells of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::grade::logs) enum Told {
    /// `=== RUN`
    Run,
    /// `=== PAUSE`
    Pause,
    /// `=== CONT` and `=== NAME`
    Cont,
    /// `--- PASS` and the like.
    Result(Status),
}

/// What a line tells of which test, and whether other text stands before it: output of a test without a line end.
/// Names hold no blanks.
pub(in crate::grade::logs) fn told(line: &str) -> Option<(Told, &str, bool)> {
    let line = trim_end(line);
    let parts = line.rfind("--- ").and_then(|at| {
        let (status, name) = strict_result(&line[at..])?;
        Some((Told::Result(status), name, at))
    });
    let (told, name, at) = match parts {
        Some(parts) => parts,
        None => {
            let at = line.rfind("=== ")?;
            let (told, name) = step(&line[at..])?;
            (told, name, at)
        }
    };
    // test2json's mark and the indentation of subtests.
    let after_text = !line[..at].trim_start_matches('\x16').trim_start_matches(' ').is_empty();
    Some((told, name, after_text))
}

fn strict_result(text: &str) -> Option<(Status, &str)> {
    let (status, rest) = status(text)?;
    let (name, time) = rest.split_once(' ').unwrap_or((rest, ""));
    let bare = time.is_empty() && is_benchmark(name);
    (!name.is_empty() && (bare || is_time(time))).then_some((status, name))
}

/// `(0.00s)`
fn is_time(text: &str) -> bool {
    let time = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or_default();
    let number = time.strip_suffix(" seconds").or_else(|| time.strip_suffix('s')).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Whether it is a benchmark, which `go test -v` tells of without time, and in some versions without its start.
pub(in crate::grade::logs) fn is_benchmark(name: &str) -> bool {
    name.starts_with("Benchmark")
}

fn step(text: &str) -> Option<(Told, &str)> {
    let words = [
        ("=== RUN   ", Told::Run),
        ("=== PAUSE ", Told::Pause),
        ("=== CONT  ", Told::Cont),
        ("=== NAME  ", Told::Cont),
    ];
    let (told, name) = words.into_iter().find_map(|(word, told)| Some((told, text.strip_prefix(word)?)))?;
    (!name.is_empty() && !name.contains(' ')).then_some((told, name))
}

/// The test at the top that a test belongs to.
pub(in crate::grade::logs) fn root(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}
