//! What happened under bats, in its pretty format: `   name1/3 ✓ name`, once the control sequences are gone with
//! which it moves about in the line.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;

/// Reads bats's pretty format.
#[derive(Default)]
pub(super) struct Pretty {
    /// A test that began, and where: its name and `1/3`.
    begun: Option<(usize, String)>,
}

const MARKS: [(&str, Status); 3] =
    [(" ✓ ", Status::Passed), (" ✗ ", Status::Failed), (" - ", Status::Skipped)];

impl Scan for Pretty {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if let Some((at, head)) = &self.begun
            && let Some((name, status)) = result(head, line)
        {
            found.test_at(*at, name, status);
            self.begun = None;
        } else if let Some(head) = line.strip_prefix("   ") {
            let marks = MARKS.iter().flat_map(|(mark, _)| head.match_indices(mark));
            let whole = marks.filter_map(|(at, _)| result(&head[..at], &head[at..])).next();
            if let Some((name, status)) = whole {
                found.test(name, status);
                self.begun = None;
            } else if counted(head).next().is_some() {
                self.begun = Some((found.line(), head.to_owned()));
            }
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        if let Some((at, head)) = self.begun.take()
            && let Some(name) = counted(&head).next()
        {
            found.test_at(at, name, Status::Error);
        }
        Ok(())
    }
}

/// The result of the test of which `head` is the name and the count.
fn result<'a>(head: &'a str, line: &str) -> Option<(&'a str, Status)> {
    let (text, status) =
        MARKS.iter().find_map(|(mark, status)| Some((line.strip_prefix(mark)?, status.clone())))?;
    let name = counted(head).find(|name| {
        text.strip_prefix(name).is_some_and(|rest| match status {
            Status::Skipped => rest.starts_with(" (skipped"),
            _ => rest.is_empty() || (rest.starts_with(" [") && rest.ends_with(']')),
        })
    })?;
    Some((name, status))
}

/// What may be the name in `name1/3` or `name1/3 in 2 sec`: without one digit before the slash, two and so on.
fn counted(head: &str) -> impl Iterator<Item = &str> {
    let digit = |c: char| c.is_ascii_digit();
    let text = head.strip_suffix(" sec").unwrap_or(head).trim_end_matches(digit);
    let text = text.strip_suffix(" in ").map_or(head, |text| text);
    let slash = text.trim_end_matches(digit);
    let number = slash.strip_suffix('/').filter(|_| slash.len() < text.len()).unwrap_or_default();
    let most = number.len() - number.trim_end_matches(digit).len();
    (1..=most).map(|count| &number[..number.len() - count])
}
