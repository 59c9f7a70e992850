//! What tasty, hspec and HUnit say of their tests: full names from indentation. hspec marks no test that passed unless it
//! writes check marks: then the leaves of its tree count if there are as many as its summary says.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};
use super::upstream::result_line;

/// A line of a tree that may be a test.
struct Leaf {
    line: usize,
    indent: usize,
    name: String,
    alias: String,
    /// What the line itself says; `None`: nothing.
    status: Option<Status>,
}

pub(in crate::grade::logs) struct Tree {
    /// What upstream calls a leaf: its own text, or its whole path.
    whole_names: bool,
    path: Vec<(usize, String)>,
    leaves: Vec<Leaf>,
    /// Whether the line before is blank: only then does a line without indentation open a group.
    blank: bool,
    /// Whether hspec's list of failures is being read, which is no part of the tree.
    failures: bool,
}

impl Tree {
    pub(in crate::grade::logs) fn new(whole_names: bool) -> Self {
        Self { whole_names, path: Vec::new(), leaves: Vec::new(), blank: true, failures: false }
    }

    /// Writes the leaves down; unmarked ones count as passed if there are as many as the summary tells.
    fn close(&mut self, examples: Option<usize>, found: &mut Found) {
        let complete = examples == Some(self.leaves.len());
        let unmarked = self.leaves.iter().any(|leaf| leaf.status.is_none());
        if let (Some(examples), true, false) = (examples, unmarked, complete) {
            let seen = self.leaves.len();
            found.broken(
                format!("{examples} examples ran, {seen} are seen: none without a mark is believed"),
                false,
            );
        }
        for leaf in self.leaves.drain(..) {
            let status = match leaf.status {
                Some(status) => status,
                None if complete => Status::Passed,
                None => continue,
            };
            found.test_at(leaf.line, leaf.name, status).known_as(leaf.alias);
        }
        self.path.clear();
    }

    fn enter(&mut self, line: &str, found: &Found) {
        let indent = line.len() - line.trim_start_matches(' ').len();
        // What a deeper line follows is no leaf but the name of a group.
        if self.leaves.last().is_some_and(|leaf| leaf.indent < indent && leaf.status.is_none()) {
            self.leaves.pop();
        }
        self.path.retain(|(outer, _)| *outer < indent);
        let (title, status) = labelled(trim(line));
        let names = self.path.iter().map(|(_, name)| name.as_str()).chain([title.as_str()]);
        let (name, dotted) = {
            let names: Vec<&str> = names.collect();
            (names.join(" > "), names.join("."))
        };
        let alias = if self.whole_names {
            dotted
        } else {
            result_line(line).map_or_else(|| title.clone(), |(name, ..)| name)
        };
        self.path.push((indent, title));
        self.leaves.push(Leaf { line: found.line(), indent, name, alias, status });
    }
}

/// A line's title, and the status that it states.
fn labelled(text: &str) -> (String, Option<Status>) {
    static WORD: Pattern = LazyLock::new(|| pattern(r"^(.+?):ω+(OK|FAIL|SKIP)(?:ω+\([^)]*\))?$"));
    static BOXED: Pattern = LazyLock::new(|| pattern(r"^(.+?)ω+\[([✓✔✗✘‐-])\](?:ω+\([^)]*\))?$"));
    static FAILED: Pattern = LazyLock::new(|| pattern(r"^(.+?)ω+FAILED \[\d+\]$"));
    for (rule, group) in [(&WORD, 2), (&BOXED, 2)] {
        if let Some(found) = rule.captures(text) {
            let status = match &found[group] {
                "OK" | "✓" | "✔" => Status::Passed,
                "FAIL" | "✗" | "✘" => Status::Failed,
                _ => Status::Skipped,
            };
            return (found[1].to_owned(), Some(status));
        }
    }
    match FAILED.captures(text) {
        Some(found) => (found[1].to_owned(), Some(Status::Failed)),
        None => (text.to_owned(), None),
    }
}

impl Scan for Tree {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static SUMMARY: Pattern = LazyLock::new(|| pattern(r"^(\d+) examples?, \d+ failures?"));
        static HUNIT: Pattern = LazyLock::new(|| pattern(r"^### (Failure|Error) in: (.+)$"));
        let text = trim(line);
        let blank = std::mem::replace(&mut self.blank, text.is_empty());
        if let Some(summary) = SUMMARY.captures(text) {
            self.close(summary[1].parse().ok(), found);
            self.failures = false;
        } else if let Some(case) = HUNIT.captures(text) {
            let status = if &case[1] == "Failure" { Status::Failed } else { Status::Error };
            found.test(&case[2], status);
        } else if line.starts_with("Test suite ") {
            self.leaves.clear();
            self.path.clear();
            (self.blank, self.failures) = (true, false);
        } else if text == "Failures:" {
            self.failures = true;
        } else if self.failures || text.is_empty() {
        } else if text.starts_with("# PENDING") {
            if let Some(leaf) = self.leaves.last_mut() {
                leaf.status = Some(Status::Skipped);
            }
        } else if text.ends_with(')')
            && (text.contains(" tests passed (") || text.contains(" tests failed ("))
        {
            self.close(None, found);
        } else if line.starts_with(' ') || blank || self.path.is_empty() {
            self.enter(line, found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.close(None, found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Rules, parse_log};

    fn strict(parser: &str, log: &str) -> Vec<String> {
        let map = parse_log(parser, log, Rules::Strict).unwrap();
        map.statuses.iter().map(|(name, status)| format!("{name} {status}")).collect()
    }

    #[test]
    fn tasty_and_hspec_name_tests_in_full() {
        let tasty = "Tests\n  Unit\n    adds:  OK (0.01s)\n    breaks: FAIL\n      expected: 1\n       but got: 2\n1 out of 2 tests failed (0.02s)\n";
        assert_eq!(
            strict("parse_log_haskell", tasty),
            ["Tests > Unit > adds PASSED", "Tests > Unit > breaks FAILED"]
        );
        let hspec = "\nFoo\n  bar\n    does x\n    does y FAILED [1]\n    does z\n      # PENDING: no\n\nFailures:\n\n  1) Foo, bar, does y\n\nFinished in 0.1 seconds\n3 examples, 1 failure, 1 pending\n";
        assert_eq!(
            strict("parse_log_haskell_v2", hspec),
            ["Foo > bar > does x PASSED", "Foo > bar > does y FAILED", "Foo > bar > does z SKIPPED"]
        );
        // What a test prints without indentation is no part of the tree. Indented, it makes one leaf too many: what has
        // no mark is not believed then.
        let printed = hspec.replace("    does x\n", "    does x\nprinted\n");
        assert_eq!(strict("parse_log_haskell_v2", &printed), strict("parse_log_haskell_v2", hspec));
        let printed = hspec.replace("    does x\n", "    does x\n    printed\n");
        assert_eq!(strict("parse_log_haskell_v2", &printed).len(), 2);
    }
}
