//! JUnit's XML as text: how upstream's `parse_log_junit` finds cases, wherever they stand.

use super::super::found::Found;
use super::super::scan::Raised;
use super::super::{Status, text};

const CLOSE: &str = "</testcase>";
/// How far a case that is not closed reaches, in characters.
const WINDOW: usize = 4096;

/// `parse_log_junit`.
pub(super) fn upstream(log: &str, found: &mut Found) -> Result<(), Raised> {
    cases(log, |name, status| found.set(name, status));
    Ok(())
}

/// Calls `case` with each case's name and status.
pub(super) fn cases(log: &str, mut case: impl FnMut(String, Status)) {
    let mut marks = [("<failure", Status::Failed), ("<error", Status::Error), ("<skipped", Status::Skipped)]
        .map(|(mark, status)| (Next::of(mark), status));
    let mut close = Next::of(CLOSE);
    let mut open = Next::of("<testcase");
    let mut at = 0;
    while let Some(start) = open.from(log, at) {
        let behind = start + "<testcase".len();
        at = behind;
        if log[behind..].chars().next().is_some_and(text::is_word) {
            continue;
        }
        let Some(length) = log[behind..].find('>') else { return };
        let tag = &log[behind..behind + length];
        at = behind + length + 1;
        let Some(name) = name(tag) else { continue };
        let mut status = Status::Passed;
        if !text::trim(tag).ends_with('/') {
            let closed = close.from(log, at);
            let seen = marks.iter_mut().find_map(|(mark, status)| {
                let place = mark.from(log, at)?;
                let end = place + mark.needle.len();
                let inside = closed.map_or_else(|| in_window(&log[at..end]), |closed| end <= closed);
                inside.then(|| status.clone())
            });
            status = seen.unwrap_or(status);
            at = closed.map_or(at, |closed| closed + CLOSE.len());
        }
        case(name, status);
    }
}

fn in_window(text: &str) -> bool {
    text.len() <= WINDOW * 4 && text.chars().count() <= WINDOW
}

/// The places of a text, searched for once.
struct Next {
    needle: &'static str,
    /// The first place from `asked` on.
    place: Option<usize>,
    asked: Option<usize>,
}

impl Next {
    fn of(needle: &'static str) -> Self {
        Self { needle, place: None, asked: None }
    }

    fn from(&mut self, log: &str, at: usize) -> Option<usize> {
        let known = self.asked.is_some() && self.place.is_none_or(|place| place >= at);
        if !known {
            self.place = log[at..].find(self.needle).map(|place| at + place);
            self.asked = Some(at);
        }
        self.place
    }
}

fn name(tag: &str) -> Option<String> {
    let (mut name, mut class) = ("", "");
    let mut done = 0;
    while let Some(at) = tag[done..].find("=\"").map(|at| done + at) {
        let value = at + 2;
        let key = &tag[done..at][tag[done..at].trim_end_matches(text::is_word).len()..];
        if key.is_empty() {
            done = value;
            continue;
        }
        let Some(length) = tag[value..].find('"') else { break };
        match key {
            "name" => name = &tag[value..value + length],
            "classname" => class = &tag[value..value + length],
            _ => {}
        }
        done = value + length + 1;
    }
    if name.is_empty() {
        return None;
    }
    Some(if class.is_empty() { name.to_owned() } else { text::trim(&format!("{class} {name}")).to_owned() })
}
