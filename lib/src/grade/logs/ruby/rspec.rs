//! What happened under RSpec: the documentation format's tree, and the lists of failures and pending examples, which
//! is all that the progress format tells.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::spec_tree::SpecTree;
use super::super::status::Status;
use super::super::text::{Pattern, pattern};
use super::upstream;

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Tree,
    Pending,
    Failures,
    Over,
}

/// Reads RSpec's output.
#[derive(Default)]
pub(super) struct Rspec {
    part: Part,
    /// Kept with a failure: its number, and the line as it stands.
    tree: SpecTree<Option<(usize, String)>>,
    /// What the lists name, with their lines.
    listed: Vec<(usize, String, Status)>,
}

/// A line of the tree without its mark.
fn read(text: &str) -> (&str, Option<Status>, Option<(usize, String)>) {
    static FAILED: Pattern = LazyLock::new(|| pattern(r" \(FAILED - (\d+)\)$"));
    if let Some(mark) = FAILED.captures(text) {
        let number = mark[1].parse().unwrap_or(usize::MAX);
        let name = &text[..text.len() - mark[0].len()];
        return (name, Some(Status::Failed), Some((number, text.to_owned())));
    }
    match text.find(" (PENDING: ").filter(|_| text.ends_with(')')) {
        Some(mark) => (&text[..mark], Some(Status::Skipped), None),
        None => (text, None, None),
    }
}

/// The full description of an example: a method's name stands right behind its class.
fn full(path: &[String]) -> String {
    static CLASS: Pattern = LazyLock::new(|| pattern(r"^[A-Z]\w*(?:::[A-Z]\w*)*$"));
    let mut full = String::new();
    for (at, part) in path.iter().enumerate() {
        let method = at > 0 && part.starts_with(['#', '.']) || part.starts_with("::");
        if at > 0 && !(method && CLASS.is_match(&path[at - 1])) {
            full.push(' ');
        }
        full.push_str(part);
    }
    full
}

impl Rspec {
    /// The end of a run: `7 examples, 2 failures, 2 pending`.
    fn summary(&mut self, count: usize, found: &mut Found) {
        let mut examples = self.tree.examples();
        let failures = self.listed.iter().filter(|(_, _, status)| *status == Status::Failed).count();
        for (_, path, status, mark) in &mut examples {
            // A number that no failure has is part of the name of a pass.
            if let (Some((_, text)), Some(name)) = (mark.take_if(|(n, _)| *n > failures), path.last_mut()) {
                (*name, *status) = (text, Status::Passed);
            }
        }
        let shown = examples.len();
        let listed = |name: &str| self.listed.iter().any(|(_, listed, _)| listed == name);
        // Where a test printed something like an example, no pass can be believed.
        let agrees = shown == count
            && examples.iter().all(|(_, path, status, _)| *status == Status::Passed || listed(&full(path)));
        for (line, path, status, _) in examples {
            let name = full(&path);
            if agrees || listed(&name) {
                found.test_at(line, name, status);
            }
        }
        if shown > 0 && count > 0 && !agrees {
            found.broken("the tree does not agree with the count or the lists below it", false);
        }
        self.lists(found);
        self.part = Part::Tree;
    }

    fn lists(&mut self, found: &mut Found) {
        for (line, name, status) in std::mem::take(&mut self.listed) {
            found.test_at(line, name, status);
        }
    }
}

impl Scan for Rspec {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static ENTRY: Pattern = LazyLock::new(|| pattern(r"^ +\d+\) (.+?)(?: FIXED)?$"));
        static SUMMARY: Pattern = LazyLock::new(|| pattern(r"^(\d+) examples?, \d+ failures?(?:, |$)"));
        if line.starts_with("An error occurred while loading ") || line.starts_with("An error occurred in a ")
        {
            found.broken(line, line.contains("while loading"));
        }
        match line {
            "Failures:" => self.part = Part::Failures,
            _ if line.starts_with("Pending: (Failures listed here") => self.part = Part::Pending,
            _ if line.starts_with("Finished in ") => self.part = Part::Over,
            _ => match self.part {
                Part::Tree => self.tree.line(found.line(), line, read),
                Part::Pending | Part::Failures => {
                    let failed = self.part == Part::Failures;
                    let status = if failed { Status::Failed } else { Status::Skipped };
                    if line.starts_with("  ")
                        && let Some(entry) = ENTRY.captures(line)
                    {
                        self.listed.push((found.line(), entry[1].to_owned(), status));
                    }
                }
                Part::Over => {
                    if let Some(count) = SUMMARY.captures(line).and_then(|found| found[1].parse().ok()) {
                        self.summary(count, found);
                    }
                }
            },
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        // A run that was cut short has no count that would confirm a pass.
        for (line, path, status, _) in self.tree.examples() {
            if status != Status::Passed {
                found.test_at(line, full(&path), status);
            }
        }
        self.lists(found);
        Ok(())
    }
}

/// RSpec's JSON that a filter made lines of: `name - passed`.
pub(super) fn flattened(line: &str, found: &mut Found) {
    let statuses = [("passed", Status::Passed), ("failed", Status::Failed), ("pending", Status::Skipped)];
    for (word, status) in statuses {
        if let Some(name) = line.strip_suffix(word).and_then(|line| line.strip_suffix(" - "))
            && !name.is_empty()
        {
            let alias = upstream::flattened_line(line).map_or(name, |(alias, _)| alias);
            found.test(name, status).known_as(alias);
        }
    }
}
