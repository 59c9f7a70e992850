//! A card by rules alone: what the issue says, what the patch changed, which command showed that it worked.

use std::sync::LazyLock;

use regex::Regex;

use super::ask::one_line;
use super::card::FixCard;
use super::digest::outcome_words;
use crate::memory::Experience;
use crate::memory::changes::{Changes, FileChange};
use crate::trajectory::Event;

/// An exception or error type by its name.
static ERRORS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b([A-Z][A-Za-z]{2,}(?:Error|Exception|Warning|Panic))\b").ok());

/// What an issue's words say about the kind of its fault: the first whose words it holds.
const KINDS: [(&str, &[&str]); 11] = [
    ("crash", &["traceback", "segfault", "panic", "crash", "stack overflow", "unhandled"]),
    (
        "regression",
        &["regression", "used to work", "no longer", "since version", "after upgrading", "broke in"],
    ),
    ("performance", &["slow", "performance", "memory leak", "quadratic", "timeout"]),
    ("wrong output", &["incorrect", "wrong", "unexpected", "should return", "instead of", "inconsistent"]),
    ("encoding", &["unicode", "encoding", "utf-8", "locale"]),
    ("concurrency", &["race", "deadlock", "thread", "concurren"]),
    (
        "ignored input",
        &["ignored", "ignores", "not respected", "has no effect", "not passed", "doesn't work"],
    ),
    ("missing check", &["validat", "should raise", "should fail", "silently", "allow"]),
    ("deprecation", &["deprecat", "compatib"]),
    ("documentation", &["docstring", "documentation", "typo"]),
    ("missing feature", &["add support", "feature", "support for", "would be nice", "allow", "add "]),
];

/// Longest piece of code that a card quotes.
const CODE: usize = 110;

/// The card of a run that submitted a patch; `None` where it changed no file: there is nothing to learn a fix from.
pub(in crate::memory) fn by_rules(run: &Experience) -> Option<FixCard> {
    let changes = Changes::of(run.patch.as_deref()?);
    let mut files: Vec<&FileChange> = changes.files.iter().filter(|file| !is_scratch(run, file)).collect();
    if files.is_empty() {
        files = changes.files.iter().collect();
    }
    // The sources first, and of them the one that was changed most.
    files.sort_by_key(|file| (is_test(&file.path), std::cmp::Reverse(file.removed.len() + file.added.len())));
    let main = *files.first()?;
    let title =
        one_line(run.issue.trim().lines().find(|line| !line.trim().is_empty()).unwrap_or("(no title)"), 160);
    let place = place(main);
    let mut anchors: Vec<String> = files.iter().take(4).map(|file| file.path.clone()).collect();
    anchors.extend(main.symbols.iter().take(4).cloned());
    let card = FixCard {
        bug_class: format!("{}: {title}", kind_of(&run.issue)),
        root_cause: root_cause(main, &place),
        fix_pattern: fix_pattern(main, &files, &place),
        lesson: lesson(run),
        anchors,
    };
    card.tidy().ok()
}

fn kind_of(issue: &str) -> String {
    if let Some(error) = ERRORS.as_ref().and_then(|errors| errors.find(issue)) {
        return error.as_str().to_owned();
    }
    let lower = issue.to_lowercase();
    let kind = KINDS.iter().find(|(_, words)| words.iter().any(|word| lower.contains(word)));
    kind.map_or("fault", |(kind, _)| kind).to_owned()
}

/// Where a file was changed.
fn place(file: &FileChange) -> String {
    match &file.symbols[..] {
        [] => file.path.clone(),
        symbols => format!("{} ({})", file.path, symbols[..symbols.len().min(3)].join(", ")),
    }
}

fn root_cause(file: &FileChange, place: &str) -> String {
    match telling(&file.removed) {
        Some(code) => format!("in {place} stood `{code}`"),
        None => format!("{place} lacked what the fix adds"),
    }
}

fn fix_pattern(main: &FileChange, files: &[&FileChange], place: &str) -> String {
    let (removed, added) =
        files.iter().fold((0, 0), |(r, a), file| (r + file.removed.len(), a + file.added.len()));
    let size = match files.len() {
        1 => format!("+{added} -{removed} lines"),
        n => format!("+{added} -{removed} lines in {n} files"),
    };
    match (telling(&main.removed), telling(&main.added)) {
        (Some(old), Some(new)) => format!("in {place} `{old}` became `{new}` ({size})"),
        (None, Some(new)) => format!("{place} got `{new}` ({size})"),
        (Some(old), None) => format!("`{old}` was taken out of {place} ({size})"),
        (None, None) => format!("{place} was changed ({size})"),
    }
}

