//! R.

mod junit;
mod strict;
mod upstream;

use super::scan::{Format, each, whole};
use super::structured::junit::{open, read};
use super::table::{Family, Origin, Parser, Split};

/// testthat's report, where upstream calls a case `class::name`.
const JUNIT: Format = Format {
    name: "JUnit XML",
    open: || open(|document, line, found| read(document, line, found, junit::style)),
};

pub(super) const FAMILY: Family = Family {
    parsers: &[
        Parser {
            name: "parse_logs_r_junit",
            origin: Origin::SweRebench2,
            language: "R",
            framework: "testthat, JUnit XML",
            reads: &[JUNIT],
            split: Split::Lf,
            upstream: Some(|| whole(junit::upstream)),
            strict: || each(strict::testthat),
        },
        Parser {
            name: "parse_log_r",
            origin: Origin::SweRebench2,
            language: "R",
            framework: "testthat",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::<upstream::Progress>::default()),
            strict: || each(strict::testthat),
        },
        Parser {
            name: "parse_log_r_v2",
            origin: Origin::SweRebench2,
            language: "R",
            framework: "R CMD check",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::<upstream::Check>::default()),
            strict: || Box::<strict::Check>::default(),
        },
    ],
    aliases: &[("parse_log_r_junit", "parse_logs_r_junit")],
};
