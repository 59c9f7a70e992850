//! The reference rule for Julia's tables of test sets.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, integer, is_digit, is_space, pattern, trim, words};

/// Which columns the table has that is being read.
#[derive(Default)]
pub(in crate::grade::logs) struct Table {
    begun: bool,
    fail: bool,
    error: bool,
}

impl Scan for Table {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static ROW: Pattern = LazyLock::new(|| pattern(r"^ω*(.+?)ω+\|(.+)$"));
        if line.contains("Test Summary:") {
            self.begun = true;
            if line.contains("| Pass") {
                let header = line.split('|').nth(1).unwrap_or_default();
                (self.fail, self.error) = (header.contains("Fail"), header.contains("Error"));
            }
            return Ok(());
        }
        if !self.begun || !line.contains('|') {
            return Ok(());
        }
        let Some(row) = ROW.captures(line) else { return Ok(()) };
        if let Some(status) = self.status(&row[2])? {
            found.set(trim(&row[1]), status);
        }
        Ok(())
    }
}

impl Table {
    fn status(&self, columns: &str) -> Result<Option<Status>, Raised> {
        let counts: Vec<&str> = words(columns).filter(|word| word.chars().all(is_digit_like)).collect();
        let [first, .., last] = counts.as_slice() else { return Ok(None) };
        let number = |text: &str| integer(text).ok_or(Raised("ValueError"));
        let positive = |text: &str| number(text).map(|number| number != "0");
        let total = number(last)?;
        let status = match counts.as_slice() {
            [_, _] => {
                let first = number(first)?;
                let blanks = columns.chars().take_while(|c| is_space(*c)).count();
                if blanks >= 10 || first != total { Status::Error } else { Status::Passed }
            }
            [_, middle, _] if !positive(middle)? => Status::Passed,
            [_, _, _] if self.fail && !self.error => Status::Failed,
            [_, _, _] => Status::Error,
            [_, failed, errors, ..] => {
                let (failed, errors) = (positive(failed)?, positive(errors)?);
                match (errors, failed) {
                    (true, _) => Status::Error,
                    (false, true) => Status::Failed,
                    (false, false) => Status::Passed,
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(status))
    }
}

/// Python's `str.isdigit`: decimal digits, and digits that stand for one without a place value (superscripts,
/// circled ones, …).
fn is_digit_like(c: char) -> bool {
    const OTHERS: [(u32, u32); 20] = [
        (0xb2, 0xb3),
        (0xb9, 0xb9),
        (0x1369, 0x1371),
        (0x19da, 0x19da),
        (0x2070, 0x2070),
        (0x2074, 0x2079),
        (0x2080, 0x2089),
        (0x2460, 0x2468),
        (0x2474, 0x247c),
        (0x2488, 0x2490),
        (0x24ea, 0x24ea),
        (0x24f5, 0x24fd),
        (0x24ff, 0x24ff),
        (0x2776, 0x277e),
        (0x2780, 0x2788),
        (0x278a, 0x2792),
        (0x10a40, 0x10a43),
        (0x10e60, 0x10e68),
        (0x11052, 0x1105a),
        (0x1f100, 0x1f10a),
    ];
    let code = u32::from(c);
    is_digit(c) || OTHERS.iter().any(|(first, last)| (*first..=*last).contains(&code))
}
