//! cucumber's progress behind a scenario's name: `F` failed, `-`, `U` and `P` did not run, only dots passed. Any text may
//! end in dots: the scenarios count if there are as many as the summary tells.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};
use super::upstream::cucumber_line;

#[derive(Default)]
pub(in crate::grade::logs) struct Scenarios {
    /// Line, name, upstream's name, status.
    seen: Vec<(usize, String, Option<String>, Status)>,
}

fn scenario(line: &str) -> Option<(&str, Status)> {
    let (name, marks) = trim(line).rsplit_once(' ')?;
    let known = marks.starts_with(['.', 'F', 'U', 'P', '-']) && marks.chars().all(|c| ".F-UPA".contains(c));
    if !known || name.is_empty() {
        return None;
    }
    let status = match () {
        () if marks.contains(['F', 'A']) => Status::Failed,
        () if marks.contains(['U', 'P', '-']) => Status::Skipped,
        () => Status::Passed,
    };
    Some((name, status))
}

impl Scan for Scenarios {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static SUMMARY: Pattern = LazyLock::new(|| pattern(r"^(\d+) scenarios?(?: \(|$)"));
        let line = trim(line);
        if let Some(summary) = SUMMARY.captures(line) {
            let told: Option<usize> = summary[1].parse().ok();
            if told == Some(self.seen.len()) {
                for (line, name, alias, status) in self.seen.drain(..) {
                    let test = found.test_at(line, name, status);
                    if let Some(alias) = alias {
                        test.known_as(alias);
                    }
                }
            } else if !self.seen.is_empty() {
                found.broken(
                    format!("{} scenarios ran, {} are seen: none is believed", &summary[1], self.seen.len()),
                    false,
                );
                self.seen.clear();
            }
        } else if let Some((name, status)) = scenario(line) {
            let alias = cucumber_line(line).map(|(name, _)| name.to_owned());
            self.seen.push((found.line(), name.to_owned(), alias, status));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Rules, parse_log};

    #[test]
    fn dots_are_believed_only_with_their_summary() {
        let log = "Scenario a ....F-\nScenario b ....\nScenario c .\nScenario d --\n\n4 scenarios (1 failed, 1 skipped, 2 passed)\n";
        let strict = |log: &str| -> Vec<String> {
            let map = parse_log("parse_log_cucumber", log, Rules::Strict).unwrap();
            map.statuses.iter().map(|(name, status)| format!("{name} {status}")).collect()
        };
        assert_eq!(
            strict(log),
            ["Scenario a FAILED", "Scenario b PASSED", "Scenario c PASSED", "Scenario d SKIPPED"]
        );
        assert!(strict("Loading plugins ...\n").is_empty());
        assert!(strict(&format!("Loading plugins ...\n{log}")).is_empty());
    }
}
