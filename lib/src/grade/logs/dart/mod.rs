//! Dart.

mod python_json;
mod strict;
#[cfg(test)]
mod tests;
mod upstream;

use super::scan::each;
use super::structured::dart_json::DART_JSON;
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    parsers: &[
        Parser {
            name: "parse_log_dart",
            origin: Origin::SweRebench2,
            language: "Dart",
            framework: "dart test --reporter json",
            reads: &[DART_JSON],
            split: Split::Unicode,
            upstream: Some(|| Box::<upstream::Events>::default()),
            strict: || each(|_, _| {}),
        },
        Parser {
            name: "parse_log_dart_v2",
            origin: Origin::SweRebench2,
            language: "Dart",
            framework: "dart test, melos",
            reads: &[DART_JSON],
            split: Split::Unicode,
            upstream: Some(|| Box::<upstream::Melos>::default()),
            strict: || Box::<strict::Expanded>::default(),
        },
        Parser {
            name: "parse_log_dart_v3",
            origin: Origin::SweRebench2,
            language: "Dart",
            framework: "dart test --reporter expanded",
            reads: &[DART_JSON],
            split: Split::Unicode,
            upstream: Some(|| each(upstream::expanded)),
            strict: || Box::<strict::Expanded>::default(),
        },
    ],
    aliases: &[],
};
