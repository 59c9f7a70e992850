//! The reference rule for XCTest on Linux.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};

pub(super) fn case_line(line: &str) -> Option<(&str, Status)> {
    static CASE: Pattern =
        LazyLock::new(|| pattern(r"^Test Case '([^']+)'ω+(passed|failed)ω+\([0-9.]+ω+seconds\)$"));
    let line = trim(line);
    if !line.starts_with("Test Case '") {
        return None;
    }
    let case = CASE.captures(line)?;
    let status = if &case[2] == "passed" { Status::Passed } else { Status::Failed };
    Some((case.get(1)?.as_str(), status))
}

pub(super) fn swift(line: &str, found: &mut Found) {
    if let Some((name, status)) = case_line(line) {
        found.set(name, status);
    }
}
