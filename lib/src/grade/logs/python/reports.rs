//! JUnit reports that a log holds whole: parse_combined_test_reports and parse_test_report.

use roxmltree::{Document, Node, ParsingOptions};

use super::super::Rules;
use super::super::found::Found;
use super::super::scan::{Format, Raised};
use super::super::status::Status;
use super::super::structured::document::{Documents, Syntax};
use super::super::text::is_space;

/// Reports in a log, read under strict rules wherever they stand.
pub(super) const REPORTS: Format = Format {
    name: "JUnit XML",
    open: || Documents::new(Syntax::Xml, begins, |text, _, found| strict(text, found)),
};

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
    if let Ok(document) = parse(text) {
        for (name, status) in tests(&document, Rules::Upstream) {
            found.set(name, status);
        }
    }
    Ok(())
}

fn parse(text: &str) -> Result<Document<'_>, roxmltree::Error> {
    Document::parse_with_options(text, ParsingOptions { allow_dtd: true, ..ParsingOptions::default() })
}

fn begins(line: &str) -> bool {
    ["<?xml", "<testsuites", "<testsuite"].iter().any(|start| {
        line.strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(is_space) || rest.starts_with('>'))
    })
}

fn strict(text: &str, found: &mut Found) -> Result<bool, String> {
    let document = parse(text).map_err(|error| format!("a report is no XML: {error}"))?;
    if !["testsuites", "testsuite"].contains(&document.root_element().tag_name().name()) {
        return Ok(false);
    }
    for (name, status) in tests(&document, Rules::Strict) {
        found.test(name, status);
    }
    Ok(true)
}

/// Every test below the root; upstream prints an attribute that is not there as `None`.
fn tests<'a>(document: &'a Document<'_>, rules: Rules) -> impl Iterator<Item = (String, Status)> + 'a {
    let root = document.root_element();
    let cases = root.descendants().filter(move |node| *node != root && is(*node, "testcase", rules));
    cases.map(move |case| {
        let plain = |name| case.attributes().find(|own| own.namespace().is_none() && own.name() == name);
        let attribute = |name| plain(name).map_or("None", |own| own.value());
        (format!("{}::{}", attribute("classname"), attribute("name")), status(case, rules))
    })
}

/// Whether the node is an element of this name; upstream sees none in a namespace.
fn is(node: Node<'_, '_>, name: &str, rules: Rules) -> bool {
    let tag = node.tag_name();
    node.is_element() && tag.name() == name && (rules == Rules::Strict || tag.namespace().is_none())
}

/// What the children of a test say: the first that upstream asks for, or the worst.
fn status(case: Node<'_, '_>, rules: Rules) -> Status {
    let kinds = [("failure", Status::Failed), ("skipped", Status::Skipped), ("error", Status::Error)];
    let mut told = kinds
        .into_iter()
        .filter(|(tag, _)| case.children().any(|child| is(child, tag, rules)))
        .map(|(_, status)| status);
    match rules {
        Rules::Upstream => told.next().unwrap_or(Status::Passed),
        Rules::Strict => told.fold(Status::Passed, |worst, kind| worst.worse(&kind).clone()),
    }
}
