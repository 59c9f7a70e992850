//! The upstream rules against recorded results of the reference parsers (`scripts/test-log-parsers.sh` records them).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{ParseError, Rules, parser};

/// What the reference made of one of this project's logs.
struct Record {
    parser: String,
    log: String,
    /// Or the name of an exception.
    results: Result<BTreeMap<String, String>, String>,
}

fn records() -> Vec<Record> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/logs/recorded.jsonl.zst");
    let text = String::from_utf8(zstd::decode_all(fs_err::File::open(path).unwrap()).unwrap()).unwrap();
    let record = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        let results = match line.get("out") {
            Some(out) => Ok(serde_json::from_value(out.clone()).unwrap()),
            None => Err(text("raises")),
        };
        Record { parser: format!("{}:{}", text("origin"), text("parser")), log: text("log"), results }
    };
    text.split_terminator('\n').map(record).collect()
}

#[test]
fn upstream_rules_give_what_the_reference_parsers_gave() {
    let records = records();
    assert!(records.len() > 10_000, "{}", records.len());
    for Record { parser: name, log, results } in records {
        let parser = parser(&name).unwrap_or_else(|_| panic!("{name} is recorded, and not there"));
        let found = match parser.parse(&log, Rules::Upstream) {
            Ok(map) => {
                Ok(map.statuses.into_iter().map(|(test, status)| (test, status.to_string())).collect())
            }
            Err(ParseError::Raises { exception, .. }) => Err(exception.to_owned()),
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!(found, results, "{name} on {log:?}");
    }
}
