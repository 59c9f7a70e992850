//! ScalaTest under sbt, munit, zio-test and weaver.

use std::sync::LazyLock;

use super::super::Status;
use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::text::{self, Pattern, pattern};

/// `parse_log_scala`.
pub(super) fn upstream(line: &str, found: &mut Found) {
    static FAILED: Pattern =
        LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)ω+\*\*\*ω+FAILEDω+\*\*\*ω+\([^)]+\)$"));
    static CANCELED: Pattern =
        LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)ω+!!!ω+CANCELEDω+!!!ω+\([^)]+\)$"));
    static IGNORED: Pattern = LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)ω+!!!ω+IGNOREDω+!!!"));
    static PASSED: Pattern = LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)ω+\([^)]+\)$"));
    let line = text::trim(line);
    if !line.starts_with("[info]") {
        return;
    }
    let timed = line.ends_with(')');
    let kinds = [
        (&FAILED, timed && line.contains("FAILED"), Status::Failed),
        (&CANCELED, timed && line.contains("CANCELED"), Status::Skipped),
        (&IGNORED, line.contains("IGNORED"), Status::Skipped),
        (&PASSED, timed, Status::Passed),
    ];
    let hit = kinds
        .into_iter()
        .filter(|(_, likely, _)| *likely)
        .find_map(|(pattern, _, status)| Some((pattern.captures(line)?.get(1)?.as_str(), status)));
    if let Some((name, status)) = hit {
        found.set_keeping_failures(name, status);
    }
}

/// `parse_log_scala_v2`.
pub(super) fn upstream_2(line: &str, found: &mut Found) {
    static COLOURS: Pattern = LazyLock::new(|| pattern(r"\x1b\[[0-9;]*m|\[[0-9]{1,2}m"));
    static FAILED: Pattern = LazyLock::new(|| pattern(r"^ω*xω+(.*?)ω+[\d.]+[mμn]?sω*$"));
    static PASSED: Pattern = LazyLock::new(|| pattern(r"^ω*\+ω+(.*?)ω+[\d.]+[mμn]?sω*$"));
    static FAILED_RAW: Pattern =
        LazyLock::new(|| pattern(r"^ω*xω+\[0m\[31m(.*?)\[0mω+\[90m[\d.]+[mμn]?s\[0mω*$"));
    static PASSED_RAW: Pattern =
        LazyLock::new(|| pattern(r"^ω*\+ω+\[0m\[32m(.*?)\[0mω+\[90m[\d.]+[mμn]?s\[0mω*$"));
    let line = text::trim(line);
    let clean = COLOURS.replace_all(line, "");
    let start = clean.trim_start_matches(text::is_space);
    if !start.starts_with(['x', '+']) || !text::trim_end(&clean).ends_with('s') {
        return;
    }
    let kinds = [
        (&FAILED_RAW, line, Status::Failed),
        (&FAILED, &*clean, Status::Failed),
        (&PASSED_RAW, line, Status::Passed),
        (&PASSED, &*clean, Status::Passed),
    ];
    let hit = kinds
        .into_iter()
        .find_map(|(pattern, text, status)| Some((pattern.captures(text)?.get(1)?.as_str(), status)));
    if let Some((name, status)) = hit {
        found.set(name, status);
    }
}

/// `parse_log_scala_v3`.
#[derive(Default)]
pub(super) struct Upstream3 {
    suite: Option<String>,
}

const NO_SUITE: [&str; 10] = [
    "Run completed",
    "Total number",
    "Suites:",
    "Tests:",
    "All tests",
    "compiling",
    "done compiling",
    "loading",
    "welcome to",
    "set current",
];

impl Scan for Upstream3 {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = text::trim(line);
        let Some(rest) = line.strip_prefix("[info]") else { return Ok(()) };
        if rest.starts_with(" -") {
            self.test(line, found);
            return Ok(());
        }
        let name = rest.trim_start_matches(text::is_space);
        let blanks = rest[..rest.len() - name.len()].chars().count();
        let suite = blanks > 1 || blanks == 1 && !name.starts_with('-');
        if suite && !name.is_empty() && !NO_SUITE.iter().any(|part| name.contains(part)) {
            self.suite = Some(name.to_owned());
        }
        Ok(())
    }
}

impl Upstream3 {
    fn test(&self, line: &str, found: &mut Found) {
        static TEST: Pattern =
            LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)(?:ω+\*{3}ω+([A-Z]+)ω+\*{3})?$"));
        static TIME: Pattern = LazyLock::new(|| pattern(r"ω*\(\d+ω+\w+\)$"));
        let Some(test) = TEST.captures(line) else { return };
        let name = text::trim(test.get(1).map_or("", |name| name.as_str()));
        let name = if name.ends_with(')') { TIME.replace(name, "") } else { name.into() };
        let name = self.suite.as_ref().map_or_else(|| name.to_string(), |suite| format!("{suite}: {name}"));
        match test.get(2).map(|token| token.as_str()) {
            None => found.set_first(name, Status::Passed),
            Some("ERROR" | "ABORTED") => found.set(name, Status::Error),
            Some("SKIPPED" | "IGNORED" | "CANCELED" | "CANCELLED" | "PENDING") => {
                found.set(name, Status::Skipped)
            }
            Some(token) => found.set(name, Status::from(token)),
        }
    }
}
