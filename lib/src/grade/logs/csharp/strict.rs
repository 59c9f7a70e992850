//! What `dotnet test` really says.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::upstream;

/// Reads the console of vstest (normal and detailed) and of xUnit.net.
pub(super) fn dotnet() -> Box<dyn Scan> {
    Box::new(Dotnet::default())
}

#[derive(Default)]
struct Dotnet {
    /// Whether the lines are what a test printed.
    printed: bool,
}

impl Scan for Dotnet {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if line.trim().is_empty() {
            self.printed = false;
        } else if line.trim_start().starts_with("Standard Output Messages:") {
            self.printed = true;
        } else if !self.printed {
            result_line(line.trim_end(), found);
        }
        Ok(())
    }
}

fn result_line(line: &str, found: &mut Found) {
    if let Some((name, status)) = vstest(line).or_else(|| xunit(line)) {
        let alias = upstream::result(line).filter(|(_, told)| *told == status).map(|(name, _)| name);
        found.test(name, status).known_as(alias.unwrap_or(name));
    } else if is_build_error(line) {
        found.broken(line.trim(), true);
    } else if line.starts_with("The active test run was aborted") || line.starts_with("Test Run Aborted") {
        found.broken(line, false);
    }
}

/// `  Passed name [3 ms]`, indented by two blanks; a name may hold brackets.
fn vstest(line: &str) -> Option<(&str, Status)> {
    let body = line.strip_prefix("  ")?;
    let (word, rest) = body.split_once(' ')?;
    let status = match word {
        "Passed" => Status::Passed,
        "Failed" => Status::Failed,
        "Skipped" => Status::Skipped,
        _ => return None,
    };
    let name = match rest.strip_suffix(']').and_then(|inner| inner.rsplit_once(" [")) {
        Some((name, duration)) if is_duration(duration) => name,
        _ if status == Status::Skipped => rest,
        _ => return None,
    };
    (!name.trim().is_empty()).then_some((name, status))
}

/// `< 1 ms`, `3 ms`, `1 m 2 s`.
fn is_duration(text: &str) -> bool {
    let mut words = text.strip_prefix("< ").unwrap_or(text).split(' ').peekable();
    words.peek().is_some()
        && std::iter::from_fn(|| words.next().map(|number| (number, words.next()))).all(|(number, unit)| {
            let digits = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',');
            !number.is_empty()
                && digits
                && unit.is_some_and(|unit| ["ms", "s", "m", "h", "d"].contains(&unit))
        })
}

/// `[xUnit.net 00:00:01.23]     name [FAIL]`.
fn xunit(line: &str) -> Option<(&str, Status)> {
    let (_, rest) = line.strip_prefix("[xUnit.net ")?.split_once("]     ")?;
    let (name, status) = match rest.strip_suffix(" [FAIL]") {
        Some(name) => (name, Status::Failed),
        None => (rest.strip_suffix(" [SKIP]")?, Status::Skipped),
    };
    // Details of a failure are indented further.
    (!name.is_empty() && !name.starts_with(' ')).then_some((name, status))
}

/// `File.cs(1,2): error CS0103: …`.
fn is_build_error(line: &str) -> bool {
    line.contains("): error ")
        && line.split_once("): error ").is_some_and(|(_, rest)| {
            let code = rest.split_once(':').map_or("", |(code, _)| code);
            !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}
