//! Rules of Go, beside the reference parser, gotestsum and suites with a known outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::tests::{as_text, check_real_logs, check_vectors, data};
use super::super::truth::Truth;
use super::super::{Rules, StatusMap, parse_log};

const VECTORS: &str = r##"
{"p": "parse_log_gotest", "log": "    --- PASS: TestA/b_(c) (0.00s)\n--- SKIP: T (1s)\n--- FAIL: a (b) ()\n--- PASS: X (0.1s) z", "out": {"TestA/b_(c)": "PASSED", "T": "SKIPPED", "a": "FAILED"}}
{"p": "parse_log_gotest", "log": "\u001c--- PASS: A (0s)\u001f\n--- PASS: B\u000bx (0s)\n--- PASS: C (0s)\u2028--- PASS: D (0s)", "out": {"A": "PASSED", "B\u000bx": "PASSED", "C (0s)\u2028--- PASS: D": "PASSED"}}
{"p": "swe-bench-4:parse_log_gotest", "log": "--- PASS:  (1) (2)\n--- PASS: (1)\n--- FAIL: x ( )\n--- PASS: a (b) (c\n---  PASS: y (1)", "out": {" (1)": "PASSED", "x": "FAILED"}}
{"p": "swe-bench-5:parse_log_gotest", "log": "--- PASS: A (0s)\n--- FAIL: A (0s)\r--- SKIP: B (0s)", "out": {"A": "FAILED", "B": "SKIPPED"}}
"##;

#[test]
fn upstream_rules_equal_the_reference_parser() {
    assert_eq!(check_vectors(VECTORS), 4);
    let Some(data) = data() else { return };
    for folder in ["go_test_v", "go_test_json"] {
        check_real_logs(&data.join("logs").join(folder));
    }
}

fn strict(log: &str) -> StatusMap {
    parse_log("parse_log_gotest", log, Rules::Strict).unwrap()
}

/// Checks the tests of a log, written `STATUS name`.
fn check(log: &str, tests: &[&str]) -> StatusMap {
    let map = strict(log);
    let found: BTreeSet<String> =
        as_text(&map).iter().map(|(name, status)| format!("{status} {name}")).collect();
    assert_eq!(found, tests.iter().map(|test| (*test).to_owned()).collect(), "{log}");
    map
}

#[test]
fn tests_are_named_by_package_and_known_by_their_plain_names() {
    let map = check(
        "=== RUN   TestX\n--- FAIL: TestX (0.00s)\nFAIL\nFAIL\ta/b\t0.1s\n=== RUN   TestX\n--- PASS: TestX (0.00s)\n\
         PASS\nok  \ta/c\t(cached)\n?   \ta/d\t[no test files]\n=== RUN   TestCut\n--- PASS: TestCut (0.00s)\n",
        &["FAILED a/b.TestX", "PASSED a/c.TestX", "PASSED TestCut"],
    );
    let aliases: Vec<_> = map.observations.iter().map(|seen| seen.alias.as_deref()).collect();
    assert_eq!(aliases, [Some("TestX"), Some("TestX"), None]);
    let groups: Vec<_> =
        map.groups.iter().map(|group| (group.name.as_str(), group.status.as_str())).collect();
    assert_eq!(groups, [("a/b", "FAILED"), ("a/c", "PASSED"), ("a/d", "SKIPPED")]);
}

#[test]
fn a_panic_fails_what_had_begun_and_a_broken_package_is_seen() {
    let map = check(
        "=== RUN   TestOutput\nno newline--- FAIL: TestFake (0.00s)\nmore--- PASS: TestOutput (0.00s)\n\
         === RUN   TestSub\n=== RUN   TestSub/a\npanic: boom\nFAIL\texample.com/fx\t0.3s\n\
         FAIL\texample.com/bad [build failed]\n",
        &[
            "PASSED example.com/fx.TestOutput",
            "FAILED example.com/fx.TestSub",
            "FAILED example.com/fx.TestSub/a",
        ],
    );
    let broken: Vec<_> = map.suite_failures.iter().map(|failure| (failure.line, failure.build)).collect();
    assert_eq!(broken, [(7, false), (8, true)]);
}

#[test]
fn what_a_test_prints_is_no_result() {
    // Of one that has ended, of one that waits, of one that never was; and an end of the package.
    check(
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestP\n=== PAUSE TestP\n=== RUN   TestB\n\
         --- FAIL: TestA (0.00s)\n--- PASS: TestP (0.00s)\n=== RUN   TestGhost\n--- PASS: TestGhost (0.00s)\n\
         ok  \tghost\t0.1s\n--- PASS: TestB (0.00s)\n=== CONT  TestP\n--- FAIL: TestP (0.00s)\nFAIL\n\
         FAIL\tp\t0.1s\n",
        &["PASSED p.TestA", "PASSED p.TestB", "FAILED p.TestP"],
    );
    // Of itself.
    check(
        "=== RUN   TestB\n--- PASS: TestB (0.00s)\n=== RUN   TestGhost\n--- PASS: TestGhost (0.00s)\n\
         --- FAIL: TestB (0.00s)\n=== RUN   TestC\n--- FAIL: TestC (0.00s)\nFAIL\nFAIL\tp\t0.1s\n",
        &["FAILED p.TestB", "FAILED p.TestC", "PASSED p.TestGhost"],
    );
    // A failure that came after the end of its test counts where the package has no other.
    check(
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestGhost\n--- FAIL: TestA (0.00s)\n\
         --- PASS: TestGhost (0.00s)\nFAIL\nFAIL\tp\t0.1s\n",
        &["FAILED p.TestA", "PASSED p.TestGhost"],
    );
    // Without -v only failures of packages that fail are results.
    check(
        "--- PASS: TestA (0.00s)\ntext\nok  \tp\t0.1s\n--- FAIL: TestB (0.00s)\n    b_test.go:1: x\nFAIL\tq\t0.1s\n",
        &["FAILED q.TestB"],
    );
    // Nor does a package end while a test has the stage.
    check("=== RUN   TestX\nPASS\nok  \tp\t0.1s\nFAIL\tp\t0.1s\n", &["FAILED p.TestX"]);
}

