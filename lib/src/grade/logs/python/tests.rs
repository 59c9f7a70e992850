//! Rules of Python's runners beside the reference parsers, JUnit reports and suites with a known outcome.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::super::tests::{as_text, check_real_logs, check_vectors, data, logs_of};
use super::super::truth_tests::Truth;
use super::super::{Rules, StatusMap, parse_log};

#[test]
fn upstream_rules_equal_the_reference_parsers() {
    assert_eq!(check_vectors(include_str!("vectors.jsonl")), 37);
    let Some(data) = data() else { return };
    for folder in ["pytest", "swebench_eval/pytest_swebench", "swebench_eval/pytest_seaborn"] {
        check_real_logs(&data.join("logs").join(folder));
    }
    for folder in ["django", "sympy"] {
        check_real_logs(&data.join("logs/swebench_eval").join(folder));
    }
}

fn strict(parser: &str, log: &str) -> StatusMap {
    parse_log(parser, log, Rules::Strict).unwrap()
}

/// Checks the tests of a log, written `STATUS name`.
fn check(parser: &str, log: &str, tests: &[&str]) -> StatusMap {
    let map = strict(parser, log);
    let mut found: Vec<String> =
        as_text(&map).iter().map(|(name, status)| format!("{status} {name}")).collect();
    let mut tests: Vec<String> = tests.iter().map(|test| (*test).to_owned()).collect();
    found.sort();
    tests.sort();
    assert_eq!(found, tests, "{log}");
    map
}

const SESSION: &str = "\
============================= test session starts ==============================
t.py::test_verbose[a b] PASSED                                           [ 50%]
t.py::test_skip SKIPPED (not now)                                        [ 75%]
[gw0] [100%] FAILED t.py::test_worker 
=================================== PASSES ====================================
----------------------------- Captured stdout call -----------------------------
PASSED t.py::spoofed
=========== 99 passed in 0.01s ===========
FAILED t.py::test_verbose[a b] - spoof
=========================== short test summary info ============================
PASSED t.py::test_verbose[a b]
PASSED t.py::test_teardown
SKIPPED [2] t.py:5: not now
XFAIL t.py::test_xf - known
XPASS t.py::test_xp always
ERROR t.py::test_teardown - ValueError: x
ERROR other.py - ImportError: y
FAILED t.py::test_p[1 - 2] - assert 1 == 2
FAILED t.py::T::test_q - assert [1 - 2]
SUBFAILED(i=1) t.py::test_sub - AssertionError
PASSED t.py::in_a_message
=== 3 failed, 10 passed in 0.60s ===
FAILED t.py::after
";

#[test]
fn pytest_ids_are_whole_and_what_tests_print_is_none_of_them() {
    let map = check(
        "parse_log_pytest",
        SESSION,
        &[
            "FAILED t.py::T::test_q",
            "FAILED t.py::test_p[1 - 2]",
            "SKIPPED t.py::test_skip",
            "FAILED t.py::test_sub",
            "ERROR t.py::test_teardown",
            "PASSED t.py::test_verbose[a b]",
            "FAILED t.py::test_worker",
            "XFAIL t.py::test_xf",
            "XPASS t.py::test_xp",
        ],
    );
    assert_eq!(map.suite_failures.len(), 1);
    assert!(map.suite_failures[0].build && map.suite_failures[0].text.starts_with("ERROR other.py"));
    let cut = map.observations.iter().find(|seen| seen.name == "t.py::test_p[1 - 2]").unwrap();
    assert_eq!((cut.alias.as_deref(), cut.line), (Some("t.py::test_p[1"), 18));
}

#[test]
fn tests_are_known_by_the_names_of_each_reference_parser() {
    for (parser, id, alias) in [
        ("parse_log_pytest", "t.py::a[b c]", Some("t.py::a[b")),
        ("parse_log_pytest_options", "t.py::a[/x/y]", Some("t.py::a[/y]")),
        ("parse_log_pytest_v2", "t.py::a[1m] b]", Some("t.py::a] b]")),
        ("parse_log_pytest_v2", "t.py::a[x]", None),
        ("swe-bench-5:parse_log_pytest_v2", "t.py::a[b  c]", Some("t.py::a[b c]")),
        ("parse_log_pytest_nebo", "t.py::a[x in y]", Some("t.py::a[x")),
        ("parse_log_matplotlib", "t.py::a[MouseButton.LEFT]", Some("t.py::a[1]")),
        ("parse_log_seaborn", "t.py::a", None),
    ] {
        let map = strict(parser, &format!("=== short test summary info ===\nPASSED {id}\n"));
        assert_eq!(map.observations[0].name, id);
        let alias = alias.map(|alias| {
            if parser.starts_with("parse_log_pytest_v2") { alias.split(' ').next().unwrap() } else { alias }
        });
        assert_eq!(map.observations[0].alias.as_deref(), alias, "{parser}");
    }
}

