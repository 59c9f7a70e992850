//! mocha's spec reporter.

use std::sync::LazyLock;

use super::jest::Tree;
use super::text::{Pattern, pattern, split_lines, strip_duration, trim, trim_end};
use super::{Observation, ParseError, Status, SuiteFailure};

static PENDING: Pattern = LazyLock::new(|| pattern(r"^-ω+(.*)$"));
static PASSED: Pattern = LazyLock::new(|| pattern(r"^✔ω+(.*)$"));
static NUMBERED: Pattern = LazyLock::new(|| pattern(r"^\d+\)ω+(.*)$"));

type LineRule = fn(&str) -> Option<(String, Status)>;

fn first_match(line: &str, rules: &[(&Pattern, Status)]) -> Option<(String, Status)> {
    let line = trim(line);
    let (found, status) =
        rules.iter().find_map(|(rule, status)| Some((rule.captures(line)?, status.clone())))?;
    let name = strip_duration(found.get(1)?.as_str());
    (!name.is_empty()).then(|| (name.to_owned(), status))
}

fn js_line(line: &str) -> Option<(String, Status)> {
    static TITLED: Pattern = LazyLock::new(|| pattern(r"^\d+\)ω+(.*?):$"));
    static WARNED: Pattern = LazyLock::new(|| pattern(r"^\[W\]ω*\d+\)ω+(.*)$"));
    let rules = [
        (&PENDING, Status::Skipped),
        (&TITLED, Status::Failed),
        (&WARNED, Status::Failed),
        (&PASSED, Status::Passed),
    ];
    first_match(line, &rules)
}

fn js_2_line(line: &str) -> Option<(String, Status)> {
    first_match(line, &[(&PENDING, Status::Skipped), (&NUMBERED, Status::Failed), (&PASSED, Status::Passed)])
}

fn npx_line(line: &str) -> Option<(String, Status)> {
    static DONE: Pattern = LazyLock::new(|| pattern(r"^ω*✔ω+(.+?)(?:ω+\(\d+(?:ms)?\))?$"));
    static FAILED: Pattern = LazyLock::new(|| pattern(r"^ω*\d+\)ω+(.+)$"));
    static MODULE: Pattern = LazyLock::new(|| pattern(r"ω+\([^)]+\)$"));
    let line = trim_end(line);
    if let Some(found) = DONE.captures(line) {
        return Some((found[1].to_owned(), Status::Passed));
    }
    let found = FAILED.captures(line)?;
    let name = trim(found.get(1)?.as_str());
    let end = MODULE.find(name).map_or(name.len(), |module| module.start());
    Some((name[..end].to_owned(), Status::Failed))
}

fn lines(log: &str, rule: LineRule) -> Vec<Observation> {
    split_lines(log)
        .into_iter()
        .zip(1..)
        .filter_map(|(line, at)| rule(line).map(|(name, status)| Observation::new(name, status, at)))
        .collect()
}

/// `✔`, `- pending`, and failures that end with a colon.
pub(super) fn js(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(lines(log, js_line))
}

/// `✔`, `- pending`, `1) failure`.
pub(super) fn js_2(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(lines(log, js_2_line))
}

/// `✔` and `1) failure`, durations of mocha's own form only.
pub(super) fn npx(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(lines(log, npx_line))
}

/// The tree of the spec reporter; alias: what the `js` rule makes of the line.
pub(super) fn js_strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    spec(log, js_line)
}

/// The tree of the spec reporter; alias: what the `js_2` rule makes of the line.
pub(super) fn js_2_strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    spec(log, js_2_line)
}

/// The tree of the spec reporter; alias: what the `npx` rule makes of the line.
pub(super) fn npx_strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    spec(log, npx_line)
}

/// Whether a line belongs to the tree or to what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Tree,
    /// After `N passing`: totals and the details of this many failures.
    Epilogue {
        failing: usize,
        seen: usize,
    },
}

