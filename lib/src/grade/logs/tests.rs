//! Conformance vectors of the reference parsers, totality, and real logs where `MEMTRIAL_DATA` points to
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// Inputs and what the reference parsers made of them.
const VECTORS: &str = r##"
{"p": "parse_log_pytest", "log": "PASSED a b\nFAILED - foo\nERROR: file x\nSKIPPED [1] t.py:3: why\nPASSEDX y\nFAILED a::b - x - y\n PASSED z\nXFAIL q\nPASSED", "out": {"a": "PASSED", "foo": "FAILED", "file": "ERROR:", "[1]": "SKIPPED", "y": "PASSEDX", "a::b": "FAILED"}}
{"p": "parse_log_pytest", "log": "PASSED\u00a0a b\nPASSED\u001cc d\nFAILED e\u200b f", "out": {"a": "PASSED", "c": "PASSED", "e\u200b": "FAILED"}}
{"p": "parse_log_pytest_options", "log": "PASSED t[/a/b/c]\nPASSED u[//a/b]\nPASSED v[/a/*b/c]\nPASSED w[x]\nPASSED k[/a][/b/c]tail", "out": {"t[/c]": "PASSED", "u[//a/b]": "PASSED", "v[/a/*b/c]": "PASSED", "w[x]": "PASSED", "k[/c]": "PASSED"}}
{"p": "parse_log_pytest_v2", "log": "\u001b[32mPASSED\u001b[0m a\nt PASSED\nfoo bar PASSED\nPASSED t[10m]\n\u001b[1;32mPASSED\u001b[0m b", "out": {"a": "PASSED", "t": "PASSED", "foo": "bar", "t]": "PASSED"}}
{"p": "parse_log_pytest_v2", "log": "PASSED", "raises": "IndexError"}
{"p": "parse_log_pytest_v2", "log": "xPASSED", "raises": "IndexError"}
{"p": "parse_log_pytest_v2", "log": "PASSED\tfoo", "raises": "IndexError"}
{"p": "parse_log_pytest_v2", "log": "PASSED\u001c a\n\u0000PASSED b\n\u0001PASSED c", "out": {"a": "PASSED", "c": "PASSED"}}
{"p": "parse_log_pytest_nebo", "log": "[gw0] [ 50%] PASSED a/b.py::t in 0.1s\na.py::u[x in y] PASSED [ 3%] in 0.02s\nPASSED a.py::v in z\nFAILED a.py::w - assert\nERROR\n[gw1] [ 5%] XPASS q\na.py::n PASSED [ 3%]", "out": {"a/b.py::t": "PASSED", "a.py::u[x in y]": "PASSED", "a.py::v": "PASSED", "a.py::w - assert": "FAILED"}}
{"p": "parse_log_js_4", "log": "✕ dup\n✓ dup\n✓ a (5 ms)\n○ skipped b\n× c 3ms\n✓ [chromium]: x › y\n✓ : z\nfoo [Skipped] bar\nfoo [skipped] bar\n✓ q [skipped]\n✓ v2s\n✓ 12ms\n✗ n\n√ m", "out": {"dup": "PASSED", "a": "PASSED", "skipped b": "SKIPPED", "c": "FAILED", "x › y": "PASSED", "z": "PASSED", "foo [Skipped] bar": "SKIPPED", "foo  bar": "SKIPPED", "q [skipped]": "PASSED", "v": "PASSED"}}
{"p": "parse_log_js_4", "log": "⚪ a\n- foo (skipped)\nFoo (SKIPPED) 3ms", "out": {"a": "SKIPPED", "- foo": "SKIPPED", "Foo (SKIPPED)": "SKIPPED"}}
{"p": "parse_log_js_4", "log": "✓ a 5\u017f\n✓ b 5µs\n✓ c\u00a05 ms\n\ufeff✓ d", "out": {"a": "PASSED", "b 5µs": "PASSED", "c": "PASSED"}}
{"p": "parse_log_js", "log": "✔ a (5ms)\n- b\n1) c:\n[W] 2) d:\n  [W] 3) e\n4) f\n- a\n✔ b", "out": {"a": "SKIPPED", "b": "SKIPPED", "c": "FAILED", "d:": "FAILED", "e": "FAILED"}}
{"p": "parse_log_js_2", "log": "✔ a\n1) b\n2) c:\n- d\n✔ b\n- a", "out": {"a": "SKIPPED", "b": "FAILED", "c:": "FAILED", "d": "SKIPPED"}}
{"p": "parse_log_jest", "log": "✓ a (3 ms)\n✓ b (1.5 s)\n✕ c\n○ skipped d\n✓ a  (3 ms)\n✓  e", "out": {"a": "PASSED", "b (1.5 s)": "PASSED", "c": "FAILED", "skipped d": "SKIPPED", "a ": "PASSED", " e": "PASSED"}}
{"p": "parse_log_jest", "log": "✓ (5 ms)\n✓ a(5 ms)\n✓ a (5ms) ", "out": {"(5 ms)": "PASSED", "a(5 ms)": "PASSED", "a": "PASSED"}}
{"p": "parse_log_vitest", "log": "✓ case 3\n✓ foo 1 2\n× b 5ms\n↓ c [skipped]\n✓ d 12 ms\n✓ e 5m", "out": {"case": "PASSED", "foo 1": "PASSED", "b": "FAILED", "c": "SKIPPED", "d": "PASSED", "e": "PASSED"}}
{"p": "parse_log_vitest", "log": "✓ a [skipped]\n✓ 5", "out": {"a": "PASSED", "5": "PASSED"}}
{"p": "parse_log_jest_json", "log": "[PASSED] a > b\n[FAILED] c\n[PENDING] d\n  [PASSED]  e", "out": {"a > b": "PASSED", "c": "FAILED", " e": "PASSED"}}
{"p": "parse_log_npx", "log": "  ✔ a (12ms)\n  ✔ b (12)\n  1) c (mod)\n  2) d:", "out": {"a": "PASSED", "b": "PASSED", "c": "FAILED", "d:": "FAILED"}}
{"p": "parse_log_gotest", "log": "    --- PASS: TestA/b_(c) (0.00s)\n--- SKIP: T (1s)\n--- FAIL: a (b) ()\n--- PASS: X (0.1s) z", "out": {"TestA/b_(c)": "PASSED", "T": "SKIPPED", "a": "FAILED"}}
{"p": "parse_log_gotest", "log": "\u001c--- PASS: A (0s)\u001f\n--- PASS: B\u000bx (0s)\n--- PASS: C (0s)\u2028--- PASS: D (0s)", "out": {"A": "PASSED", "B\u000bx": "PASSED", "C (0s)\u2028--- PASS: D": "PASSED"}}
{"p": "parse_log_cargo", "log": "test a::b ... ok\ntest c ... FAILED\ntest d ... ignored\ntest src/lib.rs - x (line 3) ... ok\ntest e - should panic ... ok\ntest result: ok. 1 passed\ntest f ... ok <0.1s>", "out": {"a::b": "PASSED", "c": "FAILED"}}
"##;

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

