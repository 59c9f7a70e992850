//! One expected name among many results.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::super::logs::{Rules, Status, StatusMap};
use super::{Expected, Found, ResolveRule, without_timing};

/// One result that an expected name could mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen<'a> {
    /// Its own name.
    pub name: &'a str,
    /// How it ended.
    pub status: &'a Status,
    /// The line of the log, from 1.
    pub line: usize,
}

/// Which step found an expected name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// A result's own name, or upstream's name for it.
    Name,
    /// The beginning of a name: the expected one is cut.
    Truncated,
    /// It differs in a duration or in blanks around it.
    Timing,
    /// None.
    Nowhere,
}

/// What a log says of an expected name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match<'a> {
    /// The answer.
    pub found: Found,
    /// The step that gave it.
    pub how: How,
    /// The results that could be meant.
    pub seen: Vec<Seen<'a>>,
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

impl Match<'_> {
    /// What is wrong with the expected name.
    pub fn defect(&self, name: &str) -> Option<NameDefect> {
        match self.how {
            How::Truncated => Some(NameDefect::Truncated(name.to_owned())),
            How::Timing => Some(NameDefect::Timing(name.to_owned())),
            How::Name | How::Nowhere => None,
        }
    }
}

/// The results of a log, ready to be asked for the names that a task expects.
#[derive(Debug)]
pub struct Results<'a> {
    rule: ResolveRule,
    /// Own names and upstream's names.
    by_name: BTreeMap<&'a str, BTreeSet<Seen<'a>>>,
    /// The same without durations.
    by_normal: BTreeMap<String, BTreeSet<Seen<'a>>>,
    /// Expected names without durations, and how many come to each.
    expected: BTreeMap<String, usize>,
}

impl<'a> Results<'a> {
    /// Indexes what a parser found by `rules`; `expected` are all names of the task's lists.
    pub fn new<'n>(
        map: &'a StatusMap,
        rules: Rules,
        rule: ResolveRule,
        expected: impl IntoIterator<Item = &'n String>,
    ) -> Self {
        let mut results =
            Self { rule, by_name: BTreeMap::new(), by_normal: BTreeMap::new(), expected: BTreeMap::new() };
        match rules {
            Rules::Upstream => results.add_upstream(map),
            Rules::Strict => {
                for seen in map.results() {
                    let one = Seen { name: &seen.name, status: &seen.status, line: seen.line };
                    results.add(&seen.name, one);
                    if let Some(alias) = &seen.alias {
                        results.add(alias, one);
                    }
                }
            }
        }
        for name in expected.into_iter().collect::<BTreeSet<_>>() {
            *results.expected.entry(without_timing(name)).or_default() += 1;
        }
        results
    }

    /// Upstream's own policy has decided already; the line is the last that gave a test its status.
    fn add_upstream(&mut self, map: &'a StatusMap) {
        let decided =
            map.observations.iter().filter(|seen| map.statuses.get(&seen.name) == Some(&seen.status));
        let lines: BTreeMap<&str, usize> = decided.map(|seen| (seen.name.as_str(), seen.line)).collect();
        for (name, status) in &map.statuses {
            let line = lines.get(name.as_str()).copied().unwrap_or_default();
            self.add(name, Seen { name, status, line });
        }
    }

    fn add(&mut self, name: &'a str, seen: Seen<'a>) {
        self.by_name.entry(name).or_default().insert(seen);
        self.by_normal.entry(without_timing(name)).or_default().insert(seen);
    }

    /// What the log says of an expected name.
    pub fn find(&self, name: &str, list: Expected) -> Match<'a> {
        let steps = [
            (How::Name, self.by_name.get(name).cloned().unwrap_or_default()),
            (How::Truncated, self.beginning_with(name)),
            (How::Timing, self.by_normal.get(&without_timing(name)).cloned().unwrap_or_default()),
        ];
        let Some((how, seen)) = steps.into_iter().find(|(_, seen)| !seen.is_empty()) else {
            return Match { found: Found::Missing, how: How::Nowhere, seen: Vec::new() };
        };
        let tests = worst_of_each(&seen);
        let enough = how != How::Timing
            || self.expected.get(&without_timing(name)).is_none_or(|expected| *expected <= tests.len());
        let found = if enough { self.agreed(&tests, list) } else { Found::Ambiguous };
        Match { found, how, seen: seen.into_iter().collect() }
    }

    /// Results whose names begin with a cut id.
    fn beginning_with(&self, name: &str) -> BTreeSet<Seen<'a>> {
        if name.matches('[').count() <= name.matches(']').count() {
            return BTreeSet::new();
        }
        let candidates = self.by_name.range(name..).take_while(|(seen, _)| seen.starts_with(name));
        candidates.flat_map(|(_, seen)| seen).copied().collect()
    }

    fn agreed(&self, tests: &BTreeMap<&str, &Status>, list: Expected) -> Found {
        let passes = |status: &Status| self.rule.passes(&Found::Seen(status.clone()), list);
        let mut statuses = tests.values().copied();
        let Some(first) = statuses.next() else { return Found::Missing };
        if tests.values().any(|status| passes(status) != passes(first)) {
            return Found::Ambiguous;
        }
        Found::Seen(statuses.fold(first, Status::worse).clone())
    }
}

