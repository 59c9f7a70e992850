//! Vectors of the reference parsers, what strict rules must tell apart, and real logs where `MEMTRIAL_DATA` points to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::super::truth_tests::Truth;
use super::super::{ParseError, Rules, Status, StatusMap, parse_log, parser};

/// Inputs and what the reference parsers made of them.
const VECTORS: &str = include_str!("vectors.jsonl");

#[derive(Deserialize)]
struct Vector {
    p: String,
    log: String,
    out: Option<BTreeMap<String, String>>,
    raises: Option<String>,
}

fn as_text(map: &StatusMap) -> BTreeMap<String, String> {
    map.statuses.iter().map(|(name, status)| (name.clone(), status.to_string())).collect()
}

fn upstream(vector: &str) {
    let vector: Vector = serde_json::from_str(vector).unwrap();
    let found = parse_log(&vector.p, &vector.log, Rules::Upstream);
    match (vector.out, vector.raises) {
        (Some(out), None) => assert_eq!(as_text(&found.unwrap()), out, "{}", vector.log),
        (None, Some(raises)) => assert!(
            matches!(&found, Err(ParseError::Raises { exception, .. }) if *exception == raises),
            "{found:?}"
        ),
        _ => panic!("a vector has either out or raises"),
    }
}

#[test]
fn upstream_rules_equal_the_reference_parsers_on_every_vector() {
    assert_eq!(VECTORS.lines().count(), 47);
    VECTORS.lines().for_each(upstream);
}

/// What strict rules find, by name and status.
fn strict(parser: &str, log: &str) -> Vec<(String, Status)> {
    parse_log(parser, log, Rules::Strict).unwrap().statuses.into_iter().collect()
}

fn passed(names: &[&str]) -> Vec<(String, Status)> {
    names.iter().map(|name| ((*name).to_owned(), Status::Passed)).collect()
}

#[test]
fn jest_results_behind_console_output_of_any_version_count() {
    for printed in [
        "  console.log a.js:6\n    ✓ spoofed\n\n",
        "  console.log\n    ✓ spoofed\n\n      at log (a.js:6:3)\n\n",
        "  console.log\n    ✓ spoofed\n",
    ] {
        let log = format!("PASS a.test.js\n{printed}  outer\n    ✓ passes (3 ms)\n");
        assert_eq!(strict("parse_log_jest", &log), passed(&["a.test.js > outer > passes"]), "{log}");
    }
}

#[test]
fn jest_trees_end_with_a_blank_line_but_for_progress_on_a_terminal() {
    let log = "PASS a.test.js\n  ✓ one (3 ms)\n\n RUNS  ...\n  ✓ two\n\n    ✓ printed by another file\n";
    assert_eq!(strict("parse_log_jest", log), passed(&["a.test.js > one", "a.test.js > two"]));
}

#[test]
fn jest_counts_of_skipped_tests_are_no_tests() {
    let log = "PASS a.test.js (5.2 s, 120 MB heap size)\n  ✓ one\n  ○ skipped 3 tests\n";
    assert_eq!(strict("parse_log_jest", log), passed(&["a.test.js > one"]));
}

#[test]
fn vitest_lines_of_files_and_suites_are_groups_known_by_the_reference() {
    let log =
        " ✓ src/a.test.ts (3 tests) 12ms\n   ✓ suite (2)\n     ✓ case 3\n     ✓ slow 1.25s\n   ✓ alone (1)\n";
    let map = parse_log("parse_log_vitest", log, Rules::Strict).unwrap();
    let names =
        ["src/a.test.ts > alone (1)", "src/a.test.ts > suite > case 3", "src/a.test.ts > suite > slow"];
    assert_eq!(map.statuses.keys().collect::<Vec<_>>(), names);
    let groups: Vec<_> =
        map.groups.iter().map(|group| (group.name.as_str(), group.alias.as_deref())).collect();
    assert_eq!(
        groups,
        [("src/a.test.ts", Some("src/a.test.ts (3 tests)")), ("src/a.test.ts > suite", Some("suite (2)"))]
    );
    assert_eq!(map.observations[0].alias.as_deref(), Some("case"));
}

