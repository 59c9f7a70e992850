//! Upstream's rules of the four parsers that are named after C++.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{self, Pattern, pattern_any_case};

/// pytest-like results; after the heading `FAILURES`, only the headings of failures.
#[derive(Default)]
pub(super) struct Cpp {
    in_failures: bool,
}

impl Scan for Cpp {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        const RULE: &str = "___________________________";
        let line = text::trim(line);
        let bar = "=".repeat(35);
        if line
            .strip_prefix(&bar)
            .and_then(|rest| rest.strip_prefix(" FAILURES "))
            .is_some_and(|rest| rest.starts_with(&bar))
        {
            self.in_failures = true;
        } else if self.in_failures {
            let heading =
                || line.strip_prefix(RULE)?.strip_prefix(' ')?.strip_suffix(RULE)?.strip_suffix(' ');
            if let Some(name) = heading() {
                found.set(name, Status::Failed);
            }
        } else {
            let words = [
                ("PASSED", Status::Passed),
                ("FAILED", Status::Failed),
                ("SKIPPED", Status::Skipped),
                ("ERROR", Status::Error),
            ];
            let result =
                words.into_iter().find_map(|(word, status)| Some((before_word(line, word)?, status)));
            if let Some((name, status)) = result {
                found.set_keeping_failures(name.split("::").last().unwrap_or(name), status);
            }
        }
        Ok(())
    }
}

/// What stands before the first such word that follows white space.
fn before_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.match_indices(word).find_map(|(at, _)| {
        let before = text::trim_end(&line[..at]);
        (before.len() < at).then_some(before)
    })
}

/// `Test name passed`.
pub(super) fn cpp_v2(line: &str, found: &mut Found) {
    let Some(rest) = text::trim(line).strip_prefix("Test") else { return };
    let words = [("passed", Status::Passed), ("failed", Status::Failed), ("skipped", Status::Skipped)];
    let result = words.into_iter().find_map(|(word, status)| {
        let middle = rest.strip_suffix(word)?;
        let spaced = middle.starts_with(text::is_space) && middle.ends_with(text::is_space);
        let two = middle.chars().nth(1).is_some();
        (spaced && two).then(|| (text::trim(middle), status))
    });
    if let Some((name, status)) = result {
        found.set_keeping_failures(name, status);
    }
}

static SKIPPED: Pattern = LazyLock::new(|| pattern_any_case(r"(?:^|\W)skipped(?:\W|$)"));
static FAILED: Pattern = LazyLock::new(|| pattern_any_case(r"(?:^|\W)(?:failed|fail|failure)(?:\W|$)"));
static PASSED: Pattern = LazyLock::new(|| pattern_any_case(r"(?:^|\W)(?:ok|passed)(?:\W|$)"));

/// What the words in a line say.
fn verdict(line: &str) -> Option<Status> {
    let words = [(&SKIPPED, Status::Skipped), (&FAILED, Status::Failed), (&PASSED, Status::Passed)];
    words.into_iter().find_map(|(word, status)| word.is_match(line).then_some(status))
}

/// `[1/2] name... OK`, summaries of Botan, and lines with a word such as FAILED.
pub(super) fn cpp_v3(line: &str, found: &mut Found) {
    let line = text::trim(line);
    if let Some((name, status)) = botan(line) {
        found.set(name, status);
    } else if let Some((name, word)) = dotted(line) {
        let line_and_word = format!("{}\n{line}", word.to_uppercase());
        found.set(name, verdict(&line_and_word).unwrap_or(Status::Error));
    } else if let Some(status) = verdict(line) {
        found.set(line, status);
    }
}

/// `AES ran 10 tests in 3.1 msec all ok`, named without its duration.
pub(super) fn botan(line: &str) -> Option<(String, Status)> {
    static RAN: Pattern =
        LazyLock::new(|| pattern_any_case(r"ωranω+(\d+)ω+testsω+inω+[\d.]+ω+(?:msec|sec)ω+(.+)$"));
    static FAILED: Pattern = LazyLock::new(|| pattern_any_case(r"(?:^|\W)failed(?:\W|$)"));
    let found = RAN.captures(line)?;
    let tail = text::trim(&found[2]);
    let name = text::trim(&line[..found.get(0)?.start()]);
    let status = if FAILED.is_match(tail) { Status::Failed } else { Status::Passed };
    Some((format!("{name} ran {} tests {tail}", &found[1]), status))
}

/// `[1/2] name... word`: name and word.
pub(super) fn dotted(line: &str) -> Option<(&str, &str)> {
    let before = line.trim_end_matches(text::is_word);
    let word = &line[before.len()..];
    let name = text::trim_end(before).strip_suffix("...").filter(|_| !word.is_empty())?;
    Some((text::trim(after_counter(name).unwrap_or(name)), word))
}

/// What follows `[1/2]`.
fn after_counter(name: &str) -> Option<&str> {
    let (counter, rest) = name.strip_prefix('[')?.split_once(']')?;
    let (number, of) = counter.split_once('/')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(number) && digits(of)).then_some(rest)
}

/// `1/2 Test #1: name ....   Passed` of CTest.
pub(super) fn cpp_v4(line: &str, found: &mut Found) {
    if let Some((name, status)) = ctest_result(line) {
        found.set(name, status);
    }
}

/// A result line of CTest as upstream sees it: with a blank between dots and word.
pub(super) fn ctest_result(line: &str) -> Option<(&str, Status)> {
    static RESULT: Pattern =
        LazyLock::new(|| pattern_any_case(r"ω\.+ω+(?:(passed)|failed|(skipped)|timeout)(?:\W|$)"));
    let rest = text::after_digits(line.trim_start_matches(text::is_space))?.strip_prefix('/')?;
    let rest = text::after_any_case(text::after_spaces(text::after_digits(rest)?)?, "test")?;
    let rest = text::after_spaces(rest)?.strip_prefix('#')?;
    let spaced = text::after_digits(rest)?.strip_prefix(':')?;
    let rest = text::after_spaces(spaced)?;
    let first = rest.chars().next()?.len_utf8();
    let (name, words) = match RESULT.captures_at(rest, first) {
        Some(words) => (text::trim(&rest[..words.get(0)?.start()]), words),
        None => {
            // A name of one blank, before dots.
            let (blank, _) = spaced[..spaced.len() - rest.len()].char_indices().nth_back(0)?;
            let enough = spaced[..blank].chars().nth(1).is_some();
            let words = RESULT
                .captures_at(spaced, blank)
                .filter(|words| enough && words.get(0).is_some_and(|all| all.start() == blank))?;
            ("", words)
        }
    };
    let status = match (words.get(1), words.get(2)) {
        (Some(_), _) => Status::Passed,
        (_, Some(_)) => Status::Skipped,
        _ => Status::Failed,
    };
    Some((name, status))
}
