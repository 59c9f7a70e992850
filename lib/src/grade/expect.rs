//! Finding expected tests among the results of a log.
//!
//! Expected names were recorded by upstream's parsers, which cut ids at blanks and keep durations. An
//! expected name is looked for, in this order, as
//! 1. a test's own name or the name upstream gives it: every test that upstream would call so decides, the
//!    worst wins;
//! 2. the beginning of names, where its brackets are not closed (datasets hold cut ids): only if all agree;
//! 3. a name that differs in a duration or in blanks around it: only if exactly one expected and one seen
//!    name do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::logs::{Rules, Status, StatusMap, text};

/// Which list of the task names a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Expected {
    /// `FAIL_TO_PASS`.
    #[serde(rename = "FAIL_TO_PASS")]
    FailToPass,
    /// `PASS_TO_PASS`.
    #[serde(rename = "PASS_TO_PASS")]
    PassToPass,
}

/// What the log says of an expected test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Found {
    /// Its status.
    Seen(Status),
    /// Nothing.
    Missing,
    /// Several tests could be meant, and they do not agree.
    Ambiguous,
}

impl From<String> for Found {
    fn from(text: String) -> Self {
        match text.as_str() {
            "MISSING" => Self::Missing,
            "AMBIGUOUS" => Self::Ambiguous,
            _ => Self::Seen(Status::from(text)),
        }
    }
}

impl From<Found> for String {
    fn from(found: Found) -> Self {
        found.to_string()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seen(status) => status.as_str(),
            Self::Missing => "MISSING",
            Self::Ambiguous => "AMBIGUOUS",
        })
    }
}

/// What counts as passing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolveRule {
    /// SWE-bench 5: PASSED and XFAIL pass; a skipped test fails in `FAIL_TO_PASS` and is maintained in
    /// `PASS_TO_PASS`. XPASS, which SWE-bench never sees, passes as well: the test ran and its runner let it
    /// pass.
    #[default]
    SweBench5,
    /// SWE-rebench V2 and VibeMemBench: PASSED only.
    SweRebench2,
}

impl ResolveRule {
    /// Whether an expected test counts as a success.
    pub fn passes(self, found: &Found, expected: Expected) -> bool {
        let Found::Seen(status) = found else { return false };
        match (self, status) {
            (_, Status::Passed) => true,
            (Self::SweBench5, Status::Xfail | Status::Xpass) => true,
            (Self::SweBench5, Status::Skipped) => expected == Expected::PassToPass,
            _ => false,
        }
    }
}

/// Removes durations from a name as SWE-rebench V2 does: a bracketed one at the end, every ` in N sec`, a
/// parenthesised one at the end; then blanks around it.
pub fn without_timing(name: &str) -> String {
    static TIMING: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        [
            text::pattern(r"(?i)ω*\[ω*\d+(?:\.\d+)?ω*(?:ms|s)ω*\]ω*$"),
            text::pattern(r"(?i)ω+inω+\d+(?:\.\d+)?ω+(?:msec|sec)(?P<end>$|[^\p{L}\p{N}_])"),
            text::pattern(r"(?i)ω*\(ω*\d+(?:\.\d+)?ω*(?:ms|s)ω*\)ω*$"),
        ]
    });
    let [bracketed, anywhere, parenthesised] = &*TIMING;
    let name = bracketed.replace_all(name, "");
    // The word boundary is matched by a character, which is put back; a next match may begin with it.
    let mut name = name.into_owned();
    let mut from = 0;
    while let Some(found) = anywhere.captures_at(&name, from) {
        let (Some(whole), Some(end)) = (found.get(0), found.name("end")) else { break };
        let (start, cut) = (whole.start(), end.start());
        name.replace_range(start..cut, "");
        from = start;
    }
    text::trim(&parenthesised.replace_all(&name, "")).to_owned()
}

