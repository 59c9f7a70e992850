//! The reference rules for Ruby's runners.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim, trim_end};

/// minitest's reporters: a suite's name on a line of its own, its tests below.
#[derive(Default)]
pub(in crate::grade::logs) struct Reporters {
    suite: Option<String>,
}

/// From best to worst.
fn badness(status: &Status) -> u8 {
    match status {
        Status::Error => 2,
        Status::Failed => 1,
        _ => 0,
    }
}

/// `test_x PASS (0.02s)`.
pub(super) fn reporter_line(line: &str) -> Option<(&str, Status)> {
    static TEST: Pattern = LazyLock::new(|| {
        pattern(r"^ω*(test[^A-Z]+?)ω+(PASS|PASSED|FAIL|FAILURE|ERROR|SKIP|SKIPPED)(?:ω*\([0-9.]+s\))?$")
    });
    if !line.contains("test") {
        return None;
    }
    let found = TEST.captures(line)?;
    let status = match found.get(2)?.as_str() {
        "PASS" | "PASSED" => Status::Passed,
        "FAIL" | "FAILURE" => Status::Failed,
        "ERROR" => Status::Error,
        _ => Status::Skipped,
    };
    Some((trim(found.get(1)?.as_str()), status))
}

/// A line that is nothing but the name of a class.
pub(super) fn is_suite(line: &str) -> bool {
    let mut chars = line.chars();
    chars.next().is_some_and(|first| first.is_ascii_uppercase())
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Scan for Reporters {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = trim_end(line);
        if line.starts_with("Finished in ") {
            return Ok(());
        }
        if is_suite(line) {
            self.suite = Some(line.to_owned());
        } else if let Some((test, status)) = reporter_line(line) {
            let name = match &self.suite {
                Some(suite) => format!("{suite}::{test}"),
                None => test.to_owned(),
            };
            if found.status(&name).is_none_or(|seen| badness(seen) < badness(&status)) {
                found.set(name, status);
            }
        }
        Ok(())
    }
}

/// `Class#test = 0.05 s = .` (minitest verbose).
pub(super) fn verbose_line(line: &str) -> Option<(&str, Status)> {
    static TEST: Pattern = LazyLock::new(|| pattern(r"^(.+?#.+?)ω+=ω+[\d.]+ω+sω+=ω+([.FES])$"));
    let line = trim(line);
    if !line.ends_with(['.', 'F', 'E', 'S']) {
        return None;
    }
    let found = TEST.captures(line)?;
    let status = match found.get(2)?.as_str() {
        "." => Status::Passed,
        "S" => Status::Skipped,
        _ => Status::Failed,
    };
    Some((found.get(1)?.as_str(), status))
}

pub(super) fn ruby_v2(line: &str, found: &mut Found) {
    if let Some((name, status)) = verbose_line(line) {
        found.set(name, status);
    }
}

/// The last `.`, `F` or `E` of the line that follows some `=` after the last usable `. `.
pub(super) fn minitest_line(line: &str) -> Option<(&str, Status)> {
    let line = trim(line);
    let end = line.rfind(['.', 'F', 'E'])?;
    let equals = line[..end].rfind('=')?;
    let dot = line[..equals].rfind(". ").filter(|dot| *dot > 0)?;
    let status = if line[end..].starts_with('.') { Status::Passed } else { Status::Failed };
    Some((&line[..dot], status))
}

pub(super) fn minitest(line: &str, found: &mut Found) {
    if let Some((name, status)) = minitest_line(line) {
        found.set(name, status);
    }
}

/// `Scenario ....F`.
pub(super) fn cucumber_line(line: &str) -> Option<(&str, Status)> {
    let line = trim(line);
    line.rmatch_indices(" .").find_map(|(at, _)| {
        let rest = line[at + 1..].trim_start_matches('.');
        let dots = line.len() - at - 1 - rest.len();
        match (rest.starts_with('F'), dots) {
            (true, _) => Some((&line[..at], Status::Failed)),
            (false, 2..) => Some((&line[..at], Status::Passed)),
            _ => None,
        }
    })
}

pub(super) fn cucumber(line: &str, found: &mut Found) {
    if let Some((name, status)) = cucumber_line(line) {
        found.set(name, status);
    }
}

/// `test: name: .` (test-unit verbose).
pub(super) fn test_unit_line(line: &str) -> Option<(&str, Status)> {
    static TEST: Pattern = LazyLock::new(|| pattern(r"^(?:test: )?(.+):ω+(?:(\.)|([EFO])(?:\W|$))"));
    let line = trim(line);
    if !line.contains(':') {
        return None;
    }
    let found = TEST.captures(line)?;
    let status = match found.get(2).or_else(|| found.get(3))?.as_str() {
        "." => Status::Passed,
        "O" => Status::Skipped,
        _ => Status::Failed,
    };
    Some((found.get(1)?.as_str(), status))
}

pub(super) fn ruby_unit(line: &str, found: &mut Found) {
    if let Some((name, status)) = test_unit_line(line) {
        found.set(name, status);
    }
}

/// `name - passed`: RSpec's JSON, flattened.
pub(super) fn flattened_line(line: &str) -> Option<(&str, Status)> {
    let line = trim(line);
    line.rmatch_indices(" - ").filter(|(at, _)| *at > 0).find_map(|(at, dash)| {
        let rest = &line[at + dash.len()..];
        let status = [("passed", Status::Passed), ("failed", Status::Failed)]
            .into_iter()
            .find_map(|(word, status)| rest.starts_with(word).then_some(status))?;
        Some((&line[..at], status))
    })
}

pub(super) fn rspec_transformed_json(line: &str, found: &mut Found) {
    if let Some((name, status)) = flattened_line(line) {
        found.set(name, status);
    }
}
