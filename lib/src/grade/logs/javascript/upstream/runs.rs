//! Rules of SWE-bench 5 that cut a log into the runs of its tests.

use std::sync::LazyLock;

use super::super::super::found::Found;
use super::super::super::scan::Raised;
use super::super::super::status::Status;
use super::super::super::text::{Pattern, is_space, pattern, trim};
use super::super::rule::{Hit, Rule};
use super::karma::without_escapes;
use super::{behind_number, jest};

/// Highlight.js: mocha's tree up to its summary, each test behind the last line that is indented.
pub(in super::super) fn highlight() -> Rule {
    let (mut over, mut first) = (false, true);
    let mut suite: Option<String> = None;
    Box::new(move |line| {
        over |= !std::mem::take(&mut first) && is_summary(line);
        Ok(if over { Vec::new() } else { highlighted(line, &mut suite).into_iter().collect() })
    })
}

fn is_summary(line: &str) -> bool {
    let text = line.trim_start_matches([' ', '\t']);
    let rest = text.trim_start_matches(super::super::super::text::is_digit);
    rest.len() < text.len() && rest.starts_with(" passing")
}

fn highlighted(line: &str, suite: &mut Option<String>) -> Option<Hit> {
    static TIME: Pattern = LazyLock::new(|| pattern(r"\(\d+ms\)"));
    let text = trim(line);
    let passed = text.strip_prefix('✓').or_else(|| text.strip_prefix('✔'));
    let (name, status) = match (passed, behind_number(text)) {
        (Some(name), _) => (name, Status::Passed),
        (None, Some(_)) => (line.split_once(')')?.1, Status::Failed),
        (None, None) => {
            if line.starts_with("  ") {
                *suite = Some(text.to_owned());
            }
            return None;
        }
    };
    let name = TIME.replace_all(name, "");
    let name = suite.as_deref().into_iter().chain([trim(&name)]).collect::<Vec<_>>().join(".");
    Some((name, status))
}

/// The suites that a line stands in, told by indentation.
#[derive(Default)]
struct Suites(Vec<(usize, String)>);

impl Suites {
    /// A line that is no result opens a suite if it is indented.
    fn enter(&mut self, line: &str) {
        let text = line.trim_start_matches(is_space);
        let indent = line[..line.len() - text.len()].chars().count();
        if indent > 0 {
            self.0.truncate(self.0.iter().rposition(|(outer, _)| *outer < indent).map_or(0, |at| at + 1));
            self.0.push((indent, trim(text).to_owned()));
        }
    }

    fn name(&self, test: &str) -> String {
        self.0.iter().map(|(_, suite)| suite.as_str()).chain([test]).collect::<Vec<_>>().join(" - ")
    }
}

/// Next: SWE-bench 5 chooses between karma under xvfb and Cypress by the task's version, of which each task's log has
/// one.
pub(in super::super) fn next(log: &str, found: &mut Found) -> Result<(), Raised> {
    if log.contains(" xvfb-run ") {
        next_karma(log, found)
    } else {
        next_cypress(log, found)
    }
    Ok(())
}

fn next_karma(log: &str, found: &mut Found) {
    static ASSERTION: Pattern = LazyLock::new(|| pattern(r"AssertionError:ω+#(?s:.)*?\n\n"));
    let log = without_escapes(log);
    let log = ASSERTION.replace_all(&log, "");
    let mut suites = Suites::default();
    for run in log.split(" xvfb-run ").skip(1) {
        let results = run.rsplit("Starting browser Chrome").next().unwrap_or(run);
        for line in results.split('\n').take_while(|line| !line.starts_with("TOTAL")) {
            if ["ERROR", "LOG", "WARN", "Check", "in"].iter().any(|word| trim(line).starts_with(word)) {
                continue;
            }
            let marked = line.split_once('✗').map(|(_, name)| (name, Status::Failed));
            match marked.or_else(|| line.split_once('✓').map(|(_, name)| (name, Status::Passed))) {
                Some((name, status)) => found.set(suites.name(name.trim_start_matches(is_space)), status),
                None => suites.enter(line),
            }
        }
    }
}

