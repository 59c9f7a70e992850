//! ScalaTest, munit, zio-test, weaver, specs2 under sbt: results by suite and, where lines are indented, by the contexts
//! around them.

use std::sync::LazyLock;

use super::super::super::found::Found;
use super::super::super::scan::{Raised, Scan, Shadow};
use super::super::super::status::Status;
use super::super::super::text::{Pattern, pattern, trim};

pub(in crate::grade::logs) struct Results {
    suite: Option<String>,
    /// Contexts with their indentation.
    contexts: Vec<(usize, String)>,
    shadow: Shadow,
}

impl Results {
    pub(in crate::grade::logs) fn new(upstream: Box<dyn Scan>) -> Self {
        Self { suite: None, contexts: Vec::new(), shadow: Shadow::new(upstream) }
    }

    fn name(&mut self, indent: usize, title: &str) -> String {
        self.contexts.retain(|(outer, _)| *outer < indent);
        let contexts = self.contexts.iter().map(|(_, context)| context.as_str());
        self.suite.as_deref().into_iter().chain(contexts).chain([title]).collect::<Vec<_>>().join(" > ")
    }
}

/// A result: indentation, title, status.
fn result(text: &str) -> Option<(usize, String, Status)> {
    static SCALATEST: Pattern = LazyLock::new(|| {
        pattern(
            r"^( *)- (.*?)(?: (\*\*\* FAILED \*\*\*|!!! CANCELED !!!|!!! IGNORED !!!|\(pending\)))?(?: \((?:\d+ (?:milliseconds?|seconds?|minutes?|hours?)(?:, )?)+\))?$",
        )
    });
    static SIGNED: Pattern = LazyLock::new(|| {
        pattern(
            r"^( *)(\+|x|o|!|==> [Xis]) +(.*?)(?: +(?:ignored|skipped|SKIPPED))?(?: +[\d.]+(?:ms|s|μs|ns)?)?$",
        )
    });
    if let Some(found) = SCALATEST.captures(text).filter(|found| !found[2].is_empty()) {
        let status = match found.get(3).map(|word| word.as_str()) {
            None => Status::Passed,
            Some("*** FAILED ***") => Status::Failed,
            Some(_) => Status::Skipped,
        };
        return Some((found[1].len(), found[2].to_owned(), status));
    }
    let found = SIGNED.captures(text).filter(|found| !found[3].is_empty())?;
    let status = match &found[2] {
        "+" => Status::Passed,
        "x" | "==> X" => Status::Failed,
        "!" => Status::Error,
        _ => Status::Skipped,
    };
    Some((found[1].len(), found[3].to_owned(), status))
}

impl Scan for Results {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static SUITE: Pattern = LazyLock::new(|| pattern(r"^[A-Za-z_$][\w.$]*:$"));
        let alias = self.shadow.name(line);
        let text = match line.split_once("[info] ").or_else(|| line.split_once("[error] ")) {
            Some(("", text)) => text,
            Some(_) => return Ok(()),
            None => line,
        };
        let sbt = text.len() < line.len();
        if SUITE.is_match(text) {
            self.suite = Some(text.trim_end_matches(':').to_owned());
            self.contexts.clear();
        } else if let Some((indent, title, status)) =
            result(text).filter(|_| sbt || self.suite.is_some() || alias.is_some())
        {
            let name = self.name(indent, &title);
            let test = found.test(name, status);
            if let Some(alias) = alias {
                test.known_as(alias);
            }
        } else if sbt && is_context(text) {
            let indent = text.len() - text.trim_start_matches(' ').len();
            self.contexts.retain(|(outer, _)| *outer < indent);
            self.contexts.push((indent, trim(text).to_owned()));
        }
        Ok(())
    }
}

/// A line of sbt that names a context: no summary, no stack trace, no detail of a failure.
fn is_context(text: &str) -> bool {
    static NOISE: Pattern = LazyLock::new(|| {
        pattern(
            r"^(?:ω*at |ω{4,}|Run |Total |Suites:|Tests:|All |Passed|Failed|compiling|done |loading|welcome|set |resolving|\*\*\*|.*\(.*\.scala:\d+\))",
        )
    });
    !trim(text).is_empty() && !NOISE.is_match(text)
}
