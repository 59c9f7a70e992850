//! What holds for every log and every parser. The targets, one a family, say which parsers.

#[allow(dead_code, unused_imports, unreachable_pub, reason = "the library uses the rest")]
mod grade;

use std::collections::BTreeMap;

use grade::logs::{Parser, ReadError, Rules, Status, StatusMap, parsers};

/// Reads a log with every parser of some languages, under both rules.
pub fn check(languages: &[&str], log: &[u8]) {
    let text = String::from_utf8_lossy(log);
    let mut any = false;
    for parser in parsers().filter(|parser| languages.contains(&parser.language)) {
        any = true;
        let strict = parser.parse(&text, Rules::Strict).expect("strict rules never fail");
        check_strict(parser, &strict);
        check_read(parser, log, Rules::Strict, Ok(strict));
        if let Some(map) = upstream(parser, &text) {
            check_read(parser, log, Rules::Upstream, map);
        }
    }
    assert!(any, "no parser of {languages:?}");
}

/// Under upstream's rules, where the parser has any.
fn upstream(parser: &Parser, text: &str) -> Option<Result<StatusMap, String>> {
    match parser.parse(text, Rules::Upstream) {
        Err(grade::logs::ParseError::NoUpstream { .. }) => None,
        answer => Some(answer.map_err(|error| error.to_string())),
    }
}

/// A stream of bytes reads as the text does.
fn check_read(parser: &Parser, log: &[u8], rules: Rules, text: Result<StatusMap, String>) {
    let read = parser.read(log, rules).map_err(|error| match error {
        ReadError::Io(error) => panic!("{error}"),
        ReadError::Parse(error) => error.to_string(),
    });
    assert_eq!(read, text, "{} {rules:?}", parser.name);
}

/// Of several results of a test the worst counts, every status is one of the known, lines are in the log.
fn check_strict(parser: &Parser, map: &StatusMap) {
    let mut worst: BTreeMap<&str, &Status> = BTreeMap::new();
    for seen in &map.observations {
        let status = worst.entry(&seen.name).or_insert(&seen.status);
        *status = status.worse(&seen.status);
    }
    let statuses: BTreeMap<&str, &Status> = map.statuses.iter().map(|(name, status)| (&**name, status)).collect();
    assert_eq!(statuses, worst, "{}", parser.name);
    for seen in map.observations.iter().chain(&map.groups) {
        assert!(!matches!(seen.status, Status::Other(_)), "{}: {seen:?}", parser.name);
        assert_ne!(seen.alias.as_ref(), Some(&seen.name), "{}: {seen:?}", parser.name);
        assert!(seen.line > 0, "{}: {seen:?}", parser.name);
    }
}
