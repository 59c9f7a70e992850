//! The reference rules of SWE-bench where they differ from SWE-rebench V2's.

use std::collections::VecDeque;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{is_space, trim, words};
use super::maven::named;

/// A line's name and status: the longest name, no duration behind the status.
fn gradle_line(line: &str) -> Option<(&str, Status)> {
    let status = [("PASSED", Status::Passed), ("FAILED", Status::Failed)];
    let (before, status) =
        status.into_iter().find_map(|(word, status)| Some((line.strip_suffix(word)?, status)))?;
    let last = before.chars().next_back().filter(|c| is_space(*c))?;
    let name = &before[..before.len() - last.len_utf8()];
    (!line.starts_with('>') && name.chars().nth(1).is_some()).then_some((name, status))
}

/// Gradle's text by SWE-bench 4.
pub(super) fn gradle_4(line: &str, found: &mut Found) {
    if let Some((name, status)) = gradle_line(trim(line)) {
        found.set(name, status);
    }
}

/// Gradle's text by SWE-bench 5, which joins a test's line with a later one that has but the status.
#[derive(Default)]
pub(in crate::grade::logs) struct Gradle5 {
    pending: Option<String>,
}

impl Scan for Gradle5 {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = trim(line);
        if let Some((name, status)) = gradle_line(line) {
            found.set(name, status);
            self.pending = None;
        } else if is_test(line) {
            self.pending = Some(line.to_owned());
        } else if matches!(line, "PASSED" | "FAILED")
            && let Some(name) = self.pending.take()
        {
            found.set(name, Status::from(line));
        }
        Ok(())
    }
}

/// Three words, of which the second is `>`.
fn is_test(line: &str) -> bool {
    let mut words = words(line);
    let first = (words.next(), words.next(), words.next(), words.next());
    matches!(first, (Some(first), Some(">"), Some(_), None) if !first.starts_with('>'))
}

/// Maven by SWE-bench 5: the first `-Dtest=` asked for is the first built.
#[derive(Default)]
pub(in crate::grade::logs) struct Builds5 {
    tests: VecDeque<String>,
    unmatched: VecDeque<Status>,
}

impl Scan for Builds5 {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = trim(line);
        self.tests.extend(named(line).map(str::to_owned));
        let ends = [("BUILD SUCCESS", Status::Passed), ("BUILD FAILURE", Status::Failed)];
        if let Some((_, status)) = ends.into_iter().find(|(end, _)| line.ends_with(end)) {
            match self.tests.pop_front() {
                Some(name) => found.set(name, status),
                None => self.unmatched.push_back(status),
            }
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        for (name, status) in self.tests.drain(..).zip(self.unmatched.drain(..)) {
            found.set(name, status);
        }
        Ok(())
    }
}
