//! Leiningen: namespaces, and the tests that failed in them.

use std::collections::BTreeMap;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::{Status, text};

/// `parse_log_lein`.
#[derive(Default)]
pub(super) struct Upstream {
    current: Option<String>,
}

impl Scan for Upstream {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = text::trim(line);
        if let Some(names) = upstream_names(line) {
            self.current = names.last().cloned();
            for name in names {
                found.set_first(name, Status::Passed);
            }
        } else if let (Some(status), Some(name)) = (trouble(line), &self.current) {
            found.set(name.as_str(), status);
        }
        Ok(())
    }
}

fn upstream_names(line: &str) -> Option<Vec<String>> {
    let rest = line.strip_prefix("lein test ")?;
    let words: Vec<&str> = text::words(rest).collect();
    if words.first() != Some(&":only") {
        return (!rest.is_empty()).then(|| words.into_iter().map(str::to_owned).collect());
    }
    let target = words[1..].join(" ");
    let base = text::trim(target.split('/').next().unwrap_or_default()).to_owned();
    Some(Some(base).filter(|base| !base.is_empty()).into_iter().collect())
}

fn trouble(line: &str) -> Option<Status> {
    let kinds = [("FAIL in", Status::Failed), ("ERROR in", Status::Error)];
    kinds.into_iter().find_map(|(start, status)| line.starts_with(start).then_some(status))
}

/// A namespace is a group; the worst of its tests counts, and it passes only where the run came to its end
/// (`Ran 3 tests containing …`).
#[derive(Default)]
pub(super) struct Strict {
    current: Option<String>,
    open: BTreeMap<String, Status>,
}

impl Scan for Strict {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let trimmed = text::trim(line);
        // Behind a failure stands how to run it again, which is no namespace of its own.
        if let Some(names) = upstream_names(trimmed).filter(|_| !trimmed.contains(" :only ")) {
            self.current = names.last().cloned();
            self.open.extend(names.into_iter().map(|name| (name, Status::Passed)));
        } else if let (Some(status), Some(space)) = (trouble(trimmed), &self.current) {
            let worst = self.open.entry(space.clone()).or_insert_with(|| status.clone());
            *worst = worst.worse(&status).clone();
            if let Some((test, _)) = trimmed.split_once(" in (").and_then(|(_, rest)| rest.split_once(')')) {
                found.test(format!("{space}/{test}"), status);
            }
        } else if trimmed.starts_with("Ran ") && trimmed.contains(" tests containing ") {
            for (name, status) in std::mem::take(&mut self.open) {
                found.group(name, status);
            }
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        for (name, status) in std::mem::take(&mut self.open) {
            match status {
                Status::Passed => found.broken(name, false),
                _ => {
                    found.group(name, status);
                }
            }
        }
        Ok(())
    }
}
