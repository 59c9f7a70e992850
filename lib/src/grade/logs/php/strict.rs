//! What PHPUnit and Pest really say.

use std::collections::BTreeMap;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::printer;
use super::report::Report;
use super::testdox;

/// Reads PHPUnit's console: `--testdox`, `--debug`, and the lists of problems at its end.
pub(super) fn phpunit() -> Box<dyn Scan> {
    Box::new(Phpunit::default())
}

/// Reads Pest's console, and that of PHPUnit printers that write as it does.
pub(super) fn pest() -> Box<dyn Scan> {
    Box::new(Pest::default())
}

#[derive(Default)]
struct Phpunit {
    /// The heading of the class.
    heading: Option<String>,
    /// The line before this one, if it may be a heading: after a blank line, and before the first mark.
    candidate: Option<String>,
    after_blank: bool,
    /// The suite as upstream sees it.
    upstream_suite: Option<String>,
    report: Report,
}

impl Scan for Phpunit {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if let Some(suite) = testdox::suite(line) {
            self.upstream_suite = Some(suite.to_owned());
        }
        let candidate = self.candidate.take();
        if let Some((name, status)) = mark(line) {
            self.heading = candidate.or_else(|| self.heading.take());
            self.testdox(name, status, line, found);
        } else {
            self.report.line(line, found);
            if self.after_blank && line.starts_with(|first: char| !first.is_whitespace()) {
                self.candidate = Some(line.trim_end().to_owned());
            }
        }
        self.after_blank = line.trim().is_empty();
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.report.tell(found);
        Ok(())
    }
}

impl Phpunit {
    fn testdox(&self, name: &str, status: Status, line: &str, found: &mut Found) {
        let Some(heading) = &self.heading else { return };
        let class = heading
            .strip_suffix(')')
            .and_then(|inner| inner.rsplit_once(" ("))
            .map_or(heading.as_str(), |(_, class)| class);
        let name = testdox::without_duration(name).trim();
        let alias = testdox::mark(line).map(|(name, _)| {
            testdox::key(self.upstream_suite.as_deref(), testdox::without_duration(name).trim())
        });
        let full = format!("{class} > {name}");
        found.test(&full, status).known_as(alias.unwrap_or(full));
    }
}

/// ` ✔ name`, indented by one blank. PHPUnit's own report calls a risky test an error.
fn mark(line: &str) -> Option<(&str, Status)> {
    let mut chars = line.strip_prefix(' ')?.chars();
    let status = match chars.next()? {
        '✔' => Status::Passed,
        '✘' => Status::Failed,
        '↩' | '∅' => Status::Skipped,
        '☢' | '⚠' => Status::Error,
        _ => return None,
    };
    chars.as_str().strip_prefix(' ').map(|name| (name, status))
}

#[derive(Default)]
struct Pest {
    /// The class of the last `PASS`, `FAIL` or `WARN` line.
    class: Option<String>,
    /// How often each class was named, for a list of failures repeats names.
    classes: BTreeMap<String, usize>,
}

impl Scan for Pest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let body = line.trim();
        if let Some((word, class)) = heading(line) {
            *self.classes.entry(class.to_owned()).or_default() += 1;
            self.class = Some(class.to_owned());
            if word != "WARN" {
                found.group(class, if word == "PASS" { Status::Passed } else { Status::Failed });
            }
        } else if let Some(failed) = line.strip_prefix("   FAILED  ") {
            let name = failed.trim();
            if let Some((class, _)) =
                name.split_once(" > ").filter(|(class, _)| self.classes.contains_key(*class))
            {
                self.class = Some(class.to_owned());
                found.test(pest_name(name), Status::Failed).known_as(name);
            }
        } else if let (Some(class), Some((name, status))) = (&self.class, pest_mark(line)) {
            let alias = printer::marked(body).filter(|(_, told)| *told == status).map(|(alias, _)| alias);
            found.test(format!("{class} > {name}"), status).known_as(alias.unwrap_or(name));
        }
        Ok(())
    }
}

/// The name of a failure without the exception's class behind it.
fn pest_name(name: &str) -> &str {
    name.split_once("   ").map_or(name, |(name, _)| name.trim_end())
}

/// `   PASS  Tests\Unit\ExampleTest`.
fn heading(line: &str) -> Option<(&str, &str)> {
    let (word, class) = line.strip_prefix("   ")?.split_once("  ")?;
    let class = class.trim();
    (matches!(word, "PASS" | "FAIL" | "WARN") && !class.is_empty() && !class.contains(' '))
        .then_some((word, class))
}

/// `  ✓ it works   0.03s`, indented by two blanks; a skipped one may be followed by `→ why`.
fn pest_mark(line: &str) -> Option<(&str, Status)> {
    let mut chars = line.strip_prefix("  ")?.chars();
    let status = match chars.next()? {
        '✓' | '✔' => Status::Passed,
        '⨯' | '✗' => Status::Failed,
        '-' | '↓' | '…' | 's' => Status::Skipped,
        '!' => Status::Error,
        _ => return None,
    };
    let name = chars.as_str().strip_prefix(' ')?.trim();
    let name = match name.rsplit_once(' ') {
        Some((before, last)) if last.strip_suffix('s').is_some_and(testdox::is_number) => before.trim_end(),
        _ => name,
    };
    let name = name.split_once(" → ").map_or(name, |(name, _)| name);
    (!name.is_empty()).then_some((name, status))
}
