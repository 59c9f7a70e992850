//! `cargo test` in text: upstream's rule, and the lines of libtest and rustdoc.

use std::collections::VecDeque;

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::{is_cut, words};
use super::homes::Homes;
use super::section::{End, Report, Section};

/// Upstream: every line `test NAME ... ok` or `FAILED` whose name holds no blank.
pub(super) fn upstream(line: &str, found: &mut Found) {
    let mut words = words(line);
    let (test, name, dots, outcome) = (words.next(), words.next(), words.next(), words.next());
    let (Some("test"), Some(name), Some("..."), Some(outcome), None) =
        (test, name, dots, outcome, words.next())
    else {
        return;
    };
    match outcome {
        "ok" => found.set(name, Status::Passed),
        "FAILED" => found.set(name, Status::Failed),
        _ => {}
    }
}

/// Sections that are open at once: a test may run tests itself.
const MAX_DEPTH: usize = 8;

/// Strict: the tests of each binary, from `running N tests` to the report that counts them.
#[derive(Default)]
pub(super) struct Libtest {
    homes: Homes,
    sections: VecDeque<Section>,
    after_blank: bool,
}

impl Libtest {
    pub(super) fn line(&mut self, line: &str, found: &mut Found) {
        let after_blank = std::mem::replace(&mut self.after_blank, line.is_empty());
        if let Some(home) = self.homes.header(line) {
            self.close(0, found);
            self.homes.enter(home);
            return;
        }
        let count = running(line).filter(|_| after_blank || self.sections.is_empty());
        if count.is_some() || is_cut(line) {
            // Lines that are left out may begin a section.
            if count.is_none() || self.sections.len() == MAX_DEPTH {
                self.close(0, found);
            }
            self.sections.push_back(Section::new(found.line(), count));
        } else if let Some(report) = Report::of(line)
            && let Some(at) = self.sections.iter().rposition(|section| section.is_told_by(&report))
        {
            self.close(at + 1, found);
            if let Some(section) = self.sections.pop_back() {
                self.write(section.end(Some(&report)), found);
            }
        } else if let Some(section) = self.sections.back_mut() {
            section.line(line, found.line());
        }
    }

    pub(super) fn end(&mut self, found: &mut Found) {
        self.close(0, found);
        self.homes.write(found);
    }

    /// Closes the sections from this one on, which have no report.
    fn close(&mut self, from: usize, found: &mut Found) {
        for section in self.sections.split_off(from) {
            self.write(section.end(None), found);
        }
    }

    fn write(&mut self, end: End, found: &mut Found) {
        for (line, name, status) in end.tests {
            self.homes.add(line, name, status);
        }
        for (name, status) in end.files {
            found.group(name, status);
        }
        if let Some(why) = end.doubt {
            found.broken(why, false);
        }
    }
}

/// The count of `running 3 tests`.
fn running(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("running ")?;
    rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test"))?.parse().ok()
}
