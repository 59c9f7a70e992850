//! The reference rules for tasty, hspec and HUnit.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::{Pattern, pattern, replace_colours, trim, trim_end};

const NOISE: [&str; 4] = ["Test suite ", "Linking ", "Building ", "Running  "];

/// A result, and whether it replaces an earlier one.
pub(super) fn result_line(line: &str) -> Option<(String, Status, bool)> {
    static WORD: Pattern =
        LazyLock::new(|| pattern(r"^ω*(.+?)ω*:ω*(OK|PASS|FAIL|ERROR|SKIP|PENDING)(?:\W|$)"));
    static BOXED: Pattern = LazyLock::new(|| pattern(r"^ω+(.+?)ω+\[([✓✔✗✘])\]ω*$"));
    static TICK: Pattern = LazyLock::new(|| pattern(r"^ω*[✓✔]ω+(.+?)(?:ω+\(.*?\))?ω*$"));
    static CROSS: Pattern = LazyLock::new(|| pattern(r"^ω*[✗✘]ω+(.+?)ω*$"));
    static NUMBERED: Pattern = LazyLock::new(|| pattern(r"^ω*\d+\)ω+(.+?)ω*$"));
    static REPORTED: Pattern = LazyLock::new(|| pattern(r"^###ω+(Failure|Error)ω+in:ω+(.+)$"));
    let line = &*replace_colours(line, "");
    let line = trim_end(line);
    if NOISE.iter().any(|noise| line.contains(noise)) {
        return None;
    }
    let name = |found: &regex::Captures<'_>, group: usize| trim(&found[group]).to_owned();
    if line.contains(':')
        && let Some(found) = WORD.captures(line)
    {
        let status = match &found[2] {
            "OK" | "PASS" => Status::Passed,
            "FAIL" => Status::Failed,
            "ERROR" => Status::Error,
            _ => Status::Skipped,
        };
        return Some((name(&found, 1), status, true));
    }
    let marked = line.contains(['✓', '✔', '✗', '✘']);
    if marked && let Some(found) = BOXED.captures(line) {
        let passed = matches!(&found[2], "✓" | "✔");
        return Some((name(&found, 1), if passed { Status::Passed } else { Status::Failed }, !passed));
    }
    if marked && let Some(found) = TICK.captures(line) {
        return Some((name(&found, 1), Status::Passed, false));
    }
    if marked && let Some(found) = CROSS.captures(line) {
        return Some((name(&found, 1), Status::Failed, true));
    }
    if line.contains(')')
        && let Some(found) = NUMBERED.captures(line)
    {
        return Some((name(&found, 1), Status::Failed, true));
    }
    let found = REPORTED.captures(line)?;
    let status = if &found[1] == "Failure" { Status::Failed } else { Status::Error };
    Some((name(&found, 2), status, true))
}

pub(super) fn haskell(line: &str, found: &mut Found) {
    if let Some((name, status, replaces)) = result_line(line) {
        if replaces {
            found.set(name, status);
        } else {
            found.set_first(name, status);
        }
    }
}
