//! What a parser finds in a log, and how it writes it down.

use std::collections::BTreeMap;

use serde::Serialize;

use super::status::Status;

/// One result of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// The test.
    pub name: String,
    /// The name that upstream's parser gives to the same result, where it differs.
    pub alias: Option<String>,
    /// How it ended.
    pub status: Status,
    /// The line of the log, from 1 (after newline translation).
    pub line: usize,
}

impl Observation {
    /// With upstream's name for it.
    pub(super) fn known_as(&mut self, alias: impl Into<String>) {
        self.alias = Some(alias.into()).filter(|alias| *alias != self.name);
    }
}

/// A line that tells of a failure of something larger than a test: a file, a package, a crate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuiteFailure {
    /// The line of the log, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// Whether code could not be built or loaded, so that its tests never ran.
    pub build: bool,
}

/// What a parser found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StatusMap {
    /// Each test's status: under strict rules the worst seen, under upstream's by the parser's own policy.
    pub statuses: BTreeMap<String, Status>,
    /// Every result, in order.
    pub observations: Vec<Observation>,
    /// Results of files, classes, packages and builds (strict rules only). They are no tests, but some upstream
    /// parsers take them for tests, so that lists of expected tests hold their names.
    pub groups: Vec<Observation>,
    /// Failures of files, packages and crates (strict rules only).
    pub suite_failures: Vec<SuiteFailure>,
}

impl StatusMap {
    /// Every result: of tests, then of groups.
    pub fn results(&self) -> impl Iterator<Item = &Observation> {
        self.observations.iter().chain(&self.groups)
    }

    /// Whether there is no result at all.
    pub fn is_empty(&self) -> bool {
        self.statuses.is_empty() && self.groups.is_empty()
    }

    /// Adds strict results of another log that stands behind this many lines.
    pub fn add(&mut self, other: &Self, lines_before: usize) {
        let moved = |seen: &Observation| Observation { line: seen.line + lines_before, ..seen.clone() };
        for seen in &other.observations {
            let status = self.statuses.entry(seen.name.clone()).or_insert_with(|| seen.status.clone());
            *status = status.worse(&seen.status).clone();
        }
        self.observations.extend(other.observations.iter().map(moved));
        self.groups.extend(other.groups.iter().map(moved));
        let failures = other.suite_failures.iter().cloned();
        self.suite_failures
            .extend(failures.map(|failure| SuiteFailure { line: failure.line + lines_before, ..failure }));
    }
}

/// Where a parser writes what it finds. Upstream rules use the methods that follow a policy for several results of
/// one test; strict rules use [`Found::test`], [`Found::group`] and [`Found::broken`].
#[derive(Debug, Default)]
pub(super) struct Found {
    map: StatusMap,
    line: usize,
}

impl Found {
    /// The number of the line that is being read, from 1.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    pub(super) fn next_line(&mut self) {
        self.line += 1;
    }

    pub(super) fn go_to(&mut self, line: usize) {
        self.line = line;
    }

    pub(super) fn into_map(self) -> StatusMap {
        self.map
    }

    /// Strict: adds what another walk over lines of the same log found.
    pub(super) fn absorb(&mut self, other: Self) {
        for (name, status) in other.map.statuses {
            let worst = self.map.statuses.entry(name).or_insert_with(|| status.clone());
            *worst = worst.worse(&status).clone();
        }
        self.map.observations.extend(other.map.observations);
        self.map.groups.extend(other.map.groups);
        self.map.suite_failures.extend(other.map.suite_failures);
    }

    /// What is known of a test so far.
    pub(super) fn status(&self, name: &str) -> Option<&Status> {
        self.map.statuses.get(name)
    }

    /// Takes the name of the last result out.
    pub(super) fn take_last(&mut self) -> Option<String> {
        let last = self.map.observations.pop();
        self.map.observations.clear();
        last.map(|seen| seen.name)
    }

    /// Whether no test is known yet.
    pub(super) fn is_empty(&self) -> bool {
        self.map.statuses.is_empty()
    }

    /// Upstream: a result that replaces an earlier one (policy L of the reference).
    pub(super) fn set(&mut self, name: impl Into<String>, status: Status) {
        let name = name.into();
        self.map.statuses.insert(name.clone(), status.clone());
        self.observe(name, status, self.line);
    }

    /// Upstream: a result that counts only if there is none yet.
    pub(super) fn set_first(&mut self, name: impl Into<String>, status: Status) {
        let name = name.into();
        if !self.map.statuses.contains_key(&name) {
            self.set(name, status);
        }
    }

    /// Upstream: a pass counts only if there is no result yet, every other result replaces an earlier one
    /// (policy F).
    pub(super) fn set_keeping_failures(&mut self, name: impl Into<String>, status: Status) {
        match status {
            Status::Passed => self.set_first(name, status),
            _ => self.set(name, status),
        }
    }

    /// Strict: a result of a test, of which the worst counts.
    pub(super) fn test(&mut self, name: impl Into<String>, status: Status) -> &mut Observation {
        self.test_at(self.line, name, status)
    }

    /// Strict: a result of a test that stands in an earlier line.
    pub(super) fn test_at(
        &mut self,
        line: usize,
        name: impl Into<String>,
        status: Status,
    ) -> &mut Observation {
        let name = name.into();
        let worst = self.map.statuses.entry(name.clone()).or_insert_with(|| status.clone());
        *worst = worst.worse(&status).clone();
        self.observe(name, status, line)
    }

    /// Strict: a result of something larger than a test, which upstream may take for one.
    pub(super) fn group(&mut self, name: impl Into<String>, status: Status) -> &mut Observation {
        push(&mut self.map.groups, name.into(), status, self.line)
    }

    /// Strict: a line that tells of a failure of something larger than a test; `build` where its tests never ran.
    pub(super) fn broken(&mut self, text: impl Into<String>, build: bool) {
        self.broken_at(self.line, text, build);
    }

    /// As [`Found::broken`], of an earlier line.
    pub(super) fn broken_at(&mut self, line: usize, text: impl Into<String>, build: bool) {
        self.map.suite_failures.push(SuiteFailure { line, text: text.into(), build });
    }

    fn observe(&mut self, name: String, status: Status, line: usize) -> &mut Observation {
        push(&mut self.map.observations, name, status, line)
    }
}

fn push(list: &mut Vec<Observation>, name: String, status: Status, line: usize) -> &mut Observation {
    list.push(Observation { name, alias: None, status, line });
    let last = list.len() - 1;
    &mut list[last]
}