#[test]
fn upstream_rules_equal_the_reference_parsers_on_every_vector() {
    let mut count = 0;
    for line in VECTORS.lines().filter(|line| !line.is_empty()) {
        let vector: Vector = serde_json::from_str(line).unwrap();
        let found = parse_log(&vector.p, &vector.log, Rules::Upstream);
        match (vector.out, vector.raises) {
            (Some(out), None) => assert_eq!(as_text(&found.unwrap()), out, "{line}"),
            (None, Some(raises)) => {
                assert!(
                    matches!(found, Err(ParseError::Raises { exception, .. }) if exception == raises),
                    "{line}"
                )
            }
            _ => panic!("a vector has either out or raises: {line}"),
        }
        count += 1;
    }
    assert_eq!(count, 23);
}

#[test]
fn an_unknown_parser_is_named_with_those_like_it() {
    let message = |name| parser(name).unwrap_err().to_string();
    let near = "log parser \"parse_log_cargoo\" is not known; did you mean parse_log_cargo";
    assert!(message("parse_log_cargoo").starts_with(near));
    assert!(message("swe-bench-9:parse_log_cargo").contains("did you mean parse_log_cargo"));
    assert!(message("parse_log_cobol").contains("is not known; `memtrial parse-log --list`"));
    assert_eq!(parser("parse_log_sphinx").unwrap().name, "parse_log_pytest_v2");
}

#[test]
fn names_are_unique_and_aliases_lead_somewhere() {
    let mut names = std::collections::BTreeSet::new();
    for family in FAMILIES {
        for parser in family.parsers {
            assert!(names.insert((parser.origin, parser.name)), "{}", parser.name);
            assert_eq!(parser.upstream.is_none(), parser.origin == Origin::Memtrial, "{}", parser.name);
        }
        for (alias, own) in family.aliases {
            assert!(family.parsers.iter().any(|parser| parser.name == *own), "{own}");
            assert_eq!(parser(alias).unwrap().name, *own);
        }
    }
}

proptest! {
    #[test]
    fn strict_parsers_are_total_and_worst_wins(
        pieces in proptest::collection::vec(
            prop_oneof![
                "PASSED|FAILED|ERROR|SKIPPED|XFAIL|ok|test|---|PASS:|FAIL:|running 1 test|failures:",
                "[✓✕○×↓✔✗√-]|1\\)|2 failing|3 passing|=== short test summary info ===",
                "[a-z:/.\\[\\]() \u{1c}\u{2028}\u{1b}\r]{0,6}",
                Just(" ".to_owned()), Just("\n".to_owned()), Just(" ... ".to_owned()),
            ],
            0..40,
        )
    ) {
        let log = pieces.concat();
        for parser in parsers() {
            let map = parser.parse(&log, Rules::Strict).unwrap();
            for seen in &map.observations {
                prop_assert_eq!(map.statuses[&seen.name].worse(&seen.status), &map.statuses[&seen.name]);
                prop_assert!(!matches!(seen.status, Status::Other(_)));
            }
            let _ = parser.parse(&log, Rules::Upstream);
        }
    }
}

