//! jest `--verbose`, and its JSON flattened to lines.

use std::sync::LazyLock;

use super::text::{Pattern, pattern, trim};
use super::{Observation, ParseError, Status, SuiteFailure};

fn upstream_line(line: &str) -> Option<(&str, Status)> {
    static RESULT: Pattern = LazyLock::new(|| pattern(r"^([✓✕○])ω(.+?)(?:ω\(\d+ω*m?s\))?$"));
    let found = RESULT.captures(trim(line))?;
    let status = match found.get(1)?.as_str() {
        "✓" => Status::Passed,
        "✕" => Status::Failed,
        _ => Status::Skipped,
    };
    Some((found.get(2)?.as_str(), status))
}

/// Every line with one of three marks: the title, without its suites.
pub(super) fn upstream(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(super::bridge::line_by_line(log, upstream_line))
}

/// Full names (`file > suite > title`) from the tree below each `PASS` or `FAIL` line; failure details and
/// console output do not count.
pub(super) fn strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    static FILE: Pattern = LazyLock::new(|| pattern(r"^ω*(?:PASS|FAIL)ω+([^ω]+)(?:ω+\(.*\))?ω*$"));
    static RESULT: Pattern = LazyLock::new(|| pattern(r"^(ω*)([✓√✔✕×✗✖○✎])ω(.+)$"));
    static CONSOLE: Pattern = LazyLock::new(|| pattern(r"^ω+console\.[a-zA-Z]+(?:ω([^ω].*))?$"));
    static STACK: Pattern = LazyLock::new(|| pattern(r"^ω+at ω*"));
    let mut observations = Vec::new();
    let mut suite_failures = Vec::new();
    let mut tree = Tree::default();
    let (mut printed, mut details) = (None, false);
    for (line, at) in log.split('\n').zip(1..) {
        if printed.is_some_and(|kind| ends_console(line, kind)) {
            printed = None;
        }
        if let Some(found) = FILE.captures(line) {
            tree = Tree { file: Some(found[1].to_owned()), suites: Vec::new() };
            (printed, details) = (None, false);
        } else if trim(line).starts_with("● ") {
            if line.contains("Test suite failed to run") {
                let text = format!("{}: test suite failed to run", tree.file.as_deref().unwrap_or("a file"));
                suite_failures.push(SuiteFailure { line: at, text, build: true });
            }
            details = true;
        } else if let Some(found) = CONSOLE.captures(line) {
            printed = Some(if found.get(1).is_some() { Console::Located } else { Console::Traced });
        } else if details || printed.is_some() || STACK.is_match(line) || is_noise(line) {
            continue;
        } else if let Some(found) = RESULT.captures(line) {
            let (indent, mark, rest) = (found[1].chars().count(), &found[2], &found[3]);
            let status = match mark {
                "✓" | "√" | "✔" => Status::Passed,
                "✕" | "×" | "✗" | "✖" => Status::Failed,
                _ => Status::Skipped,
            };
            let title = title(mark, rest);
            let alias = upstream_line(line).map_or_else(|| title.to_owned(), |(name, _)| name.to_owned());
            observations.push(Observation::new(tree.name(indent, title), status, at).with_alias(Some(alias)));
        } else if line.starts_with("  ") {
            tree.enter(line);
        }
    }
    (observations, suite_failures)
}

/// Blank lines, and the progress that jest redraws.
fn is_noise(line: &str) -> bool {
    let line = trim(line);
    line.is_empty() || line.starts_with("RUNS")
}

/// What a test printed: before jest 25 headed by `console.log file:line` and ended by a blank line, since
/// then ended by a stack trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Console {
    Located,
    Traced,
}

/// Whether a line is behind what a test printed, all of which is indented by four.
fn ends_console(line: &str, kind: Console) -> bool {
    if trim(line).is_empty() {
        return kind == Console::Located;
    }
    let indent = line.chars().take_while(|&c| c == ' ').count();
    indent <= 2 || (kind == Console::Traced && trim(line).starts_with("at "))
}

/// The title without `skipped`, `todo` and the duration.
fn title<'a>(mark: &str, rest: &'a str) -> &'a str {
    static DURATION: Pattern = LazyLock::new(|| pattern(r"ω+\(\d+(?:\.\d+)?ω*(?:ms|s|m)\)ω*$"));
    let rest = if matches!(mark, "○" | "✎") {
        rest.strip_prefix("skipped ").or_else(|| rest.strip_prefix("todo ")).unwrap_or(rest)
    } else {
        rest
    };
    trim(&rest[..DURATION.find(rest).map_or(rest.len(), |found| found.start())])
}

