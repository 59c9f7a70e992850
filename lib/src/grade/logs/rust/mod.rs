//! Rust: `cargo test` and cargo-nextest.
//!
//! The strict name of a test of `cargo test` is its path, or a doctest's place; only where several binaries of a log
//! have a test of that name does the binary stand before it, as `cargo` names it, without folder and hash:
//! `tests/it.rs (it) same`, `Doc-tests one src/lib.rs - add (line 4)`. Tests of nextest are named as nextest does:
//! `package::binary path`. The alias is the path, which is all that upstream has. Benchmarks' measurements are no
//! results.

pub(super) mod homes;
mod libtest;
mod nextest;
mod section;
#[cfg(test)]
mod tests;

use super::found::Found;
use super::scan::{Raised, Scan};
use super::structured::junit::JUNIT;
use super::structured::libtest_json;
use super::table::{Family, Origin, Parser, Split};

const fn cargo(origin: Origin) -> Parser {
    Parser {
        name: "parse_log_cargo",
        origin,
        language: "Rust",
        framework: "cargo test",
        reads: &[libtest_json::FORMAT],
        split: Split::Lf,
        upstream: Some(|| super::scan::each(libtest::upstream)),
        strict: || Box::new(Log::default()),
    }
}

const NEXTEST: Parser = Parser {
    name: "nextest",
    framework: "cargo-nextest",
    reads: &[libtest_json::FORMAT, JUNIT],
    upstream: None,
    ..cargo(Origin::Memtrial)
};

pub(super) const FAMILY: Family = Family {
    parsers: &[cargo(Origin::SweRebench2), cargo(Origin::SweBench4), cargo(Origin::SweBench5), NEXTEST],
    aliases: &[],
};

/// Strict rules: runs of nextest, and of libtest outside of them.
#[derive(Default)]
struct Log {
    nextest: nextest::Nextest,
    libtest: libtest::Libtest,
}

impl Scan for Log {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if let Some(build) = suite_failure(line) {
            found.broken(line, build);
        }
        if !self.nextest.line(line, found) {
            self.libtest.line(line, found);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        self.nextest.end(found);
        self.libtest.end(found);
        Ok(())
    }
}

/// Whether cargo says that something larger than a test failed, and whether that was a build.
fn suite_failure(line: &str) -> Option<bool> {
    if line.starts_with("error: could not compile") || line.starts_with("error: failed to ") {
        return Some(true);
    }
    let tests =
        ["error: test failed", "error: doctest failed", "error: bench failed", "error: test run failed"];
    let several = line.starts_with("error: ") && line.ends_with(" failed:");
    (several || tests.iter().any(|start| line.starts_with(start))).then_some(false)
}
