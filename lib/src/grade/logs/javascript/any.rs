//! Logs of which the parser's name does not tell the runner: the log itself does.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, strip_duration, trim};
use super::rule::Alias;
use super::upstream::marks::{without_skip_marker, without_tag};
use super::{ava, jest, karma, mocha, node, playwright, vitest};

/// What reads a log under strict rules, given the names of its lines.
pub(super) type Open = fn(Alias) -> Box<dyn Scan>;

/// Whether a line is one that only this runner writes.
type Tells = fn(&str) -> bool;

/// Runners that begin with a line of their own, and the begin of the line that ends their results.
const ANNOUNCED: [(Tells, Open, &str); 4] = [
    (|line| jest::file(line).is_some(), jest::strict, "Ran all test suites"),
    (|line| line.starts_with(" RUN  v") || line.starts_with(" DEV  v"), vitest::strict, "   Duration  "),
    (karma::is_start, karma::strict, "TOTAL"),
    (playwright::is_start, playwright::strict, "To open last HTML report"),
];

/// Runners that only their totals show, mocha last.
const CONFIRMED: [(Tells, Open); 3] =
    [(node::is_total, node::strict), (ava::is_total, ava::strict), (mocha::is_total, mocha::strict)];

/// Reads by the rules of the runner that shows itself; if none does, by `others`, or else as mocha's.
pub(super) fn strict(names: fn() -> Alias, others: Option<Open>) -> Box<dyn Scan> {
    Box::new(Any { names, others, announced: None, any_announced: false, guesses: guesses(names, others) })
}

struct Any {
    names: fn() -> Alias,
    others: Option<Open>,
    announced: Option<(Box<dyn Scan>, &'static str)>,
    any_announced: bool,
    guesses: Vec<Guess>,
}

/// What a runner's rules make of the lines, should they be that runner's.
struct Guess {
    scan: Box<dyn Scan>,
    found: Found,
    tells: Tells,
    confirmed: bool,
}

fn guesses(names: fn() -> Alias, others: Option<Open>) -> Vec<Guess> {
    let others = others.map(|open| -> (Tells, Open) { (|_| false, open) });
    let guess = |(tells, open): (Tells, Open)| Guess {
        scan: open(names()),
        found: Found::default(),
        tells,
        confirmed: false,
    };
    CONFIRMED.into_iter().chain(others).map(guess).collect()
}

impl Scan for Any {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if let Some((scan, last)) = &mut self.announced {
            scan.line(line, found)?;
            if line.starts_with(*last) {
                scan.end(found)?;
                self.announced = None;
            }
            return Ok(());
        }
        if let Some((_, open, last)) = ANNOUNCED.iter().find(|(tells, ..)| tells(line)) {
            self.settle(false, found)?;
            let mut scan = open((self.names)());
            scan.line(line, found)?;
            self.announced = Some((scan, last));
            self.any_announced = true;
            return Ok(());
        }
        for guess in &mut self.guesses {
            guess.found.go_to(found.line());
            guess.scan.line(line, &mut guess.found)?;
            guess.confirmed |= (guess.tells)(line);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        if let Some((mut scan, _)) = self.announced.take() {
            scan.end(found)?;
        }
        self.settle(!self.any_announced, found)
    }
}

impl Any {
    /// Keeps what the first confirmed runner found, or, with `others`, what the last guess did.
    fn settle(&mut self, others: bool, found: &mut Found) -> Result<(), Raised> {
        let mut guesses = std::mem::replace(&mut self.guesses, guesses(self.names, self.others));
        let confirmed = guesses.iter().position(|guess| guess.confirmed);
        if let Some(at) = confirmed.or(others.then_some(guesses.len() - 1)) {
            let mut guess = guesses.swap_remove(at);
            guess.scan.end(&mut guess.found)?;
            found.absorb(guess.found);
        }
        Ok(())
    }
}

/// Lines with marks of any runner, each a test of its own: all marks; no file lines; `skipped` before a name is no part of
/// it.
pub(super) fn marked(alias: Alias) -> Box<dyn Scan> {
    Box::new(Marked { alias })
}

struct Marked {
    alias: Alias,
}

impl Scan for Marked {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static FILE: Pattern = LazyLock::new(|| pattern(r"(?:^|ω)\(\d+ tests?(?:ω\|[^)]*)?\)"));
        static SUITE: Pattern =
            LazyLock::new(|| pattern(r"^ω*(?:FAILω+.+?ω+\[ .+ \]|●ω+Test suite failed to run)$"));
        let alias = self.alias.of(line);
        let text = trim(line);
        if text.starts_with(['F', '●']) && SUITE.is_match(line) {
            found.broken(line, true);
        } else if let Some((name, status)) = marked_line(text).filter(|(name, _)| !FILE.is_match(name)) {
            let seen = found.test(name, status);
            if let Some(alias) = alias {
                seen.known_as(alias);
            }
        }
        Ok(())
    }
}

fn marked_line(line: &str) -> Option<(String, Status)> {
    let mark = line.chars().next()?;
    let status = match mark {
        '✔' | '✓' | '√' => Status::Passed,
        '✘' | '✖' | '×' | '✕' | '✗' => Status::Failed,
        '○' | '◌' | '◦' | '⚪' | '↓' => Status::Skipped,
        _ => {
            let text = without_skip_marker(line)?;
            let name = strip_duration(&text);
            return (!name.is_empty()).then(|| (name.to_owned(), Status::Skipped));
        }
    };
    let rest = without_tag(&line[mark.len_utf8()..]);
    let marked = without_skip_marker(rest);
    let status = if marked.is_some() && status == Status::Passed { Status::Skipped } else { status };
    let rest = marked.unwrap_or_else(|| rest.to_owned());
    let name = strip_duration(&rest);
    let name = if status == Status::Skipped { name.strip_prefix("skipped ").unwrap_or(name) } else { name };
    (!name.is_empty()).then(|| (name.to_owned(), status))
}
