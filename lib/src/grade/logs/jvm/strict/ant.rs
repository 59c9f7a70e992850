//! Ant's junit task.

use std::sync::LazyLock;

use super::super::super::found::Found;
use super::super::super::scan::{Raised, Scan};
use super::super::super::status::Status;
use super::super::super::text::{Pattern, pattern, trim};

/// `[junit] [PASS] name`; and the plain formatter: `Testcase: name took 0.1 sec`, its failure in the next line.
#[derive(Default)]
pub(in crate::grade::logs) struct Junit {
    class: Option<String>,
    /// A test case whose next line tells how it ended.
    open: Option<(usize, String)>,
}

impl Junit {
    fn close(&mut self, status: Status, found: &mut Found) {
        if let Some((line, name)) = self.open.take() {
            found.test_at(line, name, status);
        }
    }
}

impl Scan for Junit {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static MARKED: Pattern = LazyLock::new(|| pattern(r"^\[(PASS|FAIL|ERR)\]ω+(.+)$"));
        static CASE: Pattern = LazyLock::new(|| {
            pattern(r"^Testcase: (.+?)(?: took [\d.,]+ sec)?(?::\s*(FAILED|SKIPPED|Caused an ERROR))?$")
        });
        let Some(text) = trim(line).strip_prefix("[junit]").map(trim) else { return Ok(()) };
        let ended =
            [("FAILED", Status::Failed), ("Caused an ERROR", Status::Error), ("SKIPPED", Status::Skipped)];
        if let Some((_, status)) = ended.iter().find(|(word, _)| text == *word) {
            self.close(status.clone(), found);
            return Ok(());
        }
        self.close(Status::Passed, found);
        if let Some(test) = MARKED.captures(text) {
            let status = match &test[1] {
                "PASS" => Status::Passed,
                "FAIL" => Status::Failed,
                _ => Status::Error,
            };
            found.test(&test[2], status);
        } else if let Some(class) = text.strip_prefix("Testsuite: ").or_else(|| text.strip_prefix("Running "))
        {
            self.class = Some(class.to_owned());
        } else if let Some(case) = CASE.captures(text) {
            let name = match &self.class {
                Some(class) => format!("{class}.{}", &case[1]),
                None => case[1].to_owned(),
            };
            self.open = Some((found.line(), name));
            let word = case.get(2).map(|word| word.as_str());
            if let Some((_, status)) = ended.iter().find(|(known, _)| Some(*known) == word) {
                self.close(status.clone(), found);
            }
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        // The log was cut behind its last test case.
        self.close(Status::Error, found);
        Ok(())
    }
}
