//! karma: the trees of its mocha and spec reporters, and the failures of its progress and dots reporters.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, is_digit, pattern, trim};
use super::rule::Alias;
use super::tree::{Loose, indent};

/// Trees between a browser's start and the summary, and lines behind a browser's name.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Karma { alias, tree: Loose::default(), part: Part::Tree, printed: false })
}

struct Karma {
    alias: Alias,
    tree: Loose,
    part: Part,
    /// Whether the lines belong to a text in quotes that a test printed.
    printed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Tree,
    /// Behind totals: a suite begins the next tree.
    Totals,
    /// Failures once more.
    Summary,
}

/// Whether a line begins what a test printed, the text in quotes.
fn prints(line: &str) -> Option<&str> {
    let line = line.strip_prefix("LOG ").unwrap_or(line);
    ["LOG: '", "WARN: '", "ERROR: '", "INFO: '", "DEBUG: '"].iter().find_map(|kind| line.strip_prefix(kind))
}

/// A marked line: its title and status.
fn marked(text: &str) -> Option<(&str, Status)> {
    static TIME: Pattern = LazyLock::new(|| pattern(r" ?\(\d+(?:\.\d+)?ω?(?:ms|s|secs?)\)$"));
    let mark = text.chars().next()?;
    let status = match mark {
        '✔' | '✓' | '√' => Status::Passed,
        '✖' | '✗' | '×' | '✘' => Status::Failed,
        'ℹ' | '-' => Status::Skipped,
        _ => return None,
    };
    let title = text[mark.len_utf8()..].strip_prefix(' ')?;
    let (title, status) = match title.strip_suffix(" (skipped)").filter(|_| status != Status::Passed) {
        Some(title) => (title, Status::Skipped),
        None => (title, status),
    };
    let title = &title[..TIME.find(title).map_or(title.len(), |time| time.start())];
    Some((trim(title), status)).filter(|(title, _)| !title.is_empty())
}

/// A line of a browser: what it says behind `Chrome Headless 145.0.0.0 (Linux x86_64) `.
fn of_browser(line: &str) -> Option<&str> {
    let line = line.trim_start_matches('.');
    let (browser, rest) = line.split_once(" (")?;
    let version = browser.rsplit(' ').next()?;
    let is_version =
        version.starts_with(is_digit) && version.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit());
    rest.split_once(") ").map(|(_, text)| text).filter(|_| is_version)
}

/// Whether this line begins a run.
pub(super) fn is_start(line: &str) -> bool {
    line == "START:" || line.contains("[launcher]: Starting browser")
}

impl Scan for Karma {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let alias = self.alias.of(line);
        if self.printed {
            self.printed = !line.ends_with('\'');
        } else if let Some(text) = prints(line) {
            self.printed = text.is_empty() || !text.ends_with('\'');
        } else if is_start(line) {
            (self.tree, self.part) = (Loose::default(), Part::Tree);
        } else if line.starts_with("SUMMARY") || line == "FAILED TESTS:" {
            self.part = Part::Summary;
        } else if line.starts_with("TOTAL") || line.contains("): Executed ") {
            self.part = self.part.max(Part::Totals);
        } else if let Some(text) = of_browser(line) {
            let (name, status) = match text.rsplit_once(' ') {
                Some((name, "FAILED")) => (trim(name), Status::Failed),
                Some((name, "SKIPPED")) => (trim(name), Status::Skipped),
                _ if text == "ERROR" || text.starts_with("DISCONNECTED") => {
                    found.broken(line, text == "ERROR");
                    return Ok(());
                }
                _ => return Ok(()),
            };
            found.test(name, status).known_as(self.alias.or(alias, name, name));
        } else if line.starts_with("  ") && self.part != Part::Summary {
            match marked(trim(line)).filter(|_| self.part == Part::Tree) {
                Some((title, status)) => {
                    let (name, whole) = self.tree.name(indent(line), title);
                    // What stands outside of suites where suites should be was printed.
                    if whole {
                        let alias = self.alias.or(alias, &name, title);
                        found.test(name, status).known_as(alias);
                    }
                }
                None if self.part == Part::Tree || indent(line) == 2 => {
                    self.part = Part::Tree;
                    self.tree.line(line);
                }
                None => {}
            }
        } else if line.contains("Disconnected, because no message") || line.contains("Found 1 load error") {
            found.broken(line, true);
        }
        Ok(())
    }
}
