//! Quarto: Deno's test output in colours.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::super::super::status::Status;
use super::super::super::text::{Pattern, pattern, trim};
use super::super::rule::{Hit, Rule};

/// Lines of `[smoke]` and `[unit]` tests up to the list of errors; temporary files get numbers; a test without status
/// has failed.
pub(in super::super) fn deno() -> Rule {
    let mut quarto = Quarto::default();
    Box::new(move |line| Ok(quarto.line(line).into_iter().collect()))
}

#[derive(Default)]
struct Quarto {
    over: bool,
    files: HashMap<String, usize>,
    known: HashSet<String>,
}

impl Quarto {
    fn line(&mut self, line: &str) -> Option<Hit> {
        self.over |= line.contains("ERRORS") || line.contains("failures:");
        if self.over || !(line.contains("[smoke]") || line.contains("[unit]")) {
            return None;
        }
        let line = self.numbered(line);
        let name = trim(line.split("...").next()?);
        let rejected = line.starts_with("test result:")
            || ["passed", "failed", "steps"].iter().all(|word| line.contains(word))
            || line.contains("34mINFO");
        if rejected {
            return None;
        }
        let status = if line.contains("32mok") {
            Status::Passed
        } else if line.contains("31mFAILED") || !self.known.contains(name) {
            Status::Failed
        } else {
            return None;
        };
        self.known.insert(name.to_owned());
        Some((name.to_owned(), status))
    }

    /// The line with its temporary files' names replaced, of each kind by the number of its first.
    fn numbered(&mut self, line: &str) -> String {
        static KINDS: [Pattern; 2] =
            [LazyLock::new(|| pattern(r"/tmp/\w+\.qmd")), LazyLock::new(|| pattern(r"/tmp/\w+/"))];
        let mut line = line.to_owned();
        for kind in &KINDS {
            let Some(first) = kind.find(&line) else { continue };
            let next = self.files.len();
            let number = *self.files.entry(first.as_str().to_owned()).or_insert(next);
            line = kind.replace_all(&line, format!("/tmp/{number}")).into_owned();
        }
        line
    }
}
