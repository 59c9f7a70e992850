//! The reference rule for Leiningen: namespaces, not tests.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{trim, words};

#[derive(Default)]
pub(in crate::grade::logs) struct Lein {
    current: Option<String>,
}

impl Scan for Lein {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = trim(line);
        if let Some(names) = line.strip_prefix("lein test ") {
            let mut tokens = words(names).peekable();
            if tokens.next_if_eq(&":only").is_some() {
                let rest = tokens.collect::<Vec<_>>().join(" ");
                let base = trim(rest.split('/').next().unwrap_or_default());
                if base.is_empty() {
                    self.current = None;
                } else {
                    found.set_first(base, Status::Passed);
                    self.current = Some(base.to_owned());
                }
                return Ok(());
            }
            for name in tokens {
                found.set_first(name, Status::Passed);
                self.current = Some(name.to_owned());
            }
            return Ok(());
        }
        let failed = [("FAIL in", Status::Failed), ("ERROR in", Status::Error)];
        let status = failed.into_iter().find_map(|(head, status)| line.starts_with(head).then_some(status));
        if let (Some(status), Some(current)) = (status, &self.current) {
            found.set(current, status);
        }
        Ok(())
    }
}
