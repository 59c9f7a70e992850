//! testthat's reporters and R CMD check.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};
use super::upstream::{check_status, context_line, failure_line};

/// testthat: contexts (files) are groups; tests are named where they did not pass.
pub(super) fn testthat(line: &str, found: &mut Found) {
    static NAMED: Pattern = LazyLock::new(|| {
        pattern(r"^(?:──|--) (?:\d+\. )?(Failure|Error|Skipped|Skip|Warning) \([^)]+\): (.+?)(?: [─-]+)?$")
    });
    let line = trim(line);
    if let Some((name, status)) = context_line(line) {
        found.group(name, status);
    } else if let Some((name, status)) = failure_line(line) {
        found.test(name, status);
    } else if let Some(named) = NAMED.captures(line) {
        let status = match &named[1] {
            "Failure" => Status::Failed,
            "Error" => Status::Error,
            "Warning" => return,
            _ => Status::Skipped,
        };
        found.test(&named[2], status);
    }
}

/// R CMD check: a check's result stands in its line, behind a time or not, or in a later one.
#[derive(Default)]
pub(in crate::grade::logs) struct Check {
    pending: Option<(usize, String)>,
}

impl Scan for Check {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static CHECK: Pattern =
            LazyLock::new(|| pattern(r"^\* checking (.+?) \.\.\.(?: \[[\d./smh]+\])?(?: ([A-Z]+))?$"));
        static LATER: Pattern = LazyLock::new(|| pattern(r"^ ?(OK|NOTE|WARNING|ERROR|SKIPPED)$"));
        if let Some(check) = CHECK.captures(line) {
            self.end(found)?;
            match check.get(2).map(|word| check_status(word.as_str())) {
                Some(Some(status)) => {
                    found.test(&check[1], status);
                }
                Some(None) => {}
                None => self.pending = Some((found.line(), check[1].to_owned())),
            }
        } else if let Some(word) = LATER.captures(line)
            && let Some((at, name)) = self.pending.take()
            && let Some(status) = check_status(&word[1])
        {
            found.test_at(at, name, status);
        }
        Ok(())
    }

    /// A check without a result was cut off.
    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        if let Some((line, name)) = self.pending.take() {
            found.test_at(line, name, Status::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Rules, parse_log};

    #[test]
    fn results_are_read_wherever_they_stand() {
        let log = "* checking a ... OK\n* checking b ...\n  blah\n NOTE\n* checking c ... [12s/13s] OK\n* checking d ... FOO\n\
                   * checking tests ...\n  Running 'x.R'\n ERROR\n* checking e ...\n";
        let map = parse_log("parse_log_r_v2", log, Rules::Strict).unwrap();
        let found: Vec<String> =
            map.statuses.iter().map(|(name, status)| format!("{name} {status}")).collect();
        assert_eq!(found, ["a PASSED", "b PASSED", "c PASSED", "e ERROR", "tests ERROR"]);
    }

    #[test]
    fn contexts_are_groups() {
        let log =
            "✔ | 60 | expansion [1.2s]\n✖ | 2 2 9 | render\n── Failure (test-a.R:8:5): my test ──────\nx\n";
        let map = parse_log("parse_log_r", log, Rules::Strict).unwrap();
        assert_eq!(
            map.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(),
            ["expansion", "render"]
        );
        assert_eq!(map.statuses.keys().collect::<Vec<_>>(), ["my test"]);
    }
}
