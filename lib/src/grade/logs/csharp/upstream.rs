//! Upstream's rules for `dotnet test`.

use super::super::found::Found;
use super::super::status::Status;
use super::super::text;

/// `  Passed name [3 ms]` of vstest and `[xUnit.net …] name [FAIL]` of xUnit.net.
pub(super) fn csharp(line: &str, found: &mut Found) {
    if let Some((name, status)) = result(text::trim_end(line)) {
        found.set_keeping_failures(name, status);
    }
}

/// A result line, white space at its end removed.
pub(super) fn result(line: &str) -> Option<(&str, Status)> {
    if let Some(name) = xunit_failure(line) {
        return Some((name, Status::Failed));
    }
    let body = text::after_spaces(line)?;
    if let Some(spaced) = body.strip_prefix("Failed") {
        Some((before_bracket(spaced)?, Status::Failed))
    } else if let Some(spaced) = body.strip_prefix("Skipped") {
        let rest = text::after_spaces(spaced)?;
        Some((first_bracket(rest).unwrap_or(rest), Status::Skipped))
    } else {
        Some((before_bracket(body.strip_prefix("Passed")?)?, Status::Passed))
    }
}

/// `[xUnit.net 00:00:01.23]     name [FAIL]`.
fn xunit_failure(line: &str) -> Option<&str> {
    let clock = text::after_spaces(line.strip_prefix("[xUnit.net")?)?;
    let rest = clock.trim_start_matches(|c| text::is_digit(c) || matches!(c, ':' | '.'));
    let middle = rest.strip_prefix(']').filter(|_| rest.len() < clock.len())?.strip_suffix("[FAIL]")?;
    let name = text::trim(middle);
    if name.is_empty() {
        return blank_name(middle);
    }
    (middle.starts_with(text::is_space) && middle.ends_with(text::is_space)).then_some(name)
}

/// White space alone, of three characters at least: the last but one is the name.
fn blank_name(spaces: &str) -> Option<&str> {
    let mut back = spaces.char_indices().rev();
    let ((end, _), (start, _)) = (back.next()?, back.next()?);
    back.next().map(|_| &spaces[start..end])
}

/// The name in ` name [3 ms]`.
fn before_bracket(spaced: &str) -> Option<&str> {
    let rest = text::after_spaces(spaced)?;
    first_bracket(rest).or_else(|| {
        let bracketed = rest.strip_prefix('[')?.strip_suffix(']')?;
        blank_name(&spaced[..spaced.len() - rest.len()]).filter(|_| !bracketed.is_empty())
    })
}

/// What stands before the first ` [` of a text that ends with `]`.
fn first_bracket(text: &str) -> Option<&str> {
    let inner = text.strip_suffix(']')?;
    inner.match_indices('[').find_map(|(at, _)| {
        let name = text::trim_end(&inner[..at]);
        (!name.is_empty() && name.len() < at && at + 1 < inner.len()).then_some(name)
    })
}