#[test]
fn vitest_marks_of_all_versions_count_and_output_does_not() {
    let log = " RUN  v2.1.9 /x\n\nstdout | a.ts > outer\n✓ a.ts > spoofed (3 ms)\n\n ✓ a.ts > one 5ms\n   ✓ printed\n\
               \x20✗ a.ts > bad 5ms\n ↓ a.ts > later [skipped]\n ✓ a.ts > again (retry x2) 12ms\n\n FAIL  b.ts [ b.ts ]\n";
    let map = parse_log("parse_log_vitest", log, Rules::Strict).unwrap();
    let expected = [
        ("a.ts > again", "PASSED"),
        ("a.ts > bad", "FAILED"),
        ("a.ts > later", "SKIPPED"),
        ("a.ts > one", "PASSED"),
    ];
    assert_eq!(as_text(&map), expected.map(|(name, status)| (name.to_owned(), status.to_owned())).into());
    assert!(map.suite_failures[0].build);
}

#[test]
fn mocha_reads_the_trees_of_several_runs_and_not_their_details() {
    let log = "\n  outer\n    ✔ passes\n    1) fails ✓ tricky\n  printed\n    inner\n✓ outer spoofed (3 ms)\n\
        \x20     ✔ same name\n      ✔ same name (12ms)\n      - skipped one\n\n  hooks\n\
        \x20   2) \"before all\" hook for \"never runs\"\n\n  3 passing (135ms)\n  1 pending\n  2 failing\n\n\
        \x20 1) outer\n       fails ✓ tricky:\n      - Expected\n  2) hooks\n       \"before all\" hook:\n\n\
        > second run\n\n  more\n    1) bad\n    ✔ good\n\n  1 passing (2ms)\n  1 failing\n";
    for parser in ["parse_log_js", "parse_log_js_2", "parse_log_js_4", "parse_log_npx"] {
        let map = parse_log(parser, log, Rules::Strict).unwrap();
        let expected = [
            ("hooks > \"before all\" hook for \"never runs\"", "FAILED"),
            ("more > bad", "FAILED"),
            ("more > good", "PASSED"),
            ("outer > fails ✓ tricky", "FAILED"),
            ("outer > inner > same name", "PASSED"),
            ("outer > inner > skipped one", "SKIPPED"),
            ("outer > passes", "PASSED"),
        ];
        assert_eq!(as_text(&map), expected.map(|(name, status)| (name.to_owned(), status.to_owned())).into());
    }
}

#[test]
fn failures_are_known_by_what_references_make_of_the_list() {
    let log = "\n  .!\n\n  1 passing (2ms)\n  1 failing\n\n  1) outer\n       inner\n\
               \x20        bad:\n     Error: x\n";
    for (parser, alias) in
        [("parse_log_p5js", "outer:inner:bad"), ("swe-bench-5:parse_log_eslint", "outer inner bad:")]
    {
        let strict = parse_log(parser, log, Rules::Strict).unwrap();
        assert_eq!(strict.observations[0].name, "outer > inner > bad");
        assert_eq!(strict.observations[0].alias.as_deref(), Some(alias));
        let upstream = parse_log(parser, log, Rules::Upstream).unwrap();
        assert_eq!(upstream.statuses.keys().collect::<Vec<_>>(), [alias]);
    }
}

#[test]
fn marks_of_unknown_runners_are_all_known() {
    let log = "✕ dup\n✓ dup\n✗ n\n√ m (1.5 s)\n○ skipped b\n↓ c [skipped]\n✓ src/a.test.ts (3 tests) 12ms\n";
    let expected = [("b", "SKIPPED"), ("c", "SKIPPED"), ("dup", "FAILED"), ("m", "PASSED"), ("n", "FAILED")];
    let map = parse_log("parse_log_js_4", log, Rules::Strict).unwrap();
    assert_eq!(as_text(&map), expected.map(|(name, status)| (name.to_owned(), status.to_owned())).into());
}

