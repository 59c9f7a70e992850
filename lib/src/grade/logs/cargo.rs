//! `cargo test`: libtest and doctests.

use std::sync::LazyLock;

use super::text::{Pattern, pattern, trim};
use super::{Observation, ParseError, Status, SuiteFailure};

fn upstream_line(line: &str) -> Option<(&str, Status)> {
    static RESULT: Pattern = LazyLock::new(|| pattern(r"^testω+([^ω]+)ω+\.\.\.ω+([\p{L}\p{N}_]+)$"));
    let found = RESULT.captures(trim(line))?;
    let status = match found.get(2)?.as_str() {
        "ok" => Status::Passed,
        "FAILED" => Status::Failed,
        _ => return None,
    };
    Some((found.get(1)?.as_str(), status))
}

/// Every `test NAME ... ok` or `FAILED` line whose name holds no blank.
pub(super) fn upstream(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(super::bridge::line_by_line(log, upstream_line))
}

/// As upstream, and besides: doctests, `should panic`, ignored tests, timed results, results that follow a
/// test's own output; only between `running N tests` and the report of that binary, so that printed
/// look-alikes do not count.
pub(super) fn strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    static BEGIN: Pattern = LazyLock::new(|| pattern(r"^running \d+ tests?$"));
    static END: Pattern = LazyLock::new(|| pattern(r"^(?:failures|successes):$|^test result: "));
    static RESULT: Pattern =
        LazyLock::new(|| pattern(r"^test (.+) \.\.\. (ok|FAILED|ignored)(?:, .*)?(?: <\d+(?:\.\d+)?s>)?ω*$"));
    static BEGUN: Pattern = LazyLock::new(|| pattern(r"^test (.+?) \.\.\. "));
    static ALONE: Pattern =
        LazyLock::new(|| pattern(r"^(ok|FAILED|ignored)(?:, .*)?(?: <\d+(?:\.\d+)?s>)?ω*$"));
    let mut observations = Vec::new();
    let mut suite_failures = Vec::new();
    let mut inside = false;
    let mut begun: Option<String> = None;
    for (line, at) in log.split('\n').zip(1..) {
        if BEGIN.is_match(line) {
            (inside, begun) = (true, None);
        } else if END.is_match(line) {
            (inside, begun) = (false, None);
        } else if let Some(build) = suite_failure(line) {
            suite_failures.push(SuiteFailure { line: at, text: line.to_owned(), build });
        } else if !inside {
            continue;
        } else if let Some(found) = RESULT.captures(line) {
            observations.push(observation(&found[1], &found[2], at));
            begun = None;
        } else if let Some(found) = BEGUN.captures(line) {
            begun = Some(found[1].to_owned());
        } else if let Some(found) = ALONE.captures(line)
            && let Some(name) = begun.take()
        {
            observations.push(observation(&name, &found[1], at));
        }
    }
    (observations, suite_failures)
}

fn observation(raw: &str, word: &str, line: usize) -> Observation {
    static MODE: Pattern =
        LazyLock::new(|| pattern(r"^(.+?)(?: - should panic| - compile fail| - compile)?$"));
    // What a test printed without a line end may stand between its name and its result.
    let raw = raw.split(" ... ").next().unwrap_or(raw);
    let name = MODE.captures(raw).and_then(|found| found.get(1)).map_or(raw, |name| name.as_str());
    let status = match word {
        "ok" => Status::Passed,
        "ignored" => Status::Skipped,
        _ => Status::Failed,
    };
    Observation::new(name, status, line).with_alias(Some(raw.to_owned()))
}

/// Whether cargo says that something larger than a test failed, and whether that was a build.
fn suite_failure(line: &str) -> Option<bool> {
    if line.starts_with("error: could not compile") || line.starts_with("error: failed to ") {
        return Some(true);
    }
    let tests =
        ["error: test failed", "error: doctest failed", "error: bench failed", "error: test run failed"];
    let several = line.starts_with("error: ") && line.ends_with(" failed:");
    (several || tests.iter().any(|start| line.starts_with(start))).then_some(false)
}

#[cfg(test)]
mod tests {
    use crate::grade::logs::{Rules, parse_log};

    #[test]
    fn sees_doctests_panics_ignored_and_interrupted_lines_but_no_look_alikes() {
        let log = "running 6 tests\ntest a::panics - should panic ... ok\ntest a::slow ... ignored, slow\n\
                   test a::prints ... hello\nok\ntest a::timed ... ok <0.100s>\ntest a::bad ... FAILED\n\
                   test src/lib.rs - add (line 4) ... ok\n\nfailures:\n\n---- a::bad stdout ----\n\
                   test a::fake ... ok\n\ntest result: FAILED. 4 passed; 1 failed\n\
                   error: test failed, to rerun pass `--lib`\n";
        let map = parse_log("parse_log_cargo", log, Rules::Strict).unwrap();
        insta::assert_json_snapshot!(map.statuses, @r#"
        {
          "a::bad": "FAILED",
          "a::panics": "PASSED",
          "a::prints": "PASSED",
          "a::slow": "SKIPPED",
          "a::timed": "PASSED",
          "src/lib.rs - add (line 4)": "PASSED"
        }
        "#);
        assert_eq!(map.suite_failures.len(), 1);
    }
}