#[test]
fn a_session_that_a_test_prints_does_not_end_the_session() {
    let inner = "== test session starts ==\ncollected 0 items / 1 error\n== ERRORS ==\n== short test summary info ==\n\
                 ERROR x.py\n!!!! Interrupted: 1 error during collection !!!!\n== 1 error in 0.05s ==\n\
                 == test session starts ==\ncollected 1 item\nx.py::t PASSED [100%]\n\
                 == short test summary info ==\nPASSED x.py::t\n== 1 passed in 0.01s ==\n";
    let log = format!(
        "== test session starts ==\ncollected 3 items\nt.py ..F\n== PASSES ==\n__ t __\n{inner}__ u __\n{inner}\
         == short test summary info ==\nPASSED t.py::a\nPASSED t.py::b\nFAILED t.py::c\n= 1 failed, 2 passed in 1s =\n"
    );
    let tests = ["PASSED t.py::a", "PASSED t.py::b", "FAILED t.py::c"];
    let map = check("parse_log_pytest", &log, &tests);
    assert!(map.suite_failures.is_empty());
    let second = log.replace("t.py::", "u.py::");
    let twice = tests.map(|test| test.replace("t.py", "u.py"));
    let all: Vec<&str> = tests.into_iter().chain(twice.iter().map(String::as_str)).collect();
    check("parse_log_pytest", &format!("{log}{second}"), &all);
}

#[test]
fn a_cut_off_run_of_unittest_counts_what_ended() {
    check("unittest", "test_a (m.C) ... ok\ntest_b (m.C) ... ", &["PASSED test_a (m.C)"]);
    // Cut off behind output that may be a result: the test above has none.
    check("unittest", "test_a (m.C) ... x\ntest_b (m.C) ... ok\n", &[]);
    // The total confirms it.
    let rule = "-".repeat(70);
    let log = format!("test_a (m.C) ... x\ntest_b (m.C) ... ok\n\n{rule}\nRan 2 tests in 0.1s\n");
    check("unittest", &log, &["PASSED test_b (m.C)"]);
    let log = log.replace("Ran 2 tests", "Ran 1 test");
    check("unittest", &log, &[]);
}

#[test]
fn failed_subtests_of_older_pythons_share_a_line_with_the_next_test() {
    let (rule, thin) = ("=".repeat(70), "-".repeat(70));
    let log = format!(
        "test_a (m.C) ... test_b (m.C) ... ok\ntest_c (m.C)\nDoc. ... test_d (m.C)\nOther doc ... ok\n\n{rule}\n\
         FAIL: test_a (m.C) (i=1)\n{thin}\nx\n\n{rule}\nERROR: test_c (m.C) [x] (i=1)\n{thin}\n\n{thin}\nRan 4 tests in 1s\n"
    );
    let tests = ["FAILED test_a (m.C)", "PASSED test_b (m.C)", "ERROR test_c (m.C)", "PASSED test_d (m.C)"];
    let map = check("parse_log_django", &log, &tests);
    let upstream = parse_log("parse_log_django", &log, Rules::Upstream).unwrap();
    for seen in &map.observations {
        let known = seen.alias.as_deref().unwrap_or(&seen.name);
        assert_eq!(upstream.statuses.get(known), Some(&seen.status), "{known}");
    }
}

#[test]
fn tests_of_sympy_are_named_by_file() {
    let log = "a/test_x.py[5] \ntest_a ok\ntest_b F\ntest_c f\ntest_d no numpy. s\ntest_e printed\nok   [FAIL]\n\
               a/test_y.py[1] \ntest_a ok  [OK]\na/test_z.py[2] .F  [FAIL]\n\n____ a/test_x.py:test_b ____\ntest_a ok\n\
               ____ a/test_z.py:test_q ____\n";
    let tests = [
        "PASSED a/test_x.py:test_a",
        "FAILED a/test_x.py:test_b",
        "XFAIL a/test_x.py:test_c",
        "SKIPPED a/test_x.py:test_d",
        "PASSED a/test_x.py:test_e",
        "PASSED a/test_y.py:test_a",
        "FAILED a/test_z.py:test_q",
    ];
    let map = check("parse_log_sympy", log, &tests);
    assert_eq!(map.observations[0].alias.as_deref(), Some("test_a"));
}

