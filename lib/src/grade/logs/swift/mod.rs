//! Swift.

mod upstream;

use super::scan::each;
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    name: "swift",
    parsers: &[Parser {
        name: "parse_log_swift",
        origin: Origin::SweRebench2,
        language: "Swift",
        framework: "XCTest",
        reads: &[],
        split: Split::Unicode,
        upstream: Some(|| each(upstream::swift)),
        strict: || each(upstream::swift),
    }],
    aliases: &[],
};
