//! Playwright's list reporter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};
use super::rule::Alias;

/// Names without number, place in the file and retry: `[chromium] > a.spec.ts > suite > title`. Of several tries the last
/// counts, as Playwright itself counts.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    let (tests, listed) = (BTreeMap::new(), BTreeSet::new());
    Box::new(Playwright { alias, part: Part::Before, last: Some(0), tests, listed })
}

struct Try {
    line: usize,
    status: Status,
    alias: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    Results,
    /// Totals, each with the names that it counts: whether these are failures.
    Totals {
        failed: bool,
    },
}

struct Playwright {
    alias: Alias,
    part: Part,
    /// The number of the last result; none on a terminal, where lines are written anew in any order.
    last: Option<u64>,
    tests: BTreeMap<String, Try>,
    /// What the totals count as failed.
    listed: BTreeSet<String>,
}

/// Whether this line begins a run.
pub(super) fn is_start(line: &str) -> bool {
    static START: Pattern = LazyLock::new(|| pattern(r"^Running \d+ tests? using \d+ workers?"));
    line.starts_with("Running ") && START.is_match(line)
}

/// Whether this line is the last total of a run.
pub(super) fn is_total(line: &str) -> bool {
    static TOTAL: Pattern =
        LazyLock::new(|| pattern(r"^  \d+ (?:passed|failed|flaky|interrupted|skipped|did not run)\b"));
    TOTAL.is_match(line)
}

impl Scan for Playwright {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static RESULT: Pattern = LazyLock::new(|| {
            pattern(
                r"^  (✓|ok|✘|x|✗|-) +(\d+) (.* › .*?)(?: \(retry #\d+\))?(?: \(\d+(?:\.\d+)?(?:ms|s|m|h)\))?$",
            )
        });
        static STARTED: Pattern = LazyLock::new(|| pattern(r"^ {5,}\d+ .* › "));
        let alias = self.alias.of(line);
        if is_start(line) {
            self.write(found);
            (self.part, self.last) = (Part::Results, Some(0));
        } else if is_total(line) {
            self.part = Part::Totals { failed: line.contains(" failed") || line.contains(" interrupted") };
        } else if line.starts_with("Error: No tests found") {
            found.broken(line, true);
        } else if self.part == Part::Results {
            if let Some(result) = RESULT.captures(line) {
                self.result(&result[1], result[2].parse().unwrap_or(0), &result[3], alias, found.line());
            } else if line.starts_with("     ") && STARTED.is_match(line) {
                self.last = None;
            }
        } else if let (Part::Totals { failed: true }, Some(test)) = (self.part, line.strip_prefix("    ")) {
            self.listed.insert(name(test.trim_end_matches(['─', ' '])));
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.write(found);
        Ok(())
    }
}

impl Playwright {
    fn result(&mut self, mark: &str, number: u64, text: &str, alias: Option<String>, line: usize) {
        // Results are numbered in turn; other numbers were printed by tests.
        if self.last.is_some_and(|last| number > last + 1) {
            return;
        }
        self.last = self.last.map(|last| last.max(number));
        let status = match mark {
            "✓" | "ok" => Status::Passed,
            "-" => Status::Skipped,
            _ => Status::Failed,
        };
        self.tests.insert(name(text), Try { line, status, alias });
    }

    /// Writes down a run. A failure that the totals do not count was expected.
    fn write(&mut self, found: &mut Found) {
        let listed = std::mem::take(&mut self.listed);
        let counted = matches!(self.part, Part::Totals { .. });
        for (name, Try { line, status, alias }) in std::mem::take(&mut self.tests) {
            let expected = status == Status::Failed && counted && !listed.contains(&name);
            let status = if expected { Status::Xfail } else { status };
            let seen = found.test_at(line, name, status);
            if let Some(alias) = alias {
                seen.known_as(alias);
            }
        }
    }
}

fn name(text: &str) -> String {
    static PLACE: Pattern = LazyLock::new(|| pattern(r"^(.*):\d+:\d+$"));
    let mut named = Vec::new();
    let mut placed = false;
    for part in trim(text).split(" › ") {
        match PLACE.captures(part).filter(|_| !placed) {
            Some(place) => {
                placed = true;
                named.push(place[1].to_owned());
            }
            None => named.push(part.to_owned()),
        }
    }
    named.join(" > ")
}
