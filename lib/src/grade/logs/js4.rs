//! One parser for several JavaScript runners: jest, vitest, playwright, mocha.

use std::sync::LazyLock;

use super::text::{Pattern, pattern, split_lines, strip_duration, trim};
use super::{Observation, ParseError, Status, SuiteFailure};

const SKIP_MARKERS: [&str; 5] = ["(skipped)", "[skip]", "[skipped]", "[pending]", "[todo]"];

fn upstream_line(line: &str) -> Option<(String, Status)> {
    let line = trim(line);
    let mark = line.chars().next()?;
    let payload = trim(&line[mark.len_utf8()..]);
    let (name, status) = match mark {
        '✔' | '✓' => (strip_duration(without_tag(payload)).to_owned(), Status::Passed),
        '✘' | '✖' | '×' => (strip_duration(without_tag(payload)).to_owned(), Status::Failed),
        '○' | '◌' | '◦' | '⚪' => (strip_duration(without_tag(payload)).to_owned(), Status::Skipped),
        _ => (strip_duration(&without_skip_marker(line)?).to_owned(), Status::Skipped),
    };
    (!name.is_empty()).then_some((name, status))
}

/// The line without markers such as `[skipped]`, where it has one in any case of letters.
fn without_skip_marker(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    SKIP_MARKERS
        .iter()
        .any(|marker| lower.contains(marker))
        .then(|| SKIP_MARKERS.iter().fold(line.to_owned(), |text, marker| text.replace(marker, "")))
}

/// The payload without a project's tag (`[chromium]: `).
fn without_tag(payload: &str) -> &str {
    let mut rest = trim(payload);
    if rest.starts_with('[')
        && let Some((_, after)) = rest.split_once("]:")
    {
        rest = trim(after);
    }
    rest.strip_prefix(':').map_or(rest, trim)
}

/// Lines that begin with one of nine marks, and lines with a marker such as `[skipped]`.
pub(super) fn upstream(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(split_lines(log)
        .into_iter()
        .zip(1..)
        .filter_map(|(line, at)| upstream_line(line).map(|(name, status)| Observation::new(name, status, at)))
        .collect())
}

/// As upstream, and besides: the marks `✕ ✗ √ ↓`; no file lines; `skipped` before a name is no part of it.
pub(super) fn strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    static FILE: Pattern = LazyLock::new(|| pattern(r"ω\(\d+ tests?(?:ω\|[^)]*)?\)"));
    static SUITE: Pattern =
        LazyLock::new(|| pattern(r"^ω*(?:FAILω+.+?ω+\[ .+ \]|●ω+Test suite failed to run)$"));
    let mut observations = Vec::new();
    let mut suite_failures = Vec::new();
    for (line, at) in split_lines(log).into_iter().zip(1..) {
        if SUITE.is_match(line) {
            suite_failures.push(SuiteFailure { line: at, text: line.to_owned(), build: true });
        } else if let Some((name, status)) =
            strict_line(line).filter(|(name, _)| !FILE.is_match(&format!(" {name}")))
        {
            let alias = upstream_line(line).map(|(name, _)| name);
            observations.push(Observation::new(name, status, at).with_alias(alias));
        }
    }
    (observations, suite_failures)
}

fn strict_line(line: &str) -> Option<(String, Status)> {
    let line = trim(line);
    let mark = line.chars().next()?;
    let status = match mark {
        '✔' | '✓' | '√' => Status::Passed,
        '✘' | '✖' | '×' | '✕' | '✗' => Status::Failed,
        '○' | '◌' | '◦' | '⚪' | '↓' => Status::Skipped,
        _ => {
            let name = strip_duration(&without_skip_marker(line)?).to_owned();
            return (!name.is_empty()).then_some((name, Status::Skipped));
        }
    };
    let rest = without_tag(&line[mark.len_utf8()..]);
    let marked = without_skip_marker(rest);
    let status = if marked.is_some() && status == Status::Passed { Status::Skipped } else { status };
    let rest = marked.unwrap_or_else(|| rest.to_owned());
    let name = strip_duration(&rest);
    let name = if status == Status::Skipped { name.strip_prefix("skipped ").unwrap_or(name) } else { name };
    (!name.is_empty()).then(|| (name.to_owned(), status))
}

#[cfg(test)]
mod tests {
    use crate::grade::logs::{Rules, parse_log};

    #[test]
    fn strict_knows_every_mark() {
        let log =
            "✕ dup\n✓ dup\n✗ n\n√ m (1.5 s)\n○ skipped b\n↓ c [skipped]\n✓ src/a.test.ts (3 tests) 12ms\n";
        let map = parse_log("parse_log_js_4", log, Rules::Strict).unwrap();
        insta::assert_json_snapshot!(map.statuses, @r#"
        {
          "b": "SKIPPED",
          "c": "SKIPPED",
          "dup": "FAILED",
          "m": "PASSED",
          "n": "FAILED"
        }
        "#);
    }
}
