//! Rules of Rust, beside the reference parser and suites with a known outcome.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::tests::{as_text, check_real_logs, check_vectors, data};
use super::super::truth_tests::Truth;
use super::super::{Rules, StatusMap, parse_log};

const VECTORS: &str = r##"
{"p": "parse_log_cargo", "log": "test a::b ... ok\ntest c ... FAILED\ntest d ... ignored\ntest src/lib.rs - x (line 3) ... ok\ntest e - should panic ... ok\ntest result: ok. 1 passed\ntest f ... ok <0.1s>", "out": {"a::b": "PASSED", "c": "FAILED"}}
{"p": "swe-bench-4:parse_log_cargo", "log": "\u001ctest\u00a0a\u2003...\tok\u001f\ntest a.. ok\ntest b ...ok\ntest c ... okay\ntest\u000bd\u0085...\u2028FAILED", "out": {"a": "PASSED", "d": "FAILED"}}
{"p": "swe-bench-5:parse_log_cargo", "log": "test a ... ok\ntest a ... FAILED\rtest a ... ignored\ntest ... ... ok\ntests b ... ok\ntest x ... ok y", "out": {"a": "FAILED", "...": "PASSED"}}
"##;

#[test]
fn upstream_rules_equal_the_reference_parser() {
    assert_eq!(check_vectors(VECTORS), 3);
    if let Some(data) = data() {
        check_real_logs(&data.join("logs/cargo_test"));
    }
}

/// Checks the tests of a log, written `STATUS name`.
fn check(log: &str, tests: &[&str]) -> StatusMap {
    let map = parse_log("parse_log_cargo", log, Rules::Strict).unwrap();
    let found: BTreeSet<String> =
        as_text(&map).iter().map(|(name, status)| format!("{status} {name}")).collect();
    assert_eq!(found, tests.iter().map(|test| (*test).to_owned()).collect(), "{log}");
    map
}

fn report(passed: usize, failed: usize, ignored: usize) -> String {
    let word = if failed == 0 { "ok" } else { "FAILED" };
    format!(
        "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
    )
}

#[test]
fn doctests_panics_ignored_and_interrupted_tests_are_seen_but_no_look_alikes() {
    let log = "running 6 tests\ntest a::panics - should panic ... ok\ntest a::slow ... ignored, slow\n\
               test a::prints ... hello\nok\ntest a::timed ... ok <0.100s>\ntest a::bad ... FAILED\n\
               test src/lib.rs - add (line 4) ... ok\n\nfailures:\n\n---- a::bad stdout ----\n\
               test a::fake ... ok\n\n\nfailures:\n    a::bad\n"
        .to_owned()
        + &report(4, 1, 1)
        + "error: test failed, to rerun pass `--lib`\n";
    let map = check(
        &log,
        &[
            "FAILED a::bad",
            "PASSED a::panics",
            "PASSED a::prints",
            "SKIPPED a::slow",
            "PASSED a::timed",
            "PASSED src/lib.rs - add (line 4)",
        ],
    );
    assert_eq!(map.suite_failures.len(), 1);
}

#[test]
fn the_report_settles_what_output_has_broken_or_made_up() {
    // The list of failures outweighs lines; a report with other counts is output.
    let log = "running 3 tests\ntest a ... ok\ntest b ... FAILED\ntest ghost ... FAILED\n\
               test result: ok. 99 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\ntest c ... text ok\n\
               \nfailures:\n\nfailures:\n    a\n"
        .to_owned()
        + &report(2, 1, 0);
    check(&log, &["FAILED a"]);
    // A result that is lost in a test's output.
    check(
        &("running 2 tests\ntest a ... printedok\ntest b ... ok\n".to_owned() + &report(2, 0, 0)),
        &["PASSED a", "PASSED b"],
    );
    check(
        &("running 2 tests\nno line endtest a ... ok\ntest b ... ok\n".to_owned() + &report(2, 0, 0)),
        &["PASSED a", "PASSED b"],
    );
    // More passes than the report counts: none can be told from the made-up one.
    let map =
        check(&("running 1 test\ntest a ... ok\ntest ghost ... ok\n".to_owned() + &report(1, 0, 0)), &[]);
    assert!(map.suite_failures[0].text.contains("2 tests are said to have passed where 1 are counted"));
    // What began and has no end, where nothing counts it.
    check(
        "running 3 tests\ntest a ... ok\ntest b ... text\nerror: test failed, to rerun pass `--lib`\n",
        &["PASSED a", "FAILED b"],
    );
    // Dots name only failures.
    let log = "running 3 tests\ni. 2/3\na --- FAILED\n\nfailures:\n\nfailures:\n    a\n".to_owned()
        + &report(1, 1, 1);
    check(&log, &["FAILED a"]);
}

