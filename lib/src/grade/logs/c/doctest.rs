//! doctest's XML (C++).

use super::super::found::Found;
use super::super::scan::Raised;
use super::super::status::Status;
use super::super::xml;

/// The first report of a log: each subcase with its test case.
pub(super) fn upstream(log: &str, found: &mut Found) -> Result<(), Raised> {
    read(log, &mut |name, status| found.set(name, status)).map_err(|_| Raised("ParseError"))
}

/// As [`upstream`]; a report that is not whole is a failure, for nothing of it is believed.
pub(super) fn strict(log: &str, found: &mut Found) -> Result<(), Raised> {
    let read = read(log, &mut |name, status| {
        found.test(name, status);
    });
    if let Err(why) = read {
        found.broken(why, false);
    }
    Ok(())
}

fn read(log: &str, on: &mut dyn FnMut(String, Status)) -> Result<(), String> {
    const END: &str = "</doctest>";
    let Some(start) = log.find("<doctest") else { return Ok(()) };
    let end = log[start..].find(END).ok_or("doctest's report has no end")?;
    let document = xml::parse(&log[start..start + end + END.len()])?;
    for case in xml::descendants(document.root_element(), "TestCase") {
        let name = xml::attribute(case, "name").unwrap_or("None");
        for subcase in xml::descendants(case, "SubCase") {
            let passed = |expression| xml::attribute(expression, "success") == Some("true");
            let all = xml::descendants(subcase, "Expression").all(passed);
            let key = format!("{name} > {}", xml::attribute(subcase, "name").unwrap_or("None"));
            on(key, if all { Status::Passed } else { Status::Failed });
        }
    }
    Ok(())
}
