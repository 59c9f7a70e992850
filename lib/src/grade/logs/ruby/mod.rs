//! Ruby.

mod upstream;

use super::scan::each;
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    name: "ruby",
    parsers: &[
        Parser {
            name: "parse_log_ruby_v1",
            origin: Origin::SweRebench2,
            language: "Ruby",
            framework: "minitest-reporters",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::<upstream::Reporters>::default()),
            strict: || Box::<upstream::Reporters>::default(),
        },
        Parser {
            name: "parse_log_ruby_v2",
            origin: Origin::SweRebench2,
            language: "Ruby",
            framework: "minitest --verbose",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| each(upstream::ruby_v2)),
            strict: || each(upstream::ruby_v2),
        },
        Parser {
            name: "parse_log_minitest",
            origin: Origin::SweRebench2,
            language: "Ruby",
            framework: "minitest --verbose",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| each(upstream::minitest)),
            strict: || each(upstream::minitest),
        },
        Parser {
            name: "parse_log_cucumber",
            origin: Origin::SweRebench2,
            language: "Ruby",
            framework: "cucumber, progress",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| each(upstream::cucumber)),
            strict: || each(upstream::cucumber),
        },
        Parser {
            name: "parse_log_ruby_unit",
            origin: Origin::SweRebench2,
            language: "Ruby",
            framework: "test-unit --verbose",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| each(upstream::ruby_unit)),
            strict: || each(upstream::ruby_unit),
        },
        Parser {
            name: "parse_log_rspec_transformed_json",
            origin: Origin::SweRebench2,
            language: "Ruby",
            framework: "RSpec, flattened JSON",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| each(upstream::rspec_transformed_json)),
            strict: || each(upstream::rspec_transformed_json),
        },
    ],
    aliases: &[],
};
