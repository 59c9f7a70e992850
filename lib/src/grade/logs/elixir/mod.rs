//! Elixir.

#[cfg(test)]
mod tests;
mod trace;
mod upstream;

use super::scan::each;
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    parsers: &[Parser {
        name: "parse_log_elixir",
        origin: Origin::SweRebench2,
        language: "Elixir",
        framework: "ExUnit --trace",
        reads: &[],
        split: Split::Unicode,
        upstream: Some(|| each(upstream::elixir)),
        strict: || Box::<trace::Trace>::default(),
    }],
    aliases: &[],
};
