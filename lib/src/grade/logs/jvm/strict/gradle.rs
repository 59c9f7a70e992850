//! Gradle's result lines: `Class > nested > test PASSED` at the beginning of a line. Whatever a test prints is indented.
//! Below a class that stands alone in its line (the test logger's layout), results are indented by two.

use std::sync::LazyLock;

use super::super::super::found::Found;
use super::super::super::scan::{Raised, Scan};
use super::super::super::status::Status;
use super::super::super::text::{Pattern, pattern, trim};
use super::super::gradle::result_line;

#[derive(Default)]
pub(in crate::grade::logs) struct Results {
    /// A class that stands alone in its line.
    class: Option<String>,
    /// Whether the lines that follow are what a test printed.
    printed: bool,
}

impl Scan for Results {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static RESULT: Pattern = LazyLock::new(|| {
            pattern(
                r"^(ω*)(.*[^ω])ω+(PASSED|FAILED|SKIPPED)(?:ω+\(\d+(?:\.\d+)?(?:s|ms|m)(?: \d+(?:\.\d+)?s)?\))?ω*$",
            )
        });
        static CLASS: Pattern = LazyLock::new(|| pattern(r"^[A-Za-z_$][\w$]*(?:\.[\w$]+)+$"));
        static TASK: Pattern = LazyLock::new(|| pattern(r"^(?:> Task )?:[\w:.-]+ FAILED$"));
        let indent = line.len() - line.trim_start_matches(' ').len();
        if line.ends_with(" STANDARD_OUT") || line.ends_with(" STANDARD_ERROR") {
            self.printed = indent == 0;
            return Ok(());
        }
        if indent == 0 && !line.is_empty() {
            self.printed = false;
        }
        if self.printed {
            return Ok(());
        }
        if line.starts_with("BUILD FAILED") || line.starts_with("BUILD SUCCESSFUL") {
            let status = if line.starts_with("BUILD FAILED") { Status::Failed } else { Status::Passed };
            let alias = result_line(line).map(|(name, _)| name.to_owned());
            let build = found.group("BUILD", status);
            if let Some(alias) = alias {
                build.known_as(alias);
            }
        } else if TASK.is_match(line) {
            let build = line.contains("compile");
            found.broken(trim(line), build);
        } else if CLASS.is_match(line) {
            self.class = Some(line.to_owned());
        } else if let Some(seen) = RESULT.captures(line) {
            let own = match (indent, &self.class) {
                (0, _) if seen[2].contains(" > ") => seen[2].to_owned(),
                (2, Some(class)) => format!("{class} > {}", &seen[2]),
                _ => return Ok(()),
            };
            let alias = result_line(line).map(|(name, _)| name.to_owned());
            let test = found.test(own, Status::from(&seen[3]));
            if let Some(alias) = alias {
                test.known_as(alias);
            }
        }
        Ok(())
    }
}
