//! Go.

use super::table::{Family, Origin, Parser, Split};
use super::{bridge, gotest};

pub(super) const FAMILY: Family = Family {
    name: "go",
    parsers: &[Parser {
        name: "parse_log_gotest",
        origin: Origin::SweRebench2,
        language: "Go",
        framework: "go test -v",
        reads: &[],
        split: Split::Lf,
        upstream: Some(|| bridge::last(gotest::upstream)),
        strict: || bridge::strict(gotest::strict),
    }],
    aliases: &[],
};
