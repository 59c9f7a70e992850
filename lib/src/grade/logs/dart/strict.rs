//! Dart's expanded output: a line when a test starts, another with `[E]` when it fails; the counters tell the rest.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};

/// Tests that have begun. They passed when the run's last line is there and nothing else was said of them.
#[derive(Default)]
pub(in crate::grade::logs) struct Expanded {
    begun: Vec<(usize, String)>,
    counts: [u64; 3],
}

impl Expanded {
    fn close(&mut self, status: &Status, found: &mut Found) {
        for (line, name) in self.begun.drain(..) {
            if found.status(&name).is_none() {
                found.test_at(line, name, status.clone());
            }
        }
    }
}

impl Scan for Expanded {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static TEST: Pattern =
            LazyLock::new(|| pattern(r"^(?:\[\w+\]:ω+)?\d+:\d+ω+\+(\d+)(?:ω+~(\d+))?(?:ω+-(\d+))?:ω+(.+)$"));
        let line = trim(line);
        if !line.contains('+') {
            return Ok(());
        }
        let Some(test) = TEST.captures(line) else { return Ok(()) };
        let count = |group| test.get(group).and_then(|count| count.as_str().parse().ok()).unwrap_or(0);
        let counts: [u64; 3] = [count(1), count(2), count(3)];
        let title = &test[4];
        if let Some(path) = title.strip_prefix("loading ") {
            if let Some(path) = path.strip_suffix(" [E]") {
                found.broken(format!("{path} could not be loaded"), true);
                found.group(path, Status::Error);
            }
        } else if title.starts_with("All tests passed!") || title.starts_with("Some tests failed.") {
            self.close(&Status::Passed, found);
        } else if let Some(name) = title.strip_suffix(" [E]") {
            found.test(name, Status::Failed);
        } else {
            // The counter of skipped tests grew: the test before this line was skipped.
            if counts[1] > self.counts[1]
                && let Some((line, name)) = self.begun.pop_if(|(_, begun)| begun != title)
            {
                found.test_at(line, name, Status::Skipped);
            }
            if !self.begun.iter().rev().take(8).any(|(_, name)| name == title) {
                self.begun.push((found.line(), title.to_owned()));
            }
        }
        self.counts = counts;
        Ok(())
    }

    /// Without the run's last line nobody knows how these ended.
    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.close(&Status::Error, found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Rules, parse_log};

    #[test]
    fn the_last_line_decides_what_passed() {
        let log = "00:00 +0: loading /t/a.dart\n00:01 +0: /t/a.dart: one\n00:01 +1: /t/a.dart: two\n00:02 +1 -1: /t/a.dart: two [E]\n\
                   00:02 +1 -1: /t/a.dart: three\n00:03 +1 ~1 -1: /t/a.dart: four\n00:03 +1 ~1 -2: loading /t/b.dart [E]\n";
        let strict = |log: &str| -> Vec<String> {
            let map = parse_log("parse_log_dart_v3", log, Rules::Strict).unwrap();
            map.statuses.iter().map(|(name, status)| format!("{name} {status}")).collect()
        };
        let ended = format!("{log}00:04 +2 ~1 -2: Some tests failed.\n");
        assert_eq!(
            strict(&ended),
            [
                "/t/a.dart: four PASSED",
                "/t/a.dart: one PASSED",
                "/t/a.dart: three SKIPPED",
                "/t/a.dart: two FAILED",
            ]
        );
        assert_eq!(
            strict(log),
            [
                "/t/a.dart: four ERROR",
                "/t/a.dart: one ERROR",
                "/t/a.dart: three SKIPPED",
                "/t/a.dart: two FAILED"
            ]
        );
    }
}
