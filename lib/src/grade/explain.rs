//! Why strict and upstream rules do not agree on the tests that a task expects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::expect::{Expected, Found, Match, ResolveRule, Results, Seen};
use super::logs::{ParseError, Rules, StatusMap};
use crate::task::EvaluatorView;

/// What both sets of rules make of one log, where they differ on an expected test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Whether every expected test passed under strict rules.
    pub strict: bool,
    /// The same under upstream's; `None` where the reference parser raises.
    pub upstream: Option<bool>,
    /// What the reference parser raises.
    pub raises: Option<String>,
    /// The expected tests on which they differ: one passes, the other does not.
    pub tests: BTreeMap<String, Difference>,
}

/// An expected test that passes under one set of rules alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Which list names it.
    pub expected: Expected,
    /// What strict rules say.
    pub strict: Found,
    /// What upstream's say.
    pub upstream: Found,
    /// Why.
    pub reason: Reason,
    /// The lines that each goes by, a few at most.
    pub lines: Vec<Line>,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Line {
    /// From 1.
    pub line: usize,
    /// Its beginning.
    pub text: String,
}

/// Why two sets of rules differ on a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The reference parser raises an exception.
    UpstreamRaises,
    /// Upstream takes a line for a result that is none: a test printed it, or it is a heading or a summary.
    NotAResult,
    /// Upstream has no rule for the line with the result.
    NotSeenUpstream,
    /// Upstream gives several tests this one name, and the last of them decides; they do not agree.
    SeveralTests,
    /// The test has several results; upstream keeps one, strict rules the worst.
    SeveralResults,
    /// Upstream takes another line for the test's result.
    OtherLine,
    /// The two read another status from the same line.
    OtherStatus,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UpstreamRaises => "the reference parser raises an exception",
            Self::NotAResult => "upstream takes a line for a result that is none",
            Self::NotSeenUpstream => "upstream has no rule for the line with the result",
            Self::SeveralTests => "upstream gives several tests this name, and they do not agree",
            Self::SeveralResults => {
                "the test has several results; upstream keeps one, strict rules the worst"
            }
            Self::OtherLine => "upstream takes another line for the result",
            Self::OtherStatus => "the two read another status from the same line",
        })
    }
}

/// How many lines a difference shows.
const LINES: usize = 4;
/// Of how many characters.
const WIDTH: usize = 160;

/// Compares both readings of a log. `line` gives the text of a line. `None`: they agree on every expected test, or there
/// is no reference parser.
pub(super) fn explain(
    evaluator: &EvaluatorView,
    rule: ResolveRule,
    strict: &StatusMap,
    upstream: &Result<StatusMap, ParseError>,
    line: impl Fn(usize) -> String,
) -> Option<Explanation> {
    let lists =
        [(&evaluator.pass_to_pass, Expected::PassToPass), (&evaluator.fail_to_pass, Expected::FailToPass)];
    let names = || lists.iter().flat_map(|(names, _)| names.iter());
    let nothing = StatusMap::default();
    let strict = Results::new(strict, Rules::Strict, rule, names());
    let reference = Results::new(upstream.as_ref().unwrap_or(&nothing), Rules::Upstream, rule, names());
    let (mut strict_passes, mut upstream_passes) = (true, true);
    let mut tests = BTreeMap::new();
    for (name, expected) in lists.iter().flat_map(|(names, list)| names.iter().map(|name| (name, *list))) {
        let (ours, theirs) = (strict.find(name, expected), reference.find(name, expected));
        let passes = [&ours, &theirs].map(|one| rule.passes(&one.found, expected));
        strict_passes &= passes[0];
        upstream_passes &= passes[1];
        if passes[0] != passes[1] {
            let reason = if upstream.is_err() { Reason::UpstreamRaises } else { reason(&ours, &theirs) };
            let at: BTreeSet<usize> = ours.seen.iter().chain(&theirs.seen).map(|seen| seen.line).collect();
            let lines = at.into_iter().filter(|at| *at > 0).take(LINES);
            let lines =
                lines.map(|at| Line { line: at, text: line(at).chars().take(WIDTH).collect() }).collect();
            let difference =
                Difference { expected, strict: ours.found, upstream: theirs.found, reason, lines };
            tests.insert(name.clone(), difference);
        }
    }
    let raises = upstream.as_ref().err().map(ToString::to_string);
    (!tests.is_empty()).then(|| Explanation {
        strict: strict_passes,
        upstream: raises.is_none().then_some(upstream_passes),
        raises,
        tests,
    })
}

