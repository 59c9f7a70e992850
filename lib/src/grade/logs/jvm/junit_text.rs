//! The reference rule that looks for test cases of JUnit reports in a text, without parsing XML.

use std::sync::LazyLock;

use memchr::memmem;

use super::super::found::Found;
use super::super::scan::Raised;
use super::super::status::Status;
use super::super::text::{Pattern, is_word, pattern, trim};

/// How many characters belong to a test case that is never closed.
const WINDOW: usize = 4096;

/// Where a word stands next, asked for ever later places.
struct Next<'t> {
    text: &'t str,
    finder: memmem::Finder<'static>,
    at: Option<usize>,
    asked: bool,
}

impl<'t> Next<'t> {
    fn new(text: &'t str, word: &'static str) -> Self {
        Self { text, finder: memmem::Finder::new(word), at: None, asked: false }
    }

    fn from(&mut self, place: usize) -> Option<usize> {
        let known = self.asked && self.at.is_none_or(|at| at >= place);
        if !known {
            self.asked = true;
            self.at = self.finder.find(&self.text.as_bytes()[place..]).map(|at| place + at);
        }
        self.at
    }
}

/// Where the window from a place ends, asked for ever later places.
struct Window<'t> {
    text: &'t str,
    from: usize,
    end: usize,
}

impl Window<'_> {
    fn end(&mut self, from: usize) -> usize {
        let step = |at: usize| self.text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
        if self.end <= from {
            (self.from, self.end) = (from, from);
            for _ in 0..WINDOW {
                self.end = step(self.end);
            }
        }
        while self.from < from {
            self.from = step(self.from);
            self.end = step(self.end);
        }
        self.end
    }
}

pub(in crate::grade::logs) fn junit(log: &str, found: &mut Found) -> Result<(), Raised> {
    scan(log, &mut |name, status| found.set(name, status));
    Ok(())
}

/// Every test case with its status.
pub(super) fn scan(log: &str, on: &mut dyn FnMut(String, Status)) {
    static ATTRIBUTE: Pattern = LazyLock::new(|| pattern(r#"(\w+)="([^"]*)""#));
    let mut opened = Next::new(log, "<testcase");
    let mut closed = Next::new(log, "</testcase>");
    let mut marks = [("<failure", Status::Failed), ("<error", Status::Error), ("<skipped", Status::Skipped)]
        .map(|(word, status)| (Next::new(log, word), status));
    let mut window = Window { text: log, from: 0, end: 0 };
    let mut at = 0;
    while let Some(start) = opened.from(at) {
        let inside = start + "<testcase".len();
        if log[inside..].chars().next().is_some_and(is_word) {
            at = inside;
            continue;
        }
        let Some(end) = log[inside..].find('>').map(|end| inside + end) else { return };
        at = end + 1;
        let run = &log[inside..end];
        let (mut name, mut class) = ("", "");
        for attribute in ATTRIBUTE.captures_iter(run) {
            let value = attribute.get(2).map_or("", |value| value.as_str());
            match &attribute[1] {
                "name" => name = value,
                "classname" => class = value,
                _ => {}
            }
        }
        if name.is_empty() {
            continue;
        }
        let mut status = Status::Passed;
        if !trim(run).ends_with('/') {
            let content = at;
            let end = match closed.from(content) {
                Some(end) => {
                    at = end + "</testcase>".len();
                    end
                }
                None => window.end(content),
            };
            let within = |(mark, status): &mut (Next<'_>, Status)| {
                let there = mark.from(content).is_some_and(|at| at + mark.finder.needle().len() <= end);
                there.then(|| status.clone())
            };
            status = marks.iter_mut().find_map(within).unwrap_or(Status::Passed);
        }
        let key =
            if class.is_empty() { name.to_owned() } else { trim(&format!("{class} {name}")).to_owned() };
        on(key, status);
    }
}