/// A pytest id as JUnit XML writes it: `tests.test_a::Class::test` has dots for slashes.
fn junit_key(id: &str) -> String {
    let (path, rest) = id.split_once(".py::").unwrap_or((id, ""));
    match rest.rsplit_once("::") {
        Some((class, test)) => format!("{}.{}::{test}", path.replace('/', "."), class.replace("::", ".")),
        None => format!("{}::{rest}", path.replace('/', ".")),
    }
}

#[test]
fn strict_rules_agree_with_junit_reports_of_the_same_runs() {
    #[derive(Deserialize)]
    struct Junit {
        parser: String,
        #[serde(default)]
        junit: Option<BTreeMap<String, String>>,
    }
    let Some(data) = data() else { return };
    let (mut same, mut other) = (0, Vec::new());
    for (log, _) in logs_of(&data.join("logs/verified-tasks")) {
        let expected = log.to_str().unwrap().replace(".log", ".expected.json");
        let truth: Junit = serde_json::from_slice(&fs_err::read(expected).unwrap()).unwrap();
        let Some(junit) = truth.junit.filter(|_| truth.parser == "parse_log_pytest") else { continue };
        let text = String::from_utf8_lossy(&fs_err::read(&log).unwrap()).into_owned();
        let map = strict(&truth.parser, &text);
        for (id, status) in &map.statuses {
            match junit.get(&junit_key(id)) {
                Some(truth) if truth == status.as_str() => same += 1,
                Some(truth) => other.push(format!("{}: {id}: {status}, JUnit {truth}", log.display())),
                None => other.push(format!("{}: {id}: {status}, not in JUnit", log.display())),
            }
        }
    }
    assert!(same > 0 && other.len() * 1000 < same, "{}", other.join("\n"));
}

#[test]
fn reports_are_read_wherever_they_stand() {
    let report = "<testsuite name='s'>\n<testcase classname='a' name='b &amp; c'><skipped/><error/></testcase>\n\
                  <testcase classname='a' name='d'/>\n</testsuite>";
    let log =
        format!("noise\n<?xml version='1.0'?>\n{report}\nPASSED x\n<testsuites>{report}</testsuites>\n");
    check("parse_combined_test_reports", &log, &["ERROR a::b & c", "PASSED a::d"]);
    let map = check("parse_combined_test_reports", "<testsuites>\n<testcase name='x'/>\n", &[]);
    assert_eq!(map.suite_failures.len(), 1);
    // Upstream takes the document up to the end of the next `<testsuites>`, which is none.
    let upstream = parse_log("parse_combined_test_reports", &log, Rules::Upstream).unwrap();
    assert!(upstream.statuses.is_empty());
}

/// What a log of the shared suites can show of the truth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    All,
    /// A short summary names no skipped test.
    NotSkipped,
    Failures,
    First(usize),
}

fn shown(truth: &[(String, String)], shows: Shows) -> BTreeMap<String, String> {
    let failed = |status: &str| matches!(status, "FAILED" | "ERROR");
    let keeps = |at: usize, status: &str| match shows {
        Shows::All => true,
        Shows::NotSkipped => status != "SKIPPED",
        Shows::Failures => failed(status),
        Shows::First(count) => at < count,
    };
    let kept = truth.iter().enumerate().filter(|(at, (_, status))| keeps(*at, status));
    kept.map(|(_, test)| test.clone()).collect()
}

