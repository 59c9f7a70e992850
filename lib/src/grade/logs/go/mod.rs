//! Go: `go test` in text and as JSON, and what gotestsum makes of it.
//!
//! The strict name of a test is `package.TestName/subtest` wherever the log tells the package, and `TestName/subtest`
//! where it does not, so that a test has one name whatever else ran beside it; its alias is the plain name, which is
//! all that upstream has. Without `-v` a log tells of failures alone, and a `--- FAIL` that a test prints in a package
//! that fails is not told from a real one. Benchmarks count where they fail or are skipped; their measurements are no results.

pub(super) mod block;
#[cfg(test)]
mod golden;
mod gotestsum;
pub(super) mod results;
#[cfg(test)]
mod tests;
mod text;

use super::structured::go_test_json;
use super::table::{Family, Origin, Parser, Split};

const fn gotest(origin: Origin) -> Parser {
    Parser {
        name: "parse_log_gotest",
        origin,
        language: "Go",
        framework: "go test -v",
        reads: &[go_test_json::FORMAT],
        split: Split::Lf,
        upstream: Some(|| super::scan::each(results::upstream)),
        strict: text::strict,
    }
}

const JSON: Parser =
    Parser { name: "go-test-json", framework: "go test -json", upstream: None, ..gotest(Origin::Memtrial) };

pub(super) const FAMILY: Family = Family {
    parsers: &[gotest(Origin::SweRebench2), gotest(Origin::SweBench4), gotest(Origin::SweBench5), JSON],
    aliases: &[],
};
