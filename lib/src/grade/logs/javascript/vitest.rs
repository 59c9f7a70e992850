//! vitest: the verbose, default and tree reporters of its versions 0 to 4.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim, trim_end};
use super::rule::Alias;
use super::tree::{Tree, indent};

/// Full names (`file > suite > title`); lines of files and suites are groups.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Vitest { alias, tree: Tree::default(), part: Part::Results, held: None })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Results,
    /// What a test printed, up to a blank line.
    Printed,
    /// Behind the results: errors in full.
    Details,
}

/// A line that is a suite if what follows is deeper, and a test if not: its name ends with a number in brackets.
struct Held {
    indent: usize,
    title: String,
    count: String,
    status: Option<Status>,
    line: usize,
    alias: Option<String>,
}

struct Vitest {
    alias: Alias,
    tree: Tree,
    part: Part,
    held: Option<Held>,
}

/// A marked line.
struct Marked<'a> {
    indent: usize,
    status: Option<Status>,
    rest: &'a str,
}

fn marked(line: &str) -> Option<Marked<'_>> {
    let indent = indent(line);
    let text = trim_end(&line[indent..]);
    let mark = text.chars().next()?;
    let status = match mark {
        '✓' | '√' | '✔' => Some(Status::Passed),
        '×' | '✗' | '✕' | '✖' => Some(Status::Failed),
        '↓' => Some(Status::Skipped),
        '❯' => None,
        _ => return None,
    };
    let rest = text[mark.len_utf8()..].strip_prefix(' ').filter(|rest| !rest.is_empty())?;
    Some(Marked { indent, status, rest })
}

impl Scan for Vitest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let alias = self.alias.of(line);
        let marked = marked(line);
        self.release(marked.as_ref().is_some_and(|marked| self.is_below_held(marked)), found);
        if line.starts_with(" RUN ") {
            (self.part, self.tree) = (Part::Results, Tree::default());
        } else if line.starts_with("stdout | ") || line.starts_with("stderr | ") {
            self.part = Part::Printed;
        } else if line.is_empty() {
            // Lines below a file stand together; what comes behind a blank line was printed.
            self.tree = Tree::default();
            if self.part == Part::Printed {
                self.part = Part::Results;
            }
        } else if is_banner(line) {
            self.part = Part::Details;
            if !line.contains("Failed Tests") {
                found.broken(line, !line.contains("Unhandled Error"));
            }
        } else if line.starts_with("No test files found") {
            found.broken(line, true);
        } else if let Some(failed) = line.trim_start().strip_prefix("FAIL ") {
            self.failure(trim(failed), line, found);
        } else if let Some(marked) = marked.filter(|_| self.part == Part::Results) {
            self.result(&marked, alias, found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.release(false, found);
        Ok(())
    }
}

impl Vitest {
    fn is_below_held(&self, marked: &Marked) -> bool {
        self.held.as_ref().is_some_and(|held| marked.indent > held.indent)
    }

    /// Writes down the line that was held: as a group if it has tests below.
    fn release(&mut self, is_suite: bool, found: &mut Found) {
        let Some(held) = self.held.take() else { return };
        let title = if is_suite { held.title.clone() } else { format!("{} {}", held.title, held.count) };
        let name = self.tree.name(held.indent, &title);
        if is_suite {
            self.tree.enter(&format!("{}{}", " ".repeat(held.indent), held.title));
        }
        let Some(status) = held.status else { return };
        let seen = if is_suite { found.group(name, status) } else { found.test_at(held.line, name, status) };
        if let Some(alias) = held.alias {
            seen.known_as(alias);
        }
    }

    /// A failure in full: of a file, or of a test whose result may not have been printed.
    fn failure(&mut self, failed: &str, line: &str, found: &mut Found) {
        if failed.ends_with(" ]") && failed.contains(" [ ") {
            found.broken(line, true);
        } else if let Some((file, title)) = failed.split_once(" > ") {
            found.test(format!("{} > {title}", squeezed(file)), Status::Failed);
        }
        self.part = Part::Details;
    }

    fn result(&mut self, marked: &Marked, alias: Option<String>, found: &mut Found) {
        static FILE: Pattern =
            LazyLock::new(|| pattern(r"^(.*?[^ω])ω+\((\d+)(?: tests?)?((?: \| [^)]*)?)\)(?:ω+.*)?$"));
        static SUITE: Pattern = LazyLock::new(|| pattern(r"^(.+) (\(\d+\))(?: \d+(?:\.\d+)?ω?(?:ms|s|m))?$"));
        let Marked { indent, rest, .. } = *marked;
        if indent <= 1 {
            if let Some((file, title)) = rest.split_once(" > ") {
                self.tree = Tree::default();
                let Some(status) = marked.status.clone() else { return };
                let name = format!("{} > {}", squeezed(file), without_extras(title));
                named(found.test(name, status), alias);
            } else if let Some(file) = FILE.captures(rest) {
                let failed = file[3].contains("failed");
                self.tree = Tree::of(squeezed(&file[1]));
                let status = if failed { Some(Status::Failed) } else { marked.status.clone() };
                if let Some(status) = status {
                    named(found.group(squeezed(&file[1]), status), alias);
                }
            }
        } else if self.tree.file.is_some() {
            if let Some(suite) = SUITE.captures(rest) {
                let (title, count) = (suite[1].to_owned(), suite[2].to_owned());
                let (status, line) = (marked.status.clone(), found.line());
                self.held = Some(Held { indent, title, count, status, line, alias });
            } else if let Some(status) = marked.status.clone() {
                named(found.test(self.tree.name(indent, without_extras(rest)), status), alias);
            } else {
                self.tree.enter(&format!("{}{}", " ".repeat(indent), without_extras(rest)));
            }
        }
    }
}

fn named(seen: &mut super::super::found::Observation, alias: Option<String>) {
    if let Some(alias) = alias {
        seen.known_as(alias);
    }
}

fn squeezed(file: &str) -> String {
    super::super::text::words(file).collect::<Vec<_>>().join(" ")
}

fn is_banner(line: &str) -> bool {
    line.starts_with('⎯')
        && ["Failed Tests", "Failed Suites", "Startup Error", "Unhandled Error"]
            .iter()
            .any(|kind| line.contains(kind))
}

/// The name without `12ms`, `(1.2s)`, `[skipped]`, `(retry x2)`, `(repeat x3)`, a heap size.
fn without_extras(rest: &str) -> &str {
    static EXTRA: Pattern = LazyLock::new(|| {
        pattern(
            r"(?:ω+(?:\(?\d+(?:\.\d+)?ω?(?:ms|s|m)\)?|\[skipped\]|\((?:retry|repeat) x\d+\)|\d+ MB heap used))+ω*$",
        )
    });
    let end = EXTRA.find(rest).map_or(rest.len(), |found| found.start());
    if end == 0 { rest } else { &rest[..end] }
}
