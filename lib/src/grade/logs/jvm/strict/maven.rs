//! Maven's surefire and failsafe: which classes ran and how, which tests failed, how modules and the build ended. Tests
//! that pass are not named in the log, so that classes are groups here.

use std::sync::LazyLock;

use super::super::super::found::Found;
use super::super::super::scan::{Raised, Scan, Shadow};
use super::super::super::status::Status;
use super::super::super::text::{Pattern, pattern, trim};
use super::super::maven::{Build, NO_NAME, Surefire, error_line, module_line, named};

/// What a parser's upstream rule calls things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grade::logs) enum Naming {
    /// Classes and methods, and the build by `-Dtest=` (parse_java_mvn).
    Surefire,
    /// Modules and `__suite__` (parse_java_mvn_v2).
    Reactor,
    /// The build by `-Dtest=` (parse_log_maven).
    Build,
    /// Classes (parse_logs_kotlin_junit).
    Classes,
}

pub(in crate::grade::logs) struct Maven {
    naming: Naming,
    running: Option<String>,
    /// What `-Dtest=` names.
    wanted: String,
    /// Whether anything failed since Maven began.
    failed: bool,
    /// Whether the line before is one of the rules around the build's result.
    ruled: bool,
    /// Whether any test ran in this log, and whether all of them were skipped.
    ran: bool,
    skipped: bool,
    any_failed: bool,
    any_error: bool,
    shadow: Shadow,
}

impl Maven {
    pub(in crate::grade::logs) fn new(naming: Naming) -> Self {
        let shadow: Box<dyn Scan> = match naming {
            Naming::Surefire => Box::<Surefire>::default(),
            _ => Box::<Build>::default(),
        };
        Self {
            naming,
            running: None,
            wanted: NO_NAME.to_owned(),
            failed: false,
            ruled: false,
            ran: false,
            skipped: true,
            any_failed: false,
            any_error: false,
            shadow: Shadow::new(shadow),
        }
    }

    /// A summary of a class.
    fn class(&mut self, class: &str, counts: [u64; 4], found: &mut Found) {
        let [run, failures, errors, skipped] = counts;
        let status = match (failures, errors) {
            (0, 0) if run > 0 && skipped == run => Status::Skipped,
            (0, 0) => Status::Passed,
            (0, _) => Status::Error,
            _ => Status::Failed,
        };
        self.ran = true;
        self.skipped &= status == Status::Skipped;
        self.any_failed |= failures > 0;
        self.any_error |= errors > 0;
        self.failed |= failures + errors > 0;
        found.group(class, status);
    }

    /// A test that failed.
    fn test(&mut self, name: String, status: Status, found: &mut Found) {
        self.failed = true;
        found.test(name, status);
    }

    /// The build ended. It passed only if no test failed, whatever it was told to ignore.
    fn build(&mut self, success: bool, found: &mut Found) {
        let status = if success && !self.failed { Status::Passed } else { Status::Failed };
        let build = found.group("BUILD", status);
        if matches!(self.naming, Naming::Surefire | Naming::Build) {
            build.known_as(self.wanted.clone());
        }
    }
}

fn counts(line: &str) -> Option<[u64; 4]> {
    static COUNTS: Pattern = LazyLock::new(|| {
        pattern(
            r"^(?:\[(?:INFO|WARNING|ERROR)\]ω+)?Tests run:ω*(\d+),ω*Failures:ω*(\d+),ω*Errors:ω*(\d+)(?:,ω*Skipped:ω*(\d+))?",
        )
    });
    let found = COUNTS.captures(line)?;
    let count =
        |group| found.get(group).map_or(Some(0), |count: regex::Match<'_>| count.as_str().parse().ok());
    Some([count(1)?, count(2)?, count(3)?, count(4)?])
}

impl Scan for Maven {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static RUNNING: Pattern = LazyLock::new(|| pattern(r"^(?:\[INFO\]ω+)?Running (\S+)$"));
        static IN_CLASS: Pattern = LazyLock::new(|| pattern(r"(?:--? in| in) (\S+?)[.:;]?$"));
        static FAILED: Pattern = LazyLock::new(|| {
            pattern(r"^(?:\[ERROR\]ω+)?(\S.*?)ω+(?:--ω+)?Time elapsed: [^<]*<<< (FAILURE|ERROR)!?$")
        });
        static OLD: Pattern = LazyLock::new(|| pattern(r"^(.+)\(([\w.$]+)\)$"));
        let line = trim(line);
        let ruled = std::mem::replace(&mut self.ruled, line.starts_with("[INFO] -----"));
        if let Some(name) = named(line) {
            self.wanted = name.to_owned();
        }
        if let Some(class) = RUNNING.captures(line) {
            self.running = Some(class[1].to_owned());
        } else if let Some(counts) = counts(line) {
            let class =
                IN_CLASS.captures(line).map(|class| class[1].to_owned()).or_else(|| self.running.take());
            self.running = None;
            // Without a class it is the total.
            if let Some(class) = class {
                self.class(&class, counts, found);
            }
        } else if let Some(failed) = FAILED.captures(line) {
            let status = if &failed[2] == "FAILURE" { Status::Failed } else { Status::Error };
            let name = OLD.captures(&failed[1]).map(|old| format!("{}.{}", &old[2], &old[1]));
            self.test(name.unwrap_or_else(|| failed[1].to_owned()), status, found);
        } else if line == "[INFO] Scanning for projects..." {
            self.failed = false;
        } else if ruled && (line == "[INFO] BUILD SUCCESS" || line == "[INFO] BUILD FAILURE") {
            self.build(line.ends_with("SUCCESS"), found);
        } else if line.contains("COMPILATION ERROR") {
            found.broken(line, true);
        } else if let Some((module, status)) = module_line(line) {
            found.group(module, status);
        } else if self.naming == Naming::Surefire
            && let Some((class, method)) =
                error_line(line).filter(|_| line.contains(" Tests run") || has_place(line))
        {
            // The list of failures at the end: what upstream goes by.
            let name = self.shadow.name(line).unwrap_or_else(|| format!("{class}.{method}"));
            let status = if line.contains("Exception") && !line.contains("AssertionError") {
                Status::Error
            } else {
                Status::Failed
            };
            self.failed = true;
            found.group(format!("{class}.{method}"), status).known_as(name);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        if self.naming == Naming::Reactor && self.ran {
            let status = match (self.any_failed, self.any_error, self.skipped) {
                (true, ..) => Status::Failed,
                (_, true, _) => Status::Error,
                (_, _, true) => Status::Skipped,
                _ => Status::Passed,
            };
            found.group("__suite__", status);
        }
        Ok(())
    }
}

/// Whether an error line names the place of a failure: `Class.method:12`.
fn has_place(line: &str) -> bool {
    static PLACE: Pattern = LazyLock::new(|| pattern(r"^\[ERROR\]ω{2,}[\w.$]+\.[\w$]+(?::\d+|ω*»)"));
    PLACE.is_match(line)
}
