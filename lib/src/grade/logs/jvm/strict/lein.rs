//! Leiningen: namespaces (groups), and the tests that failed. A namespace passed if the run came to its summary and
//! nothing in it failed.

use std::sync::LazyLock;

use super::super::super::found::Found;
use super::super::super::scan::{Raised, Scan};
use super::super::super::status::Status;
use super::super::super::text::{Pattern, pattern, trim, words};

#[derive(Default)]
pub(in crate::grade::logs) struct Namespaces {
    /// The namespaces that are being tested, with what is known of them.
    open: Vec<(usize, String, Status)>,
}

impl Namespaces {
    /// All namespaces but the current one are done; at a summary, the current one as well.
    fn close(&mut self, found: &mut Found) {
        for (line, name, status) in self.open.drain(..) {
            let now = found.line();
            found.go_to(line);
            found.group(name, status);
            found.go_to(now);
        }
    }
}

impl Scan for Namespaces {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static FAILED: Pattern = LazyLock::new(|| pattern(r"^(FAIL|ERROR) in \(([^)]*)\)"));
        let line = trim(line);
        if let Some(names) = line.strip_prefix("lein test ") {
            if names.starts_with(":only ") {
                return Ok(()); // repeats the test that is about to be told as failed
            }
            self.close(found);
            let at = found.line();
            self.open = words(names).map(|name| (at, name.to_owned(), Status::Passed)).collect();
        } else if let Some(failed) = FAILED.captures(line) {
            let status = if &failed[1] == "FAIL" { Status::Failed } else { Status::Error };
            let Some((_, namespace, known)) = self.open.last_mut() else { return Ok(()) };
            *known = known.worse(&status).clone();
            let name = format!("{namespace}/{}", &failed[2]);
            found.test(name, status);
        } else if line.starts_with("Ran ") && line.contains(" tests containing ") {
            self.close(found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        for (_, _, status) in &mut self.open {
            *status = status.worse(&Status::Error).clone(); // never came to its end
        }
        self.close(found);
        Ok(())
    }
}