/// The folder of real data, where the environment names one.
fn data() -> Option<PathBuf> {
    std::env::var_os("MEMTRIAL_DATA").map(PathBuf::from)
}

#[derive(Deserialize)]
struct Expected {
    parser: String,
    status: BTreeMap<String, String>,
}

fn logs_of(folder: &Path) -> Vec<(PathBuf, Expected)> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Some(stem) = path.to_str().and_then(|path| path.strip_suffix(".expected.json")) else { continue };
        let log = [".log", ".eval.log"]
            .iter()
            .map(|end| PathBuf::from(format!("{stem}{end}")))
            .find(|log| log.exists());
        let expected = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
        found.extend(log.map(|log| (log, expected)));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[test]
fn upstream_rules_equal_the_reference_parsers_on_real_logs() {
    let Some(data) = data() else { return };
    let folders = [
        "verified-tasks",
        "cargo_test",
        "go_test_v",
        "go_test_json",
        "jest",
        "vitest",
        "mocha",
        "pytest",
        "swebench_eval/pytest_swebench",
    ];
    for folder in folders {
        let mut all = 0;
        for (log, expected) in logs_of(&data.join("logs").join(folder)) {
            let name = expected.parser.rsplit(':').next().unwrap();
            let Ok(parser) = parser(name) else { continue };
            let text = String::from_utf8_lossy(&fs_err::read(&log).unwrap()).into_owned();
            let found = as_text(&parser.parse(&text, Rules::Upstream).unwrap());
            all += 1;
            assert_eq!(found, expected.status, "{}", log.display());
        }
        assert!(all > 0, "{folder} holds logs");
    }
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
        let map = parse_log(&truth.parser, &text, Rules::Strict).unwrap();
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
fn strict_rules_on_suites_with_awkward_names() {
    let Some(data) = data() else { return };
    let folder = data.join("logs/awkward-suites");
    let read = |name: &str| String::from_utf8_lossy(&fs_err::read(folder.join(name)).unwrap()).into_owned();
    for log in
        ["pytest/rA_color.log", "pytest/rA_tbline_nocolor.log", "pytest/verbose.log", "pytest/xdist_v.log"]
    {
        let map = parse_log("parse_log_pytest", &read(log), Rules::Strict).unwrap();
        let truth: serde_json::Value = serde_json::from_str(&read("pytest/expected.json")).unwrap();
        for (id, status) in truth["tests"].as_object().unwrap() {
            // The summary names no skipped test.
            let Some(found) = map.statuses.get(id) else {
                assert!(
                    status == "SKIPPED" || log.ends_with("nocolor.log") || log.contains("rA"),
                    "{log}: {id}"
                );
                continue;
            };
            let worst = if status.is_array() { "ERROR" } else { status.as_str().unwrap() };
            assert_eq!(found.as_str(), worst, "{log}: {id}");
        }
        let known = truth["tests"].as_object().unwrap();
        let extra: Vec<_> = map.statuses.keys().filter(|id| !known.contains_key(*id)).collect();
        assert!(extra.iter().all(|id| !id.contains("spoof")), "{extra:?}");
    }
    // Runner, log, what the truth lacks before each name, and the parts of the truth that the log can show.
    for (parser, log, prefix, parts) in [
        ("parse_log_jest", "jest/verbose.log", "jest/", &["tests"][..]),
        ("parse_log_jest", "jest/verbose_color.log", "jest/", &["tests"]),
        ("parse_log_vitest", "vitest/verbose.log", "vitest/", &["tests"]),
        ("parse_log_js_2", "mocha/spec.log", "", &["tests"]),
        ("parse_log_gotest", "go/v.log", "", &["example.com/fx", "example.com/fx/p"]),
        ("parse_log_cargo", "cargo/no_fail_fast.log", "", &["lib", "tests/integration.rs", "doc"]),
    ] {
        let map = parse_log(parser, &read(log), Rules::Strict).unwrap();
        let folder = log.split('/').next().unwrap();
        let truth: serde_json::Value =
            serde_json::from_str(&read(&format!("{folder}/expected.json"))).unwrap();
        let mut known = BTreeMap::new();
        for part in parts {
            let tests = if *part == "tests" { &truth["tests"] } else { &truth["tests"][*part] };
            for (name, status) in tests.as_object().unwrap() {
                let status = match status.as_str().unwrap().split(' ').next().unwrap() {
                    "TODO" | "IGNORED" => "SKIPPED",
                    word @ ("PASSED" | "FAILED" | "SKIPPED") => word,
                    _ => continue,
                };
                known.insert(format!("{prefix}{name}"), status.to_owned());
            }
        }
        if folder == "vitest" {
            known.retain(|_, status| status != "SKIPPED"); // this version does not print them
        }
        assert_eq!(as_text(&map), known, "{log}");
    }
    let map = parse_log("parse_log_cargo", &read("cargo/compile_error.log"), Rules::Strict).unwrap();
    assert!(map.statuses.is_empty() && map.suite_failures.iter().any(|failure| failure.build));
}
