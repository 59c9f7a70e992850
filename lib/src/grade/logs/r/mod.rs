//! R.

mod upstream;

use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    name: "r",
    parsers: &[
        Parser {
            name: "parse_log_r",
            origin: Origin::SweRebench2,
            language: "R",
            framework: "testthat",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::<upstream::Progress>::default()),
            strict: || Box::<upstream::Progress>::default(),
        },
        Parser {
            name: "parse_log_r_v2",
            origin: Origin::SweRebench2,
            language: "R",
            framework: "R CMD check",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::<upstream::Check>::default()),
            strict: || Box::<upstream::Check>::default(),
        },
    ],
    aliases: &[],
};
