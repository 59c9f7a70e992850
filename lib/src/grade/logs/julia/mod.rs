//! Julia.

mod strict;
mod upstream;

use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    parsers: &[Parser {
        name: "parse_log_julia",
        origin: Origin::SweRebench2,
        language: "Julia",
        framework: "Test",
        reads: &[],
        split: Split::Unicode,
        upstream: Some(|| Box::<upstream::Table>::default()),
        strict: || Box::<strict::Table>::default(),
    }],
    aliases: &[],
};
