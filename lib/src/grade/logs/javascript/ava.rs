//! AVA's default reporter.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};
use super::rule::Alias;
use super::tally::Tally;
use super::tree::indent;

/// Every marked line. A failed one ends with the failure's message, so that the headings of the details behind the tree
/// tell its name.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Ava {
        alias,
        details: false,
        failed: Vec::new(),
        headings: BTreeSet::new(),
        tally: Tally::default(),
    })
}

struct Failed {
    line: usize,
    text: String,
    alias: Option<String>,
}

struct Ava {
    alias: Alias,
    details: bool,
    failed: Vec<Failed>,
    headings: BTreeSet<String>,
    tally: Tally,
}

/// Whether this line is a total.
pub(super) fn is_total(line: &str) -> bool {
    if !line.starts_with("  ") || !line.ends_with(['d', 's', 'e']) {
        return false;
    }
    static TOTAL: Pattern =
        LazyLock::new(|| pattern(r"^  \d+ (?:tests? (?:passed|failed)|known failures?)$"));
    TOTAL.is_match(line)
}

impl Scan for Ava {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let alias = self.alias.of(line);
        let text = trim(line);
        if text == "─" {
            self.details = true;
        } else if indent(line) != 2 {
        } else if is_total(line) {
            self.details = true;
            if let Some(passed) = text.strip_suffix(" passed") {
                let total = passed.split(' ').next().and_then(|total| total.parse().ok());
                total.into_iter().for_each(|total| self.tally.settle(total, found));
            }
        } else if self.result(text, alias, found) {
            if std::mem::take(&mut self.details) {
                self.name_failures(found); // another run
            }
        } else if self.details {
            self.headings.insert(text.to_owned());
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.name_failures(found);
        Ok(())
    }
}

impl Ava {
    /// Whether the line is a result.
    fn result(&mut self, text: &str, alias: Option<String>, found: &mut Found) -> bool {
        let (title, status) = if let Some(title) = text.strip_prefix("✔ [expected fail] ") {
            (title, Status::Xfail)
        } else if let Some(title) = text.strip_prefix("✔ ") {
            (title, Status::Passed)
        } else if let Some(title) = text.strip_prefix("- [skip] ").or_else(|| text.strip_prefix("- [todo] "))
        {
            (title, Status::Skipped)
        } else if let Some(title) = text.strip_prefix("✘ ").or_else(|| text.strip_prefix("✖ ")) {
            match title.strip_prefix("[fail]: ") {
                Some(title) => {
                    self.failed.push(Failed { line: found.line(), text: trim(title).to_owned(), alias });
                }
                None => found.broken(
                    text,
                    title.starts_with("Uncaught exception in ") || title.contains("No tests found"),
                ),
            }
            return true;
        } else {
            return false;
        };
        let title = without_time(trim(title));
        self.tally.add(&status);
        found.test(title, status).known_as(self.alias.or(alias, title, title));
        true
    }

    fn name_failures(&mut self, found: &mut Found) {
        let headings = std::mem::take(&mut self.headings);
        for Failed { line, text, alias } in self.failed.drain(..) {
            let ends = text.match_indices(' ').map(|(at, _)| at).chain([text.len()]);
            let title = ends.rev().map(|end| &text[..end]).find(|title| headings.contains(*title));
            let title = title.unwrap_or_else(|| without_time(&text));
            found.test_at(line, title, Status::Failed).known_as(self.alias.or(alias, title, title));
        }
    }
}

fn without_time(title: &str) -> &str {
    static TIME: Pattern = LazyLock::new(|| pattern(r" \((?:\d+m )?\d+(?:\.\d+)?(?:ms|s|m)\)$"));
    &title[..TIME.find(title).map_or(title.len(), |time| time.start())]
}
