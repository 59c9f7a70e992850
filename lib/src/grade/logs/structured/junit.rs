//! JUnit's XML, as many runners write it: documents whose root is `testsuites` or `testsuite`.
//!
//! A case is called `classname::name`; without a class, after its file, and else after its innermost suite. Families
//! that name cases otherwise make their own [`Format`] with [`open`]'s parts and [`read`].

use roxmltree::Node;

use super::super::Status;
use super::super::found::Found;
use super::super::scan::{Format, Structured};
use super::super::xml;
use super::document::{Documents, Read, Syntax};

/// The format, with the names that are said above.
pub(in crate::grade::logs) const JUNIT: Format =
    Format { name: "JUnit XML", open: || open(|document, line, found| read(document, line, found, plain)) };

/// One test case of a document.
pub(in crate::grade::logs) struct Case<'a> {
    pub(in crate::grade::logs) name: &'a str,
    /// May be empty, as may be `file` and `suite`.
    pub(in crate::grade::logs) class: &'a str,
    pub(in crate::grade::logs) file: &'a str,
    /// The innermost suite.
    pub(in crate::grade::logs) suite: &'a str,
}

/// The name of a case, and what the family's upstream parser calls it where that differs.
pub(in crate::grade::logs) type Style = fn(&Case<'_>) -> (String, Option<String>);

/// `classname::name`, or the file or the suite for the class.
pub(in crate::grade::logs) fn plain(case: &Case<'_>) -> (String, Option<String>) {
    let owner = [case.class, case.file, case.suite].into_iter().find(|owner| !owner.is_empty());
    (owner.map_or_else(|| case.name.to_owned(), |owner| format!("{owner}::{}", case.name)), None)
}

/// A format of such documents, each read by `read` (a call of [`read`] with a style).
pub(in crate::grade::logs) fn open(read: Read) -> Box<dyn Structured> {
    Documents::open(Syntax::Xml, begins, read)
}

fn begins(line: &str) -> bool {
    let root = line.strip_prefix("<testsuite").map(|rest| rest.strip_prefix('s').unwrap_or(rest));
    root.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '>', '/']))
        || line.starts_with("<?xml")
}

/// Reads a document, if it is one of JUnit's.
pub(in crate::grade::logs) fn read(
    document: &str,
    first_line: usize,
    found: &mut Found,
    style: Style,
) -> Result<bool, String> {
    let parsed = match xml::parse(document) {
        Ok(parsed) => parsed,
        Err(_) if !document.contains("<testsuite") => return Ok(false),
        Err(why) => {
            return Err(format!("the JUnit document that begins in line {first_line} is wrong: {why}"));
        }
    };
    let root = parsed.root_element();
    if !xml::is(root, "testsuites") && !xml::is(root, "testsuite") {
        return Ok(false);
    }
    let (mut line, mut counted) = (first_line, 0);
    for node in parsed.descendants().filter(Node::is_element) {
        let start = node.range().start.max(counted);
        line += document.as_bytes()[counted..start].iter().filter(|byte| **byte == b'\n').count();
        counted = start;
        if xml::is(node, "testcase") {
            test_case(node, line, found, style);
        } else if xml::is(node, "testsuite") && (xml::has(node, "error") || xml::has(node, "failure")) {
            found.broken_at(line, attribute(node, "name"), xml::has(node, "error"));
        }
    }
    Ok(true)
}

fn test_case(node: Node<'_, '_>, line: usize, found: &mut Found, style: Style) {
    let suite = node.ancestors().find(|above| xml::is(*above, "testsuite"));
    let case = Case {
        name: attribute(node, "name"),
        class: attribute(node, "classname"),
        file: attribute(node, "file"),
        suite: suite.map_or("", |suite| attribute(suite, "name")),
    };
    let status = status(node);
    if case.name.is_empty() {
        // Surefire's word for a class whose set-up failed.
        if matches!(status, Status::Failed | Status::Error) {
            let owner = if case.class.is_empty() { case.suite } else { case.class };
            found.broken_at(line, owner, true);
        }
        return;
    }
    let (name, alias) = style(&case);
    let test = found.test_at(line, name, status);
    if let Some(alias) = alias {
        test.known_as(alias);
    }
}

/// A failed run that passed when it was repeated (`flakyFailure`) is a pass.
fn status(node: Node<'_, '_>) -> Status {
    if xml::has(node, "failure") {
        return Status::Failed;
    }
    if xml::has(node, "error") {
        return Status::Error;
    }
    if let Some(skipped) = xml::children(node, "skipped").next() {
        let expected = attribute(skipped, "type") == "pytest.xfail";
        return if expected { Status::Xfail } else { Status::Skipped };
    }
    // GoogleTest and CTest say by attributes that a test did not run.
    match (attribute(node, "status"), attribute(node, "result")) {
        ("notrun" | "disabled" | "skipped", _) | (_, "suppressed" | "skipped") => Status::Skipped,
        ("failed" | "fail", _) => Status::Failed,
        ("error", _) => Status::Error,
        _ => Status::Passed,
    }
}

fn attribute<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    xml::attribute(node, name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::super::{Rules, parse_log};
    use super::*;

    fn read_log(log: &str) -> Vec<(String, Status, usize)> {
        let map = parse_log("junit-xml", log, Rules::Strict).unwrap();
        map.observations.into_iter().map(|seen| (seen.name, seen.status, seen.line)).collect()
    }

    #[test]
    fn cases_of_nested_suites_amid_noise() {
        let log = "noise\n<?xml version='1.0'?>\n<testsuites><testsuite name='s'>\n<testcase name='a' classname='C'/>\n\
                   <testsuite name='t'><testcase name='b'><failure/><skipped/></testcase></testsuite>\n\
                   <testcase name='c' file='f.js'><error/></testcase></testsuite></testsuites>\n<b>\n\
                   <testsuite name='u'><testcase name='d'><skipped type='pytest.xfail'/></testcase>\n\
                   <testcase name='e' status='notrun'/><testcase name='f'><flakyFailure/></testcase></testsuite>\n";
        let expected = [
            ("C::a", Status::Passed, 4),
            ("t::b", Status::Failed, 5),
            ("f.js::c", Status::Error, 6),
            ("u::d", Status::Xfail, 8),
            ("u::e", Status::Skipped, 9),
            ("u::f", Status::Passed, 9),
        ];
        assert_eq!(read_log(log), expected.map(|(name, status, line)| (name.to_owned(), status, line)));
    }

    #[test]
    fn what_is_cut_or_wrong_passes_nothing() {
        for log in [
            "<testsuite name='s'>\n<testcase name='a'/>\n",
            "<testsuite name='s'>\n<testcase name='a'/>&nbsp;</testsuite>",
            "<testsuite name='s'><testcase name='' classname='C'><error/></testcase></testsuite>",
        ] {
            let map = parse_log("junit-xml", log, Rules::Strict).unwrap();
            assert!(map.statuses.is_empty() && map.suite_failures.len() == 1, "{log}: {map:?}");
        }
        assert_eq!(read_log("<?xml version='1.0'?>\n<coverage>&nbsp;</coverage>"), []);
    }
}
