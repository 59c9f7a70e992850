//! Swift.

mod xctest;

use super::scan::each;
use super::structured::junit::JUNIT;
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    parsers: &[Parser {
        name: "parse_log_swift",
        origin: Origin::SweRebench2,
        language: "Swift",
        framework: "XCTest",
        reads: &[JUNIT],
        split: Split::Unicode,
        upstream: Some(|| each(xctest::upstream)),
        strict: || each(xctest::strict),
    }],
    aliases: &[],
};
