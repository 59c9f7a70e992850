//! The reference rule for hspec's tree: needs the whole log, since failures are named at its end.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::Raised;
use super::super::status::Status;
use super::super::text::{Pattern, pattern, pattern_any_case, split_lines, trim};

const NO_ROOT: [&str; 14] = [
    "Downloading",
    "Building",
    "Installing",
    "Completed",
    "Starting",
    "Preprocessing",
    "Configuring",
    "Linking",
    "Resolving dependencies",
    "Build profile",
    "In order, the following will be built",
    "Error:",
    "Test suite ",
    "Running ",
];

const AFTER_FAILURES: [&str; 4] = ["To rerun use:", "Randomized with seed", "Finished in ", "Test suite "];

pub(in crate::grade::logs) fn haskell_v2(log: &str, found: &mut Found) -> Result<(), Raised> {
    let lines = split_lines(log);
    let end = lines.iter().position(|line| trim(line) == "Failures:").unwrap_or(lines.len());
    let failures = failures(lines.get(end + 1..).unwrap_or_default());
    let start = start(&lines);
    tree(lines.get(start..end).unwrap_or_default(), start, found);
    for name in failures {
        found.set(name, Status::Failed);
    }
    Ok(())
}

/// The tests named below `Failures:`.
fn failures(lines: &[&str]) -> BTreeSet<String> {
    static NUMBERED: Pattern = LazyLock::new(|| pattern(r"^\d+\)ω+(.*)$"));
    let mut names = BTreeSet::new();
    for line in lines.iter().map(|line| trim(line)).filter(|line| !line.is_empty()) {
        if AFTER_FAILURES.iter().any(|head| line.starts_with(head)) {
            break;
        }
        if line.starts_with(|c: char| c.is_numeric())
            && let Some(named) = NUMBERED.captures(line)
        {
            names.insert(named[1].split(',').map(trim).collect::<Vec<_>>().join("."));
        }
    }
    names
}

/// Where the tree begins.
fn start(lines: &[&str]) -> usize {
    let running = |line: &&str| line.starts_with("Test suite ") && line.contains(": RUNNING...");
    if let Some(at) = lines.iter().position(running) {
        return at + 1;
    }
    let root = |line: &&str| {
        !trim(line).is_empty()
            && !line.starts_with(' ')
            && line.contains('.')
            && !NO_ROOT.iter().any(|noise| line.contains(noise))
    };
    lines.iter().position(root).unwrap_or(0)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A line's name, and what it says of its test.
fn labelled(text: &str) -> (&str, Option<Status>) {
    static FAILED: Pattern = LazyLock::new(|| pattern(r"^(.*?)ω+FAILEDω*\[\d+\]$"));
    static PENDING: Pattern = LazyLock::new(|| pattern_any_case(r"^(.*?)ω+(?:PENDING|SKIPPED)(?:\W|$)"));
    let named =
        |rule: &Pattern| rule.captures(text).and_then(|found| found.get(1)).map(|name| trim(name.as_str()));
    if text.ends_with(']')
        && let Some(name) = named(&FAILED)
    {
        return (name, Some(Status::Failed));
    }
    match named(&PENDING) {
        Some(name) => (name, Some(Status::Skipped)),
        None => (text, None),
    }
}

fn tree(lines: &[&str], before: usize, found: &mut Found) {
    let usable: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !matches!(trim(line), "" | "Golden and Actual output didn't change"))
        .map(|(at, line)| (at, *line))
        .collect();
    let mut stack: Vec<String> = Vec::new();
    for (place, (at, line)) in usable.iter().enumerate() {
        found.go_to(before + at + 1);
        let level = indent(line) / 2;
        let (name, hint) = labelled(trim(line));
        stack.truncate(level);
        stack.resize(level, String::new());
        stack.push(name.to_owned());
        let opens = usable.get(place + 1).is_some_and(|(_, next)| indent(next) > indent(line));
        if !opens {
            let key: Vec<&str> = stack.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            found.set(key.join("."), hint.unwrap_or(Status::Passed));
        }
    }
}
