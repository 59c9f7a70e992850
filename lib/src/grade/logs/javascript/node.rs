//! node:test's spec reporter.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern};
use super::rule::Alias;
use super::tally::Tally;

/// The tree of the spec reporter. A suite that fails though none of its tests did is a failed test.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Node { alias, suites: Vec::new(), part: Part::Tree, at: false, tally: Tally::default() })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Tree,
    /// Totals, and the failures once more.
    Summary,
}

struct Suite {
    indent: usize,
    name: String,
    failed: bool,
}

struct Node {
    alias: Alias,
    suites: Vec<Suite>,
    part: Part,
    /// Whether the last line said where a failure of the summary stands.
    at: bool,
    tally: Tally,
}

/// Whether this line is a total.
pub(super) fn is_total(line: &str) -> bool {
    line.strip_prefix("ℹ tests ").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Scan for Node {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static RESULT: Pattern =
            LazyLock::new(|| pattern(r"^( *)([✔✖﹣⚠]) (.*) \(\d+(?:\.\d+)?ms\)(?: # (.*))?$"));
        // What was cancelled has no duration.
        static CANCELLED: Pattern = LazyLock::new(|| pattern(r"^( *)(✖) (.*)$"));
        static SUITE: Pattern =
            LazyLock::new(|| pattern(r"^( *)▶ (.*?)(?: \(\d+(?:\.\d+)?ms\)(?: # .*)?)?$"));
        let alias = self.alias.of(line);
        let at = std::mem::replace(&mut self.at, line.starts_with("test at "));
        if is_total(line) || line.starts_with("✖ failing tests:") {
            (self.part, self.suites) = (Part::Summary, Vec::new());
            return Ok(());
        }
        if let Some(total) = line.strip_prefix("ℹ pass ") {
            total.parse().into_iter().for_each(|total| self.tally.settle(total, found));
        }
        if !line.trim_start_matches(' ').starts_with(['▶', '✔', '✖', '﹣', '⚠']) {
            return Ok(());
        }
        if let Some(suite) = SUITE.captures(line) {
            self.part = Part::Tree;
            self.suite(suite[1].len(), &suite[2]);
        } else if let Some(result) =
            RESULT.captures(line).or_else(|| CANCELLED.captures(line)).filter(|_| !at)
        {
            // The summary begins each failure with its place; a result without one is of another run.
            self.part = Part::Tree;
            let status = status(&result[2], result.get(4).map(|comment| comment.as_str()));
            self.result(result[1].len(), &result[3], status, alias, found);
        }
        Ok(())
    }
}

/// A comment behind a test that was not skipped says that it is to be done (or, since version 24, that it is to fail): a
/// pass may stand for a test without body.
fn status(mark: &str, comment: Option<&str>) -> Status {
    match (mark, comment) {
        ("✔", None) => Status::Passed,
        ("✖", None) => Status::Failed,
        ("✔", Some("EXPECTED FAILURE")) | ("✖", Some(_)) => Status::Xfail,
        _ => Status::Skipped,
    }
}

impl Node {
    /// A line that opens a suite, or, in old versions, closes it.
    fn suite(&mut self, indent: usize, name: &str) {
        let closes = self.suites.iter().any(|suite| suite.indent == indent && suite.name == name);
        while self.suites.pop_if(|suite| suite.indent >= indent).is_some() {}
        if !closes {
            self.suites.push(Suite { indent, name: name.to_owned(), failed: false });
        }
    }

    fn result(
        &mut self,
        indent: usize,
        title: &str,
        status: Status,
        alias: Option<String>,
        found: &mut Found,
    ) {
        let mut closed = None;
        while let Some(suite) = self.suites.pop_if(|suite| suite.indent >= indent) {
            closed = Some(suite).filter(|suite| suite.indent == indent && suite.name == title);
        }
        let names = self.suites.iter().map(|suite| suite.name.as_str());
        let name = names.chain([title]).collect::<Vec<_>>().join(" > ");
        let failed = status == Status::Failed;
        for suite in &mut self.suites {
            suite.failed |= failed;
        }
        let is_group = closed.is_some_and(|suite| suite.failed || !failed);
        let alias = self.alias.or(alias, &name, title);
        if !is_group {
            self.tally.add(&status);
        }
        let seen = if is_group { found.group(name, status) } else { found.test(name, status) };
        seen.known_as(alias);
    }
}