/// The line that says most: the first code with a call, a condition or an assignment, else the first code, else the first
/// comment.
fn telling(lines: &[String]) -> Option<String> {
    let written: Vec<&String> = lines.iter().filter(|line| line.trim().len() > 3).collect();
    let starts = ["#", "//", "/*", "*", "\"\"\"", "import ", "from "];
    let is_code = |line: &&String| !starts.iter().any(|start| line.trim().starts_with(start));
    let code: Vec<&String> = written.iter().copied().filter(is_code).collect();
    let says = |line: &&&String| line.contains('(') || line.contains('=') || line.contains("if ");
    let line = code.iter().find(says).or_else(|| code.first()).or_else(|| written.first())?;
    Some(one_line(line, CODE))
}

/// What showed that it worked, what failed before, and how it ended.
fn lesson(run: &Experience) -> String {
    let mut parts = Vec::new();
    let (mut last_test, mut first_failure) = (None, None);
    let mut tests: Option<&str> = None;
    for event in &run.events {
        match event {
            Event::Command { text, tests: true, .. } => tests = Some(text),
            Event::Command { .. } => tests = None,
            Event::Observation { text, exit_code } => {
                let Some(command) = tests.take() else { continue };
                match exit_code {
                    Some(0) => last_test = Some(command),
                    Some(_) if first_failure.is_none() => first_failure = failure(text),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if let Some(command) = last_test {
        parts.push(format!("`{}` ran clean at the end.", one_line(last_line_of(command), 120)));
    }
    if let Some(failure) = first_failure {
        parts.push(format!("Before the fix tests said: {failure}"));
    }
    parts.push(outcome_words(run).to_owned());
    parts.join(" ")
}

/// The command itself, of a line that goes to a folder first.
fn last_line_of(command: &str) -> &str {
    let line = command.lines().find(|line| crate::trajectory::runs_tests(line)).unwrap_or(command);
    line.rsplit("&& ").next().unwrap_or(line)
}

/// The line in which a test's output names its error.
fn failure(output: &str) -> Option<String> {
    let errors = ERRORS.as_ref()?;
    let line = output.lines().rev().find(|line| errors.is_match(line) || line.starts_with("E  "))?;
    Some(format!("`{}`.", one_line(line.trim_start_matches("E "), 140)))
}

fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.split('/').any(|part| matches!(part, "test" | "tests" | "spec" | "__tests__" | "testing"))
        || name.starts_with("test_")
        || name.contains(".test.")
        || name.contains("_test.")
        || name.contains(".spec.")
}

/// A file that the run made for itself at the top of the repository (a script to reproduce the fault).
fn is_scratch(run: &Experience, file: &FileChange) -> bool {
    let name = file.path.to_lowercase();
    let new = file.removed.is_empty()
        && run
            .patch
            .as_deref()
            .is_some_and(|patch| patch.contains(&format!("--- /dev/null\n+++ b/{}", file.path)));
    let scratch = ["repro", "test_fix", "verify", "debug", "check_", "tmp", "scratch", "demo"];
    new && !file.path.contains('/') && scratch.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::run;

    #[test]
    fn a_card_says_what_where_and_how() {
        let mut run = run(3, "Reader raises ValueError on blank lines\n\nTraceback...", "x");
        run.patch = Some(
            "--- a/src/reader.py\n+++ b/src/reader.py\n@@ -3,3 +3,4 @@ class Reader:\n def read(self):\n     # comment\n\
             -    return int(line)\n+    if not line: return None\n+    return int(line)\n--- /dev/null\n+++ b/reproduce.py\n@@ -0,0 +1 @@\n+import reader\n"
                .into(),
        );
        run.events = vec![
            Event::command("cd /testbed && pytest tests/test_reader.py"),
            Event::Observation { text: "E   ValueError: invalid literal".into(), exit_code: Some(1) },
            Event::command("cd /testbed && pytest tests/test_reader.py"),
            Event::Observation { text: "1 passed".into(), exit_code: Some(0) },
        ];
        insta::assert_snapshot!(by_rules(&run).unwrap().text(), @r"
        Bug class: ValueError: Reader raises ValueError on blank lines
        Root cause: in src/reader.py (Reader) stood `return int(line)`
        Fix pattern: in src/reader.py (Reader) `return int(line)` became `if not line: return None` (+2 -1 lines)
        Lesson: `pytest tests/test_reader.py` ran clean at the end. Before the fix tests said: `ValueError: invalid literal`. A patch was submitted; whether it solves the task is not known.
        Anchors: src/reader.py, Reader
        ");
        run.patch = None;
        assert_eq!(by_rules(&run), None);
        run.patch = Some("no diff".into());
        assert_eq!(by_rules(&run), None);
    }

    #[test]
    fn kinds_come_from_the_issue() {
        for (issue, kind) in [
            ("The result is wrong for 0", "wrong output"),
            ("KeyError in lookup", "KeyError"),
            ("Zebra", "fault"),
            ("Import is slow", "performance"),
        ] {
            assert_eq!(kind_of(issue), kind);
        }
    }
}
