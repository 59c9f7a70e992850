//! jest: the tree of `--verbose`, and what the default reporter tells.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan, each};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};
use super::rule::Alias;
use super::tally::Tally;
use super::tree::{Tree, indent};
use super::upstream;

/// Full names (`file > suite > title`) from the tree below each `PASS` or `FAIL` line, or, where a file has no tree,
/// from the headings of its failures; nothing of failure details and console output.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Jest {
        alias,
        tree: Tree::default(),
        part: Part::Between,
        results: 0,
        printed: None,
        blank: false,
        tally: Tally::default(),
        total: None,
    })
}

/// What the lines belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// No file, or what follows its tree.
    Between,
    Tree,
    /// Failure details of a file.
    Details,
    /// The failures of all files once more.
    Summary,
}

struct Jest {
    alias: Alias,
    tree: Tree,
    part: Part,
    /// Results in the tree of this file.
    results: usize,
    printed: Option<Console>,
    /// Whether the last line of the tree was blank.
    blank: bool,
    tally: Tally,
    /// The last total of passes.
    total: Option<usize>,
}

/// A line that says how a file ended: the file, with its project.
pub(super) fn file(line: &str) -> Option<(String, Status)> {
    static TIME: Pattern =
        LazyLock::new(|| pattern(r"ω+\((?:\d+(?:\.\d+)?ω*(?:ms|s|m)(?:, )?)?(?:\d+ MB heap size)?\)$"));
    let text = line.strip_prefix(' ').unwrap_or(line);
    let (rest, status) = [("PASS ", Status::Passed), ("FAIL ", Status::Failed)]
        .into_iter()
        .find_map(|(word, status)| Some((trim(text.strip_prefix(word)?), status)))?;
    let rest = &rest[..TIME.find(rest).map_or(rest.len(), |time| time.start())];
    let is_file = rest.rsplit(' ').next().is_some_and(|path| path.contains(['.', '/', '\\']));
    is_file.then(|| (super::super::text::words(rest).collect::<Vec<_>>().join(" "), status))
}

impl Scan for Jest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let alias = self.alias.of(line);
        if self.printed.is_some_and(|kind| ends_console(line, kind)) {
            self.printed = None;
        }
        if let Some(totals) = line.strip_prefix("Tests: ") {
            let passed = totals.split(',').find_map(|total| trim(total).strip_suffix(" passed"));
            self.total = Some(passed.map_or(0, |passed| passed.parse().unwrap_or(usize::MAX)));
        } else if line.starts_with("Ran all test suites") {
            self.total.take().into_iter().for_each(|total| self.tally.settle(total, found));
        }
        if line == "Summary of all failing tests" {
            self.part = Part::Summary;
        } else if self.part == Part::Summary {
            if line.starts_with("Test Suites:") {
                (self.part, self.tree) = (Part::Between, Tree::default());
            }
        } else if let Some((file, status)) = file(line) {
            if let Some(alias) = alias {
                found.group(&file, status).known_as(alias);
            } else {
                found.group(&file, status);
            }
            (self.tree, self.part, self.results) = (Tree::of(file), Part::Tree, 0);
            (self.printed, self.blank) = (None, false);
        } else if let Some(heading) = line.strip_prefix("  ● ").filter(|_| self.tree.file.is_some()) {
            self.heading(heading, found);
        } else if let Some(console) = console(line) {
            self.printed = Some(console);
        } else if self.part == Part::Tree && self.printed.is_none() {
            self.in_tree(line, alias, found);
        }
        Ok(())
    }
}

impl Jest {
    /// What follows a bullet: a failure, or what a file printed.
    fn heading(&mut self, heading: &str, found: &mut Found) {
        let file = self.tree.file.as_deref().unwrap_or("a file");
        if heading.starts_with("Test suite failed to run") {
            found.broken(format!("{file}: test suite failed to run"), true);
        } else if heading != "Console" && !heading.starts_with(' ') && self.results == 0 {
            found.test(format!("{file} > {}", heading.replace(" › ", " > ")), Status::Failed);
        }
        self.part = Part::Details;
    }

