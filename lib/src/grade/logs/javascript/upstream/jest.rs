//! jest: `--verbose`, JSON flattened to lines, lines of files, and Calypso's tree.

use super::super::super::scan::Raised;
use super::super::super::status::Status;
use super::super::super::text::{is_digit, is_space, trim, trim_end};
use super::super::rule::{Hit, Rule};
use super::without_digits;

/// A name behind one of three marks and one blank.
pub(in super::super) fn verbose(line: &str) -> Option<Hit> {
    let line = trim(line);
    let status = match line.chars().next()? {
        '✓' => Status::Passed,
        '✕' => Status::Failed,
        '○' => Status::Skipped,
        _ => return None,
    };
    let mut rest = line.chars();
    rest.next();
    let name = rest.as_str().strip_prefix(is_space).filter(|name| !name.is_empty())?;
    let name = without_time(name).filter(|name| !name.is_empty()).unwrap_or(name);
    Some((name.to_owned(), status))
}

/// As [`verbose`], blanks around the name removed.
pub(in super::super) fn verbose_trimmed(line: &str) -> Option<Hit> {
    verbose(line).map(|(name, status)| (trim(&name).to_owned(), status))
}

/// Without ` (5 ms)` at the end: whole milliseconds or seconds.
fn without_time(name: &str) -> Option<&str> {
    let rest = name.strip_suffix(')')?.strip_suffix('s')?;
    let rest = trim_end(rest.strip_suffix('m').unwrap_or(rest));
    without_digits(rest)?.strip_suffix('(')?.strip_suffix(is_space)
}

/// `[PASSED] a > b` and `[FAILED] a > b`.
pub(in super::super) fn json_lines(line: &str) -> Option<Hit> {
    let line = trim(line);
    let (status, rest) = [("[PASSED]", Status::Passed), ("[FAILED]", Status::Failed)]
        .into_iter()
        .find_map(|(word, status)| Some((status, line.strip_prefix(word)?)))?;
    let name = rest.strip_prefix(is_space).filter(|name| !name.is_empty())?;
    Some((name.to_owned(), status))
}

/// [`verbose_trimmed`] and [`json_lines`]: SWE-bench 5 chooses by the task's number, of which each task's log
/// has lines of one kind only.
pub(in super::super) fn verbose_trimmed_or_json_lines(line: &str) -> Option<Hit> {
    verbose_trimmed(line).or_else(|| json_lines(line))
}

/// As [`verbose_trimmed_or_json_lines`], of SWE-bench 4.
pub(in super::super) fn verbose_or_json_lines(line: &str) -> Option<Hit> {
    verbose(line).or_else(|| json_lines(line))
}

fn file(line: &str) -> Option<(&str, Status)> {
    [("PASS", Status::Passed), ("FAIL", Status::Failed)]
        .into_iter()
        .find_map(|(word, status)| Some((line.strip_prefix(word)?.strip_prefix(is_space)?, status)))
}

/// A file behind `PASS` or `FAIL`, a time at the end removed.
pub(in super::super) fn files(line: &str) -> Option<Hit> {
    let (rest, status) = file(line)?;
    Some((trim_end(without_file_time(rest).unwrap_or(rest)).to_owned(), status))
}

fn without_file_time(rest: &str) -> Option<&str> {
    let rest = rest.strip_suffix(')')?.strip_suffix('s')?;
    let rest = trim_end(rest.strip_suffix('m').unwrap_or(rest));
    without_decimals(rest)?.strip_suffix('(')?.strip_suffix(is_space)
}

fn without_decimals(text: &str) -> Option<&str> {
    let rest = text.trim_end_matches(|c| c == '.' || is_digit(c));
    (rest.len() < text.len()).then_some(rest)
}

/// As [`files`], but the last time anywhere in the line is cut with all that follows it: `ms` before ` s` before `s`.
pub(in super::super) fn files_cut(line: &str) -> Option<Hit> {
    let (rest, status) = file(line)?;
    let name = ["ms)", " s)", "s)"].into_iter().find_map(|unit| before_time(rest, unit)).unwrap_or(rest);
    Some((name.to_owned(), status))
}

fn before_time<'a>(rest: &'a str, unit: &str) -> Option<&'a str> {
    let end = unit.trim_start();
    rest.rmatch_indices(end).find_map(|(at, _)| {
        let before = &rest[..at];
        let before = if end.len() < unit.len() { before.strip_suffix(is_space)? } else { before };
        without_decimals(before)?.strip_suffix('(')?.strip_suffix(is_space)
    })
}

/// The tree behind each call of jest; `raises` is what the reference does where a marked line has not the form that
/// it awaits.
pub(in super::super) fn calypso(raises: &'static str) -> Rule {
    let mut tree = Calypso { raises, reading: false, suites: Vec::new() };
    Box::new(move |line| tree.line(line))
}

struct Calypso {
    raises: &'static str,
    reading: bool,
    suites: Vec<(usize, String)>,
}

impl Calypso {
    fn line(&mut self, line: &str) -> Result<Vec<Hit>, Raised> {
        let mut hits = Vec::new();
        for (at, piece) in line.split(" ./node_modules/.bin/jest ").enumerate() {
            self.reading |= at > 0;
            if self.reading {
                hits.extend(self.piece(piece)?);
            }
        }
        Ok(hits)
    }

    fn piece(&mut self, line: &str) -> Result<Option<Hit>, Raised> {
        if line.starts_with("Test Suites") || line.starts_with("  ● ") {
            self.reading = false;
            return Ok(None);
        }
        let text = line.trim_start_matches(is_space);
        let (mark, status) = match text.chars().next() {
            Some(mark @ '✓') => (mark, Status::Passed),
            Some(mark @ '✕') => (mark, Status::Failed),
            _ => {
                if text.len() < line.len() {
                    let indent = line[..line.len() - text.len()].chars().count();
                    self.suites.truncate(
                        self.suites.iter().rposition(|(outer, _)| *outer < indent).map_or(0, |at| at + 1),
                    );
                    self.suites.push((indent, trim(text).to_owned()));
                }
                return Ok(None);
            }
        };
        let name = if text.len() < line.len() { calypso_name(&text[mark.len_utf8()..]) } else { None };
        let name = name.ok_or(Raised(self.raises))?;
        let suites = self.suites.iter().map(|(_, suite)| suite.as_str()).collect::<Vec<_>>().join(" - ");
        Ok(Some((trim(&format!("{suites} - {name}")).to_owned(), status)))
    }
}

/// What stands behind the mark, its time removed, which must be at the end.
fn calypso_name(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix(is_space)?;
    let before_time = |at: usize| without_digits(&rest[..at])?.strip_suffix('(');
    if !rest.match_indices("ms)").any(|(at, _)| before_time(at).is_some()) {
        return Some(rest);
    }
    before_time(rest.strip_suffix("ms)")?.len())
}
