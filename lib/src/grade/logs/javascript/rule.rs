//! What a reference parser makes of a line: the upstream rules themselves, and the names by which strict rules know
//! the same line.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;

/// A name and a status.
pub(super) type Hit = (String, Status);

/// A reference parser: what it makes of each line in turn.
pub(super) type Rule = Box<dyn FnMut(&str) -> Result<Vec<Hit>, Raised>>;

/// A rule that needs no line but one.
pub(super) fn by_line(rule: fn(&str) -> Option<Hit>) -> Rule {
    Box::new(move |line| Ok(rule(line).into_iter().collect()))
}

struct Upstream {
    rule: Rule,
    set: fn(&mut Found, String, Status),
}

impl Scan for Upstream {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        for (name, status) in (self.rule)(line)? {
            (self.set)(found, name, status);
        }
        Ok(())
    }
}

/// Every hit replaces an earlier one (policy L).
pub(super) fn last(rule: Rule) -> Box<dyn Scan> {
    Box::new(Upstream { rule, set: |found, name, status| found.set(name, status) })
}

/// A pass never replaces another result (policy F).
pub(super) fn keeping_failures(rule: Rule) -> Box<dyn Scan> {
    Box::new(Upstream { rule, set: |found, name, status| found.set_keeping_failures(name, status) })
}

/// The reference parser beside a strict rule, asked for its names.
pub(super) struct Alias {
    rule: Rule,
    other: fn(name: &str, title: &str) -> String,
}

impl Alias {
    /// Names that the reference gives to single lines; other results are known by their titles.
    pub(super) fn new(rule: Rule) -> Self {
        Self { rule, other: |_, title| title.to_owned() }
    }

    /// For a reference that names tests by several lines: its name, told by the strict one.
    pub(super) fn told(name: fn(name: &str, title: &str) -> String) -> Self {
        Self { rule: by_line(|_| None), other: name }
    }

    /// The reference parser's name for the line, to be asked of every line in turn.
    pub(super) fn of(&mut self, line: &str) -> Option<String> {
        (self.rule)(line).ok()?.pop().map(|(name, _)| name)
    }

    /// That name, or, without one, what the strict name and the title tell.
    pub(super) fn or(&self, alias: Option<String>, name: &str, title: &str) -> String {
        alias.unwrap_or_else(|| (self.other)(name, title))
    }
}
