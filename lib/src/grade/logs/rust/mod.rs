//! Rust.

use super::table::{Family, Origin, Parser, Split};
use super::{bridge, cargo};

pub(super) const FAMILY: Family = Family {
    name: "rust",
    parsers: &[Parser {
        name: "parse_log_cargo",
        origin: Origin::SweRebench2,
        language: "Rust",
        framework: "cargo test",
        reads: &[],
        split: Split::Lf,
        upstream: Some(|| bridge::last(cargo::upstream)),
        strict: || bridge::strict(cargo::strict),
    }],
    aliases: &[],
};
