//! The golden files of gotestsum, and a snapshot of test-reporter: every input comes to what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::tests::{as_text, data};
use super::super::{Rules, StatusMap, parse_log};

fn strict(log: &str) -> StatusMap {
    parse_log("parse_log_gotest", log, Rules::Strict).unwrap()
}

/// What gotestsum's summary says.
struct Summary {
    failed: BTreeSet<String>,
    /// Packages that failed apart from their tests.
    packages: BTreeSet<String>,
    skipped: BTreeSet<String>,
    tests: usize,
    failures: usize,
}

impl Summary {
    fn of(text: &str) -> Self {
        let listed = |mark: &str| -> BTreeSet<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(mark));
            let names = lines.map(|line| line.rsplit_once(" (").unwrap().0.replace(" (re-run 7)", ""));
            names.map(|name| name.trim_start().replacen(' ', ".", 1)).collect()
        };
        let done = text.lines().find(|line| line.starts_with("DONE ")).unwrap();
        let count = |word: &str| {
            let before = done.split(word).next().filter(|before| before.len() < done.len());
            before.map_or(0, |before| before.rsplit(' ').next().unwrap().parse().unwrap())
        };
        let (packages, failed) = listed("=== FAIL: ").into_iter().partition(|name| name.ends_with('.'));
        let skipped = listed("=== SKIP: ");
        Self { failed, packages, skipped, tests: count(" tests"), failures: count(" failure") }
    }
}

fn names(map: &StatusMap, status: &str) -> BTreeSet<String> {
    let shorten = |name: &str| name.trim_start_matches("gotest.tools/gotestsum/").to_owned();
    as_text(map).into_iter().filter(|(_, is)| is == status).map(|(name, _)| shorten(&name)).collect()
}

#[test]
fn every_input_of_gotestsum_comes_to_what_its_summary_says() {
    let Some(data) = data() else { return };
    let folder = data.join("logs/go_gotestsum");
    let read = |path: &str| fs_err::read_to_string(folder.join(path)).unwrap();
    for (input, expected, times) in [
        (
            "testjson/testdata/input/go-test-json.out",
            "testjson/testdata/summary/root-test-has-subtest-failures",
            1,
        ),
        ("testjson/testdata/input/go-test-json.out", "testjson/testdata/summary/with-run-id", 1),
        (
            "testjson/testdata/input/go-test-json.out",
            "testjson/testdata/summary/bug-repeated-test-case-output",
            3,
        ),
        (
            "testjson/testdata/input/go-test-json-missing-skip-msg.out",
            "testjson/testdata/summary/bug-missing-skip-message",
            1,
        ),
        (
            "testjson/testdata/input/go-test-json-misattributed.out",
            "testjson/testdata/summary/misattributed-output",
            1,
        ),
        (
            "testjson/testdata/input/go-test-json-missing-test-fail.out",
            "testjson/testdata/summary/missing-test-fail-event",
            1,
        ),
        (
            "testjson/testdata/input/go-test-json-with-parallel-fails.out",
            "testjson/testdata/summary/parallel-failures",
            1,
        ),
        (
            "testjson/testdata/input/go-test-json-with-attributes.out",
            "testjson/testdata/summary/with-attributes",
            1,
        ),
        ("cmd/testdata/input/go-test-build-failed.out", "cmd/testdata/expected/build-fail-expected", 1),
        ("cmd/testdata/input/go-test-setup-failed.out", "cmd/testdata/expected/setup-fail-expected", 1),
        ("cmd/testdata/input/go-test-json-panic-race-1.out", "cmd/testdata/expected/panic-race-1-summary", 1),
        ("cmd/testdata/input/go-test-json-panic-race-2.out", "cmd/testdata/expected/panic-race-2-summary", 1),
    ] {
        let map = parse_log("go-test-json", &read(input).repeat(times), Rules::Strict).unwrap();
        let summary = Summary::of(&read(expected));
        assert_eq!(names(&map, "FAILED"), summary.failed, "{expected}");
        assert_eq!(names(&map, "SKIPPED"), summary.skipped, "{expected}");
        assert_eq!(map.observations.len(), summary.tests, "{expected}");
        assert_eq!(summary.failed.len() * times + summary.packages.len(), summary.failures, "{expected}");
        for package in summary.packages {
            let broken = |text: &str| text.starts_with("FAIL ") && format!("{text}.").ends_with(&package);
            assert!(map.suite_failures.iter().any(|failure| broken(&failure.text)), "{expected}: {package}");
        }
    }
}

