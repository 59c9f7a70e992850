//! XCTest's lines on Linux and macOS, and those of swift-testing.

use super::super::found::Found;
use super::super::{Status, text};

/// Name, word and what stands in the parentheses of `Test Case 'A.b' passed (0.1 seconds)`.
fn case(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.strip_prefix("Test Case '")?.split_once('\'')?;
    let words = rest.trim_start_matches(text::is_space);
    let (word, time) = words.split_once(text::is_space)?;
    let time = time.trim_start_matches(text::is_space);
    (!name.is_empty() && words.len() < rest.len()).then_some((name, word, time))
}

fn is_time(time: &str) -> bool {
    let inside = time.strip_prefix('(').and_then(|time| time.strip_suffix("seconds)"));
    inside.is_some_and(|inside| {
        let number = text::trim_end(inside);
        let numeric = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        !number.is_empty() && number.len() < inside.len() && numeric
    })
}

/// `parse_log_swift`.
pub(super) fn upstream(line: &str, found: &mut Found) {
    match case(text::trim(line)) {
        Some((name, "passed", time)) if is_time(time) => found.set(name, Status::Passed),
        Some((name, "failed", time)) if is_time(time) => found.set(name, Status::Failed),
        _ => {}
    }
}

pub(super) fn strict(line: &str, found: &mut Found) {
    let trimmed = text::trim(line);
    let hit = case(trimmed)
        .filter(|(_, _, time)| is_time(time.strip_suffix('.').unwrap_or(time)))
        .map(|(name, word, _)| (name, word))
        .or_else(|| testing(trimmed));
    let Some((name, word)) = hit else { return };
    let status = match word {
        "passed" => Status::Passed,
        "failed" => Status::Failed,
        "skipped" => Status::Skipped,
        _ => return,
    };
    found.test(name, status);
}

/// `✔ Test name() passed after 0.001 seconds.`; a whole run (`Test run with …`) is no test, nor is one argument's case.
fn testing(line: &str) -> Option<(&str, &str)> {
    let (mark, rest) = line.split_once(" Test ")?;
    let mut marks = mark.chars();
    let known = marks.next().is_some_and(|mark| "✔✘➜◇􁁛􀢄􀙟".contains(mark)) && marks.next().is_none();
    if !known || rest.starts_with("run with ") || rest.starts_with("case ") {
        return None;
    }
    let ends = [("passed", " passed after "), ("failed", " failed after "), ("skipped", " skipped")];
    let (name, word) = ends.into_iter().find_map(|(word, end)| Some((rest.rsplit_once(end)?.0, word)))?;
    Some((name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name), word))
}
