//! The reference rule for ExUnit's trace.

use std::sync::LazyLock;

use regex::Regex;

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::{pattern, trim};

pub(super) fn trace_line(line: &str) -> Option<(&str, Status)> {
    static RULES: LazyLock<[(Regex, Status); 4]> = LazyLock::new(|| {
        [
            (pattern(r"^\*ω+testω+(.*?)ω+\(skipped\)ω+\[L#\d+\]$"), Status::Skipped),
            (pattern(r"^\d+\)ω+testω+(.*?)ω+\([^)]+\)$"), Status::Failed),
            (pattern(r"^\*ω+testω+(.*?)ω+\([0-9]+(?:\.[0-9]+)?ms\)ω+\[L#\d+\]$"), Status::Passed),
            (pattern(r"^\*ω+testω+(.*?)ω+\[L#\d+\]$"), Status::Passed),
        ]
    });
    let line = trim(line);
    if !line.ends_with([']', ')']) || !line.contains("test") {
        return None;
    }
    let (found, status) = RULES.iter().find_map(|(rule, status)| Some((rule.captures(line)?, status)))?;
    Some((found.get(1)?.as_str(), status.clone()))
}

pub(super) fn elixir(line: &str, found: &mut Found) {
    if let Some((name, status)) = trace_line(line) {
        found.set_keeping_failures(name, status);
    }
}
