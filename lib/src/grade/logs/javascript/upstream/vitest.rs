//! vitest's verbose reporter.

use super::super::super::status::Status;
use super::super::super::text::{is_space, trim, trim_end};
use super::super::rule::Hit;
use super::without_digits;

/// A name behind one of three marks; a number at the end counts as a duration.
pub(in super::super) fn verbose(line: &str) -> Option<Hit> {
    let line = trim(line);
    let status = match line.chars().next()? {
        '✓' => Status::Passed,
        '×' => Status::Failed,
        '↓' => Status::Skipped,
        _ => return None,
    };
    let mut rest = line.chars();
    rest.next();
    let name = rest.as_str().strip_prefix(is_space).filter(|name| !name.is_empty())?;
    let name = without_extra(name).filter(|name| !name.is_empty()).unwrap_or(name);
    Some((name.to_owned(), status))
}

fn without_extra(name: &str) -> Option<&str> {
    let rest = match name.strip_suffix("[skipped]") {
        Some(rest) => rest,
        None => {
            let rest = name.strip_suffix('s').unwrap_or(name);
            without_digits(trim_end(rest.strip_suffix('m').unwrap_or(rest)))?
        }
    };
    rest.strip_suffix(is_space)
}
