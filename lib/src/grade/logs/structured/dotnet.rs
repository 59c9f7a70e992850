//! XML reports of .NET: TRX of vstest, NUnit 3, xUnit.net v2 and v3. The root element tells which it is.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use super::super::found::Found;
use super::super::scan::Format;
use super::super::status::Status;
use super::document::{Documents, Syntax};

pub(in crate::grade::logs) const XML: Format =
    Format { name: "TRX, NUnit and xUnit.net XML", open: || Documents::open(Syntax::Xml, begins, read) };

const ROOTS: [&str; 3] = ["<TestRun", "<test-run", "<assemblies"];

fn begins(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}');
    line.starts_with("<?xml") || ROOTS.iter().any(|root| line.starts_with(root))
}

fn read(document: &str, _first_line: usize, found: &mut Found) -> Result<bool, String> {
    if !ROOTS.iter().any(|root| document.contains(root)) {
        return Ok(false);
    }
    let document = document.trim_start_matches('\u{feff}');
    let document =
        Document::parse(document).map_err(|error| format!("the XML report is damaged: {error}"))?;
    let root = document.root_element();
    match root.tag_name().name() {
        "TestRun" => trx(root, found),
        "test-run" => nunit(root, found),
        "assemblies" => xunit(root, found),
        _ => return Ok(false),
    }
    Ok(true)
}

fn elements<'a, 'input>(
    root: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    root.descendants().filter(move |node| node.is_element() && node.tag_name().name() == name)
}

/// Results name the test; its class stands in the definitions.
fn trx(root: Node<'_, '_>, found: &mut Found) {
    let classes: BTreeMap<&str, &str> = elements(root, "UnitTest")
        .filter_map(|test| {
            Some((test.attribute("id")?, elements(test, "TestMethod").next()?.attribute("className")?))
        })
        .collect();
    for result in elements(root, "UnitTestResult") {
        let Some(name) = result.attribute("testName") else { continue };
        let class = result.attribute("testId").and_then(|id| classes.get(id)).copied().unwrap_or("");
        // MSTest writes the assembly behind the class.
        let class = class.split_once(',').map_or(class, |(class, _)| class);
        let full = if class.is_empty() || name.starts_with(class) {
            name.to_owned()
        } else {
            format!("{class}.{name}")
        };
        let status = match result.attribute("outcome") {
            Some("Passed") => Status::Passed,
            Some("NotExecuted" | "NotRunnable" | "Inconclusive" | "Pending") => Status::Skipped,
            _ => Status::Failed,
        };
        found.test(full, status).known_as(name);
    }
}

fn nunit(root: Node<'_, '_>, found: &mut Found) {
    for case in elements(root, "test-case") {
        let Some(name) = case.attribute("name") else { continue };
        let status = match (case.attribute("result"), case.attribute("label")) {
            (Some("Passed" | "Warning"), _) => Status::Passed,
            (Some("Skipped" | "Inconclusive"), _) => Status::Skipped,
            (_, Some("Error")) => Status::Error,
            _ => Status::Failed,
        };
        found.test(case.attribute("fullname").unwrap_or(name), status).known_as(name);
    }
}

fn xunit(root: Node<'_, '_>, found: &mut Found) {
    for test in elements(root, "test") {
        let Some(name) = test.attribute("name") else { continue };
        let status = match test.attribute("result") {
            Some("Pass") => Status::Passed,
            Some("Skip" | "NotRun") => Status::Skipped,
            _ => Status::Failed,
        };
        found.test(name, status);
    }
    for error in elements(root, "error").filter_map(|error| error.attribute("name")) {
        found.broken(error, false);
    }
}
