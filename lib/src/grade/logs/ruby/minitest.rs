//! What happened under minitest: verbose lines, reporters' lines, and the list of failures, which is all that the
//! default progress tells.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, is_space, pattern, trim};
use super::upstream;

/// The name that upstream gives to a result's line.
pub(super) type Known = fn(suite: &str, line: &str) -> Option<String>;

/// Reads minitest's output.
pub(super) struct Minitest {
    known: Known,
    /// A test whose line began, and what stands in that line.
    begun: Option<(usize, String, String)>,
    /// The class above the lines of a reporter.
    suite: String,
    /// The kind of the entry of the list of failures that the next line names.
    entry: Option<Status>,
    finished: bool,
    /// Whether the run's options say that it is not verbose, so that such lines are what tests printed.
    quiet: bool,
}

impl Minitest {
    pub(super) fn open(known: Known) -> Box<dyn Scan> {
        Box::new(Self {
            known,
            begun: None,
            suite: String::new(),
            entry: None,
            finished: false,
            quiet: false,
        })
    }

    /// `Class#test = 0.00 s = .`, which a test's output may cut in two.
    fn verbose(&mut self, line: &str, found: &mut Found) {
        if let Some((at, name, head)) = self.begun.take() {
            match ending(line) {
                Some(status) if begins(line).is_none() => {
                    let alias = (self.known)("", &format!("{head}{}", clock(line)));
                    found.test_at(at, &name, status).known_as(alias.unwrap_or(name));
                }
                _ => self.begun = Some((at, name, head)),
            }
        } else if let Some((name, rest)) = begins(line) {
            match ending(rest).filter(|_| rest == clock(rest)) {
                Some(status) => {
                    let alias = (self.known)("", line).unwrap_or_else(|| name.to_owned());
                    found.test(name, status).known_as(alias);
                }
                None => {
                    let head = &line[..line.len() - rest.len()];
                    self.begun = Some((found.line(), name.to_owned(), head.to_owned()));
                    // A test that prints without a line break ends in the line in which it began.
                    if begins(rest).is_none()
                        && let Some(status) = ending(rest)
                    {
                        self.begun = None;
                        let alias = (self.known)("", &format!("{head}{}", clock(rest)));
                        found.test(name, status).known_as(alias.unwrap_or_else(|| name.to_owned()));
                    }
                }
            }
        }
    }

    /// `  test_name    PASS (0.01s)` below the line of its class.
    fn reported(&mut self, line: &str, found: &mut Found) -> bool {
        static TEST: Pattern = LazyLock::new(|| pattern(r"ω(PASS|FAIL|ERROR|SKIP)(?:ω+\(\d+\.\d+s\))?$"));
        if !line.starts_with(is_space) {
            if !line.is_empty() && line.chars().all(|c| !is_space(c)) || upstream::is_suite(line) {
                line.clone_into(&mut self.suite);
            }
            return false;
        }
        let Some(result) = TEST.captures(line).filter(|_| !self.suite.is_empty()) else { return false };
        let status = match &result[1] {
            "PASS" => Status::Passed,
            "FAIL" => Status::Failed,
            "ERROR" => Status::Error,
            _ => Status::Skipped,
        };
        let name = trim(&line[..line.len() - result[0].len()]);
        if name.starts_with("test") {
            let alias = (self.known)(&self.suite, line);
            let name = format!("{}#{name}", self.suite);
            found.test(&name, status).known_as(alias.unwrap_or(name));
        }
        true
    }

    /// The list of failures: `  1) Failure:`, then `Class#test [file:1]:`.
    fn listed(&mut self, line: &str, found: &mut Found) {
        static ENTRY: Pattern = LazyLock::new(|| pattern(r"^ +\d+\) (Failure|Error|Skipped):$"));
        static PLACE: Pattern = LazyLock::new(|| pattern(r"(?: \[[^\[\]]*:\d+\])?:$"));
        if let Some(status) = self.entry.take() {
            if let Some(place) = PLACE.find(line).filter(|place| line[..place.start()].contains('#')) {
                found.test(&line[..place.start()], status);
            }
        } else if let Some(entry) = ENTRY.captures(line) {
            self.entry = Some(match &entry[1] {
                "Failure" => Status::Failed,
                "Error" => Status::Error,
                _ => Status::Skipped,
            });
        }
    }
}

impl Scan for Minitest {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if line.starts_with("Finished in ") {
            self.finished = true;
        } else if let Some(options) = line.strip_prefix("Run options: ") {
            self.finished = false;
            self.quiet = !options.split(' ').any(|option| matches!(option, "-v" | "--verbose"));
        } else if self.finished {
            self.listed(line, found);
        } else if !self.reported(line, found) && !self.quiet {
            self.verbose(line, found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        if let Some((at, name, _)) = self.begun.take() {
            found.test_at(at, name, Status::Error);
        }
        Ok(())
    }
}

/// The name of a test whose line this is, and what follows `Class#test = `. Of several ` = ` the last one before
/// the time counts, for names hold them too.
fn begins(line: &str) -> Option<(&str, &str)> {
    let hash = line.find('#').filter(|hash| *hash > 0)?;
    let body = line.strip_suffix(clock(line)).unwrap_or(line);
    let whole =
        body.len() < line.len() && body.ends_with(" = ") && !body[hash + 1..body.len() - 3].contains('#');
    let marks = body[hash..].contains(" = ");
    if line.starts_with(is_space) || !marks {
        return None;
    }
    // Where a second `Class#test` stands in the line, it is what the first one printed.
    let end = match (whole, body[hash..].find(" = ")) {
        (true, _) => body.len() - 3,
        (false, Some(at)) => spoofed(line, hash).unwrap_or(hash + at),
        (false, None) => return None,
    };
    Some((&line[..end], &line[end + 3..]))
}

/// Where the name ends in a line that is whole although its name has a ` #`.
fn spoofed(line: &str, hash: usize) -> Option<usize> {
    let body = line.strip_suffix(clock(line))?.strip_suffix(" = ")?;
    let second = body[hash + 1..].find('#')? + hash + 1;
    // The name of a class stands right before its `#`; in a name, a blank does.
    body[..second].ends_with(is_space).then_some(body.len())
}

/// The time and the mark with which a test's line ends: `0.00 s = .`; nothing where there is none.
fn clock(line: &str) -> &str {
    let Some(rest) = line.strip_suffix(['.', 'F', 'E', 'S']).and_then(|rest| rest.strip_suffix(" s = "))
    else {
        return "";
    };
    let digit = |c: char| c.is_ascii_digit();
    let whole = rest.trim_end_matches(digit);
    let Some(whole) = whole.strip_suffix('.').filter(|whole| whole.len() + 3 == rest.len()) else {
        return "";
    };
    &line[whole.trim_end_matches(digit).len()..]
}

/// How a test ended whose line ends like this.
fn ending(line: &str) -> Option<Status> {
    match clock(line).bytes().last()? {
        b'.' => Some(Status::Passed),
        b'F' => Some(Status::Failed),
        b'E' => Some(Status::Error),
        _ => Some(Status::Skipped),
    }
}
