//! Rules of Go, beside the reference parser, gotestsum and suites with a known outcome.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::tests::{as_text, check_real_logs, check_vectors, data};
use super::super::truth_tests::Truth;
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

/// Checks the tests of a log, written `STATUS name`.
fn check(log: &str, tests: &[&str]) -> StatusMap {
    let map = parse_log("parse_log_gotest", log, Rules::Strict).unwrap();
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
        super::super::truth_tests::tell(format_args!(
            "go/{log}: strict {} of {}, upstream {} of {}",
            truth.tests.len(),
            truth.tests.len(),
            score.right,
            score.of
        ));
    }
}

proptest! {
    /// Whatever else a log holds: a test that no line says to have passed has not.
    #[test]
    fn a_test_never_passes_without_a_line_that_says_so(
        lines in proptest::collection::vec(
            prop_oneof![
                "(=== (RUN   |PAUSE |CONT  |NAME  )|(    |\u{16}|x)?--- FAIL: )TestBad(/a)?( \\(0.00s\\))?",
                "(=== (RUN   |PAUSE |CONT  |NAME  )|(    |\u{16}|x)?--- (FAIL|PASS|SKIP): )Test[AB](/a)?( \\(0.00s\\))?",
                "PASS|FAIL|ok  \tp\t0.1s|FAIL\t[pq]\t0.1s|\\?   \tp\t\\[no test files\\]|text|=== Failed|DONE 1 tests",
                "(FAIL|SKIP) p.TestBad \\(0.00s\\)|=== FAIL: p TestBad \\(0.00s\\)|PASS p.TestA \\(0.00s\\)",
                "x....stripped due to length....|::group::PASS p.TestB \\(0.00s\\)|::endgroup::",
            ],
            0..40,
        )
    ) {
        let map = parse_log("parse_log_gotest", &lines.join("\n"), Rules::Strict).unwrap();
        for (name, status) in as_text(&map) {
            prop_assert!(!name.contains("TestBad") || status != "PASSED", "{name}: {lines:?}");
        }
    }
}
