//! Short rules: classes of Kotlin's surefire logs, ant's tests, Gradle's XML.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::{Status, text, xml};
use super::maven;
use std::sync::LazyLock;
use text::{Pattern, pattern};

/// `parse_logs_kotlin_junit`.
#[derive(Default)]
pub(super) struct Kotlin {
    current: Option<String>,
}

impl Scan for Kotlin {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static SUMMARY: Pattern = LazyLock::new(|| {
            pattern(r"^Tests run:ω+(\d+),ω+Failures:ω+(\d+),ω+Errors:ω+(\d+),ω+Skipped:ω+(\d+)")
        });
        let line = text::trim(line);
        let class = line.strip_prefix("Running").filter(|rest| rest.starts_with(text::is_space));
        if let Some(class) = class {
            self.current = Some(text::trim(class).to_owned());
        } else if line.starts_with("Tests run:")
            && let Some(counts) = SUMMARY.captures(line)
            && let Some(class) = self.current.take()
        {
            found.set(class, maven::class_status(&maven::counts(counts.extract::<4>().1)?));
        }
        Ok(())
    }
}

/// `parse_log_ant`, and what ant's tests really did: the same.
fn ant(line: &str) -> Option<(&str, bool)> {
    let rest = text::trim(line).strip_prefix("[junit]")?;
    let mark = rest.trim_start_matches(text::is_space);
    let ends = [("[PASS]", true), ("[FAIL]", false), ("[ERR]", false)];
    let (name, passed) =
        ends.into_iter().find_map(|(end, passed)| Some((mark.strip_prefix(end)?, passed)))?;
    let named = name.trim_start_matches(text::is_space);
    (mark.len() < rest.len() && named.len() < name.len()).then_some((named, passed))
}

pub(super) fn ant_upstream(line: &str, found: &mut Found) {
    if let Some((name, passed)) = ant(line) {
        found.set(name, if passed { Status::Passed } else { Status::Failed });
    }
}

pub(super) fn ant_strict(line: &str, found: &mut Found) {
    if let Some((name, passed)) = ant(line) {
        let error = line.contains("[ERR]");
        found.test(
            name,
            if passed {
                Status::Passed
            } else if error {
                Status::Error
            } else {
                Status::Failed
            },
        );
    }
}

/// `parse_log_gradlew_v1`.
#[derive(Default)]
pub(super) struct GradleXml {
    block: Option<String>,
}

impl Scan for GradleXml {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let trimmed = text::trim(line);
        if trimmed.starts_with("<?xml") {
            self.block = Some(line.to_owned());
        } else if let Some(block) = &mut self.block {
            block.push('\n');
            block.push_str(line);
            if trimmed.starts_with("</testsuite>") {
                read_block(block, found);
                self.block = None;
            }
        }
        Ok(())
    }
}

fn read_block(block: &str, found: &mut Found) {
    let Ok(document) = xml::parse(block) else { return };
    for case in xml::descendants(document.root_element(), "testcase") {
        let name = case.attribute("name").unwrap_or_default();
        let class = case.attribute("classname").unwrap_or_default();
        let kinds = [("skipped", Status::Skipped), ("failure", Status::Failed), ("error", Status::Error)];
        let status = kinds.into_iter().find_map(|(child, status)| xml::has(case, child).then_some(status));
        found.set(gradle_name(name, class), status.unwrap_or(Status::Passed));
    }
}

/// `name (class)`.
pub(super) fn gradle_name(name: &str, class: &str) -> String {
    if name.is_empty() || class.is_empty() { name.to_owned() } else { format!("{name} ({class})") }
}
