//! Conformance vectors of the reference parsers, real runs, and hostile input.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::{Rules, StatusMap, parse_log};

/// Inputs and what the reference parsers made of them.
const VECTORS: &str = r##"
{"p": "parse_log_csharp", "log": "  Passed Foo(a: [1, 2]) [3 ms]\n  Failed B [< 1 ms]\n  Skipped C\nPassed D [1 ms]\n[xUnit.net 00:00:01.23]     B.x [FAIL]\n  Passed B [1 ms]\n  Skipped E [1 ms]", "out": {"Foo(a:": "PASSED", "B": "FAILED", "C": "SKIPPED", "B.x": "FAILED", "E": "SKIPPED"}}
"##;

#[derive(Deserialize)]
struct Vector {
    p: String,
    log: String,
    out: BTreeMap<String, String>,
}

fn as_text(map: &StatusMap) -> BTreeMap<String, String> {
    map.statuses.iter().map(|(name, status)| (name.clone(), status.to_string())).collect()
}

#[test]
fn upstream_rules_equal_the_reference_parsers_on_every_vector() {
    let vectors = VECTORS.lines().filter(|line| !line.is_empty());
    let mut count = 0;
    for vector in vectors.map(|line| serde_json::from_str::<Vector>(line).unwrap()) {
        let found = parse_log(&vector.p, &vector.log, Rules::Upstream).unwrap();
        assert_eq!(as_text(&found), vector.out, "{}: {}", vector.p, vector.log);
        count += 1;
    }
    assert_eq!(count, 1);
}

#[test]
fn strict_keeps_brackets_in_names_and_skips_what_tests_print() {
    let log = "  Passed Foo(a: [1, 2]) [3 ms]\n  Passed Cut [6 ms\n  Skipped C\n  Failed B [1 m 2 s]\n  Standard Output Messages:\n  Passed Ghost [1 ms]\n\n[xUnit.net 00:00:01.23]     B.x [FAIL]\n[xUnit.net 00:00:01.23]       printed [FAIL]\n[xUnit.net 00:00:01.23]     B.s [SKIP]\n/a/B.cs(1,2): error CS0103: no [/a/b.csproj]";
    let map = parse_log("parse_log_csharp", log, Rules::Strict).unwrap();
    let told: Vec<String> = as_text(&map).iter().map(|(name, status)| format!("{name}={status}")).collect();
    assert_eq!(told.join(" "), "B=FAILED B.s=SKIPPED B.x=FAILED C=SKIPPED Foo(a: [1, 2])=PASSED");
    assert_eq!(map.observations[0].alias.as_deref(), Some("Foo(a:"));
    assert!(map.suite_failures[0].build);
}
