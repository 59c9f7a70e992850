//! Haskell.

mod upstream;
mod strict;
mod tree;

use super::scan::{each, whole};
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    parsers: &[
        Parser {
            name: "parse_log_haskell",
            origin: Origin::SweRebench2,
            language: "Haskell",
            framework: "tasty, hspec, HUnit",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| each(upstream::haskell)),
            strict: || Box::new(strict::Tree::new(false)),
        },
        Parser {
            name: "parse_log_haskell_v2",
            origin: Origin::SweRebench2,
            language: "Haskell",
            framework: "hspec",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| whole(tree::haskell_v2)),
            strict: || Box::new(strict::Tree::new(true)),
        },
    ],
    aliases: &[],
};
