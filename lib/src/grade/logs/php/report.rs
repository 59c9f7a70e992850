//! PHPUnit's `--debug` and the lists of problems at the end of its console.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::{Pattern, pattern};

/// What one run says.
#[derive(Default)]
pub(super) struct Report {
    /// Tests that began, and whether they ended.
    begun: Vec<(String, usize, bool)>,
    /// The problems that are listed, after the line with time and memory.
    listed: Vec<(String, usize, Status)>,
    /// What the list that is being read tells, and the number of its next item.
    kind: Option<Status>,
    next: usize,
    /// The last line that is not blank, and whether a blank one follows it. Texts of failures look like lists too.
    last: String,
    after_blank: bool,
    /// Whether time and memory were told.
    timed: bool,
    /// How many tests the last line counts as neither passed nor failed; none before it.
    without_result: Option<usize>,
}

impl Report {
    pub(super) fn line(&mut self, line: &str, found: &mut Found) {
        static TIME: Pattern = LazyLock::new(|| pattern(r"^Time: .*, Memory: "));
        if line.starts_with("PHPUnit ") && line.contains(" by Sebastian Bergmann") {
            self.tell(found);
        } else if line.starts_with("Test ") {
            self.event(line, found);
        } else if line.starts_with("Time: ") && TIME.is_match(line) {
            // What stood before was printed by tests.
            self.timed = true;
            self.listed.clear();
            self.kind = None;
            self.without_result = None;
        } else if line.starts_with("PHP Fatal error: ") || line.starts_with("Fatal error: ") {
            found.broken(line, false);
        } else if self.timed {
            self.summary(line, found);
        }
        self.after_blank = line.is_empty();
        if !line.is_empty() {
            line.clone_into(&mut self.last);
        }
    }

    fn summary(&mut self, line: &str, found: &mut Found) {
        static LIST: Pattern = LazyLock::new(|| pattern(r"^There (?:was|were) \d+ (.+?)s?:$"));
        static ITEM: Pattern = LazyLock::new(|| pattern(r"^(\d+)\) (.+)$"));
        static COUNT: Pattern =
            LazyLock::new(|| pattern(r"(Skipped|Incomplete|Risky|Warnings|Errors|Failures): (\d+)"));
        let begins = self.after_blank && (self.last == "--" || self.last.starts_with("Time: "));
        if let Some(list) = LIST.captures(line).filter(|_| begins) {
            self.next = 1;
            self.kind = match &list[1] {
                "failure" => Some(Status::Failed),
                "error" | "risky test" | "warning" => Some(Status::Error),
                "incomplete test" | "skipped test" => Some(Status::Skipped),
                _ => None,
            };
        } else if line.starts_with("OK (") {
            self.without_result = Some(0);
        } else if line.starts_with("Tests: ") {
            let counts = COUNT.captures_iter(line).filter_map(|count| count[2].parse::<usize>().ok());
            self.without_result = Some(counts.sum());
        } else if let (Some(status), Some(item)) = (&self.kind, ITEM.captures(line)) {
            if !self.after_blank || item[1].parse() != Ok(self.next) {
                return;
            }
            self.next += 1;
            if item[2].contains("::") {
                self.listed.push((without_data(&item[2]).to_owned(), found.line(), status.clone()));
            } else {
                found.broken(line, false);
            }
        }
    }

    /// `Test 'X::y' started` (PHPUnit 9), `Test Passed (X::y)` (since 10).
    fn event(&mut self, line: &str, found: &mut Found) {
        let quoted = |word: &str| line.strip_prefix("Test '")?.strip_suffix(word)?.strip_suffix("' ");
        let named = |word: &str| {
            line.strip_prefix("Test ")?.strip_prefix(word)?.strip_prefix(" (")?.strip_suffix(')')
        };
        const WORDS: [(&str, Status); 6] = [
            ("Passed", Status::Passed),
            ("Failed", Status::Failed),
            ("Errored", Status::Error),
            ("Considered Risky", Status::Error),
            ("Skipped", Status::Skipped),
            ("Marked Incomplete", Status::Skipped),
        ];
        if let Some(name) = quoted("started") {
            self.begun.push((without_data(name).to_owned(), found.line(), false));
        } else if let Some(name) = quoted("ended") {
            let name = without_data(name);
            if let Some(test) = self.begun.last_mut().filter(|(begun, ..)| begun == name) {
                test.2 = true;
            }
        } else if let Some((name, status)) =
            WORDS.into_iter().find_map(|(word, status)| Some((named(word)?, status)))
        {
            found.test(name, status);
        }
    }

    /// Writes down the run. A test that ended and is in no list passed, if the lists hold every test that has no pass.
    pub(super) fn tell(&mut self, found: &mut Found) {
        let run = std::mem::take(self);
        let complete = run.without_result.is_some_and(|count| run.listed.len() >= count);
        let listed: BTreeSet<&str> = run.listed.iter().map(|(name, ..)| name.as_str()).collect();
        for (name, line, ended) in &run.begun {
            if !ended {
                found.test_at(*line, name, Status::Failed);
            } else if complete && !listed.contains(name.as_str()) {
                found.test_at(*line, name, Status::Passed);
            }
        }
        for (name, line, status) in run.listed {
            found.test_at(line, name, status);
        }
    }
}

/// The name of a test without the data behind the name of its data set.
fn without_data(name: &str) -> &str {
    static DATA: Pattern = LazyLock::new(|| pattern(r#"^(.*? with data set (?:#\d+|".*?")) \(.*\)$"#));
    DATA.captures(name).and_then(|parts| parts.get(1)).map_or(name, |name| name.as_str())
}