#[test]
fn results_alone_and_logs_with_gaps_are_read() {
    check(
        "--- PASS: TestA (0.00s)\n    --- PASS: TestA/b (0.00s)\n--- SKIP: TestC (0.00s)\nPASS\nok  \tp\t0.1s\n",
        &["PASSED p.TestA", "PASSED p.TestA/b", "SKIPPED p.TestC"],
    );
    check(
        "=== RUN   TestA\n=== PAUSE TestA\n=== CO....stripped due to length....\n--- PASS: TestA (0.00s)\n\
         --- PASS: TestB (0.00s)\nPASS\nok  \tp\t0.1s\n",
        &["PASSED p.TestA", "PASSED p.TestB"],
    );
}

#[test]
fn json_events_are_read_and_old_ones_only_with_their_output() {
    let event = |action: &str, test: &str, output: &str| {
        serde_json::json!({"Action": action, "Package": "p", "Test": test, "Output": output}).to_string()
            + "\n"
    };
    let spliced = [
        event("run", "TestA", ""),
        event("output", "TestA", "=== RUN   TestA\n"),
        event("output", "TestA", "text--- PASS: TestA (0.00s)\n"),
        event("run", "TestB", ""),
        event("output", "TestB", "=== RUN   TestB\n"),
        event("pass", "TestGhost", ""),
        event("fail", "TestB", ""),
        event("output", "TestB", "--- FAIL: TestB (0.00s)\n"),
        "{\"Action\":\"fail\",\"Package\":\"p\"}\n".to_owned(),
    ];
    check(&spliced.concat(), &["PASSED p.TestA", "FAILED p.TestB"]);
    let started = "{\"Action\":\"start\",\"Package\":\"p\"}\n".to_owned() + &spliced[3..].concat();
    check(&started, &["PASSED p.TestGhost", "FAILED p.TestB"]);
    check(&[event("run", "TestCut", ""), "{\"Acti".to_owned()].concat(), &["FAILED p.TestCut"]);
}

#[test]
fn gotestsum_names_tests_with_their_packages() {
    check(
        "PASS a/b.v2.TestX (0.00s)\n=== RUN   TestY/z\n    --- FAIL: TestY/z (0.00s)\nFAIL a/b.v2.TestY/z (0.00s)\n\
         FAIL a/b.v2.TestY (re-run 1) (0.00s)\nPASS a/b.v2 (cached)\n\n=== Failed\n\
         === FAIL: a/b.v2 TestY/z (0.00s)\n    --- PASS: TestY/ghost (0.00s)\n\n=== FAIL: c  (0.00s)\n\n\
         === FAIL: c TestPanic (unknown)\n\nDONE 3 tests, 3 failures in 0.1s\n",
        &["PASSED a/b.v2.TestX", "FAILED a/b.v2.TestY", "FAILED a/b.v2.TestY/z", "FAILED c.TestPanic"],
    );
}

/// The suite of `awkward-suites`: what a log of it shows.
#[test]
fn strict_rules_find_the_truth_of_the_shared_suite() {
    let Some(data) = data() else { return };
    let folder = data.join("logs/awkward-suites/go");
    let truth: serde_json::Value =
        serde_json::from_slice(&fs_err::read(folder.join("expected.json")).unwrap()).unwrap();
    let tests = |shows: fn(&str, &str) -> bool| {
        let packages = truth["tests"].as_object().unwrap().iter();
        let tests = packages.filter_map(|(package, tests)| Some((package, tests.as_object()?)));
        let all = tests.flat_map(|(package, tests)| {
            tests
                .iter()
                .map(move |(name, status)| (format!("{package}.{name}"), status.as_str().unwrap().to_owned()))
        });
        all.filter(|(name, status)| *status != "never ran" && shows(name, status)).collect::<BTreeMap<_, _>>()
    };
    for (log, tests) in [
        ("v.log", tests(|_, _| true)),
        ("json.log", tests(|_, _| true)),
        ("default.log", tests(|_, status| status == "FAILED")),
        (
            "v_run_single.log",
            BTreeMap::from(
                ["", "/a_b"].map(|sub| (format!("example.com/fx.TestSub{sub}"), "PASSED".to_owned())),
            ),
        ),
    ] {
        let truth = Truth { log: folder.join(log), parser: "parse_log_gotest".to_owned(), tests };
        let score = truth.check();
        println!(
            "go/{log}: strict {} of {}, upstream {} of {}",
            truth.tests.len(),
            truth.tests.len(),
            score.right,
            score.of
        );
    }
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
