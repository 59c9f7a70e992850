//! The reference rules for Scala's runners.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim, trim_end};

/// ScalaTest: `[info] - name (3 milliseconds)`.
pub(super) fn test_line(line: &str) -> Option<(&str, Status)> {
    static FAILED: Pattern =
        LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)ω+\*\*\*ω+FAILEDω+\*\*\*ω+\([^)]+\)$"));
    static CANCELED: Pattern =
        LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)ω+!!!ω+CANCELEDω+!!!ω+\([^)]+\)$"));
    static IGNORED: Pattern = LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)ω+!!!ω+IGNOREDω+!!!"));
    static PASSED: Pattern = LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)ω+\([^)]+\)$"));
    let line = trim(line);
    if !line.starts_with("[info]") {
        return None;
    }
    let rules = [
        (&FAILED, Status::Failed),
        (&CANCELED, Status::Skipped),
        (&IGNORED, Status::Skipped),
        (&PASSED, Status::Passed),
    ];
    let (found, status) =
        rules.into_iter().find_map(|(rule, status)| Some((rule.captures(line)?, status)))?;
    Some((found.get(1)?.as_str(), status))
}

pub(super) fn scala(line: &str, found: &mut Found) {
    if let Some((name, status)) = test_line(line) {
        found.set_keeping_failures(name, status);
    }
}

/// munit, zio-test and weaver: `+ name 0.01s`, coloured (where the escape character is lost) or not.
pub(super) fn sign_line(line: &str) -> Option<(String, Status)> {
    static COLOURED: Pattern =
        LazyLock::new(|| pattern(r"^ω*(xω+\[0m\[31m|\+ω+\[0m\[32m)(.*?)\[0mω+\[90m[\d.]+[mμn]?s\[0mω*$"));
    static PLAIN: Pattern = LazyLock::new(|| pattern(r"^ω*([x+])ω+(.*?)ω+[\d.]+[mμn]?sω*$"));
    static COLOUR: Pattern = LazyLock::new(|| pattern(r"\x1b\[[0-9;]*m|\[[0-9]{1,2}m"));
    let line = trim(line);
    let clean = if line.contains('[') { COLOUR.replace_all(line, "") } else { line.into() };
    if !trim_end(&clean).ends_with('s') {
        return None;
    }
    let read = |rule: &Pattern, line: &str| {
        let found = rule.captures(line)?;
        let status = if found[1].starts_with('x') { Status::Failed } else { Status::Passed };
        Some((found[2].to_owned(), status))
    };
    let both = [read(&COLOURED, line), read(&PLAIN, &clean)];
    let failed = both.iter().flatten().find(|(_, status)| *status == Status::Failed).cloned();
    failed.or_else(|| both.into_iter().flatten().next())
}

pub(super) fn scala_v2(line: &str, found: &mut Found) {
    if let Some((name, status)) = sign_line(line) {
        found.set(name, status);
    }
}

/// ScalaTest with the suite's name.
#[derive(Default)]
pub(in crate::grade::logs) struct Suites {
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

impl Scan for Suites {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static TEST: Pattern =
            LazyLock::new(|| pattern(r"^\[info\]ω+-ω+(.*?)(?:ω+\*\*\*ω+([A-Z]+)ω+\*\*\*)?$"));
        static COUNT: Pattern = LazyLock::new(|| pattern(r"ω*\(\d+ω+\w+\)$"));
        static SUITE: Pattern = LazyLock::new(|| pattern(r"^\[info\]ω+([^-].*)$"));
        let line = trim(line);
        if !line.starts_with("[info]") {
            return Ok(());
        }
        if line.starts_with("[info] -") {
            let Some(test) = TEST.captures(line) else { return Ok(()) };
            let name = trim(&test[1]);
            let name = trim(&name[..COUNT.find(name).map_or(name.len(), |found| found.start())]);
            let key = match &self.suite {
                Some(suite) => format!("{suite}: {name}"),
                None => name.to_owned(),
            };
            match test.get(2).map(|token| token.as_str()) {
                None => found.set_first(key, Status::Passed),
                Some(token) => {
                    let status = match token {
                        "ERROR" | "ABORTED" => Status::Error,
                        "SKIPPED" | "IGNORED" | "CANCELED" | "CANCELLED" | "PENDING" => Status::Skipped,
                        token => Status::from(token),
                    };
                    found.set(key, status);
                }
            }
        } else if let Some(suite) = SUITE.captures(line) {
            let suite = trim(&suite[1]);
            if !suite.is_empty() && !NO_SUITE.iter().any(|noise| suite.contains(noise)) {
                self.suite = Some(suite.to_owned());
            }
        }
        Ok(())
    }
}
