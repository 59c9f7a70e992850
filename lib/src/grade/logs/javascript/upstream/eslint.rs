//! ESLint: the list of mocha's failures.

use memchr::memmem;

use super::super::super::found::Found;
use super::super::super::scan::Raised;
use super::super::super::status::Status;
use super::super::super::text::{is_digit, is_space};
use super::karma::squeeze;

/// Each `1)` behind two blanks, up to the first line that, behind a blank, says `Error`.
pub(in super::super) fn failures(log: &str, found: &mut Found) -> Result<(), Raised> {
    let mut at = 0;
    while let Some(start) = number(log, at) {
        let Some((end, next)) = error(log, start) else { break };
        found.set(squeeze(&log[start..end]), Status::Failed);
        at = next;
    }
    Ok(())
}

/// What follows the next two blanks, number and `)`.
fn number(log: &str, from: usize) -> Option<usize> {
    let text = &log[from..];
    text.match_indices(')').find_map(|(at, _)| {
        let digits = text[..at].trim_end_matches(is_digit);
        let mut blanks = digits.chars().rev();
        let found =
            digits.len() < at && blanks.next().is_some_and(is_space) && blanks.next().is_some_and(is_space);
        found.then_some(from + at + 1)
    })
}

/// The first run of blanks behind which the same line says `Error`, and where the last `Error` of that line ends.
fn error(log: &str, from: usize) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        let error = at + memmem::find(&log.as_bytes()[at..], b"Error")?;
        // The line of the error, or of the number if that is the same, from a blank on.
        let line = log[at..error].rfind('\n').map_or(at, |feed| at + feed);
        let end = log[error..].find('\n').map_or(log.len(), |feed| error + feed);
        if let Some(blank) = log[line..error].find(is_space) {
            let run = log[..line + blank].trim_end_matches(is_space).len().max(from);
            let last = log[error..end].rfind("Error")?;
            return Some((run, error + last + "Error".len()));
        }
        // `Error` is not behind a blank: perhaps a later one in this line is.
        at = error + "Error".len();
    }
}
