//! What Boost.Test really says (`--log_level=test_suite`, or any that shows more).

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern};

/// Reads the log of Boost.Test.
pub(super) fn strict() -> Box<dyn Scan> {
    Box::new(Boost::default())
}

#[derive(Default)]
struct Boost {
    suites: Vec<String>,
    case: Option<Case>,
}

struct Case {
    name: String,
    line: usize,
    failed: bool,
}

impl Scan for Boost {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static MARK: Pattern = LazyLock::new(|| {
            pattern(
                r#"(?:^|: )(Entering|Leaving) test (module|suite|case) "(.*)"(?:; testing time: \d+[mun]?s)?$"#,
            )
        });
        static SKIPPED: Pattern =
            LazyLock::new(|| pattern(r#"(?:^|: )Test (?:case|suite) "(.*)" is skipped because "#));
        static FAILURE: Pattern = LazyLock::new(|| pattern(r#"(?:^|: )(?:fatal )?error: in "(.*?)": "#));
        if !line.contains('"') {
            return Ok(());
        }
        if let Some(mark) = MARK.captures(line) {
            self.mark(&mark[1], &mark[2], &mark[3], found);
        } else if let Some(skipped) = SKIPPED.captures(line) {
            found.test(&skipped[1], Status::Skipped);
        } else if let Some(failure) = FAILURE.captures(line) {
            self.failure(&failure[1], found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        if let Some(cut) = self.case.take() {
            found.test_at(cut.line, cut.name, Status::Failed);
        }
        Ok(())
    }
}

impl Boost {
    fn path(&self, case: &str) -> String {
        self.suites.iter().map(|suite| format!("{suite}/")).collect::<String>() + case
    }

    fn mark(&mut self, word: &str, kind: &str, name: &str, found: &mut Found) {
        match (word, kind) {
            ("Entering", "suite") if self.case.is_none() => self.suites.push(name.to_owned()),
            ("Leaving", "suite") if self.case.is_none() => {
                self.suites.pop();
            }
            // Within a case, the line is what the case printed.
            ("Entering", "case") if self.case.is_none() => {
                self.case = Some(Case { name: self.path(name), line: found.line(), failed: false });
            }
            ("Leaving", "case") => {
                let path = self.path(name);
                if let Some(case) = self.case.take_if(|case| case.name == path) {
                    found.test(case.name, if case.failed { Status::Failed } else { Status::Passed });
                }
            }
            _ => {}
        }
    }

    fn failure(&mut self, path: &str, found: &mut Found) {
        match &mut self.case {
            Some(case) if case.name == path => case.failed = true,
            // A level of the log that does not show where cases begin.
            None => {
                found.test(path, Status::Failed);
            }
            Some(_) => {}
        }
    }
}