#[test]
fn the_runner_that_shows_itself_decides_how_a_log_is_read() {
    let jest = "PASS a.test.js\n  outer\n    ✓ one (3 ms)\n\nTests: 1 passed\nRan all test suites.\n";
    let node = "▶ outer\n  ✔ one (1.5ms)\n✔ outer (2ms)\nℹ tests 1\nℹ pass 1\n";
    let ava = "  ✔ a › one\n  ─\n\n  1 test passed\n";
    for (log, names) in [
        (jest.to_owned(), &["a.test.js > outer > one"][..]),
        (node.to_owned(), &["outer > one"]),
        (ava.to_owned(), &["a › one"]),
        (
            format!("{jest}\n  more\n    ✔ two\n\n  1 passing (2ms)\n"),
            &["a.test.js > outer > one", "more > two"],
        ),
    ] {
        assert_eq!(strict("parse_log_js_4", &log), passed(names), "{log}");
    }
}

#[test]
fn more_passes_than_a_runner_counts_are_told() {
    for (parser, honest, spoofed) in [
        (
            "node-test",
            "✔ a (1.5ms)\nℹ tests 1\nℹ pass 1\n",
            "✔ b (1.5ms)\n✔ a (1.5ms)\nℹ tests 1\nℹ pass 1\n",
        ),
        (
            "parse_log_js",
            "  a\n    ✔ b\n\n  1 passing (2ms)\n",
            "  a\n    ✔ b\n    ✔ c\n\n  1 passing (2ms)\n",
        ),
        ("ava", "  ✔ a\n  ─\n\n  1 test passed\n", "  ✔ a\n  ✔ b\n  ─\n\n  1 test passed\n"),
        (
            "parse_log_jest",
            "PASS a.js\n  ✓ b\n\nTests:  1 skipped, 1 passed, 2 total\nRan all test suites.\n",
            "PASS a.js\n  ✓ b\nPASS c.js\n  ✓ d\n\nTests: 1 passed, 1 total\nRan all test suites.\n",
        ),
    ] {
        for (log, broken) in [(honest, 0), (spoofed, 1)] {
            let twice = log.repeat(2);
            let map = parse_log(parser, &twice, Rules::Strict).unwrap();
            assert_eq!(map.suite_failures.len(), 2 * broken, "{twice}");
        }
    }
}

#[test]
fn a_cut_stream_of_tap_is_told() {
    for (log, broken) in [
        ("TAP version 13\n1..2\nok 1 - a\nok 2 - b\n", 0),
        ("1..0 # SKIP nothing here\n", 0),
        ("1..3\nok 1 - a\nok 3 - b\n", 1),
        ("ok 1 - a\nok 3 - b\n", 1),
        ("TAP version 14\nok 1 - a\n", 1),
        ("1..2\nok 1 - a\nBail out! no disk\n", 2),
        ("1..1\nok 1 - a\n1..1\nok 1 - b\n", 0),
        ("1..1\n    1..2\n    ok 1 - c\nok 1 - a\n", 1),
        ("ok 1 - a\n1..1\nok 1 - b\n1..1\n", 0),
    ] {
        let map = parse_log("parse_log_tap", log, Rules::Strict).unwrap();
        assert_eq!(map.suite_failures.len(), broken, "{log}");
    }
}

