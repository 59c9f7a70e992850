//! What really happened in ScalaTest's and munit's lines.

use std::sync::LazyLock;

use super::super::Status;
use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::text::{self, Pattern, pattern};

/// ScalaTest's `[info] - name *** FAILED *** (3 milliseconds)` below `[info] Suite:`, and munit's `==> X a.b  0.1s`
/// and `  + b 0.1s`.
pub(super) struct Strict {
    suite: String,
    alias: Box<dyn Scan>,
}

impl Strict {
    /// With the upstream rule that names the lines.
    pub(super) fn open(alias: Box<dyn Scan>) -> Box<dyn Scan> {
        Box::new(Self { suite: String::new(), alias })
    }

    /// Upstream's name for a line.
    fn alias(&mut self, line: &str) -> Result<Option<String>, Raised> {
        let mut told = Found::default();
        self.alias.line(line, &mut told)?;
        Ok(told.into_map().statuses.into_keys().next())
    }
}

impl Scan for Strict {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let alias = self.alias(line)?;
        let line = text::trim_end(line);
        let hit = scalatest(line).or_else(|| munit(line));
        if let Some((name, status)) = hit {
            let name =
                if self.suite.is_empty() { name.to_owned() } else { format!("{}: {name}", self.suite) };
            let test = found.test(name, status);
            if let Some(alias) = alias {
                test.known_as(alias);
            }
        } else if let Some(suite) = line.strip_suffix(':').filter(|line| !line.ends_with(' ')) {
            let suite = suite.strip_prefix("[info] ").unwrap_or(suite);
            if !suite.is_empty() && !suite.contains(text::is_space) {
                suite.clone_into(&mut self.suite);
            }
        }
        Ok(())
    }
}

fn scalatest(line: &str) -> Option<(&str, Status)> {
    static TIME: Pattern = LazyLock::new(|| {
        pattern(
            r"ω\((?:\d+ (?:milli)?seconds?|\d+ (?:minutes?|hours?))(?:, \d+ (?:milliseconds?|seconds?|minutes?))*\)$",
        )
    });
    let rest = text::trim(line.strip_prefix("[info]")?).strip_prefix("- ")?;
    let cut = if rest.ends_with(')') {
        TIME.find(rest).map_or(rest.len(), |time| time.start())
    } else {
        rest.len()
    };
    let rest = &rest[..cut];
    let ends = [
        (" *** FAILED ***", Status::Failed),
        (" *** ABORTED ***", Status::Error),
        (" !!! CANCELED !!!", Status::Skipped),
        (" !!! IGNORED !!!", Status::Skipped),
        (" (pending)", Status::Skipped),
    ];
    let hit = ends.into_iter().find_map(|(end, status)| Some((rest.strip_suffix(end)?, status)));
    Some(hit.unwrap_or((rest, Status::Passed)))
}

fn munit(line: &str) -> Option<(&str, Status)> {
    static TIMED: Pattern =
        LazyLock::new(|| pattern(r"^(==> X|  \+|==> i) (.+?) +(?:[0-9.]+(?:m|μ|µ|n)?s|ignored.*)$"));
    if !line.starts_with("==> ") && !line.starts_with("  + ") {
        return None;
    }
    let found = TIMED.captures(line)?;
    let status = match &found[1] {
        "==> X" => Status::Failed,
        "==> i" => Status::Skipped,
        _ => Status::Passed,
    };
    Some((found.get(2)?.as_str(), status))
}