/// The results of a log, ready to be asked for expected names.
#[derive(Debug)]
pub struct Results<'a> {
    /// Own names and upstream's names → statuses seen under them.
    by_name: BTreeMap<&'a str, Vec<&'a Status>>,
    /// Names without durations → the own names of the tests.
    by_normal: BTreeMap<String, BTreeSet<&'a str>>,
}

impl<'a> Results<'a> {
    /// Indexes what a parser found.
    pub fn new(map: &'a StatusMap, rules: Rules) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&Status>> = BTreeMap::new();
        let mut by_normal: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        let mut add = |name: &'a str, own: &'a str, status: &'a Status| {
            by_name.entry(name).or_default().push(status);
            by_normal.entry(without_timing(name)).or_default().insert(own);
        };
        match rules {
            Rules::Upstream => map.statuses.iter().for_each(|(name, status)| add(name, name, status)),
            Rules::Strict => {
                for seen in &map.observations {
                    add(&seen.name, &seen.name, &seen.status);
                    if let Some(alias) = &seen.alias {
                        add(alias, &seen.name, &seen.status);
                    }
                }
            }
        }
        Self { by_name, by_normal }
    }

    fn named(&self, name: &str) -> Option<Status> {
        let mut statuses = self.by_name.get(name)?.iter().copied();
        let first = statuses.next()?;
        Some(statuses.fold(first, Status::worse).clone())
    }

    /// Tests whose names begin with a cut id.
    fn beginning_with(&self, name: &str, passes: impl Fn(&Found) -> bool) -> Option<Found> {
        if name.matches('[').count() <= name.matches(']').count() {
            return None;
        }
        let candidates = self.by_name.range(name..).take_while(|(seen, _)| seen.starts_with(name));
        let found: Vec<Found> = candidates
            .flat_map(|(_, statuses)| statuses)
            .map(|status| Found::Seen((*status).clone()))
            .collect();
        let first = found.first()?;
        let agree = found.iter().all(|other| passes(other) == passes(first));
        Some(if agree { first.clone() } else { Found::Ambiguous })
    }
}

/// A name of the task's lists that could not be looked up plainly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "name")]
pub enum NameDefect {
    /// A cut id, matched by its beginning.
    Truncated(String),
    /// It differs from the log in a duration or in blanks around it.
    Timing(String),
}

