//! vitest, verbose or default reporter.

use std::sync::LazyLock;

use super::text::{Pattern, pattern, trim};
use super::{Observation, ParseError, Status, SuiteFailure};

fn upstream_line(line: &str) -> Option<(&str, Status)> {
    static RESULT: Pattern = LazyLock::new(|| pattern(r"^([✓×↓])ω(.+?)(?:ω(?:\d+ω*m?s?|\[skipped\]))?$"));
    let found = RESULT.captures(trim(line))?;
    let status = match found.get(1)?.as_str() {
        "✓" => Status::Passed,
        "×" => Status::Failed,
        _ => Status::Skipped,
    };
    Some((found.get(2)?.as_str(), status))
}

/// Every line with one of three marks; a number at the end counts as a duration.
pub(super) fn upstream(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(super::bridge::line_by_line(log, upstream_line))
}

/// All marks of all versions; no file lines, no output of tests; durations only with a unit.
pub(super) fn strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    static RESULT: Pattern = LazyLock::new(|| pattern(r"^ω*([✓√✔×✗✕✖↓○-])ω(.+)$"));
    static SUITE: Pattern = LazyLock::new(|| pattern(r"^ω*FAILω+(.+?)ω+\[ .+ \]$"));
    static FILE: Pattern = LazyLock::new(|| pattern(r"ω\(\d+ tests?(?:ω\|[^)]*)?\)"));
    let mut observations = Vec::new();
    let mut suite_failures = Vec::new();
    let mut printed = false;
    for (line, at) in log.split('\n').zip(1..) {
        if line.starts_with("stdout | ") || line.starts_with("stderr | ") {
            printed = true;
        } else if trim(line).is_empty() {
            printed = false;
        } else if SUITE.is_match(line) || is_start_failure(line) {
            suite_failures.push(SuiteFailure { line: at, text: line.to_owned(), build: true });
        } else if let Some(found) =
            RESULT.captures(line).filter(|found| !printed && !FILE.is_match(&found[2]))
        {
            let (mark, rest) = (&found[1], &found[2]);
            // A dash at the line start is a diff.
            if mark == "-" && !(line.starts_with(' ') && rest.contains(" > ")) {
                continue;
            }
            let status = match mark {
                "✓" | "√" | "✔" => Status::Passed,
                "×" | "✗" | "✕" | "✖" => Status::Failed,
                _ => Status::Skipped,
            };
            let alias = upstream_line(line).map(|(name, _)| name.to_owned());
            observations.push(Observation::new(without_extras(rest), status, at).with_alias(alias));
        }
    }
    (observations, suite_failures)
}

fn is_start_failure(line: &str) -> bool {
    line.contains("⎯ Startup Error ⎯")
        || line.contains("Unhandled Errors ⎯")
        || line.starts_with("No test files found")
}

/// The name without `12ms`, `(1.2s)`, `[skipped]`, `(retry x2)`, `(repeat x3)`, a heap size.
fn without_extras(rest: &str) -> &str {
    static EXTRA: Pattern = LazyLock::new(|| {
        pattern(
            r"(?:ω+(?:\(?\d+(?:\.\d+)?ω?(?:ms|s|m)\)?|\[skipped\]|\((?:retry|repeat) x\d+\)|\d+ MB heap used))+ω*$",
        )
    });
    let end = EXTRA.find(rest).map_or(rest.len(), |found| found.start());
    if end == 0 { rest } else { &rest[..end] }
}

#[cfg(test)]
mod tests {
    use crate::grade::logs::{Rules, parse_log};

    #[test]
    fn strict_knows_all_marks_and_ignores_files_and_output() {
        let log = " RUN  v2.1.9 /x\n\nstdout | a.ts > outer\n✓ spoofed (3 ms)\n\n ✓ a.ts (3 tests) 12ms\n\
                   \x20✓ a.ts > case 3\n ✓ a.ts > slow 1.25s\n ✗ a.ts > bad 5ms\n ↓ a.ts > later [skipped]\n\
                   \x20✓ a.ts > again (retry x2) 12ms\n- Expected\n FAIL  b.ts [ b.ts ]\n FAIL  a.ts > bad\n";
        let map = parse_log("parse_log_vitest", log, Rules::Strict).unwrap();
        insta::assert_json_snapshot!(map.statuses, @r#"
        {
          "a.ts > again": "PASSED",
          "a.ts > bad": "FAILED",
          "a.ts > case 3": "PASSED",
          "a.ts > later": "SKIPPED",
          "a.ts > slow": "PASSED"
        }
        "#);
        assert_eq!(map.suite_failures.iter().map(|f| f.line).collect::<Vec<_>>(), [13]);
        assert_eq!(map.observations[0].alias.as_deref(), Some("a.ts > case"));
    }
}