    fn in_tree(&mut self, line: &str, alias: Option<String>, found: &mut Found) {
        static STACK: Pattern = LazyLock::new(|| pattern(r"^ω+at "));
        let text = trim(line);
        let blank = std::mem::replace(&mut self.blank, text.is_empty());
        if text.is_empty() || text.starts_with("RUNS ") {
            // On a terminal, blank lines and progress stand between all lines.
        } else if blank && self.results > 0 {
            // The tree ends with a blank line; what tests print later is no part of it.
            self.part = Part::Between;
        } else if let Some((title, status)) = result(text) {
            let Some(title) = title else { return };
            self.results += 1;
            self.tally.add(&status);
            let name = self.tree.name(indent(line), title);
            let alias = self.alias.or(alias, &name, title);
            found.test(name, status).known_as(alias);
        } else if line.starts_with("  ") && !STACK.is_match(line) {
            self.tree.enter(line);
        }
    }
}

/// A marked line: its title (none for a count of skipped tests, as old versions write it), without `skipped`, `todo`
/// and the duration.
fn result(text: &str) -> Option<(Option<&str>, Status)> {
    static DURATION: Pattern = LazyLock::new(|| pattern(r"ω+\(\d+(?:\.\d+)?ω*(?:ms|s|m)\)$"));
    static COUNT: Pattern = LazyLock::new(|| pattern(r"^(?:skipped|todo) \d+ tests?$"));
    let mark = text.chars().next()?;
    let status = match mark {
        '✓' | '√' | '✔' => Status::Passed,
        '✕' | '×' | '✗' | '✖' => Status::Failed,
        '○' | '✎' => Status::Skipped,
        _ => return None,
    };
    let rest = text[mark.len_utf8()..].strip_prefix(' ').filter(|rest| !rest.is_empty())?;
    let rest = &rest[..DURATION.find(rest).map_or(rest.len(), |found| found.start())];
    if status != Status::Skipped {
        return Some((Some(trim(rest)), status));
    }
    let title = rest.strip_prefix("skipped ").or_else(|| rest.strip_prefix("todo ")).unwrap_or(rest);
    Some((Some(trim(title)).filter(|_| !COUNT.is_match(rest)), status))
}

/// What a test printed: before jest 25 headed by `console.log file:line` and ended by a blank line, since
/// then ended by a stack trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Console {
    Located,
    Traced,
}

fn console(line: &str) -> Option<Console> {
    static HEAD: Pattern = LazyLock::new(|| pattern(r"^ω+console\.[a-zA-Z]+(?:ω([^ω].*))?$"));
    let located = HEAD.captures(line)?.get(1).is_some();
    Some(if located { Console::Located } else { Console::Traced })
}

/// Whether a line is behind what a test printed, all of which is indented by four.
fn ends_console(line: &str, kind: Console) -> bool {
    let text = trim(line);
    if text.is_empty() {
        return kind == Console::Located;
    }
    indent(line) <= 2 || kind == Console::Traced && text.starts_with("at ")
}

/// `[PASSED] a > b`, and the statuses of tests that did not run.
pub(super) fn json_lines() -> Box<dyn Scan> {
    each(|line, found| {
        let text = trim(line);
        let Some((word, name)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else {
            return;
        };
        let status = match word {
            "PASSED" => Status::Passed,
            "FAILED" => Status::Failed,
            "PENDING" | "SKIPPED" | "TODO" | "DISABLED" => Status::Skipped,
            _ => return,
        };
        let name = trim(name);
        if !name.is_empty() {
            let alias = upstream::jest::json_lines(line).map_or_else(|| name.to_owned(), |(name, _)| name);
            found.test(name, status).known_as(alias);
        }
    })
}

struct Both([Box<dyn Scan>; 2]);

impl Scan for Both {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        self.0.iter_mut().try_for_each(|scan| scan.line(line, found))
    }
}

/// The tree, and [`json_lines`]: a log has one of them.
pub(super) fn verbose_or_json_lines(alias: Alias) -> Box<dyn Scan> {
    Box::new(Both([strict(alias), json_lines()]))
}