/// Looks every expected name up.
pub fn look_up(
    results: &Results<'_>,
    fail_to_pass: &[String],
    pass_to_pass: &[String],
    rule: ResolveRule,
) -> (BTreeMap<String, (Found, Expected)>, BTreeSet<NameDefect>) {
    let names = || {
        let pass = pass_to_pass.iter().map(|name| (name, Expected::PassToPass));
        pass.chain(fail_to_pass.iter().map(|name| (name, Expected::FailToPass)))
    };
    let mut wanted: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
    for (name, _) in names() {
        wanted.entry(without_timing(name)).or_default().insert(name);
    }
    let mut tests = BTreeMap::new();
    let mut defects = BTreeSet::new();
    for (name, expected) in names() {
        let found = if let Some(status) = results.named(name) {
            Found::Seen(status)
        } else if let Some(found) = results.beginning_with(name, |found| rule.passes(found, expected)) {
            defects.insert(NameDefect::Truncated(name.clone()));
            found
        } else {
            let normal = without_timing(name);
            let seen = results.by_normal.get(&normal).filter(|seen| seen.len() == 1);
            let only = wanted.get(&normal).is_some_and(|names| names.len() == 1);
            match seen.and_then(BTreeSet::first).filter(|_| only).and_then(|seen| results.named(seen)) {
                Some(status) => {
                    defects.insert(NameDefect::Timing(name.clone()));
                    Found::Seen(status)
                }
                None => Found::Missing,
            }
        };
        tests.insert(name.clone(), (found, expected));
    }
    (tests, defects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::logs::parse_log;

    fn find(parser: &str, log: &str, name: &str) -> String {
        let map = parse_log(parser, log, Rules::Strict).unwrap();
        let results = Results::new(&map, Rules::Strict);
        let (tests, _) = look_up(&results, &[name.to_owned()], &[], ResolveRule::default());
        tests[name].0.to_string()
    }

    const SUMMARY: &str = "=== short test summary info ===\n";

    #[test]
    fn removes_timing_as_the_reference_does() {
        for (name, normal) in [
            ("a (3ms) [2 ms]", "a"),
            ("a [2 ms] (3ms)", "a [2 ms]"),
            ("a [2 ms] [3 ms]", "a [2 ms]"),
            ("runs in 3 sec flat", "runs flat"),
            ("a in 1 sec in 2 sec b", "a b"),
            ("a in 3 seconds", "a in 3 seconds"),
            ("a in 3 secs", "a in 3 secs"),
            ("a in 3sec", "a in 3sec"),
            ("a[2ms]", "a"),
            ("a(3s)", "a"),
            ("x [1 min]", "x [1 min]"),
            ("x (1,234 ms)", "x (1,234 ms)"),
            ("a (3m)", "a (3m)"),
            ("(3ms)", ""),
            ("in 3 sec", "in 3 sec"),
        ] {
            assert_eq!(without_timing(name), normal, "{name:?}");
        }
    }

    #[test]
    fn a_name_cut_at_a_blank_passes_only_if_all_its_tests_pass() {
        let log = format!(
            "{SUMMARY}PASSED t.py::t[a b]\nPASSED t.py::t[a c]\nPASSED t.py::u[a b]\nFAILED t.py::u[a c]\n"
        );
        assert_eq!(find("parse_log_pytest", &log, "t.py::t[a"), "PASSED");
        assert_eq!(find("parse_log_pytest", &log, "t.py::t[a b]"), "PASSED");
        assert_eq!(find("parse_log_pytest", &log, "t.py::u[a"), "FAILED");
        assert_eq!(find("parse_log_pytest", &log, "t.py::v"), "MISSING");
    }

    #[test]
    fn a_truncated_id_is_matched_by_its_beginning_only_if_all_agree() {
        let log = format!(
            "{SUMMARY}PASSED t.py::t[abc]\nPASSED t.py::t[abd]\nPASSED t.py::u[abc]\nFAILED t.py::u[abd]\n"
        );
        assert_eq!(find("parse_log_pytest", &log, "t.py::t[ab"), "PASSED");
        assert_eq!(find("parse_log_pytest", &log, "t.py::u[ab"), "AMBIGUOUS");
        assert_eq!(find("parse_log_pytest", &log, "t.py::w[ab"), "MISSING");
    }

    #[test]
    fn a_duration_in_a_name_is_ignored_only_one_to_one() {
        let one = "PASS a.test.js\n  ✓ b (1.5 s)\n";
        assert_eq!(find("parse_log_jest", one, "b (2.25 s)"), "PASSED");
        let two = "PASS a.test.js\n  x\n    ✓ b (1.5 s)\n  y\n    ✓ b (3.5 s)\n";
        assert_eq!(find("parse_log_jest", two, "b (2.25 s)"), "MISSING");
    }

    #[test]
    fn rules_differ_on_skipped_and_expected_failures() {
        use Expected::{FailToPass, PassToPass};
        let seen = |status: Status| Found::Seen(status);
        let rules = [ResolveRule::SweBench5, ResolveRule::SweRebench2];
        let both = |status: Status, list| rules.map(|rule| rule.passes(&seen(status.clone()), list));
        assert_eq!(both(Status::Xfail, FailToPass), [true, false]);
        assert_eq!(both(Status::Skipped, PassToPass), [true, false]);
        assert_eq!(both(Status::Skipped, FailToPass), [false, false]);
        assert_eq!(both(Status::Passed, FailToPass), [true, true]);
        assert_eq!(both(Status::Error, PassToPass), [false, false]);
    }
}
