//! mocha's spec reporter, and the failures of its other reporters.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, is_space, pattern, trim};
use super::rule::Alias;
use super::tally::Tally;
use super::tree::{Loose, indent};

/// The tree of the spec reporter; where no failure stands in a tree, the list of failures.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Mocha {
        alias,
        tree: Loose::default(),
        part: Part::Tree,
        failed: 0,
        listed: None,
        open: true,
        tally: Tally::default(),
    })
}

/// Whether a line belongs to the tree or to what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Tree,
    /// After `N passing`: totals and the details of this many failures.
    Epilogue {
        failing: usize,
        seen: usize,
    },
}

struct Mocha {
    alias: Alias,
    tree: Loose,
    part: Part,
    /// Failures in the tree.
    failed: usize,
    /// The suites of a listed failure that is being read, and the line that it began in.
    listed: Option<(Vec<String>, usize)>,
    /// Whether the last line was blank or a result outside of suites.
    open: bool,
    tally: Tally,
}

/// A line with a mark (`✔`, `-`, `1)`): the mark and what follows.
fn marked(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start_matches(' ');
    let length = match text.chars().next()? {
        mark @ ('✔' | '✓' | '√' | '-') => mark.len_utf8(),
        '0'..='9' => text.find(|c: char| !c.is_ascii_digit()).filter(|at| text[*at..].starts_with(')'))? + 1,
        _ => return None,
    };
    let (mark, rest) = text.split_at(length);
    let name = trim(rest);
    (rest.starts_with(is_space) && !name.is_empty()).then_some((mark, name))
}

/// A total of the epilogue: how many, and of what.
fn total(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches(' ');
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &text[..text.len() - rest.len()];
    let kind = rest.strip_prefix(' ')?.split(' ').next()?;
    (text.len() < line.len() && !number.is_empty() && ["passing", "pending", "failing"].contains(&kind))
        .then(|| (number.parse().unwrap_or(0), kind))
}

/// Whether this line ends a tree of mocha.
pub(super) fn is_total(line: &str) -> bool {
    line.starts_with("  ") && total(line).is_some_and(|(_, kind)| kind == "passing")
}

impl Scan for Mocha {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let alias = self.alias.of(line);
        let open = std::mem::replace(&mut self.open, line.is_empty());
        if let Some((number, kind)) = total(line) {
            let failing = if kind == "failing" { number } else { 0 };
            self.part = Part::Epilogue { failing, seen: 0 };
            if kind == "passing" {
                self.tally.settle(number, found);
            }
            (self.tree, self.listed) = (Loose::default(), None);
        } else if let Some((mark, text)) = marked(line) {
            self.result(indent(line), mark, text, alias, found);
        } else if line.starts_with("  ") {
            // A suite of the first depth stands behind a blank line or a result; others so indented were printed. One
            // behind an epilogue is of another run.
            if indent(line) != 2 || open {
                self.tree.line(line);
            }
            self.listed_line(line, found);
        } else if is_load_failure(line) {
            found.broken(line, true);
        }
        Ok(())
    }
}

impl Mocha {
    fn result(&mut self, indent: usize, mark: &str, text: &str, alias: Option<String>, found: &mut Found) {
        if let Part::Epilogue { failing, seen } = self.part {
            if mark == "-" {
                return;
            }
            if mark.ends_with(')') && seen < failing {
                self.part = Part::Epilogue { failing, seen: seen + 1 };
                self.listed = (self.failed < failing).then(|| (vec![text.to_owned()], found.line()));
                return;
            }
            (self.part, self.failed, self.listed) = (Part::Tree, 0, None); // another run of mocha in the same log
        }
        // The reporter indents every result; what stands at the line start was printed by a test.
        if indent < 2 {
            return;
        }
        let status = match mark {
            "-" => Status::Skipped,
            "✔" | "✓" | "√" => Status::Passed,
            _ => Status::Failed,
        };
        self.failed += usize::from(status == Status::Failed);
        self.tally.add(&status);
        self.open = indent == 2;
        let title = without_time(text);
        let (name, _) = self.tree.name(indent, title);
        let alias = self.alias.or(alias, &name, title);
        found.test(name, status).known_as(alias);
    }

    /// A line behind `1) suite`: the names of a failure end with a colon, each is indented by two more.
    fn listed_line(&mut self, line: &str, found: &mut Found) {
        let Some((mut names, at)) = self.listed.take() else { return };
        if indent(line) != 5 + 2 * names.len() {
            return;
        }
        match line.trim().strip_suffix(':') {
            Some(title) => {
                names.push(title.to_owned());
                let name = names.join(" > ");
                let alias = self.alias.or(None, &name, title);
                found.test_at(at, name, Status::Failed).known_as(alias);
            }
            None => {
                names.push(line.trim().to_owned());
                self.listed = Some((names, at));
            }
        }
    }
}

fn without_time(title: &str) -> &str {
    static TIME: Pattern = LazyLock::new(|| pattern(r"ω+\(\d+(?:\.\d+)?ω?(?:ms|s|m)\)$"));
    &title[..TIME.find(title).map_or(title.len(), |found| found.start())]
}

fn is_load_failure(line: &str) -> bool {
    [
        "Error: Cannot find module",
        "SyntaxError: ",
        "TSError: ",
        "Error [ERR_MODULE_NOT_FOUND]",
        "ReferenceError: ",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}