fn shared_truth(folder: &Path, suite: &str) -> Vec<(String, String)> {
    let text = fs_err::read_to_string(folder.join(suite).join("expected.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tests = truth["tests"].as_object().unwrap();
    let worst = |status: &serde_json::Value| status.as_str().unwrap_or("ERROR").to_owned();
    tests.iter().map(|(name, status)| (name.clone(), worst(status))).collect()
}

/// The truth of the unittest suite, by the names that the runner prints. An unexpected success fails the run; a class
/// whose set-up fails is no test.
fn unittest_truth(folder: &Path) -> Vec<(String, String)> {
    let truth = shared_truth(folder, "unittest").into_iter().filter(|(name, _)| !name.ends_with("(class)"));
    let status = |status: String| if status.starts_with("XPASS") { "FAILED".to_owned() } else { status };
    truth
        .map(|(name, text)| {
            let word = status(text).split(' ').next().unwrap().to_owned();
            (format!("{} ({name})", name.rsplit('.').next().unwrap()), word)
        })
        .collect()
}

#[test]
fn strict_rules_find_the_truth_in_the_shared_suites() {
    let Some(data) = data() else { return };
    let folder = data.join("logs/awkward-suites");
    let (pytest, unittest) = (shared_truth(&folder, "pytest"), unittest_truth(&folder));
    let unittest_by_pytest: Vec<(String, String)> = unittest
        .iter()
        .map(|(name, status)| {
            let status = if name.starts_with("test_err ") { "FAILED" } else { status };
            (format!("test_unit.py::T::{}", name.split(' ').next().unwrap()), status.to_owned())
        })
        .chain([("test_unit.py::S::test_a".to_owned(), "ERROR".to_owned())])
        .collect();
    let both = shown(&pytest, Shows::NotSkipped).into_iter().chain(unittest.clone()).collect();
    let (all, not_skipped, failures) = (Shows::All, Shows::NotSkipped, Shows::Failures);
    let cases = [
        ("pytest/verbose.log", "parse_log_pytest", shown(&pytest, all)),
        ("pytest/xdist_v.log", "parse_log_pytest", shown(&pytest, all)),
        ("pytest/capture_s_v.log", "parse_log_pytest", shown(&pytest, all)),
        ("pytest/rA_color.log", "parse_log_pytest", shown(&pytest, not_skipped)),
        ("pytest/rA_tbline_nocolor.log", "parse_log_pytest", shown(&pytest, not_skipped)),
        ("pytest/continue_on_collect_error_rA.log", "parse_log_pytest", shown(&pytest, not_skipped)),
        ("pytest/quiet.log", "parse_log_pytest", shown(&pytest, failures)),
        ("pytest/maxfail1_rA.log", "parse_log_pytest", shown(&pytest, Shows::First(2))),
        ("pytest/default.log", "parse_log_pytest", BTreeMap::new()),
        ("pytest/collect_error_rA.log", "parse_log_pytest", BTreeMap::new()),
        ("pytest/missing_file.log", "parse_log_pytest", BTreeMap::new()),
        ("pytest/no_tests.log", "parse_log_pytest", BTreeMap::new()),
        ("pytest/unittest_file_rA.log", "parse_log_pytest", shown(&unittest_by_pytest, not_skipped)),
        ("unittest/verbose.log", "parse_log_django", shown(&unittest, all)),
        ("unittest/import_error_v.log", "parse_log_django", shown(&unittest, all)),
        ("unittest/default.log", "parse_log_django", shown(&unittest, failures)),
        ("nose2/verbose.log", "parse_log_django", shown(&unittest, all)),
        ("tox/two_envs.log", "tox", both),
    ];
    for (log, parser, tests) in cases {
        let (parser, of) = (parser.to_owned(), tests.len());
        let score = Truth { log: folder.join(log), parser, tests }.check();
        super::super::truth_tests::tell(format_args!(
            "{log}: strict {of} of {of}, upstream {} of {}",
            score.right, score.of
        ));
    }
    for (log, parser, build) in [
        ("pytest/default.log", "parse_log_pytest", true),
        ("pytest/missing_file.log", "parse_log_pytest", true),
        ("unittest/import_error_v.log", "unittest", true),
        ("unittest/verbose.log", "unittest", false),
    ] {
        let map = strict(parser, &fs_err::read_to_string(folder.join(log)).unwrap());
        assert!(!map.suite_failures.is_empty(), "{log}");
        assert_eq!(map.suite_failures.iter().any(|failure| failure.build), build, "{log}");
    }
}

#[test]
fn time_grows_with_the_log_alone() {
    let size = 50_000;
    let fill = |piece: &str| piece.repeat(size / piece.len());
    let pieces = [
        " ",
        "PASSED ",
        "[1",
        "t.py::a[] PASSED (",
        "] PASSED ",
        "a (b) ... ",
        " ... ok",
        "PASSED [",
        "_ a.py:b _",
        "1",
        "=",
        "test_a (m.C)\n",
        "ok\n",
        "x ... Internal Server Error: /a/\nok\n",
        "test_a ok\n",
        "[gw0] [ 1%] PASSED ",
        ".py:: ",
        "FAILED t.py::a[ - b\n",
    ];
    for parser in super::FAMILY.parsers {
        for piece in pieces {
            for (start, end) in [
                ("", ""),
                ("t.py::a[x", " PASSED [ 3%] in 1s"),
                ("=== short test summary info ===\nFAILED a[", ""),
            ] {
                let log = format!("{start}{}{end}", fill(piece));
                for rules in [Rules::Upstream, Rules::Strict] {
                    let begun = Instant::now();
                    let _ = parser.parse(&log, rules);
                    let took = begun.elapsed();
                    assert!(
                        took < Duration::from_secs(2),
                        "{} on {start}{piece}{end}: {took:?}",
                        parser.name
                    );
                }
            }
        }
    }
}