/// The file and the suites that a line stands in, told by indentation.
#[derive(Debug, Default)]
pub(super) struct Tree {
    file: Option<String>,
    suites: Vec<(usize, String)>,
}

impl Tree {
    /// A line that is no test opens a suite.
    pub(super) fn enter(&mut self, line: &str) {
        let indent = line.chars().take_while(|&c| c == ' ').count();
        self.leave(indent);
        self.suites.push((indent, trim(line).to_owned()));
    }

    fn leave(&mut self, indent: usize) {
        self.suites.retain(|(outer, _)| *outer < indent);
    }

    /// The full name of a test at this indentation.
    pub(super) fn name(&mut self, indent: usize, title: &str) -> String {
        self.leave(indent);
        let suites = self.suites.iter().map(|(_, suite)| suite.as_str());
        self.file.as_deref().into_iter().chain(suites).chain([title]).collect::<Vec<_>>().join(" > ")
    }
}

fn json_line(line: &str) -> Option<(&str, &str)> {
    static RESULT: Pattern = LazyLock::new(|| pattern(r"^\[([A-Z]+)\]ω(.+)$"));
    let found = RESULT.captures(trim(line))?;
    Some((found.get(1)?.as_str(), found.get(2)?.as_str()))
}

/// `[PASSED] a > b` and `[FAILED] a > b`.
pub(super) fn json(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(log
        .split('\n')
        .zip(1..)
        .filter_map(|(line, at)| json_line(line).map(|(word, name)| (word, name, at)))
        .filter(|(word, ..)| matches!(*word, "PASSED" | "FAILED"))
        .map(|(word, name, at)| Observation::new(name, Status::from(word), at))
        .collect())
}

/// As [`json`], with the statuses of tests that did not run.
pub(super) fn json_strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    let observations = log
        .split('\n')
        .zip(1..)
        .filter_map(|(line, at)| {
            let (word, name) = json_line(line)?;
            let status = match word {
                "PASSED" => Status::Passed,
                "FAILED" => Status::Failed,
                "PENDING" | "SKIPPED" | "TODO" | "DISABLED" => Status::Skipped,
                _ => return None,
            };
            Some(Observation::new(trim(name), status, at).with_alias(Some(name.to_owned())))
        })
        .collect();
    (observations, Vec::new())
}

#[cfg(test)]
mod tests {
    use crate::grade::logs::{Rules, parse_log};

    #[test]
    fn results_behind_console_output_of_any_version_count() {
        for printed in [
            "  console.log a.js:6\n    ✓ spoofed\n\n",
            "  console.log\n    ✓ spoofed\n\n      at log (a.js:6:3)\n\n",
            "  console.log\n    ✓ spoofed\n",
        ] {
            let log = format!("PASS a.test.js\n{printed}  outer\n    ✓ passes (3 ms)\n");
            let map = parse_log("parse_log_jest", &log, Rules::Strict).unwrap();
            assert_eq!(map.statuses.keys().collect::<Vec<_>>(), ["a.test.js > outer > passes"], "{log}");
        }
    }

    #[test]
    fn strict_names_tests_in_full() {
        let log = "  console.log\n    ✓ outer spoofed (3 ms)\n\n      at Object.log (a.test.js:6:39)\n\n\
                   FAIL jest/a.test.js (10.923 s)\n  outer\n    ✓ passes (3 ms)\n    ✕ fails ✓ tricky (104 ms)\n\
                   \x20   inner\n      ✓ same (737 ms)\n      ✗ same (1.5 s)\n      ○ skipped skipped one\n\
                   \x20 other\n    ✓ name with (12 ms) suffix (1 ms)\n\n  ● outer › fails\n\n    ✓ not a test\n\
                   FAIL jest/c.test.js\n  ● Test suite failed to run\n";
        let map = parse_log("parse_log_jest", log, Rules::Strict).unwrap();
        insta::assert_json_snapshot!(map.statuses, @r#"
        {
          "jest/a.test.js > other > name with (12 ms) suffix": "PASSED",
          "jest/a.test.js > outer > fails ✓ tricky": "FAILED",
          "jest/a.test.js > outer > inner > same": "FAILED",
          "jest/a.test.js > outer > inner > skipped one": "SKIPPED",
          "jest/a.test.js > outer > passes": "PASSED"
        }
        "#);
        assert_eq!(map.observations[4].alias.as_deref(), Some("skipped skipped one"));
        assert_eq!(map.suite_failures.len(), 1);
    }
}
