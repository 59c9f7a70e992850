//! Jasmine's default reporter: full names of what failed and what did not run.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{is_digit, trim};
use super::rule::Alias;

/// The lists of failures and of pending specs. Passing specs have no names in such a log.
pub(super) fn strict(alias: Alias) -> Box<dyn Scan> {
    Box::new(Jasmine { alias, list: None })
}

struct Jasmine {
    alias: Alias,
    /// The list that is being read: how its specs ended.
    list: Option<Status>,
}

impl Scan for Jasmine {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let alias = self.alias.of(line);
        match line {
            "Failures:" => self.list = Some(Status::Failed),
            "Pending:" => self.list = Some(Status::Skipped),
            _ if line.starts_with("Suite error: ") => found.broken(line, false),
            _ if line.contains(" specs, ") || line.starts_with("1 spec, ") || line == "Started" => {
                self.list = None
            }
            _ => {
                let rest = line.trim_start_matches(is_digit);
                if let (Some(status), Some(name)) = (&self.list, rest.strip_prefix(") "))
                    && rest.len() < line.len()
                {
                    let name = trim(name);
                    found.test(name, status.clone()).known_as(self.alias.or(alias, name, name));
                }
            }
        }
        Ok(())
    }
}
