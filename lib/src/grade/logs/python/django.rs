//! parse_log_django: Django's test runner, by its lines alone.

use std::collections::VecDeque;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim, words};

/// What upstream takes for a test that passed wherever it stands.
const VERSION: &str = "--version is equivalent to version";

/// Output of a migration, behind which upstream looks for the name.
pub(super) const MIGRATIONS: &str = "Applying sites.0002_alter_domain_unique...test_no_migrations";

/// Upstream's rule.
#[derive(Default)]
pub(super) struct Django {
    before_dots: Option<String>,
    cut_off: CutOff,
}

impl Scan for Django {
    fn line(&mut self, raw: &str, found: &mut Found) -> Result<(), Raised> {
        self.cut_off.line(raw, found.line());
        let mut line = trim(raw);
        if line.contains(VERSION) {
            found.set(VERSION, Status::Passed);
        }
        if let Some((before, _)) = line.split_once(" ... ") {
            self.before_dots = Some(before.to_owned());
        }
        let ends = [" ... ok", " ... OK", " ...  OK"];
        if let Some(end) = ends.into_iter().find(|end| line.ends_with(end)) {
            if line.starts_with(MIGRATIONS) {
                line = trim(line.split_once("...").map_or(line, |(_, rest)| rest));
            }
            found.set(line.strip_suffix(end).unwrap_or(line), Status::Passed);
        }
        if let Some((before, _)) = line.split_once(" ... skipped") {
            found.set(before, Status::Skipped);
        }
        for (word, status) in [("FAIL", Status::Failed), ("ERROR", Status::Error)] {
            let ends = line.strip_suffix(word).is_some_and(|line| line.ends_with(" ... "));
            if let Some((before, _)) = line.split_once(&format!(" ... {word}")).filter(|_| ends) {
                found.set(before, status.clone());
            }
            if line.strip_prefix(word).is_some_and(|line| line.starts_with(':')) {
                let test = words(line).nth(1).ok_or(Raised("IndexError"))?;
                found.set(test, status);
            }
        }
        if let Some(before) = self.before_dots.as_ref().filter(|_| line.starts_with("ok")) {
            found.set(before.as_str(), Status::Passed);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        for name in self.cut_off.passed.drain(..) {
            found.set(name, Status::Passed);
        }
        Ok(())
    }
}

/// Results that three known messages cut off from the name: the message, and `ok` in a line of its own. White space
/// around the dots may be a line break, so that a name stands up to two lines above the message.
#[derive(Default)]
struct CutOff {
    /// The last three lines, with their numbers.
    recent: VecDeque<(usize, String)>,
    /// The name before `Testing against Django installed in`, and whether the last line ended that message.
    testing: Option<(String, bool)>,
    /// Up to which line each message's last match goes.
    used: [usize; 3],
    passed: Vec<String>,
}

impl CutOff {
    fn line(&mut self, line: &str, at: usize) {
        static TESTING: Pattern =
            LazyLock::new(|| pattern(r"(?m)^(.*?)ω\.\.\.ωTesting against Django installed in "));
        static SERVER: Pattern =
            LazyLock::new(|| pattern(r"(?m)^(.*?)ω\.\.\.ωInternal Server Error: /.*/\z"));
        static CHECK: Pattern = LazyLock::new(|| {
            pattern(r"(?m)^(.*?)ω\.\.\.ωSystem check identified no issues \(0 silenced\)\z")
        });
        if line == "ok" {
            for (message, shape, text) in
                [(1, &SERVER, "Internal Server Error: /"), (2, &CHECK, "System check identified no issues")]
            {
                if let Some((name, _)) = self.name(message, shape, text) {
                    self.used[message] = at;
                    self.passed.push(name);
                }
            }
            if let Some((name, true)) = &self.testing {
                self.passed.push(name.clone());
                self.testing = None;
                self.used[0] = at;
            }
        }
        if self.recent.len() == 3 {
            self.recent.pop_front();
        }
        self.recent.push_back((at, line.to_owned()));
        let ends = |rest: &str| rest.ends_with(" silenced).");
        match &mut self.testing {
            Some((_, ended)) => *ended = ends(line),
            None => {
                self.testing = self
                    .name(0, &TESTING, "Testing against Django installed in ")
                    .map(|(name, rest)| (name, ends(&rest)));
            }
        }
    }

    /// The name before a message in the recent lines, and what follows the message.
    fn name(&self, message: usize, shape: &Pattern, text: &str) -> Option<(String, String)> {
        self.recent.back().filter(|(_, line)| line.contains(text))?;
        let lines: Vec<&str> = self
            .recent
            .iter()
            .filter(|(at, _)| *at > self.used[message])
            .map(|(_, line)| line.as_str())
            .collect();
        let lines = lines.join("\n");
        let found = shape.captures(&lines)?;
        let (all, name) = (found.get(0)?, found.get(1)?);
        Some((name.as_str().to_owned(), lines[all.end()..].to_owned()))
    }
}