#[test]
fn a_binary_is_named_where_several_have_the_test() {
    let run = |header: &str, name: &str| {
        format!("{header}\n\nrunning 1 test\ntest {name} ... ok\n{}", report(1, 0, 0))
    };
    let log = [
        run("     Running unittests src/lib.rs (target/debug/deps/a-0123456789abcdef)", "same"),
        run("     Running unittests src/main.rs (target\\debug\\deps\\a-1123456789abcdef.exe)", "same"),
        run("     Running tests/it.rs (target/debug/deps/it-2123456789abcdef)", "same"),
        run("     Running tests/it.rs (target/debug/deps/it-3123456789abcdef)", "same"),
        run("     Running target/debug/deps/old-4123456789abcdef", "same"),
        run("   Doc-tests a", "src/lib.rs - f (line 1)"),
    ];
    let map = check(
        &log.concat(),
        &[
            "PASSED unittests src/lib.rs (a) same",
            "PASSED unittests src/main.rs (a) same",
            "PASSED tests/it.rs (it) same",
            "PASSED tests/it.rs (it)#2 same",
            "PASSED old same",
            "PASSED src/lib.rs - f (line 1)",
        ],
    );
    assert!(map.observations[..5].iter().all(|seen| seen.alias.as_deref() == Some("same")));
}

#[test]
fn trybuild_s_files_are_groups_and_nested_runs_end_before_their_own() {
    let log = "running 1 test\n\ntest tests/ui/a.rs [should pass] ... ok\ntest tests/ui/b.rs ... mismatch\n\
               test ui ... ok\n"
        .to_owned()
        + &report(1, 0, 0);
    let map = check(&log, &["PASSED ui"]);
    let groups: Vec<_> =
        map.groups.iter().map(|group| (group.name.as_str(), group.status.as_str())).collect();
    assert_eq!(groups, [("tests/ui/a.rs", "PASSED"), ("tests/ui/b.rs", "FAILED")]);
    let log = format!(
        "running 2 tests\ntest a ... ok\n\nrunning 1 test\ntest inner ... ok\n{}test b ... ok\n{}",
        report(1, 0, 0),
        report(2, 0, 0)
    );
    check(&log, &["PASSED a", "PASSED b", "PASSED inner"]);
    // A binary that dies leaves no report.
    let log = format!("running 2 tests\ntest a ... ok\n\nrunning 1 test\ntest b ... ok\n{}", report(1, 0, 0));
    check(&log, &["PASSED a", "PASSED b"]);
}

#[test]
fn libtest_json_is_read() {
    let event = |event: &str, name: &str| {
        format!("{{ \"type\": \"test\", \"event\": \"{event}\", \"name\": \"{name}\" }}\n")
    };
    let log = "     Running tests/it.rs (target/debug/deps/it-2123456789abcdef)\n".to_owned()
        + "{ \"type\": \"suite\", \"event\": \"started\", \"test_count\": 4 }\n"
        + &event("started", "a")
        + "text"
        + &event("ok", "a")
        + &event("started", "b")
        + &event("timeout", "b")
        + &event("failed", "b")
        + &event("started", "c")
        + &event("ignored", "c")
        + &event("started", "d")
        + "     Running tests/other.rs (target/debug/deps/other-2123456789abcdef)\n"
        + &event("ok", "a")
        + &event("ok", "d");
    check(
        &log,
        &[
            "PASSED tests/it.rs (it) a",
            "FAILED b",
            "SKIPPED c",
            "FAILED tests/it.rs (it) d",
            "PASSED tests/other.rs (other) a",
            "PASSED tests/other.rs (other) d",
        ],
    );
    let nextest = event("started", "p-q::p_q$m::a")
        + &event("ok", "p-q::p_q$m::a#2")
        + &event("failed", "p-q::p-q$a")
        + &event("ok", "p-q::it$a");
    let map = check(&nextest, &["PASSED p-q m::a", "FAILED p-q::bin/p-q a", "PASSED p-q::it a"]);
    assert_eq!(map.observations[0].alias.as_deref(), Some("m::a"));
}

