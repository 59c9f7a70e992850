//! The reference rule for testthat's JUnit report.

use super::super::found::Found;
use super::super::scan::Raised;
use super::super::status::Status;
use super::super::structured::junit::{Case, plain};
use super::super::xml;

pub(super) fn upstream(log: &str, found: &mut Found) -> Result<(), Raised> {
    const END: &str = "</testsuites>";
    let Some(start) = log.find("<?xml") else { return Ok(()) };
    let end = log[start..].find(END).map_or(log.len(), |end| start + end + END.len());
    let Ok(document) = xml::parse(&log[start..end]) else { return Ok(()) };
    for suite in xml::descendants(document.root_element(), "testsuite") {
        for case in xml::children(suite, "testcase") {
            let attribute = |name| xml::attribute(case, name).unwrap_or_default();
            let status = match () {
                () if xml::has(case, "failure") => Status::Failed,
                () if xml::has(case, "error") => Status::Error,
                () if xml::has(case, "skipped") => Status::Skipped,
                () => Status::Passed,
            };
            found.set(key(attribute("classname"), attribute("name")), status);
        }
    }
    Ok(())
}

fn key(class: &str, name: &str) -> String {
    if class.is_empty() { name.to_owned() } else { format!("{class}::{name}") }
}

/// Names under strict rules, with upstream's beside.
pub(super) fn style(case: &Case<'_>) -> (String, Option<String>) {
    (plain(case).0, Some(key(case.class, case.name)))
}
