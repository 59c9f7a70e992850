//! parse_log_pytest_nebo: xdist lines, timed `-v` lines and summary lines, ids whole.

use super::super::found::Found;
use super::super::status::Status;
use super::super::table::Origin;
use super::super::text::{is_digit, is_space, is_word, trim, trim_end};
use super::summary::{clean, statuses};

/// Upstream's rule.
pub(super) fn upstream(line: &str, found: &mut Found) {
    let line = clean(line);
    let line = trim(&line);
    if let Some((name, status)) = worker(line).or_else(|| timed(line)).or_else(|| status_first(line)) {
        found.set(name, Status::from(status));
    }
}

/// The name that upstream's rule gives to a test of this id.
pub(super) fn name(id: &str) -> &str {
    trim(id.split(" in ").next().unwrap_or(id))
}

/// `[gw0] [ 50%] PASSED id`
fn worker(line: &str) -> Option<(&str, &str)> {
    let digits = line.strip_prefix("[gw")?;
    let rest = digits.trim_start_matches(is_digit);
    let rest = spaces(rest.strip_prefix(']').filter(|_| rest.len() < digits.len())?)?;
    let rest = spaces(rest.strip_prefix('[')?.split_once(']')?.1)?;
    let (status, rest) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
    let rest = spaces(rest)?;
    statuses(Origin::SweRebench2).contains(&status).then(|| (name(rest), status))
}

/// `id PASSED [ 3%] in 0.02s`; the shortest id counts.
fn timed(line: &str) -> Option<(&str, &str)> {
    let (rest, time) = line.rsplit_once(is_space)?;
    let (whole, part) = time.strip_suffix('s').map(|time| time.split_once('.').unwrap_or((time, "0")))?;
    let number = |digits: &str| !digits.is_empty() && digits.chars().all(is_digit);
    if !number(whole) || !number(part) {
        return None;
    }
    let rest = trim_end(rest).strip_suffix("in").filter(|rest| rest.ends_with(is_space))?;
    let body = trim_end(rest).strip_suffix(']')?;
    let from = body.rfind(']').map_or(0, |at| at + 1);
    body[from..].match_indices('[').find_map(|(at, _)| {
        let before = &body[..from + at];
        let head = trim_end(before);
        let status = statuses(Origin::SweRebench2).iter().find(|status| head.ends_with(**status))?;
        let name = head.strip_suffix(status)?;
        let fits = head.len() < before.len() && name.ends_with(is_space);
        Some((trim(name), *status)).filter(|(name, _)| fits && !name.is_empty())
    })
}

/// `PASSED id`
fn status_first(line: &str) -> Option<(&str, &str)> {
    let status = statuses(Origin::SweRebench2).iter().find(|status| line.starts_with(**status))?;
    Some((name(spaces(&line[status.len()..])?), status))
}

/// The text behind one or more blanks.
fn spaces(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(is_space);
    (rest.len() < text.len()).then_some(rest)
}
