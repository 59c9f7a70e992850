//! One rule for jest, vitest, playwright and mocha: a mark, and a name.

use super::super::super::status::Status;
use super::super::super::text::{strip_duration, trim};
use super::super::rule::Hit;

const SKIP_MARKERS: [&str; 5] = ["(skipped)", "[skip]", "[skipped]", "[pending]", "[todo]"];

/// Lines that begin with one of nine marks, and lines with a marker such as `[skipped]`.
pub(in super::super) fn marks(line: &str) -> Option<Hit> {
    let line = trim(line);
    let mark = line.chars().next()?;
    let status = match mark {
        '✔' | '✓' => Status::Passed,
        '✘' | '✖' | '×' => Status::Failed,
        '○' | '◌' | '◦' | '⚪' => Status::Skipped,
        _ => {
            let text = without_skip_marker(line)?;
            let name = strip_duration(&text);
            return (!name.is_empty()).then(|| (name.to_owned(), Status::Skipped));
        }
    };
    let name = strip_duration(without_tag(&line[mark.len_utf8()..]));
    (!name.is_empty()).then(|| (name.to_owned(), status))
}

/// The line without markers such as `[skipped]`, where it has one in any case of letters.
pub(in super::super) fn without_skip_marker(line: &str) -> Option<String> {
    if !line.contains(['(', '[']) {
        return None;
    }
    let lower = line.to_lowercase();
    SKIP_MARKERS
        .iter()
        .any(|marker| lower.contains(marker))
        .then(|| SKIP_MARKERS.iter().fold(line.to_owned(), |text, marker| text.replace(marker, "")))
}

/// The payload without a project's tag (`[chromium]: `).
pub(in super::super) fn without_tag(payload: &str) -> &str {
    let mut rest = trim(payload);
    if rest.starts_with('[')
        && let Some((_, after)) = rest.split_once("]:")
    {
        rest = trim(after);
    }
    rest.strip_prefix(':').map_or(rest, trim)
}