#[test]
fn subtests_of_tap_are_named_with_their_parents() {
    let nested = "# Subtest: a\n    # Subtest: b\n        ok 1 - c # time=3ms\n        1..1\n    ok 1 - b\n    not ok 2 - d # TODO x\n\
                  \x20   1..2\nok 1 - a\nnot ok 2 - e \\# f # 0.1s\n  ---\n  error: |\n    ok 9 - g\n  ...\nok 3 # skip all\n1..3\n";
    let braces = "1..1\nnot ok 1 - file # time=66ms {\n    1..1\n    ok 1 - suite {\n        ok 1 - x\n        1..1\n    }\n}\n";
    let found = |log: &str| {
        let map = parse_log("parse_log_tap", log, Rules::Strict).unwrap();
        let groups = map.groups.iter().map(|group| group.name.clone()).collect::<Vec<_>>();
        let aliases = map.observations.iter().filter_map(|seen| seen.alias.clone()).collect::<BTreeSet<_>>();
        assert!(map.suite_failures.is_empty(), "{:?}", map.suite_failures);
        (map.statuses.into_iter().collect::<Vec<_>>(), groups, aliases)
    };
    let named = |name: &str, status| (name.to_owned(), status);
    let (tests, groups, aliases) = found(nested);
    assert_eq!(
        tests,
        [
            named("#3", Status::Skipped),
            named("a > b > c", Status::Passed),
            named("a > d", Status::Xfail),
            named("e # f", Status::Failed),
        ]
    );
    assert_eq!(groups, ["a > b", "a"]);
    assert!(aliases.contains("- c # time=3ms") && aliases.contains("- e \\# f # 0.1s"), "{aliases:?}");
    // The file failed, though its test passed: that is a failure of its own.
    let (tests, groups, _) = found(braces);
    assert_eq!(tests, [named("file", Status::Failed), named("file > suite > x", Status::Passed)]);
    assert_eq!(groups, ["file > suite"]);
}

#[test]
fn reports_in_json_are_read_amid_text() {
    let jest = r#"{"numTotalTests":2,"testResults":[{"name":"/x/a.test.js","status":"failed","assertionResults":[
        {"ancestorTitles":["o"],"title":"p","status":"passed"},{"ancestorTitles":[],"title":"t","status":"todo"}]}]}"#;
    let map = parse_log("parse_log_jest", &format!("noise {{\n{jest}\n"), Rules::Strict).unwrap();
    let names = [("/x/a.test.js > o > p", "PASSED"), ("/x/a.test.js > t", "SKIPPED")];
    assert_eq!(as_text(&map), names.map(|(name, status)| (name.to_owned(), status.to_owned())).into());
    assert_eq!(map.observations[0].alias.as_deref(), Some("o > p"));
    assert_eq!(map.suite_failures.len(), 1, "a file failed of which no test did");
    let stream = "[\"start\",{\"total\":2}]\n[\"pass\",{\"title\":\"b\",\"fullTitle\":\"a b\"}]\n";
    let map = parse_log("parse_log_js_2", stream, Rules::Strict).unwrap();
    assert_eq!(map.statuses.keys().collect::<Vec<_>>(), ["a > b"]);
    assert_eq!(map.suite_failures.len(), 1, "the stream has no end");
}

/// What the reference needs quadratic or cubic time for: it would not end here.
#[test]
fn hostile_logs_take_linear_time() {
    let logs = [
        "<anonymous> 1) a\n".repeat(20_000),
        "<<x></x>a>".repeat(20_000),
        "Chrome 1 (".repeat(20_000),
        format!("✓ {}", "1".repeat(200_000)),
        " ".repeat(200_000),
        "1) (".repeat(50_000),
        "  1) a Error".repeat(20_000),
    ];
    for log in logs {
        for parser in super::FAMILY.parsers {
            for rules in [Rules::Upstream, Rules::Strict] {
                if parser.upstream.is_some() || rules == Rules::Strict {
                    let _ = parser.parse(&log, rules);
                }
            }
        }
    }
}

/// The folder of real logs, where the environment names one.
fn logs() -> Option<PathBuf> {
    std::env::var_os("MEMTRIAL_DATA").map(|data| Path::new(&data).join("logs"))
}

fn read(log: &Path) -> String {
    String::from_utf8_lossy(&fs_err::read(log).unwrap()).into_owned()
}

#[derive(Deserialize)]
struct Expected {
    parser: String,
    status: BTreeMap<String, String>,
}

