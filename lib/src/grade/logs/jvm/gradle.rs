//! Gradle's text, one line a test: `Class > method PASSED`.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::{Status, text};

/// A line's name and status. The blanks before the status are none of the name, or all but the last of them are.
fn result(line: &str, duration: bool, longest: bool) -> Option<(&str, Status)> {
    let line = text::trim(line);
    if line.starts_with('>') {
        return None;
    }
    let line = if duration { without_duration(line) } else { line };
    let (before, status) = [("PASSED", Status::Passed), ("FAILED", Status::Failed)]
        .into_iter()
        .find_map(|(word, status)| Some((line.strip_suffix(word)?, status)))?;
    let last = before.chars().next_back().filter(|c| text::is_space(*c))?;
    let least = before.char_indices().nth(2)?.0;
    let most = before.len() - last.len_utf8();
    let end = if longest { most } else { text::trim_end(before).len().max(least) };
    (least <= end && end <= most).then(|| (&before[..end], status))
}

/// A line without ` (1.2s)` behind its status.
fn without_duration(line: &str) -> &str {
    let number = || {
        let (before, seconds) = line.strip_suffix("s)")?.rsplit_once('(')?;
        let mut parts = seconds.splitn(2, '.');
        let digits = |part: &str| !part.is_empty() && part.chars().all(text::is_digit);
        let status = text::trim_end(before);
        (parts.all(digits) && status.len() < before.len()).then_some(status)
    };
    number().unwrap_or(line)
}

/// `parse_log_gradle_custom` of SWE-rebench V2.
pub(super) fn upstream(line: &str, found: &mut Found) {
    if let Some((name, status)) = result(line, true, false) {
        found.set(name, status);
    }
}

/// The same of SWE-bench 4.
pub(super) fn upstream_4(line: &str, found: &mut Found) {
    if let Some((name, status)) = result(line, false, true) {
        found.set(name, status);
    }
}

/// The same of SWE-bench 5, which joins a test's line with a later one that has but the status.
#[derive(Default)]
pub(super) struct Upstream5 {
    pending: Option<String>,
}

impl Scan for Upstream5 {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = text::trim(line);
        if let Some((name, status)) = result(line, false, true) {
            found.set(name, status);
            self.pending = None;
        } else if is_test(line) {
            self.pending = Some(line.to_owned());
        } else if matches!(line, "PASSED" | "FAILED")
            && let Some(name) = self.pending.take()
        {
            found.set(name, line.into());
        }
        Ok(())
    }
}

/// Three words, of which the second is `>`; the first may be a blank longer, as it may begin with any character.
fn is_test(line: &str) -> bool {
    let mut words = text::words(line);
    let three = (words.next(), words.next(), words.next(), words.next());
    matches!(three, (Some(first), Some(">"), Some(_), None) if !first.starts_with('>'))
}

/// A test is in a class (`Class > method`, deeper where classes nest or parameters are named), so that
/// `BUILD FAILED` is none.
pub(super) fn strict(line: &str, found: &mut Found) {
    let trimmed = text::trim(line);
    if trimmed.starts_with('>') || !trimmed.contains(" > ") {
        return;
    }
    let end = without_duration(trimmed);
    if let Some(name) = end.strip_suffix(" SKIPPED").map(text::trim_end) {
        found.test(name, Status::Skipped);
    } else if let Some((name, status)) = result(line, true, false) {
        found.test(name, status);
    }
}
