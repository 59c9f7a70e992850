//! What happened under test-unit: verbose lines, and the blocks of failures that every verbosity prints.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, is_space, pattern};
use super::upstream;

/// Reads test-unit's output.
#[derive(Default)]
pub(super) struct TestUnit {
    class: String,
    /// A test that runs: its line, its name, and upstream's.
    begun: Option<(usize, String, Option<String>)>,
    /// Whether the line before was a rule of `=`.
    ruled: bool,
}

/// The mark of a result that stands alone behind a name or before its time.
fn mark(text: &str) -> Option<Status> {
    static TIMED: Pattern = LazyLock::new(|| pattern(r"^\.: \(\d+\.\d+(?:e-?\d+)?\)$"));
    match text {
        "E" => Some(Status::Error),
        "F" => Some(Status::Failed),
        "O" | "P" => Some(Status::Skipped),
        _ => TIMED.is_match(text).then_some(Status::Passed),
    }
}

impl TestUnit {
    /// `  test_name:  .: (0.01)`, with tabs between.
    fn test(&mut self, line: &str, found: &mut Found) -> bool {
        let indented = line.trim_start_matches(' ');
        let Some((name, rest)) = indented.split_once(":\t") else { return false };
        if self.class.is_empty() || self.begun.is_some() || indented.len() == line.len() || name.is_empty() {
            return false;
        }
        let name = format!("{}#{name}", self.class);
        let alias = upstream::test_unit_line(line).map(|(alias, _)| alias.to_owned());
        match mark(rest.trim_start_matches('\t')) {
            Some(status) => {
                found.test(&name, status).known_as(alias.unwrap_or(name));
            }
            None => self.begun = Some((found.line(), name, alias)),
        }
        true
    }

    /// `.: (0.01)` behind what a test printed.
    fn ended(&mut self, line: &str, found: &mut Found) {
        static END: Pattern = LazyLock::new(|| pattern(r"(?:^|[^:])(\.: \(\d+\.\d+(?:e-?\d+)?\))$"));
        if line.ends_with(')')
            && !line.contains(":\t")
            && END.is_match(line)
            && let Some((at, name, alias)) = self.begun.take()
        {
            found.test_at(at, &name, Status::Passed).known_as(alias.unwrap_or(name));
        }
    }

    /// `Failure: test_name(Class): why` below a rule.
    fn failure(&mut self, line: &str, found: &mut Found) {
        static FAILURE: Pattern =
            LazyLock::new(|| pattern(r"^(Failure|Error|Pending): (.+?)\(([A-Z][\w:]*)\)(?:: |$)"));
        static OMITTED: Pattern = LazyLock::new(|| pattern(r"^Omission: .*\[(.+?)\(([A-Z][\w:]*)\)\]$"));
        if let Some(failure) = FAILURE.captures(line) {
            let status = match &failure[1] {
                "Failure" => Status::Failed,
                "Error" => Status::Error,
                _ => Status::Skipped,
            };
            self.settle(&failure[3], &failure[2], status, found);
        } else if let Some(omitted) = OMITTED.captures(line) {
            self.settle(&omitted[2], &omitted[1], Status::Skipped, found);
        }
    }

    fn settle(&mut self, class: &str, test: &str, status: Status, found: &mut Found) {
        let name = format!("{class}#{test}");
        let alias = test.strip_prefix("test: ").unwrap_or(test).to_owned();
        self.begun.take_if(|(_, begun, _)| *begun == name);
        found.test(name, status).known_as(alias);
    }
}

impl Scan for TestUnit {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static CLASS: Pattern = LazyLock::new(|| pattern(r"^ *([A-Z][\w:]*): $"));
        if self.ruled {
            self.failure(line, found);
        }
        self.ruled = line.len() > 60 && line.bytes().all(|byte| byte == b'=');
        if let Some(class) = CLASS.captures(line).filter(|_| self.begun.is_none()) {
            class[1].clone_into(&mut self.class);
        } else if !self.test(line, found) && !line.starts_with(is_space) {
            self.ended(line, found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        if let Some((at, name, alias)) = self.begun.take() {
            found.test_at(at, &name, Status::Error).known_as(alias.unwrap_or(name));
        }
        Ok(())
    }
}