#[test]
fn nextest_tells_of_the_last_attempt() {
    let head = " Nextest run ID 1 with nextest profile: default\n    Starting 6 tests across 1 binary\n";
    let lines = "  TRY 1 FAIL [   0.005s] (───) p flaky\n  TRY 2 PASS [   0.006s] (1/6) p flaky\n\
                 \u{20}       LEAK [   0.113s] (2/6) p leaks\n   LEAK-FAIL [   0.113s] (3/6) p::it leaks\n\
                 \u{20}    SIGABRT [   0.005s] (4/6) p aborts\n        SLOW [>  1.000s] (───) p hangs\n\
                 \u{20}       PASS [   0.001s] (1/1) p ghost\n            PASS [   0.001s] (1/6) p indented\n\
                 \u{20}       SKIP [         ] (───) p skipped\nrunning 1 test\ntest libtest ... ok\n";
    let end = "     Summary [   0.200s] 6 tests run: 2 passed (1 flaky, 1 leaky), 3 failed, 1 skipped\n\
               \u{20}  FLAKY 2/3 [   0.006s] (1/6) p flaky\n     SIGABRT [   0.005s] (4/6) p aborts\n";
    let tests = [
        "PASSED p flaky",
        "PASSED p leaks",
        "FAILED p::it leaks",
        "FAILED p aborts",
        "SKIPPED p skipped",
        "FAILED p hangs",
    ];
    let map = check(&[head, lines, end].concat(), &tests);
    assert!(
        map.observations.iter().any(|seen| seen.name == "p flaky" && seen.alias.as_deref() == Some("flaky"))
    );
    // Another run follows.
    let doc = format!("   Doc-tests p\n\nrunning 1 test\ntest d ... ok\n{}", report(1, 0, 0));
    check(&[head, lines, end, &doc].concat(), &[&tests[..], &["PASSED d"]].concat());
    // More passes than are counted.
    let few = "     Summary [   0.200s] 6 tests run: 1 passed, 4 failed, 1 skipped\n";
    check(
        &[head, lines, few].concat(),
        &["FAILED p::it leaks", "FAILED p aborts", "SKIPPED p skipped", "FAILED p hangs"],
    );
}

/// The shared suites: what each log shows. Dots name only failures, and nextest's text no ignored test.
#[test]
fn strict_rules_find_the_truth_of_the_shared_suites() {
    let Some(data) = data() else { return };
    let folder = data.join("logs/awkward-suites");
    let truth = |suite: &str| -> serde_json::Value {
        let file = folder.join(suite).join("expected.json");
        serde_json::from_slice::<serde_json::Value>(&fs_err::read(file).unwrap()).unwrap()["tests"].take()
    };
    let tests = |truth: &serde_json::Value| -> BTreeMap<String, String> {
        let tests = truth.as_object().unwrap().iter();
        tests
            .map(|(name, status)| (name.clone(), status.as_str().unwrap().replace("IGNORED", "SKIPPED")))
            .collect()
    };
    let cargo = truth("cargo");
    let library = tests(&cargo["lib"]);
    let all: BTreeMap<_, _> =
        ["lib", "tests/integration.rs", "doc"].iter().flat_map(|part| tests(&cargo[*part])).collect();
    let nextest = tests(&truth("nextest"));
    let only = |tests: &BTreeMap<String, String>, shows: fn(&str) -> bool| -> BTreeMap<String, String> {
        tests
            .iter()
            .filter(|(_, status)| shows(status))
            .map(|(name, status)| (name.clone(), status.clone()))
            .collect()
    };
    for (log, parser, tests) in [
        ("cargo/default_fail_fast.log", "parse_log_cargo", library.clone()),
        ("cargo/no_fail_fast.log", "parse_log_cargo", all.clone()),
        ("cargo/nocapture.log", "parse_log_cargo", library),
        ("cargo/quiet.log", "parse_log_cargo", only(&all, |status| status == "FAILED")),
        ("cargo/compile_error.log", "parse_log_cargo", BTreeMap::new()),
        ("nextest/default_no_fail_fast.log", "nextest", only(&nextest, |status| status != "SKIPPED")),
        ("nextest/default_no_fail_fast.log", "parse_log_cargo", only(&nextest, |status| status != "SKIPPED")),
        ("nextest/libtest_json.log", "nextest", nextest.clone()),
    ] {
        let truth = Truth { log: folder.join(log), parser: parser.to_owned(), tests };
        let score = truth.check();
        super::super::truth_tests::tell(format_args!(
            "{log}: strict {} of {}, upstream {} of {}",
            truth.tests.len(),
            truth.tests.len(),
            score.right,
            score.of
        ));
    }
    let broken = fs_err::read_to_string(folder.join("cargo/compile_error.log")).unwrap();
    assert!(check(&broken, &[]).suite_failures.iter().any(|failure| failure.build));
}

