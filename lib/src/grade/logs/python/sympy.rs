//! sympy's own runner (`bin/test`).

use super::super::found::Found;
use super::super::status::Status;
use super::super::table::Origin;
use super::super::text::{trim, words};

/// Upstream's rule: headings of failures, and lines of tests, which count more.
pub(super) fn upstream(line: &str, origin: Origin, found: &mut Found) {
    if let Some(test) = heading(line) {
        found.set_first(test, Status::Failed);
    }
    let mut line = trim(line);
    if !line.starts_with("test_") {
        return;
    }
    if origin == Origin::SweRebench2 {
        let cut = line.strip_suffix("[FAIL]").or_else(|| line.strip_suffix("[OK]"));
        line = cut.map_or(line, trim);
    }
    for (end, status) in [(" E", Status::Error), (" F", Status::Failed), (" ok", Status::Passed)] {
        if line.ends_with(end) {
            found.set(words(line).next().unwrap_or(line), status);
        }
    }
}

/// `____ file.py:test ____`, the underscores not required: from behind the first blank to before the last one.
fn heading(line: &str) -> Option<&str> {
    let (start, end) = (line.find(' ')? + 1, line.rfind(' ')?);
    let text = line.get(start..end)?;
    text.contains(".py:").then_some(text)
}
