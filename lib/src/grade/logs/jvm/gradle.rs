//! The reference rules for Gradle: JUnit reports printed into the log, and result lines.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, is_space, pattern, trim, trim_end};
use super::super::xml;

/// Reports between a line that begins with `<?xml` and one that begins with `</testsuite>`.
#[derive(Default)]
pub(in crate::grade::logs) struct Reports {
    block: Option<String>,
}

impl Scan for Reports {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let trimmed = trim(line);
        if trimmed.starts_with("<?xml") {
            self.block = Some(line.to_owned());
            return Ok(());
        }
        let Some(block) = &mut self.block else { return Ok(()) };
        block.push('\n');
        block.push_str(line);
        if trimmed.starts_with("</testsuite>") {
            report(block, found);
            self.block = None;
        }
        Ok(())
    }
}

fn report(block: &str, found: &mut Found) {
    let Ok(document) = xml::parse(block) else { return };
    for case in xml::descendants(document.root_element(), "testcase") {
        let attribute = |name| xml::attribute(case, name).unwrap_or_default();
        let status = match () {
            () if xml::has(case, "skipped") => Status::Skipped,
            () if xml::has(case, "failure") => Status::Failed,
            () if xml::has(case, "error") => Status::Error,
            () => Status::Passed,
        };
        found.set(case_name(attribute("name"), attribute("classname")), status);
    }
}

/// What upstream calls a case of a report.
pub(super) fn case_name(name: &str, class: &str) -> String {
    if name.is_empty() || class.is_empty() { name.to_owned() } else { format!("{name} ({class})") }
}

/// `name PASSED (1.2s)`: the name has two characters at least, its first is no `>`.
pub(super) fn result_line(line: &str) -> Option<(&str, Status)> {
    static DURATION: Pattern = LazyLock::new(|| pattern(r"ω+\(\d+(?:\.\d+)?s\)$"));
    let line = trim(line);
    let line = if line.ends_with("s)") {
        &line[..DURATION.find(line).map_or(line.len(), |found| found.start())]
    } else {
        line
    };
    let status = [("PASSED", Status::Passed), ("FAILED", Status::Failed)];
    let (before, status) =
        status.into_iter().find_map(|(word, status)| Some((line.strip_suffix(word)?, status)))?;
    // The blank before the status; a name of one character takes in the blank that follows it.
    let (blank, last) = before.char_indices().next_back()?;
    if !is_space(last) || line.starts_with('>') {
        return None;
    }
    let second = before.char_indices().nth(2)?.0;
    Some((&before[..trim_end(before).len().max(second).min(blank)], status))
        .filter(|(name, _)| name.len() >= second)
}

pub(super) fn custom(line: &str, found: &mut Found) {
    if let Some((name, status)) = result_line(line) {
        found.set(name, status);
    }
}