#[test]
fn upstream_rules_equal_the_reference_parsers_on_real_logs() {
    let Some(logs) = logs() else { return };
    for (folder, count) in [
        ("jest", 27),
        ("vitest", 32),
        ("mocha", 36),
        ("karma", 6),
        ("tap", 13),
        ("ava", 3),
        ("verified-tasks", 20),
    ] {
        let mut compared = 0;
        for entry in fs_err::read_dir(logs.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let Some(stem) = path.to_str().and_then(|path| path.strip_suffix(".expected.json")) else {
                continue;
            };
            let expected: Expected = serde_json::from_str(&read(&path)).unwrap();
            let name = expected.parser.rsplit(':').next().unwrap();
            if super::FAMILY.parsers.iter().all(|parser| parser.name != name) {
                continue;
            }
            let log = read(Path::new(&format!("{stem}.log")));
            assert_eq!(as_text(&parse_log(name, &log, Rules::Upstream).unwrap()), expected.status, "{stem}");
            compared += 1;
        }
        assert_eq!(compared, count, "{folder}");
    }
}

/// Which tests of a suite a log can show, under which names and with which statuses.
type Shown = fn(&str, &str) -> Option<(String, &'static str)>;

/// The words of the suites' truth.
fn known(status: &str) -> Option<&'static str> {
    match status.split(' ').next()? {
        "PASSED" if status == "PASSED (expected fail)" => Some("XFAIL"),
        "PASSED" => Some("PASSED"),
        "FAILED" => Some("FAILED"),
        "SKIPPED" | "TODO" => Some("SKIPPED"),
        _ => None, // it never ran
    }
}

fn failures(prefix: &str, name: &str, status: &str) -> Option<(String, &'static str)> {
    known(status).filter(|status| *status == "FAILED").map(|status| (format!("{prefix}{name}"), status))
}

#[test]
fn strict_rules_find_the_truth_in_suites_with_awkward_names() {
    let Some(logs) = logs() else { return };
    let all: Shown = |name, status| Some((name.to_owned(), known(status)?));
    let flat: Shown = |name, status| Some((name.replace(" > ", " "), known(status)?));
    let cases: &[(&str, &str, Shown)] = &[
        ("ava", "ava/default.log", all),
        // TAP does not tell a known failure from a pass, nor a test to be written from one that fails.
        ("ava", "ava/tap.log", |name, status| match status {
            "TODO" => Some((name.to_owned(), "XFAIL")),
            "PASSED (expected fail)" => Some((name.to_owned(), "PASSED")),
            _ => Some((name.to_owned(), known(status)?)),
        }),
        ("jasmine", "jasmine/default.log", |name, status| {
            known(status)
                .filter(|status| *status != "PASSED")
                .map(|status| (name.replace(" > ", " "), status))
        }),
        ("parse_log_jest", "jest/verbose.log", |name, status| Some((format!("jest/{name}"), known(status)?))),
        ("parse_log_jest", "jest/verbose_color.log", |name, status| {
            Some((format!("jest/{name}"), known(status)?))
        }),
        ("parse_log_js_4", "jest/verbose_color.log", |name, status| {
            Some((format!("jest/{name}"), known(status)?))
        }),
        ("parse_log_jest", "jest/default.log", |name, status| failures("jest/", name, status)),
        ("parse_log_js_2", "mocha/spec.log", all),
        ("parse_log_js_4", "mocha/spec.log", all),
        ("parse_log_js_2", "mocha/dot.log", |name, status| failures("", name, status)),
        ("parse_log_js_2", "mocha/tap.log", flat),
        ("parse_log_js_2", "mocha/json.log", |name, status| {
            // The full title does not tell where one suite ends.
            Some((name.replace("outer > inner ünï", "outer inner ünï"), known(status)?))
        }),
        ("node-test", "node_test/spec.log", all),
        ("node-test", "node_test/tap.log", all),
        ("parse_log_js_4", "node_test/spec.log", all),
        // This version prints nothing of a skipped test; the test to be done fails.
        ("tape", "tape/tap.log", |name, status| match status {
            "TODO" => Some((name.to_owned(), "XFAIL")),
            _ => known(status).filter(|status| *status != "SKIPPED").map(|status| (name.to_owned(), status)),
        }),
        // This version does not print skipped tests.
        ("parse_log_vitest", "vitest/verbose.log", |name, status| {
            known(status)
                .filter(|status| *status != "SKIPPED")
                .map(|status| (format!("vitest/{name}"), status))
        }),
        ("parse_log_js_4", "vitest/verbose.log", |name, status| {
            known(status)
                .filter(|status| *status != "SKIPPED")
                .map(|status| (format!("vitest/{name}"), status))
        }),
        ("parse_log_vitest", "vitest/default.log", |name, status| failures("vitest/", name, status)),
        ("parse_log_vitest", "vitest/tap.log", |name, status| {
            Some((format!("vitest/{name}"), known(status)?))
        }),
        ("parse_log_vitest", "vitest/json.log", |name, status| {
            Some((format!("/build/fx/js/vitest/{name}"), known(status)?))
        }),
    ];
    let folder = logs.join("awkward-suites");
    for (parser_name, log, shown) in cases {
        let suite = folder.join(log.split('/').next().unwrap()).join("expected.json");
        let truth: serde_json::Value = serde_json::from_str(&read(&suite)).unwrap();
        let tests = truth["tests"].as_object().unwrap().iter();
        let tests: BTreeMap<String, String> = tests
            .filter_map(|(name, status)| shown(name, status.as_str()?))
            .map(|(name, status)| (name, status.to_owned()))
            .collect();
        let all = tests.len();
        let score = Truth { log: folder.join(log), parser: (*parser_name).to_owned(), tests }.check();
        super::super::truth_tests::tell(format_args!(
            "{parser_name}, {log}: strict {all} of {all}, upstream {} of {}",
            score.right, score.of
        ));
    }
}

