//! The reference rules for Alcotest, dune and the like.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, integer, pattern, replace_colours, strip_escapes, trim, trim_end, words};

/// A result that counts unless a worse one is there.
fn set_worse(found: &mut Found, name: &str, status: Status) {
    let rank = |status: &Status| match status {
        Status::Passed => 0,
        Status::Skipped => 1,
        Status::Failed => 2,
        _ => 3,
    };
    if !name.is_empty() && found.status(name).is_none_or(|seen| rank(&status) >= rank(seen)) {
        found.set(name, status);
    }
}

/// `[OK]  suite  0  name.` (Alcotest).
pub(super) fn alcotest_line(line: &str) -> Option<(String, Status)> {
    static TEST: Pattern = LazyLock::new(|| pattern(r"^ω*\[([A-Z]+)\]ω+(.*?)ω+(\d+)ω+(.+)$"));
    let line = trim_end(line);
    if !line.contains('[') {
        return None;
    }
    let test = TEST.captures(line)?;
    let status = match &test[1] {
        "OK" | "PASS" => Status::Passed,
        "FAIL" | "FAILED" => Status::Failed,
        "SKIP" | "SKIPPED" | "TODO" => Status::Skipped,
        _ => Status::Error,
    };
    let parts = [trim(&test[2]), &test[3], trim(&test[4])];
    Some((parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "), status))
}

pub(super) fn alcotest(line: &str, found: &mut Found) {
    if let Some((name, status)) = alcotest_line(line) {
        found.set_keeping_failures(name, status);
    }
}

/// dune's log: the commands that it ran, and their output.
#[derive(Default)]
pub(in crate::grade::logs) struct Dune {
    names: BTreeMap<String, String>,
    active: Option<String>,
    seen: BTreeSet<String>,
}

/// The program that a command runs.
fn program(command: &str) -> &str {
    let last = trim(command.split("&&").last().unwrap_or(command));
    let last = last.strip_prefix("exec ").map_or(last, trim);
    let last = last.strip_prefix("./").unwrap_or(last);
    let first = words(last).next().unwrap_or_default();
    first.rsplit('/').next().unwrap_or_default()
}

impl Scan for Dune {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static RUNNING: Pattern = LazyLock::new(|| pattern(r"^Running\[(\d+)\]:ω+\((.+)\)$"));
        static OUTPUT: Pattern = LazyLock::new(|| pattern(r"^Output\[(\d+)\]:"));
        let line = trim(line);
        let number = |digits: &str| integer(digits).ok_or(Raised("ValueError"));
        if line.is_empty() {
            return Ok(());
        }
        if line.starts_with("Running[")
            && let Some(running) = RUNNING.captures(line)
        {
            let id = number(&running[1])?;
            let name = match program(&running[2]) {
                "" => format!("run_{id}"),
                name => name.to_owned(),
            };
            self.names.insert(id, name);
            self.active = None;
            return Ok(());
        }
        if line.starts_with("Output[")
            && let Some(output) = OUTPUT.captures(line)
        {
            self.active = self.names.get(&number(&output[1])?).cloned();
            return Ok(());
        }
        let Some(active) = &self.active else { return Ok(()) };
        self.seen.insert(active.clone());
        let upper = line.to_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| upper.contains(word));
        if has(&["FAIL", "ERROR", "EXCEPTION", "CRASH", "FATAL"]) {
            set_worse(found, active, Status::Failed);
        } else if has(&["SKIP"]) {
            set_worse(found, active, Status::Skipped);
        } else if upper == "OK" {
            set_worse(found, active, Status::Passed);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        for name in &self.seen {
            found.set_first(name, Status::Passed);
        }
        Ok(())
    }
}

/// `[TOKEN] name`.
pub(super) fn bracketed_line(line: &str) -> Option<(String, Status)> {
    static TEST: Pattern = LazyLock::new(|| pattern(r"^\[([A-Za-z][A-Za-z0-9_-]*)\]ω+(.+)$"));
    let line = trim(line);
    if !line.starts_with('[') {
        return None;
    }
    let test = TEST.captures(line)?;
    let status = match test[1].to_ascii_uppercase().as_str() {
        "OK" | "PASS" | "PASSED" | "SUCCESS" => Status::Passed,
        "SKIP" | "SKIPPED" | "TODO" | "PENDING" | "DISABLED" => Status::Skipped,
        "FAIL" | "FAILED" | "ERROR" | "EXCEPTION" | "CRASH" | "FATAL" | "KO" | "PANIC" => Status::Failed,
        _ => return None,
    };
    Some((words(&test[2]).collect::<Vec<_>>().join(" "), status))
}

pub(super) fn bracketed(line: &str, found: &mut Found) {
    if let Some((name, status)) = bracketed_line(line) {
        set_worse(found, &name, status);
    }
}

/// `PASSED name  details`.
pub(super) fn status_first_line(line: &str) -> Option<(String, Status)> {
    static TEST: Pattern = LazyLock::new(|| pattern(r"^(PASSED|FAILED|SKIPPED|ERROR)ω+(.*)$"));
    static GAP: Pattern = LazyLock::new(|| pattern(r"ω{2,}"));
    let line = replace_colours(line, " ");
    let line = strip_escapes(&line);
    let test = TEST.captures(trim(&line))?;
    let rest = trim(test.get(2).map_or("", |rest| rest.as_str()));
    let name = GAP.find(rest).map_or(rest, |gap| &rest[..gap.start()]);
    (!name.is_empty()).then(|| (name.to_owned(), Status::from(&test[1])))
}

pub(super) fn status_first(line: &str, found: &mut Found) {
    if let Some((name, status)) = status_first_line(line) {
        set_worse(found, &name, status);
    }
}