fn reason(strict: &Match<'_>, upstream: &Match<'_>) -> Reason {
    let several =
        |key: fn(&Seen<'_>) -> String| strict.seen.iter().map(key).collect::<BTreeSet<_>>().len() > 1;
    match (&strict.found, &upstream.found) {
        (Found::Missing, _) => Reason::NotAResult,
        (_, Found::Missing) => Reason::NotSeenUpstream,
        _ if several(|seen| seen.name.to_owned()) => Reason::SeveralTests,
        _ if several(|seen| seen.status.to_string()) => Reason::SeveralResults,
        _ if strict.seen.iter().any(|ours| upstream.seen.iter().any(|theirs| ours.line == theirs.line)) => {
            Reason::OtherStatus
        }
        _ => Reason::OtherLine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::logs::parse_log;

    fn explained(parser: &str, log: &str, test: &str) -> Option<Explanation> {
        let evaluator = EvaluatorView {
            patch: String::new(),
            test_patch: String::new(),
            fail_to_pass: vec![test.to_owned()],
            pass_to_pass: Vec::new(),
        };
        let strict = parse_log(parser, log, Rules::Strict).unwrap();
        let upstream = parse_log(parser, log, Rules::Upstream);
        let line = |at: usize| log.lines().nth(at - 1).unwrap_or_default().to_owned();
        explain(&evaluator, ResolveRule::default(), &strict, &upstream, line)
    }

    #[test]
    fn every_difference_has_its_reason_and_its_lines() {
        const HEAD: &str = "=== short test summary info ===\n";
        let head = |rest: &str| format!("{HEAD}{rest}");
        for (parser, log, test, strict, upstream, reason, lines) in [
            // Two tests that upstream cuts to one name: the last decides there.
            (
                "parse_log_pytest",
                head("FAILED t.py::t[a b]\nPASSED t.py::t[a c]\n"),
                "t.py::t[a",
                "AMBIGUOUS",
                "PASSED",
                Reason::SeveralTests,
                &[2, 3][..],
            ),
            (
                "parse_log_pytest",
                "=== FAILURES ===\nPASSED t.py::spoofed\n".to_owned(),
                "t.py::spoofed",
                "MISSING",
                "PASSED",
                Reason::NotAResult,
                &[2],
            ),
            (
                "parse_log_cargo",
                "running 1 test\ntest a - should panic ... ok\n".to_owned(),
                "a",
                "PASSED",
                "MISSING",
                Reason::NotSeenUpstream,
                &[2],
            ),
            (
                "parse_log_pytest",
                head("ERROR t.py::a - x\nPASSED t.py::a\n"),
                "t.py::a",
                "ERROR",
                "PASSED",
                Reason::SeveralResults,
                &[2, 3],
            ),
            (
                "parse_log_pytest",
                head("FAILED t.py::a\n=== 1 failed in 0.1s ===\nPASSED t.py::a\n"),
                "t.py::a",
                "FAILED",
                "PASSED",
                Reason::OtherLine,
                &[2, 4],
            ),
            (
                "parse_log_js_4",
                "✓ q [skipped]\n".to_owned(),
                "q [skipped]",
                "SKIPPED",
                "PASSED",
                Reason::OtherStatus,
                &[1],
            ),
        ] {
            let found = explained(parser, &log, test).unwrap();
            let difference = &found.tests[test];
            let said = (difference.strict.to_string(), difference.upstream.to_string(), difference.reason);
            assert_eq!(said, (strict.to_owned(), upstream.to_owned(), reason), "{log}");
            assert_eq!(difference.lines.iter().map(|line| line.line).collect::<Vec<_>>(), lines, "{log}");
            assert_eq!(found.upstream, Some(upstream == "PASSED"));
        }
    }

    #[test]
    fn a_reference_parser_that_raises_has_no_verdict() {
        let log = "=== short test summary info ===\nPASSED t.py::a\n=== 1 passed in 0.1s ===\nPASSED\n";
        let found = explained("parse_log_pytest_v2", log, "t.py::a").unwrap();
        assert_eq!((found.strict, found.upstream), (true, None));
        assert!(found.raises.unwrap().contains("IndexError"));
        assert_eq!(found.tests["t.py::a"].reason, Reason::UpstreamRaises);
    }

    #[test]
    fn agreement_needs_no_explanation() {
        assert_eq!(
            explained("parse_log_pytest", "=== short test summary info ===\nPASSED t.py::a\n", "t.py::a"),
            None
        );
    }
}
