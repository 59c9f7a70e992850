//! Whole-log rules of the first parsers.

use super::found::Found;
use super::scan::{Raised, Scan};
use super::{Observation, ParseError, Status, SuiteFailure};

type Upstream = fn(&str) -> Result<Vec<Observation>, ParseError>;
type Strict = fn(&str) -> (Vec<Observation>, Vec<SuiteFailure>);

struct Bridge<F> {
    log: String,
    rule: F,
}

impl<F: FnMut(&str, &mut Found) -> Result<(), Raised>> Scan for Bridge<F> {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if found.line() > 1 {
            self.log.push('\n');
        }
        self.log.push_str(line);
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        (self.rule)(&self.log, found)
    }
}

fn upstream(rule: Upstream, set: fn(&mut Found, String, Status)) -> Box<dyn Scan> {
    Box::new(Bridge {
        log: String::new(),
        rule: move |log: &str, found: &mut Found| {
            for seen in rule(log).map_err(|_| Raised("IndexError"))? {
                found.go_to(seen.line);
                set(found, seen.name, seen.status);
            }
            Ok(())
        },
    })
}

pub(super) fn last(rule: Upstream) -> Box<dyn Scan> {
    upstream(rule, |found, name, status| found.set(name, status))
}

pub(super) fn keeping_failures(rule: Upstream) -> Box<dyn Scan> {
    upstream(rule, |found, name, status| found.set_keeping_failures(name, status))
}

pub(super) fn strict(rule: Strict) -> Box<dyn Scan> {
    Box::new(Bridge {
        log: String::new(),
        rule: move |log: &str, found: &mut Found| {
            let (observations, failures) = rule(log);
            for seen in observations {
                let test = found.test_at(seen.line, seen.name, seen.status);
                if let Some(alias) = seen.alias {
                    test.known_as(alias);
                }
            }
            for failure in failures {
                found.broken_at(failure.line, failure.text, failure.build);
            }
            Ok(())
        },
    })
}

/// Reads as most upstream parsers do: split at LF alone, one result a line at most.
pub(super) fn line_by_line(log: &str, result: fn(&str) -> Option<(&str, Status)>) -> Vec<Observation> {
    let lines = log.split('\n').zip(1..);
    lines
        .filter_map(|(line, at)| result(line).map(|(name, status)| Observation::new(name, status, at)))
        .collect()
}
