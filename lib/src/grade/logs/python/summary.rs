//! Upstream's rules for pytest's short summary (`-rA`): one token of the line names the test.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::table::Origin;
use super::super::text::{Pattern, is_digit, pattern, words};

const STATUSES: [&str; 5] = ["PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL"];

/// The statuses that the reference knows: `XFAIL` is SWE-bench's alone.
pub(super) fn statuses(origin: Origin) -> &'static [&'static str] {
    if origin == Origin::SweRebench2 { &STATUSES[..4] } else { &STATUSES }
}

fn begins(line: &str, origin: Origin) -> bool {
    statuses(origin).iter().any(|status| line.starts_with(status))
}

/// Upstream turns ` - ` of FAILED lines into a blank before it splits them.
fn without_dash(line: &str) -> Cow<'_, str> {
    if line.starts_with("FAILED") && line.contains(" - ") {
        Cow::Owned(line.replace(" - ", " "))
    } else {
        Cow::Borrowed(line)
    }
}

/// SWE-bench 5 knows that `SKIPPED [2] file:line: reason` names no test.
fn is_count(status: &str, token: &str, origin: Origin) -> bool {
    let digits = token.strip_prefix('[').and_then(|token| token.strip_suffix(']'));
    origin == Origin::SweBench5
        && status == "SKIPPED"
        && digits.is_some_and(|digits| !digits.is_empty() && digits.chars().all(is_digit))
}

/// A summary line: the first token, whatever it is, is the status and the second one makes the name.
pub(super) fn summary(line: &str, origin: Origin, name: fn(&str) -> String, found: &mut Found) {
    if !begins(line, origin) {
        return;
    }
    let line = without_dash(line);
    let mut tokens = words(&line);
    let (Some(status), Some(token)) = (tokens.next(), tokens.next()) else { return };
    if !is_count(status, token, origin) {
        found.set(name(token), Status::from(status));
    }
}

/// The path in a test's parameters cut to its last part.
pub(super) fn shorten_option(token: &str) -> String {
    let Some((open, close)) =
        token.find('[').and_then(|open| Some((open, token.rfind(']')?))).filter(|(open, close)| open < close)
    else {
        return token.to_owned();
    };
    let (main, option) = (&token[..open], &token[open + 1..close]);
    let is_path = option.starts_with('/') && !option.starts_with("//") && !option.contains('*');
    match option.rsplit_once('/').filter(|_| is_path) {
        Some((_, last)) => format!("{main}[/{last}]"),
        None => format!("{main}[{option}]"),
    }
}

/// matplotlib's mouse buttons, whose names depend on its version.
pub(super) fn number_buttons(text: &str) -> Cow<'_, str> {
    if text.contains("MouseButton.") {
        Cow::Owned(text.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A line without colour codes and control characters, as the v2 and nebo parsers clean it.
pub(super) fn clean(line: &str) -> Cow<'_, str> {
    static COLOUR: Pattern = LazyLock::new(|| pattern(r"\[\d+m"));
    let line = if line.contains('[') { COLOUR.replace_all(line, "") } else { Cow::Borrowed(line) };
    let control = |c: char| ('\u{1}'..='\u{1f}').contains(&c);
    if line.contains(control) { Cow::Owned(line.replace(control, "")) } else { line }
}

/// parse_log_pytest_v2: cleaned summary lines, and lines that end with a status.
pub(super) struct V2(pub(super) Origin);

impl Scan for V2 {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = clean(line);
        let first = begins(&line, self.0);
        if !first && !statuses(self.0).iter().any(|status| line.ends_with(status)) {
            return Ok(());
        }
        let result = match self.0 {
            Origin::SweBench5 => whole_names(&line, first),
            _ => two_tokens(&line, first),
        };
        match result {
            Some((name, status)) => found.set(name, status),
            None if self.0 == Origin::SweRebench2 => return Err(Raised("IndexError")),
            None => {}
        }
        Ok(())
    }
}

fn two_tokens(line: &str, first: bool) -> Option<(String, Status)> {
    let line = if first { without_dash(line) } else { Cow::Borrowed(line) };
    let mut tokens = words(&line);
    let (one, two) = (tokens.next()?, tokens.next()?);
    let (name, status) = if first { (two, one) } else { (one, two) };
    Some((name.to_owned(), Status::from(status)))
}

/// SWE-bench 5: every token but the status makes the name, blanks between them made one.
fn whole_names(line: &str, first: bool) -> Option<(String, Status)> {
    let cut = if line.starts_with("FAILED") { line.split(" - ").next().unwrap_or(line) } else { line };
    let mut tokens: Vec<&str> = words(cut).collect();
    if tokens.len() < 2 {
        return None;
    }
    let status = if first { tokens.remove(0) } else { tokens.pop()? };
    let count = first && is_count(status, tokens[0], Origin::SweBench5);
    (!count).then(|| (tokens.join(" "), Status::from(status)))
}

/// parse_log_seaborn: summary lines of passed and failed tests, and `-v` lines of passed ones.
pub(super) struct Seaborn(pub(super) Origin);

impl Scan for Seaborn {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let (failed, inside) = (line.starts_with("FAILED"), line.contains(" PASSED "));
        if !failed && !inside && !line.starts_with("PASSED") {
            return Ok(());
        }
        let mut tokens = words(line);
        let (Some(one), Some(two)) = (tokens.next(), tokens.next()) else {
            return if self.0 == Origin::SweBench5 { Ok(()) } else { Err(Raised("IndexError")) };
        };
        if failed {
            found.set(two, Status::Failed);
        } else if !inside {
            found.set(two, Status::Passed);
        } else if two == "PASSED" {
            found.set(one, Status::Passed);
        }
        Ok(())
    }
}
