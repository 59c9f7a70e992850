//! Conformance vectors of the reference parsers, real runs, and hostile input.

use std::collections::BTreeMap;

use super::super::tests::{as_text, check_vectors};
use super::super::{Rules, parse_log};

/// Inputs and what the reference parsers made of them.
const VECTORS: &str = r##"
{"p": "parse_log_phpunit", "log": "✔ early\nFoo Bar (Tests\\FooBar)\n ✔ It works [1.34 ms]\n ✘ It fails\n ↩ skipped one\nTime: 1 s (x)\n ✔ after\n ∅ inc", "out": {"None > early": "PASSED", "Foo Bar > It works": "PASSED", "Foo Bar > It fails": "FAILED", "Foo Bar > skipped one": "SKIPPED", "Time: 1 s > after": "PASSED"}}
{"p": "parse_log_php_v1", "log": "   PASS  Tests\\A\n  ✓ it a   0.03s\n  ⨯ it b  0.01s\n  - it c\n  x it d\nFAILED  Tests\\A > it b\nFailed asserting that x.\n  ✓ e 1s\nOK, but skipped tests!\nTests:  1 skipped\n  ✓ it a\n  X it up\n", "out": {"it a": "PASSED", "it b": "FAILED", "it c": "SKIPPED", "it d": "FAILED", "Tests\\A > it b": "FAILED", "asserting that x.": "FAILED", "e": "PASSED", "OK, but skipped tests!": "SKIPPED", "it up": "FAILED"}}
{"p": "parse_log_php_v1", "log": "FAIL 1s\n ✓ (skipped)\n ✓\n is SKIPPED 3s", "out": {"1s": "FAILED", "(skipped)": "PASSED", "is SKIPPED": "SKIPPED"}}
"##;

#[test]
fn upstream_rules_equal_the_reference_parsers_on_every_vector() {
    assert_eq!(check_vectors(VECTORS), 3);
}

#[test]
fn strict_rules_find_the_truth_in_the_shared_suite_of_phpunit() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA") else { return };
    let folder = std::path::Path::new(&data).join("logs/awkward-suites/phpunit");
    let listed = "Fail=FAILED Error=ERROR Risky=ERROR";
    for (log, prefix, truth) in [
        ("default", "SampleTest::test", listed.to_owned()),
        ("verbose", "SampleTest::test", format!("{listed} Skip=SKIPPED Incomplete=SKIPPED Pass=PASSED")),
        (
            "testdox",
            "Sample > ",
            "Fail=FAILED Error=FAILED Risky=ERROR Skip=SKIPPED Incomplete=SKIPPED Pass=PASSED".to_owned(),
        ),
    ] {
        let mut tests: BTreeMap<String, String> = truth
            .split(' ')
            .filter_map(|test| test.split_once('='))
            .map(|(name, status)| (format!("{prefix}{name}"), status.to_owned()))
            .collect();
        for (set, status) in [("plain", "PASSED"), ("with space", "FAILED"), ("ünï", "PASSED")] {
            if log != "default" || status == "FAILED" {
                tests.insert(format!("{prefix}Data with data set \"{set}\""), status.to_owned());
            }
        }
        let log = folder.join(format!("{log}.log"));
        let score =
            super::super::truth_tests::Truth { log, parser: "parse_log_phpunit".into(), tests }.check();
        super::super::truth_tests::tell(format_args!("phpunit: upstream {} of {}", score.right, score.of));
    }
}

#[test]
fn strict_reads_the_events_of_newer_phpunit_and_a_crash() {
    let log = "Test Passed (A::b)\nTest Failed (A::c)\nTest Passed (A::r)\nTest Considered Risky (A::r)";
    let map = parse_log("parse_log_phpunit", log, Rules::Strict).unwrap();
    assert_eq!(as_text(&map), as_map(&[("A::b", "PASSED"), ("A::c", "FAILED"), ("A::r", "ERROR")]));
    let log = "Test 'A::b' started\nTest 'A::b' ended\nTest 'A::c' started\nPHP Fatal error:  x";
    let map = parse_log("parse_log_phpunit", log, Rules::Strict).unwrap();
    assert_eq!(as_text(&map), as_map(&[("A::c", "FAILED")]));
    assert_eq!(map.suite_failures.len(), 1);
}

#[test]
fn strict_names_tests_of_pest_with_their_class() {
    let log = "   PASS  Tests\\A\n  ✓ it a   0.03s\n  - it s → later\n\n   FAIL  Tests\\B\n  ⨯ it a  0.01s\n\n   FAILED  Tests\\B > it a\n  Failed asserting that false is true.";
    let map = parse_log("parse_log_php_v1", log, Rules::Strict).unwrap();
    let truth =
        [("Tests\\A > it a", "PASSED"), ("Tests\\A > it s", "SKIPPED"), ("Tests\\B > it a", "FAILED")];
    assert_eq!(as_text(&map), as_map(&truth));
    assert_eq!(
        map.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(),
        ["Tests\\A", "Tests\\B"]
    );
    assert_eq!(map.observations[0].alias.as_deref(), Some("it a"));
}

fn as_map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, status)| ((*name).to_owned(), (*status).to_owned())).collect()
}
