//! What a description makes of an example.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::super::{Description, Rules};
use super::{Example, Status};

/// How many tests and lines a report names.
const NAMED: usize = 10;

/// A result that is not known to be so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// The line of the log that says it first.
    pub line: usize,
    /// The test.
    pub test: String,
    /// What was read.
    pub read: Status,
    /// What is known of it; `None` where nothing is.
    pub known: Option<Status>,
}

/// What a description makes of one example.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The log.
    pub log: String,
    /// How many tests are known.
    pub tests: usize,
    /// How many were read as known.
    pub right: usize,
    /// How many results are wrong.
    pub wrong: usize,
    /// Right results among all that were read.
    pub precision: f64,
    /// Right results among all that are known.
    pub recall: f64,
    /// The first tests that nothing was read of.
    pub unexplained: Vec<String>,
    /// The first wrong results.
    pub wrong_results: Vec<Wrong>,
}

impl Report {
    /// Reads an example by a description.
    pub fn new(description: &Description, example: &Example) -> Self {
        let map = description.parse(&example.log, Rules::Strict).unwrap_or_default();
        let known = &example.outcomes;
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        for seen in &map.observations {
            lines.entry(&seen.name).or_insert(seen.line);
        }
        let wrong = map.statuses.iter().filter(|(name, status)| known.get(*name) != Some(status));
        let wrong: Vec<Wrong> = wrong
            .map(|(name, status)| Wrong {
                line: lines.get(name.as_str()).copied().unwrap_or_default(),
                test: name.clone(),
                read: status.clone(),
                known: known.get(name).cloned(),
            })
            .collect();
        let right = map.statuses.len() - wrong.len();
        let share = |all: usize| if all == 0 { 1.0 } else { right as f64 / all as f64 };
        let unexplained = known.keys().filter(|name| !map.statuses.contains_key(*name));
        Self {
            log: example.name.clone(),
            tests: known.len(),
            right,
            wrong: wrong.len(),
            precision: share(map.statuses.len()),
            recall: share(known.len()),
            unexplained: unexplained.take(NAMED).cloned().collect(),
            wrong_results: wrong.into_iter().take(NAMED).collect(),
        }
    }

    /// Whether everything known was read, and nothing else.
    pub fn is_perfect(&self) -> bool {
        self.wrong == 0 && self.right == self.tests
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} of {} tests read right, {} results wrong (precision {:.1} %, recall {:.1} %)",
            self.log,
            self.right,
            self.tests,
            self.wrong,
            100.0 * self.precision,
            100.0 * self.recall
        )?;
        for test in &self.unexplained {
            write!(f, "\n    nothing read of {test:?}")?;
        }
        for wrong in &self.wrong_results {
            let known = wrong.known.as_ref().map_or("not known", Status::as_str);
            write!(
                f,
                "\n    line {}: {:?} is read as {}, and is {known}",
                wrong.line,
                wrong.test,
                wrong.read.as_str()
            )?;
        }
        Ok(())
    }
}
