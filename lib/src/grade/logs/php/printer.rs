//! Upstream's rules of Pest and of PHPUnit printers that write as it does.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::{self, Pattern, pattern_any_case};
use super::testdox::is_number;

/// The mark that upstream takes for a failure (Pest's own is `⨯`, U+2A2F).
const CROSS: char = '\u{2a2f}';

/// `✓ name   0.03s`, `⨯ name`, `- name`, `FAIL name`, and lines with `(skipped)`.
pub(super) fn php_v1(line: &str, found: &mut Found) {
    let line = text::trim_end(line);
    let body = text::trim(line);
    if body.is_empty() || ["___", "---", "Tests:", "Duration:"].iter().any(|start| body.starts_with(start)) {
        return;
    }
    if let Some(name) = heading(body) {
        found.set(clean(name), Status::Failed);
        return;
    }
    match marked(body) {
        Some(("", _)) => {}
        Some((name, status)) => found.set_keeping_failures(name, status),
        None => inline_skip(body, found),
    }
}

/// `FAIL  name` and `FAILED  name`.
fn heading(body: &str) -> Option<&str> {
    let rest = text::after_any_case(body, "fail")?;
    let name = text::after_spaces(text::after_any_case(rest, "ed").unwrap_or(rest))?;
    name.chars().nth(1).map(|_| name)
}

/// The name behind a mark, without its durations (it may be empty), and what the mark says.
pub(super) fn marked(body: &str) -> Option<(&str, Status)> {
    let mut chars = body.chars();
    let status = match chars.next()? {
        CROSS | 'x' | 'X' => Status::Failed,
        '-' => Status::Skipped,
        '✓' | '✔' => Status::Passed,
        _ => return None,
    };
    let spaced = chars.as_str();
    let rest = text::after_spaces(spaced)?;
    let any_case = status == Status::Failed;
    if let Some(name) = before_duration(rest, any_case) {
        return Some((clean(name), status));
    }
    // Four blanks before a duration: one of them is the name, which comes to nothing.
    let wide = spaced[..spaced.len() - rest.len()].chars().nth(3).is_some();
    let name = if wide && is_duration(rest, any_case) { "" } else { clean(rest) };
    Some((name, status))
}

/// What stands before the first two blanks that a duration follows.
fn before_duration(text: &str, any_case: bool) -> Option<&str> {
    let mut from = 0;
    while let Some(at) = text[from..].find(text::is_space) {
        let start = from + at;
        let rest = text[start..].trim_start_matches(text::is_space);
        from = text.len() - rest.len();
        if text[start..from].chars().nth(1).is_some() && is_duration(rest, any_case) {
            return Some(&text[..start]);
        }
    }
    None
}

/// Whether a text begins with `0.03s`, `3.s` or `3s`, and no word goes on there.
fn is_duration(text: &str, any_case: bool) -> bool {
    let Some(rest) = text::after_digits(text) else { return false };
    let rest = rest.strip_prefix('.').unwrap_or(rest).trim_start_matches(text::is_digit);
    let mut chars = rest.chars();
    let unit = chars.next().is_some_and(|c| c == 's' || any_case && matches!(c, 'S' | '\u{17f}'));
    unit && !chars.next().is_some_and(text::is_word)
}

/// Without up to two durations at the end; the first must have two blanks before it to be followed by another.
fn clean(name: &str) -> &str {
    let name = text::trim_end(name);
    let name = without_duration(name, 2).unwrap_or(name);
    text::trim(without_duration(name, 1).unwrap_or(name))
}

fn without_duration(name: &str, blanks: usize) -> Option<&str> {
    let name = text::trim_end(name);
    let (spaced, last) = name
        .char_indices()
        .rfind(|(_, c)| text::is_space(*c))
        .map(|(at, c)| name.split_at(at + c.len_utf8()))?;
    let before = text::trim_end(spaced);
    let wide = spaced[before.len()..].chars().nth(blanks - 1).is_some();
    (wide && is_number(last.strip_suffix('s')?)).then_some(before)
}

/// `name (skipped)`, and any line with the word.
fn inline_skip(body: &str, found: &mut Found) {
    static SKIPPED: Pattern = LazyLock::new(|| pattern_any_case(r"\(skipped\)|(?:^|\W)skipped(?:\W|$)"));
    if !SKIPPED.is_match(body) {
        return;
    }
    let mark = body.strip_prefix(['✓', '✔', CROSS, 'x', '-']);
    let name = clean(mark.and_then(text::after_spaces).unwrap_or(body));
    if !name.is_empty() {
        found.set_first(name, Status::Skipped);
    }
}
