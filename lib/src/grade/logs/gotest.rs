//! `go test -v`.

use std::sync::LazyLock;

use super::text::{Pattern, pattern, trim};
use super::{Observation, ParseError, Status, SuiteFailure};

fn result(line: &str) -> Option<(&str, Status)> {
    static RESULT: Pattern = LazyLock::new(|| pattern(r"^--- (PASS|FAIL|SKIP): (.+) \((.+)\)$"));
    let found = RESULT.captures(trim(line))?;
    Some((found.get(2)?.as_str(), status(found.get(1)?.as_str())))
}

fn status(word: &str) -> Status {
    match word {
        "PASS" => Status::Passed,
        "SKIP" => Status::Skipped,
        _ => Status::Failed,
    }
}

/// Every `--- PASS: Name (time)` line; packages are not part of the name.
pub(super) fn upstream(log: &str) -> Result<Vec<Observation>, ParseError> {
    Ok(super::bridge::line_by_line(log, result))
}

/// As upstream, and besides: a result that follows a test's unfinished output on one line, and tests that had
/// begun when their package failed without a result for them (a panic, `os.Exit`, a data race).
pub(super) fn strict(log: &str) -> (Vec<Observation>, Vec<SuiteFailure>) {
    static TIMED: Pattern =
        LazyLock::new(|| pattern(r"--- (PASS|FAIL|SKIP): (\S+) \(\d+(?:\.\d+)?(?:s| seconds)\)ω*$"));
    let mut observations = Vec::new();
    let mut suite_failures = Vec::new();
    let mut running: Vec<&str> = Vec::new();
    for (line, at) in log.split('\n').zip(1..) {
        if let Some(name) = line.trim_start_matches('\x16').strip_prefix("=== RUN") {
            running.push(trim(name));
        } else if let Some(found) = TIMED.captures(line) {
            let (Some(whole), Some(word), Some(name)) = (found.get(0), found.get(1), found.get(2)) else {
                continue;
            };
            let begins_line = trim(line[..whole.start()].trim_start_matches('\x16')).is_empty();
            if begins_line || running.contains(&name.as_str()) {
                running.retain(|begun| *begun != name.as_str());
                observations.push(Observation::new(name.as_str(), status(word.as_str()), at));
            }
        } else if let Some(package) = line.strip_prefix("FAIL\t") {
            let build = package.ends_with(" failed]");
            suite_failures.push(SuiteFailure { line: at, text: line.to_owned(), build });
            let unfinished = running.drain(..).map(|name| Observation::new(name, Status::Failed, at));
            observations.extend(unfinished);
        } else if line.starts_with("ok  \t") {
            running.clear();
        }
    }
    (observations, suite_failures)
}

#[cfg(test)]
mod tests {
    use crate::grade::logs::{Rules, Status, parse_log};

    #[test]
    fn a_panic_fails_what_had_begun_and_a_broken_package_is_seen() {
        let log = "=== RUN   TestOutput\nno newline--- FAIL: TestFake (0.00s)\nmore--- PASS: TestOutput (0.00s)\n\
                   === RUN   TestSub\n=== RUN   TestSub/a\npanic: boom\nFAIL\texample.com/fx\t0.3s\n\
                   FAIL\texample.com/bad [build failed]\n";
        let map = parse_log("parse_log_gotest", log, Rules::Strict).unwrap();
        insta::assert_json_snapshot!(map.statuses, @r#"
        {
          "TestOutput": "PASSED",
          "TestSub": "FAILED",
          "TestSub/a": "FAILED"
        }
        "#);
        assert_eq!(
            map.suite_failures.iter().map(|f| (f.line, f.build)).collect::<Vec<_>>(),
            [(7, false), (8, true)]
        );
    }

    #[test]
    fn the_same_name_in_two_packages_is_as_bad_as_the_worse() {
        let log = "--- FAIL: TestX (0.00s)\nFAIL\ta\t0.1s\n--- PASS: TestX (0.00s)\nok  \tb\t0.1s\n";
        let map = parse_log("parse_log_gotest", log, Rules::Strict).unwrap();
        assert_eq!(map.statuses["TestX"], Status::Failed);
        assert_eq!(map.observations.len(), 2);
        assert_eq!(
            parse_log("parse_log_gotest", log, Rules::Upstream).unwrap().statuses["TestX"],
            Status::Passed
        );
    }
}