fn next_cypress(log: &str, found: &mut Found) {
    static SPEC: Pattern = LazyLock::new(|| pattern(r"Running:.*\)\n{3}ω{2}(.*)\n"));
    static FAILED: Pattern = LazyLock::new(|| pattern(r"(?m)^ω{4}\d+\)ω(.*)"));
    static PASSED: Pattern = LazyLock::new(|| pattern(r"(?m)^ω{4}✓ω(.*)\("));
    let specs: Vec<_> =
        SPEC.captures_iter(log).filter_map(|spec| Some((spec.get(0)?.range(), spec.get(1)?))).collect();
    for (at, (range, suite)) in specs.iter().enumerate() {
        let end = specs.get(at + 1).map_or(log.len(), |(next, _)| next.start);
        let results = &log[range.end..end];
        for (kind, status) in [(&FAILED, Status::Failed), (&PASSED, Status::Passed)] {
            for test in kind.captures_iter(results) {
                let name = trim(test.get(1).map_or("", |name| name.as_str()));
                found.set(format!("{}: {name}", suite.as_str()), status.clone());
            }
        }
    }
}

/// Lighthouse: SWE-bench 5 chooses by the task's version between mocha's tree, mocha's JSON and jest's lines of files, of
/// which each task's log has one.
pub(in super::super) fn lighthouse(log: &str, found: &mut Found) -> Result<(), Raised> {
    static RUN: Pattern = LazyLock::new(|| pattern(r"runningω\d+ωtestωfiles"));
    const JSON: &str = "./node_modules/.bin/mocha --reporter json";
    if RUN.is_match(log) {
        RUN.split(log).skip(1).for_each(|run| lighthouse_mocha(run, found));
    } else if log.contains(JSON) {
        log.split(JSON).skip(1).for_each(|run| lighthouse_json(run, found));
    } else {
        let files = log.split('\n').filter_map(jest::files_cut);
        files.for_each(|(name, status)| found.set(name, status));
    }
    Ok(())
}

fn lighthouse_mocha(run: &str, found: &mut Found) {
    static PASSING: Pattern = LazyLock::new(|| pattern(r"\d+ωpassing"));
    static TIME: Pattern = LazyLock::new(|| pattern(r"^(.*)ω\(\d+m+s\)"));
    let end = PASSING.find(run).map_or(run.len(), |summary| summary.start());
    let mut suites = Suites::default();
    for line in trim(&run[..end]).split('\n') {
        let text = trim(line);
        let passed = text.strip_prefix('✔').map(|rest| (rest, Status::Passed));
        let marked = passed.or_else(|| behind_number(text).map(|rest| (rest, Status::Failed)));
        match marked.and_then(|(rest, status)| Some((rest.strip_prefix(is_space)?, status))) {
            Some((rest, status)) => {
                let timed = TIME.captures(rest).and_then(|timed| timed.get(1));
                found.set(suites.name(timed.map_or(rest, |name| name.as_str())), status);
            }
            None => suites.enter(line),
        }
    }
}

fn lighthouse_json(run: &str, found: &mut Found) {
    static TITLE: Pattern = LazyLock::new(|| pattern(r#""fullTitle":ω"(.*)",\n"#));
    for (list, end, status) in
        [("\"passes\": [", "]", Status::Passed), ("\"failures\": [", "],", Status::Failed)]
    {
        let tests = run.rsplit(list).next().unwrap_or(run);
        let tests = tests.rsplit_once(end).map_or(tests, |(tests, _)| tests);
        for title in TITLE.captures_iter(tests) {
            found.set(&title[1], status.clone());
        }
    }
}

/// Prism: mocha's JSON behind each call.
pub(in super::super) fn prism(log: &str, found: &mut Found) -> Result<(), Raised> {
    for run in log.split("./node_modules/.bin/mocha tests/run.js --reporter json").skip(1) {
        let text = run.split_once('{').map_or(run, |(_, text)| text);
        let text = text.rsplit_once('}').map_or(text, |(text, _)| text);
        let report: serde_json::Value =
            serde_json::from_str(&format!("{{{text}}}")).map_err(|_| Raised("JSONDecodeError"))?;
        for (list, status) in [("failures", Status::Failed), ("passes", Status::Passed)] {
            for test in report.get(list).and_then(|tests| tests.as_array()).ok_or(Raised("KeyError"))? {
                let title =
                    test.get("fullTitle").and_then(|title| title.as_str()).ok_or(Raised("KeyError"))?;
                found.set(title, status.clone());
            }
        }
    }
    Ok(())
}
