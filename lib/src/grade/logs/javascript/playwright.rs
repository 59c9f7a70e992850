//! Playwright's list reporter.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};
use super::rule::{Alias, Rule};

/// Names without number, place in the file and retry: `[chromium] > a.spec.ts > suite > title`. Of several tries the last
/// counts, as Playwright itself counts.
pub(super) fn strict(rule: Rule) -> Box<dyn Scan> {
    Box::new(Playwright { alias: Alias::new(rule), running: false, tests: BTreeMap::new() })
}

struct Try {
    line: usize,
    status: Status,
    alias: Option<String>,
}

struct Playwright {
    alias: Alias,
    running: bool,
    tests: BTreeMap<String, Try>,
}

/// Whether this line begins a run.
pub(super) fn is_start(line: &str) -> bool {
    static START: Pattern = LazyLock::new(|| pattern(r"^Running \d+ tests? using \d+ workers?"));
    line.starts_with("Running ") && START.is_match(line)
}

/// Whether this line is the last total of a run.
pub(super) fn is_total(line: &str) -> bool {
    static TOTAL: Pattern =
        LazyLock::new(|| pattern(r"^  \d+ (?:passed|failed|flaky|skipped|did not run)\b"));
    TOTAL.is_match(line)
}

impl Scan for Playwright {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static RESULT: Pattern = LazyLock::new(|| {
            pattern(
                r"^  (✓|ok|✘|x|✗|-) +\d+ (.* › .*?)(?: \(retry #\d+\))?(?: \(\d+(?:\.\d+)?(?:ms|s|m|h)\))?$",
            )
        });
        let alias = self.alias.of(line);
        if is_start(line) {
            self.write(found);
            self.running = true;
        } else if is_total(line) {
            self.running = false;
        } else if line.starts_with("Error: No tests found") {
            found.broken(line, true);
        } else if self.running
            && line.starts_with("  ")
            && let Some(result) = RESULT.captures(line)
        {
            let status = match &result[1] {
                "✓" | "ok" => Status::Passed,
                "-" => Status::Skipped,
                _ => Status::Failed,
            };
            self.tests.insert(name(&result[2]), Try { line: found.line(), status, alias });
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.write(found);
        Ok(())
    }
}

impl Playwright {
    fn write(&mut self, found: &mut Found) {
        for (name, Try { line, status, alias }) in std::mem::take(&mut self.tests) {
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
