//! Suites whose outcome is known, and how near each set of rules comes to it.
//!
//! Own suites lie in `tests/data/awkward/<runner>/`: sources, logs of real runs and `truth.json`:
//! `{"runner": "PHPUnit 9.6.7", "command": "…", "logs": {"testdox.log": {"parser": "parse_log_phpunit", "tests":
//! {"Suite > test": "PASSED"}}}}`. `tests` holds every test that the log can show, by the name of strict rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Rules, Status, parser};

/// What really happened in a run.
pub(super) struct Truth {
    /// Suite and log.
    pub(super) log: PathBuf,
    pub(super) parser: String,
    pub(super) tests: BTreeMap<String, String>,
}

/// How many tests a set of rules tells rightly, of all that it should tell or does tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Score {
    pub(super) right: usize,
    pub(super) of: usize,
}

impl Truth {
    fn text(&self) -> String {
        String::from_utf8_lossy(&fs_err::read(&self.log).unwrap()).into_owned()
    }

    /// Panics unless strict rules find just the truth; gives upstream's score.
    pub(super) fn check(&self) -> Score {
        let parser = parser(&self.parser).unwrap();
        let strict = parser.parse(&self.text(), Rules::Strict).unwrap();
        let found: BTreeMap<String, String> =
            strict.statuses.iter().map(|(name, status)| (name.clone(), status.to_string())).collect();
        assert_eq!(found, self.tests, "{}: found (left) is not the truth (right)", self.log.display());
        let upstream = match parser.upstream.map(|_| parser.parse(&self.text(), Rules::Upstream)) {
            Some(Ok(map)) => map.statuses,
            _ => BTreeMap::new(), // none, or it raises: it tells nothing
        };
        let aliases: BTreeMap<&str, &str> = strict
            .observations
            .iter()
            .map(|seen| (seen.name.as_str(), seen.alias.as_deref().unwrap_or(&seen.name)))
            .collect();
        let passes = |status: Option<&Status>| status == Some(&Status::Passed);
        let right = aliases
            .iter()
            .filter(|(name, alias)| {
                let told = upstream.get(**alias);
                told.is_some() && passes(told) == passes(strict.statuses.get(**name))
            })
            .count();
        let known: BTreeSet<&str> = aliases.values().copied().collect();
        let invented = upstream.keys().filter(|name| !known.contains(name.as_str())).count();
        Score { right, of: self.tests.len() + invented }
    }
}

/// Prints what a test found, for whoever asks for its output.
#[expect(clippy::print_stdout, reason = "scores are shown, not judged")]
pub(super) fn tell(line: fmt::Arguments<'_>) {
    println!("{line}");
}

/// The project's own suites.
fn own() -> Vec<Truth> {
    #[derive(Deserialize)]
    struct File {
        logs: BTreeMap<String, Log>,
    }
    #[derive(Deserialize)]
    struct Log {
        parser: String,
        tests: BTreeMap<String, String>,
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/awkward");
    let mut truths = Vec::new();
    for suite in fs_err::read_dir(folder).into_iter().flatten() {
        let suite = suite.unwrap().path();
        let file: File = serde_json::from_slice(&fs_err::read(suite.join("truth.json")).unwrap()).unwrap();
        for (log, Log { parser, tests }) in file.logs {
            truths.push(Truth { log: suite.join(log), parser, tests });
        }
    }
    truths.sort_by(|a, b| a.log.cmp(&b.log));
    truths
}

#[test]
fn strict_rules_find_the_truth_in_every_own_suite() {
    for truth in own() {
        let Score { right, of } = truth.check();
        let all = truth.tests.len();
        tell(format_args!("{}: strict {all} of {all}, upstream {right} of {of}", truth.log.display()));
    }
}

/// Reports of the shared suites' runs in other formats than the runners' text: as many tests of each status as the truth
/// has.
#[test]
fn reports_of_the_shared_suites_are_read() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA").map(PathBuf::from) else { return };
    for (parser_name, log, passed, others) in [
        ("parse_log_phpunit", "phpunit/junit.xml", 3, 6),
        ("ctest", "ctest/junit.xml", 1, 6),
        ("parse_log_vitest", "vitest/junit.log", 4, 5),
        ("junit-xml", "pytest/junit.xml", 10, 7),
        ("bats", "bats/tap.log", 1, 2),
    ] {
        let text = fs_err::read_to_string(data.join("logs/awkward-suites").join(log)).unwrap();
        let map = parser(parser_name).unwrap().parse(&text, Rules::Strict).unwrap();
        let count = map.statuses.values().filter(|status| **status == Status::Passed).count();
        assert_eq!((count, map.statuses.len() - count), (passed, others), "{log}: {:?}", map.statuses);
    }
}
