//! Strict rules for `go test` in text.

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::is_cut;
use super::block::Block;
use super::gotestsum::{Gotestsum, Line};
use super::results::told;

pub(super) fn strict() -> Box<dyn Scan> {
    Box::new(Log::default())
}

/// A log: blocks of packages, each of which ends with the line that names its package.
#[derive(Default)]
struct Log {
    block: Block,
    /// Whether `PASS`, which stands before a package's `ok`, came after all its tests.
    after_pass: bool,
    gotestsum: Gotestsum,
}

impl Scan for Log {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        match self.gotestsum.line(line, self.block.current(), found.line()) {
            Line::Other => {}
            Line::Taken => return Ok(()),
            Line::Test { package, test, status } => {
                self.block.forget(test);
                self.gotestsum.knows(package, test, &status);
                found.test(format!("{package}.{test}"), status).known_as(test);
                return Ok(());
            }
        }
        if is_cut(line) {
            self.block.cut();
        } else if let Some(package) = Package::of(line) {
            // A test may have printed it.
            if package.status != Status::Passed || self.after_pass || !self.block.is_unfinished() {
                self.package(line, &package, found);
            }
        } else if let Some((told, name, after_text)) = told(line) {
            self.after_pass = false;
            self.block.told(told, name, after_text, found.line());
        } else if line.ends_with("PASS") {
            self.after_pass = true;
        } else if !line.is_empty() && line != "FAIL" && !line.starts_with("exit status ") {
            self.block.text();
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.close(None, true, found);
        self.gotestsum.end(found);
        Ok(())
    }
}

impl Log {
    fn package(&mut self, line: &str, package: &Package, found: &mut Found) {
        found.group(package.name, package.status.clone());
        if package.status == Status::Failed {
            found.broken(line, package.build);
        }
        self.close(Some(package.name), package.status == Status::Failed, found);
    }

    fn close(&mut self, package: Option<&str>, failed: bool, found: &mut Found) {
        self.after_pass = false;
        for (line, name, status) in self.block.close(package, failed) {
            let strict = package.map_or_else(|| name.clone(), |package| format!("{package}.{name}"));
            self.gotestsum.knows(package.unwrap_or_default(), &name, &status);
            found.test_at(line, strict, status).known_as(name);
        }
    }
}

/// The line that ends a package.
struct Package<'a> {
    name: &'a str,
    status: Status,
    build: bool,
}

impl<'a> Package<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let marks = [("ok  \t", Status::Passed), ("FAIL\t", Status::Failed), ("?   \t", Status::Skipped)];
        let (status, rest) =
            marks.into_iter().find_map(|(mark, status)| Some((status, line.strip_prefix(mark)?)))?;
        let (name, how) = rest.split_once(['\t', ' '])?;
        let build = how.starts_with("[build failed]") || how.starts_with("[setup failed]");
        let timed = how.starts_with("(cached)") || how.starts_with(|c: char| c.is_ascii_digit());
        let fits = match status {
            Status::Skipped => how.starts_with('['),
            Status::Failed => build || timed,
            _ => timed,
        };
        (fits && !name.is_empty()).then_some(Self { name, status, build })
    }
}
