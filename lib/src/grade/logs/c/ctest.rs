//! What CTest really says.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern};
use super::words;

/// Reads the console of `ctest`, `ctest -V` and `ctest --output-on-failure`.
pub(super) fn strict() -> Box<dyn Scan> {
    Box::new(Ctest::default())
}

#[derive(Default)]
struct Ctest {
    /// By number, from the line that says that a test starts.
    tests: BTreeMap<u64, Test>,
    /// Whether the log says when tests start.
    starts: bool,
}

struct Test {
    name: String,
    line: usize,
    /// The result, upstream's name for it, and its line.
    result: Option<(Status, Option<String>, usize)>,
}

impl Scan for Ctest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if line.starts_with("Test project ") {
            self.tell(found);
        } else if let Some((number, name)) = start(line) {
            self.starts = true;
            self.start(number, name, found.line());
        } else if let Some((number, name, status)) = result(line) {
            if !self.starts {
                self.start(number, name, found.line());
            }
            let known = self.tests.get_mut(&number).filter(|test| test.name == name);
            if let Some(test) = known {
                let alias = words::ctest_result(line).filter(|(_, told)| *told == status);
                // Of two results the worse counts.
                if test.result.as_ref().is_none_or(|(before, ..)| before.worse(&status) != before) {
                    test.result = Some((status, alias.map(|(alias, _)| alias.to_owned()), found.line()));
                }
            }
        } else if line.starts_with("Unable to find executable: ")
            || line.starts_with("No tests were found!!!")
        {
            found.broken(line, true);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.tell(found);
        Ok(())
    }
}

impl Ctest {
    /// Each number is given once: what stood there before was printed by a test, or was another try of the same.
    fn start(&mut self, number: u64, name: &str, line: usize) {
        self.tests.insert(number, Test { name: name.to_owned(), line, result: None });
    }

    /// Writes down the results of one run of CTest; a test without one failed.
    fn tell(&mut self, found: &mut Found) {
        for (_, test) in std::mem::take(&mut self.tests) {
            let (status, alias, line) = test.result.unwrap_or((Status::Failed, None, test.line));
            let seen = found.test_at(line, test.name, status);
            if let Some(alias) = alias {
                seen.known_as(alias);
            }
        }
    }
}

/// `    Start  1: name`.
fn start(line: &str) -> Option<(u64, &str)> {
    let (number, name) = line.strip_prefix("    ")?.trim_start().strip_prefix("Start ")?.split_once(": ")?;
    Some((number.trim_start().parse().ok()?, name))
}

/// `1/7 Test #1: name ....   Passed    0.02 sec`.
fn result(line: &str) -> Option<(u64, &str, Status)> {
    static RESULT: Pattern = LazyLock::new(|| {
        pattern(concat!(
            r"^ *\d+/\d+ Test +#(\d+): (.+?) ?\.*(?:\*\*\*|   )",
            r"(Passed|Failed|Timeout|Skipped|Not Run \(Disabled\)|Not Run|Exception: ?[A-Za-z ]+|Bad Command|",
            r"Child aborted|SEGFAULT|Subprocess [a-z]+)(?: |$)"
        ))
    });
    if !line.contains(" Test ") || !line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let words = RESULT.captures(line)?;
    let (number, name) = (words.get(1)?.as_str().parse().ok()?, words.get(2)?.as_str());
    let status = match &words[3] {
        "Passed" => Status::Passed,
        "Skipped" | "Not Run (Disabled)" => Status::Skipped,
        _ => Status::Failed,
    };
    Some((number, name, status))
}