fn spec(log: &str, alias: LineRule) -> (Vec<Observation>, Vec<SuiteFailure>) {
    static RESULT: Pattern = LazyLock::new(|| pattern(r"^( *)(✔|✓|√|-|\d+\))ω+(.*[^ω])ω*$"));
    static TOTAL: Pattern = LazyLock::new(|| pattern(r"^ω+(\d+) (passing|pending|failing)\b"));
    let mut observations = Vec::new();
    let mut suite_failures = Vec::new();
    let mut part = Part::Tree;
    let mut tree = Tree::default();
    for (line, at) in split_lines(log).into_iter().zip(1..) {
        if let Some(total) = TOTAL.captures(line) {
            let failing = if &total[2] == "failing" { total[1].parse().unwrap_or(0) } else { 0 };
            part = Part::Epilogue { failing, seen: 0 };
            tree = Tree::default();
        } else if let Some(found) = RESULT.captures(line) {
            let (indent, mark) = (found[1].len(), &found[2]);
            if let Part::Epilogue { failing, seen } = part {
                if mark == "-" {
                    continue;
                }
                if mark.ends_with(')') && seen < failing {
                    part = Part::Epilogue { failing, seen: seen + 1 };
                    continue;
                }
                part = Part::Tree; // another run of mocha in the same log
            }
            // The reporter indents every result; what stands at the line start was printed by a test.
            if indent < 2 {
                continue;
            }
            let status = match mark {
                "-" => Status::Skipped,
                "✔" | "✓" | "√" => Status::Passed,
                _ => Status::Failed,
            };
            let title = without_time(&found[3]);
            let known = alias(line).map_or_else(|| title.to_owned(), |(name, _)| name);
            observations.push(Observation::new(tree.name(indent, title), status, at).with_alias(Some(known)));
        } else if part == Part::Tree && line.starts_with("  ") {
            tree.enter(line);
        } else if is_load_failure(line) {
            suite_failures.push(SuiteFailure { line: at, text: line.to_owned(), build: true });
        }
    }
    (observations, suite_failures)
}

fn without_time(title: &str) -> &str {
    static TIME: Pattern = LazyLock::new(|| pattern(r"ω+\(\d+(?:\.\d+)?ω?(?:ms|s|m)\)$"));
    &title[..TIME.find(title).map_or(title.len(), |found| found.start())]
}

fn is_load_failure(line: &str) -> bool {
    [
        "Error: Cannot find module",
        "SyntaxError: ",
        "TSError: ",
        "Error [ERR_MODULE_NOT_FOUND]",
        "ReferenceError: ",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use crate::grade::logs::{Rules, parse_log};

    const LOG: &str = "\n  outer\n    ✔ passes\n    1) fails ✓ tricky\n    inner\n✓ outer spoofed (3 ms)\n\
        \x20     ✔ same name\n      ✔ same name (12ms)\n      - skipped one\n\n  hooks\n\
        \x20   2) \"before all\" hook for \"never runs\"\n\n  3 passing (135ms)\n  1 pending\n  2 failing\n\n\
        \x20 1) outer\n       fails ✓ tricky:\n      - Expected\n  2) hooks\n       \"before all\" hook:\n\n\
        > second run\n\n  more\n    1) bad\n    ✔ good\n";

    #[test]
    fn strict_reads_the_trees_of_several_runs_and_not_their_details() {
        let map = parse_log("parse_log_js_2", LOG, Rules::Strict).unwrap();
        insta::assert_json_snapshot!(map.statuses, @r#"
        {
          "bad": "FAILED",
          "good": "PASSED",
          "hooks > \"before all\" hook for \"never runs\"": "FAILED",
          "outer > fails ✓ tricky": "FAILED",
          "outer > inner > same name": "PASSED",
          "outer > inner > skipped one": "SKIPPED",
          "outer > passes": "PASSED"
        }
        "#);
    }
}