#[test]
fn gotestsum_s_text_and_junit_tell_of_the_same_tests_as_its_input() {
    let Some(data) = data() else { return };
    let folder = data.join("logs/go_gotestsum/testjson/testdata");
    let read = |path: String| fs_err::read_to_string(folder.join(path)).unwrap();
    let short = |map: &StatusMap| -> BTreeMap<String, String> {
        let cut =
            |name: &str| name.split_once("testjson/").map_or(name.to_owned(), |(_, rest)| rest.to_owned());
        as_text(map).into_iter().map(|(name, status)| (cut(&name), status)).collect()
    };
    for (input, suffix) in [
        ("", ""),
        ("-with-shuffle", "-shuffle"),
        ("-with-cover", "-coverage"),
        ("-with-cover-go1.20", "-coverage-go1.20"),
    ] {
        let whole = short(&strict(&read(format!("input/go-test-json{input}.out"))));
        for format in [
            "testname",
            "standard-verbose",
            "github-actions",
            "standard-quiet",
            "pkgname",
            "testdox",
            "dots-v1",
        ] {
            let path = format!("format/{format}{suffix}.out");
            if !folder.join(&path).exists() {
                continue;
            }
            let tells = matches!(format, "testname" | "standard-verbose" | "github-actions");
            let expected = if tells { whole.clone() } else { BTreeMap::new() };
            assert_eq!(short(&strict(&read(path))), expected, "{format}{suffix}");
        }
    }
    let path = data.join("logs/go_gotestsum/internal/junitxml/testdata/junitxml-report.golden");
    let junit = junit(&path);
    assert_eq!(junit.len(), 59);
    assert_eq!(as_text(&strict(&read("input/go-test-json.out".to_owned()))), junit);
}

/// The test cases of a report of gotestsum, but for those of whole packages.
fn junit(path: &Path) -> BTreeMap<String, String> {
    let text = fs_err::read_to_string(path).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let named = cases.filter_map(|case| {
        let package = case.attribute("classname").filter(|package| !package.is_empty())?;
        let has = |name: &str| case.children().any(|child| child.has_tag_name(name));
        let status = if has("failure") {
            "FAILED"
        } else if has("skipped") {
            "SKIPPED"
        } else {
            "PASSED"
        };
        Some((format!("{package}.{}", case.attribute("name")?), status.to_owned()))
    });
    named.collect()
}

/// The events that are missing are gotestsum's own test: it counts these six as failed.
#[test]
fn missing_events_and_foreign_lines_do_no_harm() {
    let Some(data) = data() else { return };
    let folder = data.join("logs/go_gotestsum/testjson/testdata");
    let read = |name: &str| strict(&fs_err::read_to_string(folder.join(name)).unwrap());
    let missing = read("go-test-json-missing-test-events.out");
    let failed = [
        "TestFailed",
        "TestFailed/a",
        "TestFailed/a/sub",
        "TestMissing",
        "TestMissing/a",
        "TestMissingEvent",
    ];
    assert_eq!(
        names(&missing, "FAILED"),
        failed.iter().map(|test| format!("gotest.tools/testing.{test}")).collect()
    );
    let foreign = read("go-test-json-with-nonjson-stdout.out");
    assert_eq!(names(&foreign, "PASSED"), BTreeSet::from(["testjson/internal/good.TestPassed".to_owned()]));
}

#[test]
fn test_reporter_s_snapshot_says_the_same() {
    let Some(data) = data() else { return };
    let folder = data.join("logs/multi_dorny-test-reporter");
    let map = strict(&fs_err::read_to_string(folder.join("fixtures/golang-json.json")).unwrap());
    let snapshot = fs_err::read_to_string(folder.join("__snapshots__/golang-json.test.ts.snap")).unwrap();
    let (mut expected, mut group, mut test) = (BTreeMap::new(), String::new(), String::new());
    for line in snapshot.lines() {
        let value = |key: &str| {
            Some(line.trim().strip_prefix(key)?.trim_end_matches(',').trim_matches('"').to_owned())
        };
        // Groups are indented less than the tests in them.
        match (line.len() - line.trim_start().len(), value("\"name\": "), value("\"result\": ")) {
            (10, Some(name), _) => group = if name == "null" { String::new() } else { format!("{name}/") },
            (14, Some(name), _) => test = format!("{group}{name}"),
            (14, _, Some(result)) => {
                let status = match result.as_str() {
                    "success" => "PASSED",
                    "failed" => "FAILED",
                    _ => "SKIPPED",
                };
                expected
                    .insert(format!("_/home/james_t/git/test-reporter/reports/go.{test}"), status.to_owned());
            }
            _ => {}
        }
    }
    assert_eq!(expected.len(), 12);
    assert_eq!(as_text(&map), expected);
}