/// Real runs of nextest, with parts left out: no more tests than the summary counts, and the failures it lists.
#[test]
fn real_runs_of_nextest_are_read() {
    let Some(data) = data() else { return };
    let mut passed = 0;
    for log in fs_err::read_dir(data.join("logs/nextest")).unwrap() {
        let path = log.unwrap().path();
        let text = String::from_utf8_lossy(&fs_err::read(&path).unwrap()).into_owned();
        let map = parse_log("nextest", &text, Rules::Strict).unwrap();
        let listed = text.lines().skip_while(|line| !line.starts_with("     Summary [")).skip(1);
        let failed = listed
            .filter_map(|line| line.strip_prefix("        FAIL [")?.split_once("] ").map(|(_, test)| test));
        for test in failed {
            let test =
                test.strip_prefix('(').and_then(|test| test.split_once(") ")).map_or(test, |(_, test)| test);
            assert_eq!(
                as_text(&map).get(test.trim()).map(String::as_str),
                Some("FAILED"),
                "{}: {test}",
                path.display()
            );
        }
        assert!(
            !map.suite_failures.iter().any(|failure| failure.text.contains("cannot be told")),
            "{}",
            path.display()
        );
        passed += as_text(&map).values().filter(|status| *status == "PASSED").count();
    }
    super::super::truth_tests::tell(format_args!("{passed} passes"));
    assert!(passed > 500, "{passed}");
}

proptest! {
    /// Whatever else a log holds: a test that fails wherever a line tells of it has not passed.
    #[test]
    fn a_test_never_passes_that_only_fails(
        lines in proptest::collection::vec(
            prop_oneof![
                "(text)?test bad( - should panic)? \\.\\.\\. FAILED|test (a|b|c) \\.\\.\\. (ok|FAILED|ignored|text|textok)|ok|FAILED",
                "|running [1-4] tests|failures:|    bad|test result: FAILED\\. [0-3] passed; [0-3] failed; [01] ignored; 0 measured; 0 filtered out",
                "     Running tests/it.rs \\(t/it-012345678[0-2]abcdef\\)|   Doc-tests p|x....stripped due to length....",
                " Nextest run ID x|    Starting [1-3] tests|        (PASS|FAIL) \\[ 0.1s\\] p a|  TRY [1-3] FAIL \\[ 0.1s\\] p bad",
                "     Summary \\[ 0.1s\\] [1-3] tests run: [0-3] passed, 1 failed|\\{\"type\":\"test\",\"event\":\"(failed|started)\",\"name\":\"bad\"\\}",
            ],
            0..40,
        )
    ) {
        let map = parse_log("parse_log_cargo", &lines.join("\n"), Rules::Strict).unwrap();
        for (name, status) in as_text(&map) {
            prop_assert!(!name.ends_with("bad") || status != "PASSED", "{name}: {lines:?}");
        }
    }
}
