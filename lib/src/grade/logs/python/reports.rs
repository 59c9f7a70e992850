//! JUnit reports that a log holds whole: parse_combined_test_reports and parse_test_report.

use super::super::found::Found;
use super::super::scan::{Format, Raised};
use super::super::status::Status;
use super::super::structured::junit;
use super::super::xml;

/// Reports in a log, read under strict rules wherever they stand.
pub(super) const REPORTS: Format = Format {
    name: "JUnit XML",
    open: || junit::open(|document, line, found| junit::read(document, line, found, style)),
};

/// Upstream prints a class that is not there as `None`.
fn style(case: &junit::Case<'_>) -> (String, Option<String>) {
    let class = if case.class.is_empty() { "None" } else { case.class };
    (junit::plain(case).0, Some(format!("{class}::{}", case.name)))
}

/// Upstream: from each `<?xml` to the next `</testsuites>`.
pub(super) fn combined(log: &str, found: &mut Found) -> Result<(), Raised> {
    let end = "</testsuites>";
    let mut rest = log;
    while let Some(start) = rest.find("<?xml") {
        let Some(length) = rest[start..].find(end) else { break };
        let after = start + length + end.len();
        report(&rest[start..after], found)?;
        rest = &rest[after..];
    }
    Ok(())
}

/// Upstream: the log is one report, or nothing.
pub(super) fn report(text: &str, found: &mut Found) -> Result<(), Raised> {
    let Ok(document) = xml::parse(text) else { return Ok(()) };
    for case in xml::descendants(document.root_element(), "testcase") {
        let attribute = |name| {
            let plain = case.attributes().find(|own| own.namespace().is_none() && own.name() == name);
            plain.map_or("None", |own| own.value())
        };
        let kinds = [("failure", Status::Failed), ("skipped", Status::Skipped), ("error", Status::Error)];
        let told = kinds.into_iter().find(|(tag, _)| xml::has(case, tag));
        let status = told.map_or(Status::Passed, |(_, status)| status);
        found.set(format!("{}::{}", attribute("classname"), attribute("name")), status);
    }
    Ok(())
}