/// Test groups, tests and results of a snapshot, as names of strict rules.
fn snapshot(text: &str) -> BTreeMap<String, String> {
    let (mut group, mut name, mut expects) = (String::new(), String::new(), "");
    let mut tests = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        match line {
            "TestGroupResult {" => expects = "group",
            "TestCaseResult {" => expects = "name",
            _ => {}
        }
        let value = |key: &str| {
            let value = line.strip_prefix(key)?.strip_suffix(',')?;
            Some(
                value
                    .strip_prefix('"')
                    .and_then(|value| value.strip_suffix('"'))
                    .unwrap_or("")
                    .replace("\\`", "`"),
            )
        };
        match (expects, value("\"name\": "), value("\"result\": ")) {
            ("group", Some(value), _) => (group, expects) = (value, ""),
            ("name", Some(value), _) => (name, expects) = (value, "result"),
            ("result", _, Some(result)) => {
                expects = "";
                let full = if group.is_empty() { name.clone() } else { format!("{group} > {name}") };
                let status = match result.as_str() {
                    "success" => "PASSED",
                    "failed" => "FAILED",
                    _ => "SKIPPED",
                };
                let worst = tests.entry(full).or_insert_with(|| status.to_owned());
                *worst = Status::from(worst.as_str()).worse(&Status::from(status)).to_string();
            }
            _ => {}
        }
    }
    tests
}

#[test]
fn mocha_reports_are_read_as_another_program_reads_them() {
    let Some(logs) = logs() else { return };
    let folder = logs.join("multi_dorny-test-reporter");
    let text = read(&folder.join("__snapshots__/mocha-json.test.ts.snap"));
    let snapshots: Vec<&str> = text.split("\nexports[`").skip(1).collect();
    let mut compared = 0;
    for (report, key) in [
        ("fixtures/mocha-json.json", "./reports/mocha-json "),
        ("fixtures/external/mocha/mocha-test-results.json", "mochajs/mocha"),
    ] {
        let expected =
            snapshot(snapshots.iter().find(|text| text.lines().next().unwrap().contains(key)).unwrap());
        let found = parse_log("parse_log_js_2", &read(&folder.join(report)), Rules::Strict).unwrap();
        assert_eq!(as_text(&found), expected, "{report}");
        compared += expected.len();
    }
    assert!(compared > 800, "{compared}");
    assert!(parser("parse_log_js_2").unwrap().reads.iter().any(|format| format.name == "mocha JSON stream"));
}
