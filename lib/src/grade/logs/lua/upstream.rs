//! The reference rule for plenary.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::{Pattern, pattern, pattern_any_case, replace_colours, trim, trim_end};

/// `Success || name`, with tabs between.
pub(super) fn result_line(line: &str) -> Option<(String, Status)> {
    static FAIL: Pattern = LazyLock::new(|| pattern(r"^(?:Fail|Failed)ω*\|\|ω*(.+?)ω*$"));
    static SKIP: Pattern = LazyLock::new(|| pattern_any_case(r"^(?:Skip|Skipped)ω*\|\|ω*(.+?)ω*$"));
    static SUCCESS: Pattern = LazyLock::new(|| pattern(r"^Successω*\|\|ω*(.+?)ω*$"));
    let line = replace_colours(line, "");
    let line = trim_end(&line);
    if !line.contains("||") {
        return None;
    }
    let rules = [(&FAIL, Status::Failed), (&SKIP, Status::Skipped), (&SUCCESS, Status::Passed)];
    let (found, status) =
        rules.into_iter().find_map(|(rule, status)| Some((rule.captures(line)?, status)))?;
    Some((trim(&found[1]).to_owned(), status))
}

pub(super) fn plenary(line: &str, found: &mut Found) {
    match result_line(line) {
        Some((name, status @ Status::Failed)) => found.set(name, status),
        Some((name, status)) => found.set_first(name, status),
        None => {}
    }
}
