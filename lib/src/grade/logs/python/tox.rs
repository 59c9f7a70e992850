//! tox: environments one after another, each with a runner of its own.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::{first_word, pytest, unittest};

/// Both runners' rules. Of a test that ran in several environments, the worst result counts.
struct Tox([Box<dyn Scan>; 2]);

/// Strict rules for environments with pytest or unittest.
pub(super) fn strict() -> Box<dyn Scan> {
    Box::new(Tox([pytest::strict(first_word), unittest::whole_runs()]))
}

impl Scan for Tox {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        self.0.iter_mut().try_for_each(|scan| scan.line(line, found))
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.0.iter_mut().try_for_each(|scan| scan.end(found))
    }
}