fn worst_of_each<'a>(seen: &BTreeSet<Seen<'a>>) -> BTreeMap<&'a str, &'a Status> {
    let mut tests: BTreeMap<&str, &Status> = BTreeMap::new();
    for Seen { name, status, .. } in seen {
        tests.entry(name).and_modify(|worst| *worst = worst.worse(status)).or_insert(status);
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::logs::Observation;

    fn observation(name: &str, alias: &str, status: &str, line: usize) -> Observation {
        Observation { name: name.to_owned(), alias: Some(alias.to_owned()), status: status.into(), line }
    }

    /// Tests with upstream's names for them.
    fn map(results: &[(&str, &str, &str)]) -> StatusMap {
        let mut map = StatusMap::default();
        for (line, (name, alias, status)) in results.iter().enumerate() {
            map.observations.push(observation(name, alias, status, line + 1));
        }
        map
    }

    fn find(map: &StatusMap, expected: &[&str]) -> Vec<String> {
        let expected: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        let results = Results::new(map, Rules::Strict, ResolveRule::default(), &expected);
        expected.iter().map(|name| results.find(name, Expected::FailToPass).found.to_string()).collect()
    }

    #[test]
    fn a_name_cut_at_a_blank_passes_if_all_its_tests_pass() {
        let map = map(&[
            ("t[a b]", "t[a", "PASSED"),
            ("t[a c]", "t[a", "PASSED"),
            ("u[a b]", "u[a", "PASSED"),
            ("u[a c]", "u[a", "FAILED"),
            ("w[a b]", "w[a", "SKIPPED"),
            ("w[a c]", "w[a", "FAILED"),
        ]);
        assert_eq!(
            find(&map, &["t[a", "t[a b]", "u[a", "u[a c]", "w[a", "x[a"]),
            ["PASSED", "PASSED", "AMBIGUOUS", "FAILED", "FAILED", "MISSING"]
        );
    }

    #[test]
    fn the_worst_of_one_tests_results_counts() {
        let map = map(&[("t", "t", "PASSED"), ("t", "t", "ERROR"), ("t", "t", "PASSED")]);
        assert_eq!(find(&map, &["t"]), ["ERROR"]);
    }

    #[test]
    fn a_dropped_package_is_ambiguous_where_packages_disagree() {
        let map = map(&[
            ("p/TestX", "TestX", "PASSED"),
            ("q/TestX", "TestX", "FAILED"),
            ("q/TestY", "TestY", "PASSED"),
        ]);
        assert_eq!(find(&map, &["TestX", "p/TestX", "TestY"]), ["AMBIGUOUS", "PASSED", "PASSED"]);
    }

    #[test]
    fn a_truncated_id_is_matched_by_its_beginning() {
        let map = map(&[
            ("t[abc]", "t[abc]", "PASSED"),
            ("t[abd]", "t[abd]", "PASSED"),
            ("u[abc]", "u[abc]", "PASSED"),
            ("u[abd]", "u[abd]", "FAILED"),
        ]);
        assert_eq!(find(&map, &["t[ab", "u[ab", "w[ab", "t"]), ["PASSED", "AMBIGUOUS", "MISSING", "MISSING"]);
    }

    #[test]
    fn a_duration_in_a_name_is_ignored_where_that_is_no_guess() {
        let both_pass = map(&[("x > b", "b (1.5 s)", "PASSED"), ("y > b", "b (3.5 s)", "PASSED")]);
        assert_eq!(find(&both_pass, &["b (2.25 s)"]), ["PASSED"]);
        assert_eq!(find(&both_pass, &["b (2.25 s)", "b (7 s)"]), ["PASSED", "PASSED"]);
        // Three expected, two seen: one of them did not run.
        assert_eq!(find(&both_pass, &["b (2.25 s)", "b (7 s)", "b (8 s)"]), ["AMBIGUOUS"; 3]);
        let one_fails = map(&[("x > b", "b (1.5 s)", "PASSED"), ("y > b", "b (3.5 s)", "FAILED")]);
        assert_eq!(find(&one_fails, &["b (2.25 s)", "b (3.5 s)"]), ["AMBIGUOUS", "FAILED"]);
    }

    #[test]
    fn groups_answer_for_names_that_upstream_takes_for_tests() {
        let mut map = map(&[("a", "a", "PASSED")]);
        map.groups.push(observation("src/a.test.ts", "src/a.test.ts (3 tests)", "PASSED", 9));
        assert_eq!(find(&map, &["src/a.test.ts (3 tests)", "a"]), ["PASSED", "PASSED"]);
    }

    #[test]
    fn upstreams_policy_has_decided_already() {
        let mut map = StatusMap::default();
        map.statuses.insert("t".to_owned(), Status::Passed);
        let expected = ["t".to_owned()];
        let results = Results::new(&map, Rules::Upstream, ResolveRule::default(), &expected);
        assert_eq!(results.find("t", Expected::FailToPass).found, Found::Seen(Status::Passed));
    }
}
