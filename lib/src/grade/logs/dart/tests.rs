use std::collections::BTreeMap;
use std::path::Path;

use super::super::{Rules, parse_log};

fn strict(log: &str) -> BTreeMap<String, String> {
    let map = parse_log("parse_log_dart", log, Rules::Strict).unwrap();
    map.statuses.into_iter().map(|(name, status)| (name, status.to_string())).collect()
}

#[test]
fn skipped_tests_that_report_success_are_skipped() {
    let log = r#"{"suite":{"id":0,"path":"a.dart"},"type":"suite"}
{"test":{"id":1,"name":"t","suiteID":0},"type":"testStart"}
{"test":{"id":2,"name":"u","suiteID":0},"type":"testStart"}
{"testID":1,"result":"success","skipped":true,"hidden":false,"type":"testDone"}
"#;
    let found = strict(log);
    assert_eq!(found["a.dart: t"], "SKIPPED");
    assert_eq!(found["a.dart: u"], "ERROR", "it has no end");
}

/// Names and results of a snapshot of dorny/test-reporter, counted.
fn snapshot(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        if let Some(result) = line.trim().strip_prefix("\"result\": \"") {
            *counts.entry(result.trim_end_matches("\",").to_owned()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn events_agree_with_the_snapshots_of_another_reader() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA") else { return };
    let folder = Path::new(&data).join("logs/multi_dorny-test-reporter");
    let snapshots = fs_err::read_to_string(folder.join("__snapshots__/dart-json.test.ts.snap")).unwrap();
    for (log, heading) in [
        ("dart-json.json", "dart-json tests matches report snapshot 1"),
        (
            "external/flutter/provider-test-results.json",
            "dart-json tests report from rrousselGit/provider test results matches snapshot 1",
        ),
    ] {
        let text = fs_err::read_to_string(folder.join("fixtures").join(log)).unwrap();
        let part = snapshots.split("exports[`").find(|part| part.starts_with(heading)).unwrap();
        let map = parse_log("parse_log_dart", &text, Rules::Strict).unwrap();
        let mut counts = BTreeMap::new();
        for seen in &map.observations {
            let result = match seen.status.as_str() {
                "PASSED" => "success",
                "SKIPPED" => "skipped",
                _ => "failed",
            };
            *counts.entry(result.to_owned()).or_default() += 1;
        }
        assert_eq!(counts, snapshot(part), "{log}");
        for name in part.lines().filter_map(|line| line.trim().strip_prefix("\"name\": \"")) {
            let name = name.trim_end_matches("\",").replace("\\\\", "/").replace("\\`", "`");
            assert!(map.statuses.keys().any(|id| id.replace('\\', "/").contains(&name)), "{log}: {name}");
        }
    }
}
