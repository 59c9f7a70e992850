//! What gotestsum prints beside, or instead of, the output of `go test`.

use std::collections::HashSet;

use super::super::found::Found;
use super::super::status::Status;

/// Folders of a package's path that are looked at.
const MAX_DEPTH: usize = 40;

/// What gotestsum makes of a line.
pub(super) enum Line<'a> {
    /// It is none of its lines.
    Other,
    /// It is, or it is output that it repeats.
    Taken,
    /// The result of a test (formats testname and github-actions).
    Test {
        /// As gotestsum names it: relative to what all packages have in common.
        package: &'a str,
        /// The test.
        test: &'a str,
        /// How it ended.
        status: Status,
    },
}

/// Where in gotestsum's output the log is, and what its summary says.
#[derive(Default)]
pub(super) struct Gotestsum {
    part: Part,
    /// Failed and skipped tests: line, package, test, status.
    summary: Vec<(usize, String, String, Status)>,
    /// Tests that have been seen not to pass outside of the summary, with their packages.
    known: Vec<(String, String)>,
}

#[derive(Default, PartialEq, Eq)]
enum Part {
    #[default]
    Run,
    /// The output of a test (format github-actions).
    Group,
    Summary,
}

impl Gotestsum {
    /// Reads a line, the `at`th, while `current` runs, if any test does.
    pub(super) fn line<'a>(&mut self, line: &'a str, current: Option<&str>, at: usize) -> Line<'a> {
        match self.part {
            Part::Group if line == "::endgroup::" => self.part = Part::Run,
            Part::Summary if line.starts_with("DONE ") => self.part = Part::Run,
            Part::Summary => self.summary_line(line, at),
            Part::Group => {}
            Part::Run => return self.run_line(line, current),
        }
        Line::Taken
    }

    fn run_line<'a>(&mut self, line: &'a str, current: Option<&str>) -> Line<'a> {
        if current.is_none() && matches!(line, "=== Failed" | "=== Skipped" | "=== Errors") {
            self.part = Part::Summary;
            return Line::Taken;
        }
        let grouped = line.strip_prefix("::group::");
        let text = grouped.or_else(|| line.strip_prefix("  ")).unwrap_or(line);
        let Some((package, test, status)) = result(text) else { return Line::Other };
        if current.is_some_and(|current| current != test) {
            return Line::Other;
        }
        if grouped.is_some() {
            self.part = Part::Group;
        }
        Line::Test { package, test, status }
    }

    fn summary_line(&mut self, line: &str, at: usize) {
        let status = match line.get(..9) {
            Some("=== FAIL:") => Status::Failed,
            Some("=== SKIP:") => Status::Skipped,
            _ => return,
        };
        let Some((package, test)) = line[9..].trim_start_matches(' ').split_once(' ') else { return };
        let (package, test) = match test_starts(package) {
            true => ("", package), // of no known package
            false => (package, test.split(' ').next().unwrap_or_default()),
        };
        if test_starts(test) {
            self.summary.push((at, package.to_owned(), test.to_owned(), status));
        }
    }

    /// A test has been seen outside of the summary, which lists those that have not passed.
    pub(super) fn knows(&mut self, package: &str, test: &str, status: &Status) {
        if *status != Status::Passed {
            self.known.push((test.to_owned(), package.to_owned()));
        }
    }

    /// Writes down what only the summary tells.
    pub(super) fn end(&mut self, found: &mut Found) {
        let listed: HashSet<&str> = self.summary.iter().map(|(_, _, test, _)| test.as_str()).collect();
        let mut known = HashSet::new();
        for (test, package) in self.known.iter().filter(|(test, _)| listed.contains(test.as_str())) {
            // The summary shortens packages at the left, the other lines may not.
            let shorter = package.match_indices('/').map(|(slash, _)| &package[slash + 1..]);
            let names = [package.as_str(), ""].into_iter().chain(shorter.take(MAX_DEPTH));
            known.extend(names.map(|name| (test.as_str(), name)));
        }
        for (line, package, test, status) in &self.summary {
            if known.contains(&(test.as_str(), package.as_str())) {
                continue;
            }
            let name = if package.is_empty() { test.clone() } else { format!("{package}.{test}") };
            found.test_at(*line, name, status.clone()).known_as(test.as_str());
        }
    }
}

/// `PASS package.TestName (0.00s)`.
fn result(text: &str) -> Option<(&str, &str, Status)> {
    let (word, rest) = text.split_once(' ')?;
    let status = match word {
        "PASS" => Status::Passed,
        "FAIL" => Status::Failed,
        "SKIP" => Status::Skipped,
        _ => return None,
    };
    let (name, how) = rest.split_once(' ')?;
    let how = how.strip_prefix("(re-run ").and_then(|run| Some(run.split_once(") ")?.1)).unwrap_or(how);
    let timed = how.starts_with('(') && (how.ends_with("s)") || how == "(unknown)");
    let (dot, _) = name.match_indices('.').find(|(dot, _)| test_starts(&name[dot + 1..]))?;
    timed.then(|| (&name[..dot], &name[dot + 1..], status))
}

fn test_starts(text: &str) -> bool {
    ["Test", "Example", "Fuzz", "Benchmark"].iter().any(|start| text.starts_with(start))
}
