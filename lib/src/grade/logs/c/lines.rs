//! Upstream's rules of runners that write one line a test: automake, redis, micropython, GoogleTest.

use super::super::found::Found;
use super::super::status::Status;
use super::super::text;

/// `PASS: name` of automake; other results are not seen.
pub(super) fn automake(line: &str, found: &mut Found) {
    let line = text::trim(line);
    let result = |word: &str| line.strip_prefix(word)?.strip_prefix(text::is_space);
    if let Some(name) = result("PASS:") {
        found.set(name, Status::Passed);
    } else if let Some(name) = result("FAIL:") {
        found.set(name, Status::Failed);
    }
}

/// `[ok]: name (3 ms)` of redis.
pub(super) fn redis(line: &str, found: &mut Found) {
    if let Some((name, status)) = redis_result(line) {
        found.set(name, status);
    }
}

/// A result line of redis.
pub(super) fn redis_result(line: &str) -> Option<(&str, Status)> {
    let (word, rest) = text::trim(line).strip_prefix('[')?.split_once("]:")?;
    let status = match word {
        "ok" => Status::Passed,
        "err" => Status::Failed,
        "skip" | "ignore" => Status::Skipped,
        _ => return None,
    };
    let name = without_milliseconds(rest.strip_prefix(text::is_space)?);
    Some((if status == Status::Failed { without_file(name) } else { name }, status))
}

/// Without ` (3 ms)` at the end. Something must be left.
fn without_milliseconds(name: &str) -> &str {
    let split = || {
        let (before, duration) = name.strip_suffix(')')?.rsplit_once('(')?;
        let before = before.strip_suffix(text::is_space).filter(|before| !before.is_empty())?;
        let unit = text::after_digits(duration)?.trim_start_matches(text::is_space);
        matches!(unit, "ms" | "s").then_some(before)
    };
    split().unwrap_or(name)
}

/// Without ` in tests/unit/x.tcl` at the end.
fn without_file(name: &str) -> &str {
    let split = || {
        let (before, file) = name.rsplit_once(text::is_space)?;
        let before = text::trim_end(before).strip_suffix("in")?;
        let rest = text::trim_end(before);
        (!file.is_empty() && rest.len() < before.len()).then_some(rest)
    };
    split().unwrap_or(name)
}

/// `pass  tests/x.py` of micropython.
pub(super) fn micropython(line: &str, found: &mut Found) {
    if let Some((name, status)) = micropython_result(line) {
        found.set(name, status);
    }
}

/// A result line of micropython.
pub(super) fn micropython_result(line: &str) -> Option<(&str, Status)> {
    let line = text::trim(line);
    let result = |word: &str| text::after_spaces(line.strip_prefix(word)?);
    let words = [("pass", Status::Passed), ("FAIL", Status::Failed), ("skip", Status::Skipped)];
    words.into_iter().find_map(|(word, status)| Some((result(word)?, status)))
}

/// `[       OK ] Suite.test (3 ms)` of GoogleTest, anywhere in a line.
pub(super) fn googletest(line: &str, found: &mut Found) {
    if let Some((name, status)) = googletest_result(line) {
        found.set(name, status);
    }
}

/// The last result in a line that ends with a parenthesis.
pub(super) fn googletest_result(line: &str) -> Option<(&str, Status)> {
    let line = text::trim(line);
    let inner = line.strip_suffix(')')?;
    let end = inner
        .rmatch_indices('(')
        .find_map(|(at, _)| inner[..at].strip_suffix(text::is_space).map(str::len))?;
    line[..end].rmatch_indices('[').find_map(|(at, _)| {
        let mark = inner[at + 1..].trim_start_matches(text::is_space);
        let (rest, status) = match mark.strip_prefix("OK") {
            Some(rest) => (rest, Status::Passed),
            None => (mark.strip_prefix("FAILED")?, Status::Failed),
        };
        let rest = rest.trim_start_matches(text::is_space).strip_prefix(']')?.strip_prefix(text::is_space)?;
        let start = inner.len() - rest.len();
        (start <= end).then(|| (&line[start..end], status))
    })
}
