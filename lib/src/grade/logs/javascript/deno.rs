//! Deno's test runner.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, pattern, trim};
use super::rule::Alias;

/// `name ... ok (12ms)` up to the errors in full.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Deno { alias, over: false })
}

struct Deno {
    alias: Alias,
    over: bool,
}

impl Scan for Deno {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static RESULT: Pattern =
            LazyLock::new(|| pattern(r"^(.*[^ω])ω+\.\.\. (ok|FAILED|ignored)(?: \([^()]*\))*$"));
        let alias = self.alias.of(line);
        match trim(line) {
            "ERRORS" | "FAILURES" => self.over = true,
            text if text.starts_with("running ") && text.contains(" from ") => self.over = false,
            _ => {}
        }
        if self.over {
            return Ok(());
        }
        let Some(result) = RESULT.captures(line) else { return Ok(()) };
        let status = match &result[2] {
            "ok" => Status::Passed,
            "FAILED" => Status::Failed,
            _ => Status::Skipped,
        };
        let name = trim(&result[1]);
        found.test(name, status).known_as(self.alias.or(alias, name, name));
        Ok(())
    }
}
