//! Shell.

mod bats;

use super::structured::tap::TAP;
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    parsers: &[Parser {
        name: "bats",
        origin: Origin::Memtrial,
        language: "Shell",
        framework: "bats",
        reads: &[TAP],
        split: Split::Lf,
        upstream: None,
        strict: || Box::<bats::Pretty>::default(),
    }],
    aliases: &[],
};
