//! Julia's tables of test sets, read by their columns: `Test Summary: | Pass  Fail  Error  Broken  Total  Time`.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::trim;

/// A table whose rows are being read.
#[derive(Default)]
pub(in crate::grade::logs) struct Table {
    /// Each column's name and right end, in characters behind the bar.
    columns: Vec<(String, usize)>,
    /// The sets around a row, with their indentation.
    path: Vec<(usize, String)>,
}

/// Words with the place of their ends, in characters.
fn words_with_ends(text: &str) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut open = false;
    for (at, c) in text.chars().enumerate() {
        if c == ' ' {
            open = false;
        } else if let (true, Some((word, end))) = (open, found.last_mut()) {
            word.push(c);
            *end = at + 1;
        } else {
            found.push((c.to_string(), at + 1));
            open = true;
        }
    }
    found
}

impl Table {
    fn status(&self, cells: &str) -> Option<Status> {
        let mut counts = [("Pass", 0), ("Fail", 0), ("Error", 0), ("Broken", 0), ("Total", 0)];
        let mut seen = false;
        for (word, end) in words_with_ends(cells) {
            let Some((column, _)) = self.columns.iter().find(|(_, right)| *right == end) else { continue };
            if let Some((_, count)) = counts.iter_mut().find(|(name, _)| name == column) {
                *count = word.parse::<u64>().ok()?;
                seen = true;
            }
        }
        if !seen {
            return None;
        }
        let [(_, pass), (_, fail), (_, error), (_, broken), (_, total)] = counts;
        Some(match () {
            () if error > 0 => Status::Error,
            () if fail > 0 => Status::Failed,
            () if pass > 0 => Status::Passed,
            () if broken > 0 => Status::Xfail,
            () if total == 0 => Status::Skipped,
            () => return None,
        })
    }
}

impl Scan for Table {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let Some((name, cells)) = line.split_once('|') else {
            self.columns.clear();
            return Ok(());
        };
        if trim(name) == "Test Summary:" {
            self.columns = words_with_ends(cells);
            self.path.clear();
            return Ok(());
        }
        if self.columns.is_empty() {
            return Ok(());
        }
        let indent = name.len() - name.trim_start_matches(' ').len();
        self.path.retain(|(outer, _)| *outer < indent);
        self.path.push((indent, trim(name).to_owned()));
        if let Some(status) = self.status(cells) {
            let names: Vec<&str> = self.path.iter().map(|(_, name)| name.as_str()).collect();
            found.test(names.join(" > "), status).known_as(trim(name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Rules, parse_log};

    #[test]
    fn columns_tell_what_a_count_means() {
        let log = "Test Summary: | Pass  Fail  Error  Broken  Total  Time\n\
                   outer         |    3     1                    4  0.1s\n\
                   \x20 fails       |    1     1                    2  0.0s\n\
                   \x20 raises      |                 1             1  0.0s\n\
                   \x20 broken      |                         1     1  0.0s\n\
                   \x20 fine        |    2                          2  0.0s\n\
                   ERROR: some | 9 9 text\nother | 1 2\n";
        let map = parse_log("parse_log_julia", log, Rules::Strict).unwrap();
        let found: Vec<String> =
            map.statuses.iter().map(|(name, status)| format!("{name} {status}")).collect();
        assert_eq!(
            found,
            [
                "outer FAILED",
                "outer > broken XFAIL",
                "outer > fails FAILED",
                "outer > fine PASSED",
                "outer > raises ERROR",
            ]
        );
    }
}
