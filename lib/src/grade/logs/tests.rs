//! Conformance vectors of the reference parsers, totality, and real logs where `MEMTRIAL_DATA` points to
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Vector {
    p: String,
    log: String,
    out: Option<BTreeMap<String, String>>,
    raises: Option<String>,
}

pub(super) fn as_text(map: &StatusMap) -> BTreeMap<String, String> {
    map.statuses.iter().map(|(name, status)| (name.clone(), status.to_string())).collect()
}

#[test]
fn upstream_rules_equal_the_reference_parsers_on_every_vector() {
    assert_eq!(check_vectors(include_str!("vectors.jsonl")), 40);
}

/// Checks vectors, one a line; how many there are.
pub(super) fn check_vectors(vectors: &str) -> usize {
    let mut count = 0;
    for line in vectors.lines().filter(|line| !line.is_empty()) {
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
    count
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
pub(super) fn data() -> Option<PathBuf> {
    std::env::var_os("MEMTRIAL_DATA").map(PathBuf::from)
}

#[derive(Deserialize)]
pub(super) struct Expected {
    pub(super) parser: String,
    pub(super) status: BTreeMap<String, String>,
}

pub(super) fn logs_of(folder: &Path) -> Vec<(PathBuf, Expected)> {
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
    for folder in ["gradle", "junit_xml", "maven_surefire", "verified-tasks"] {
        check_real_logs(&data.join("logs").join(folder));
    }
}

/// Checks upstream's rules on a folder of logs with what the reference parsers made of them.
pub(super) fn check_real_logs(folder: &Path) {
    let mut all = 0;
    for (log, expected) in logs_of(folder) {
        let name = expected.parser.rsplit(':').next().unwrap();
        let Ok(parser) = parser(name) else { continue };
        let text = String::from_utf8_lossy(&fs_err::read(&log).unwrap()).into_owned();
        let found = as_text(&parser.parse(&text, Rules::Upstream).unwrap());
        all += 1;
        assert_eq!(found, expected.status, "{}", log.display());
    }
    assert!(all > 0, "{} holds logs", folder.display());
}
