//! Runners that write TAP.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::structured::tap::Tap;
use super::rule::Alias;

struct Strict {
    tap: Tap,
    alias: Alias,
}

impl Scan for Strict {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let alias = self.alias.of(line);
        self.tap.line(line, alias, found);
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.tap.flush(found);
        Ok(())
    }
}

/// Every result is a test, or the group of its subtests.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Strict { tap: Tap::default(), alias })
}

/// Results are assertions of the test that the comment before them names.
pub(super) fn tape(alias: Alias) -> Box<dyn Scan> {
    Box::new(Strict { tap: Tap::tape(), alias })
}
