//! Reads a log by a description.

use std::collections::HashMap;
use std::sync::Arc;

use regex::Captures;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text;
use super::compile::{Line, Rules};
use super::file::Duplicates;

/// Longer lines, in bytes, hold no result: no runner writes such.
const LINE: usize = 1 << 16;

pub(super) fn open(rules: Arc<Rules>) -> Box<dyn Scan> {
    let inside = rules.sections.iter().map(|_| None).collect();
    Box::new(Walk { rules, inside, contexts: Vec::new(), results: Vec::new(), by_name: HashMap::new() })
}

/// What the groups of a section's first line held, and where it stands.
struct Begun {
    same: Vec<String>,
    name: String,
    line: usize,
}

/// A header that holds for what follows.
struct Header {
    /// Its place in the list of contexts.
    rule: usize,
    /// Its indentation, where that counts.
    indent: Option<usize>,
    name: String,
}

struct Walk {
    rules: Arc<Rules>,
    /// For each section, whether it is open.
    inside: Vec<Option<Begun>>,
    contexts: Vec<Header>,
    /// Results of tests in order: line, name, status.
    results: Vec<(usize, String, Status)>,
    by_name: HashMap<String, usize>,
}

impl Scan for Walk {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if line.len() > LINE || self.sections(line, found.line()) {
            return Ok(());
        }
        for (pattern, build) in &self.rules.failures {
            if pattern.is_match(line) {
                found.broken(line, *build);
            }
        }
        if !self.result(line, found) {
            self.headers(line);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        for section in 0..self.inside.len() {
            if let Some(begun) = self.inside[section].take() {
                self.unfinished(section, begun);
            }
        }
        for (line, name, status) in self.results.drain(..) {
            found.test_at(line, name, status);
        }
        Ok(())
    }
}

impl Walk {
    /// Opens and closes sections. Returns whether the line is inside of one that is ignored.
    fn sections(&mut self, line: &str, at: usize) -> bool {
        let rules = Arc::clone(&self.rules);
        for (number, section) in rules.sections.iter().enumerate() {
            let opens = || {
                let groups = section.begin.captures(line)?;
                let same = section.same.iter().map(|name| group(&groups, name).to_owned()).collect();
                Some(Begun { same, name: group(&groups, "name").trim().to_owned(), line: at })
            };
            let Some(begun) = self.inside[number].take() else {
                self.inside[number] = opens();
                continue;
            };
            let ends =
                section.end.as_ref().filter(|end| end.is_match(line)).and_then(|end| end.captures(line));
            let same = |groups: &Captures<'_>| {
                section.same.iter().zip(&begun.same).all(|(name, text)| group(groups, name) == text)
            };
            if ends.is_some_and(|groups| same(&groups)) {
                self.inside[number] = opens();
            } else if let (Some(_), Some(next)) = (section.unfinished, opens()) {
                self.unfinished(number, begun);
                self.inside[number] = Some(next);
            } else {
                self.inside[number] = Some(begun);
                if section.ignore {
                    return true;
                }
            }
        }
        false
    }

    /// A test that began and did not end.
    fn unfinished(&mut self, section: usize, begun: Begun) {
        if let Some(status) = self.rules.sections[section].unfinished {
            self.test(begun.line, begun.name, status.into());
        }
    }

    fn holds(&self, section: usize, at: usize) -> bool {
        self.inside[section].as_ref().is_some_and(|begun| begun.line < at)
    }

    /// Reads a result line.
    fn result(&mut self, line: &str, found: &mut Found) -> bool {
        let at = found.line();
        let rules = Arc::clone(&self.rules);
        for rule in &rules.lines {
            let elsewhere = rule.within.is_some_and(|section| !self.holds(section, at))
                || rule.not_in.is_some_and(|section| self.holds(section, at));
            if elsewhere || !rule.pattern.is_match(line) {
                continue;
            }
            let Some(groups) = rule.pattern.captures(line) else { continue };
            let captured = || self.rules.status.get(group(&groups, "status")).copied();
            let Some(status) = rule.status.or_else(captured) else { continue };
            let name = self.name(rule, &groups);
            if name.is_empty() {
                continue;
            }
            if rule.group {
                found.group(name, status.into());
            } else {
                self.test(at, name, status.into());
            }
            return true;
        }
        false
    }

    fn name(&mut self, rule: &Line, groups: &Captures<'_>) -> String {
        let parts = rule.parts.iter().map(|part| group(groups, part).trim()).filter(|part| !part.is_empty());
        let mut own = parts.collect::<Vec<_>>().join(&self.rules.joiner);
        if self.rules.strip_durations {
            own = text::strip_duration(&own).to_owned();
        }
        if own.is_empty() || !rule.context {
            return own;
        }
        if let Some(indent) = groups.name("indent") {
            self.leave(indent.as_str().chars().count());
        }
        let headers = self.contexts.iter().map(|header| header.name.as_str());
        headers.chain([own.as_str()]).collect::<Vec<_>>().join(&self.rules.joiner)
    }

    /// Leaves the headers that stand at this indentation or deeper.
    fn leave(&mut self, indent: usize) {
        self.contexts.retain(|header| header.indent.is_none_or(|own| own < indent));
    }

    fn headers(&mut self, line: &str) {
        let rules = Arc::clone(&self.rules);
        for (number, context) in rules.contexts.iter().enumerate() {
            if context.within.is_some_and(|section| self.inside[section].is_none()) {
                continue;
            }
            if context.end.as_ref().is_some_and(|end| end.is_match(line)) {
                if let Some(last) = self.contexts.iter().rposition(|header| header.rule == number) {
                    self.contexts.truncate(last);
                }
                return;
            }
            if !context.pattern.is_match(line) {
                continue;
            }
            let Some(groups) = context.pattern.captures(line) else { continue };
            let name = group(&groups, "name").trim().to_owned();
            let indent = context.by_indent.then(|| group(&groups, "indent").chars().count());
            match indent {
                Some(indent) => self.leave(indent),
                None if context.end.is_none() => self.contexts.retain(|header| header.rule < number),
                None => {}
            }
            self.contexts.push(Header { rule: number, indent, name });
            return;
        }
    }

    fn test(&mut self, line: usize, name: String, status: Status) {
        let seen = match self.rules.duplicates {
            Duplicates::Worst => None,
            Duplicates::Last | Duplicates::KeepFailure => self.by_name.get(&name).copied(),
        };
        match seen {
            None => {
                self.by_name.insert(name.clone(), self.results.len());
                self.results.push((line, name, status));
            }
            Some(_) if self.rules.duplicates == Duplicates::KeepFailure && status == Status::Passed => {}
            Some(at) => self.results[at] = (line, name, status),
        }
    }
}

fn group<'a>(groups: &Captures<'a>, name: &str) -> &'a str {
    groups.name(name).map_or("", |group| group.as_str())
}
