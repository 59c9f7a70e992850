//! Alcotest's result lines, dune's log and lines that begin with a status: the worst result of a test counts.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::text::{Pattern, pattern, trim};
use super::upstream::{Dune, alcotest_line, bracketed_line, status_first_line};

/// `[OK]  suite  0  name.`, with or without Alcotest's frame.
pub(super) fn alcotest(line: &str, found: &mut Found) {
    static KNOWN: Pattern =
        LazyLock::new(|| pattern(r"^[ω│>]*\[(?:OK|PASS|FAIL|FAILED|ERROR|ERR|SKIP|SKIPPED|TODO)\]ω"));
    let bare = trim(line).trim_start_matches(['│', '>', ' ']);
    if KNOWN.is_match(bare)
        && let Some((name, status)) = alcotest_line(bare)
    {
        found.test(name.trim_end_matches('.'), status).known_as(name);
    }
}

pub(super) fn bracketed(line: &str, found: &mut Found) {
    if let Some((name, status)) = bracketed_line(line) {
        found.test(name, status);
    }
}

pub(super) fn status_first(line: &str, found: &mut Found) {
    if let Some((name, status)) = status_first_line(line) {
        found.test(name, status);
    }
}

/// dune's log tells of programs, not of tests: groups, which passed if they ended with 0.
#[derive(Default)]
pub(in crate::grade::logs) struct Programs {
    upstream: Dune,
    inner: Found,
}

impl Scan for Programs {
    fn line(&mut self, line: &str, _: &mut Found) -> Result<(), Raised> {
        static NO_FAILURE: Pattern =
            LazyLock::new(|| pattern(r"(?i)\b(?:0|no) (?:failures?|failed|errors?)\b"));
        let line = NO_FAILURE.replace_all(line, "");
        // A number of 4301 digits names no run.
        let _ = self.upstream.line(&line, &mut self.inner);
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        let _ = self.upstream.end(&mut self.inner);
        for (name, status) in std::mem::take(&mut self.inner).into_map().statuses {
            found.group(name, status);
        }
        Ok(())
    }
}
