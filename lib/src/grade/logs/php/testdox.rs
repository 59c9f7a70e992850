//! Upstream's rules of PHPUnit's `--testdox`.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text;

/// `Suite (Class)` lines and the marks below them.
pub(super) struct Testdox {
    suite: Option<String>,
    /// Whether `[1.2 ms]` behind a name is removed.
    timed: bool,
}

impl Testdox {
    /// As SWE-rebench V2.
    pub(super) fn timed() -> Box<dyn Scan> {
        Box::new(Self { suite: None, timed: true })
    }

    /// As SWE-bench.
    pub(super) fn untimed() -> Box<dyn Scan> {
        Box::new(Self { suite: None, timed: false })
    }
}

impl Scan for Testdox {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if let Some(suite) = suite(line) {
            self.suite = Some(suite.to_owned());
        } else if let Some((name, status)) = mark(line) {
            let name = if self.timed { text::trim(without_duration(name)) } else { name };
            found.set(key(self.suite.as_deref(), name), status);
        }
        Ok(())
    }
}

/// The key of a test.
pub(super) fn key(suite: Option<&str>, name: &str) -> String {
    format!("{} > {name}", suite.unwrap_or("None"))
}

/// `Suite (Class)`: what stands before the last parenthesis that is not empty.
pub(super) fn suite(line: &str) -> Option<&str> {
    let inner = line.strip_suffix(')')?;
    let mut chars = line.chars();
    let first = chars.next().filter(|first| text::is_word(*first))?.len_utf8();
    inner
        .rmatch_indices(" (")
        .find_map(|(at, open)| (at > first && at + open.len() < inner.len()).then(|| &line[..at]))
}

/// `✔ name`.
pub(super) fn mark(line: &str) -> Option<(&str, Status)> {
    let body = line.trim_start_matches(text::is_space);
    let mut chars = body.chars();
    let status = match chars.next()? {
        '✔' => Status::Passed,
        '✘' => Status::Failed,
        '↩' => Status::Skipped,
        _ => return None,
    };
    Some((chars.as_str().trim_start_matches(text::is_space), status))
}

/// Without `[1.2 ms]` at the end.
pub(super) fn without_duration(name: &str) -> &str {
    let split = || {
        let (before, inner) = text::trim_end(name).strip_suffix(']')?.rsplit_once('[')?;
        let number = text::trim(inner).strip_suffix(['s', 'S', '\u{17f}'])?;
        let number = text::trim_end(number.strip_suffix(['m', 'M']).unwrap_or(number));
        is_number(number).then(|| text::trim_end(before))
    };
    split().unwrap_or(name)
}

/// `12` or `1.5`.
pub(super) fn is_number(text: &str) -> bool {
    let whole = |digits: &str| text::after_digits(digits) == Some("");
    text.split_once('.').map_or_else(|| whole(text), |(one, two)| whole(one) && whole(two))
}
