//! Ruby.

mod cucumber;
mod minitest;
mod rspec;
mod test_unit;
#[cfg(test)]
mod tests;
mod upstream;

use super::scan::each;
use super::structured::rspec_json::RSPEC_JSON;
use super::table::{Family, Origin, Parser, Split};
use minitest::Minitest;

const REPORTERS: Parser = Parser {
    name: "parse_log_ruby_v1",
    origin: Origin::SweRebench2,
    language: "Ruby",
    framework: "minitest-reporters",
    reads: &[],
    split: Split::Unicode,
    upstream: Some(|| Box::<upstream::Reporters>::default()),
    strict: || {
        Minitest::open(|suite, line| {
            upstream::reporter_line(line).map(|(name, _)| format!("{suite}::{name}"))
        })
    },
};

const VERBOSE: Parser = Parser {
    name: "parse_log_ruby_v2",
    origin: Origin::SweRebench2,
    language: "Ruby",
    framework: "minitest --verbose",
    reads: &[],
    split: Split::Unicode,
    upstream: Some(|| each(upstream::ruby_v2)),
    strict: || Minitest::open(|_, line| upstream::verbose_line(line).map(|(name, _)| name.to_owned())),
};

const MINITEST: Parser = Parser {
    name: "parse_log_minitest",
    origin: Origin::SweRebench2,
    language: "Ruby",
    framework: "minitest --verbose",
    reads: &[],
    split: Split::Lf,
    upstream: Some(|| each(upstream::minitest)),
    strict: || Minitest::open(|_, line| upstream::minitest_line(line).map(|(name, _)| name.to_owned())),
};

const CUCUMBER: Parser = Parser {
    name: "parse_log_cucumber",
    origin: Origin::SweRebench2,
    language: "Ruby",
    framework: "cucumber, progress",
    reads: &[],
    split: Split::Lf,
    upstream: Some(|| each(upstream::cucumber)),
    strict: || Box::<cucumber::Scenarios>::default(),
};

/// SWE-bench asks the task which of two rules holds; their lines are of two kinds, so that both can be tried.
const JEKYLL: Parser = Parser {
    name: "parse_log_jekyll",
    origin: Origin::SweBench4,
    framework: "minitest or cucumber",
    upstream: Some(|| {
        each(|line, found| {
            upstream::minitest(line, found);
            upstream::cucumber(line, found);
        })
    }),
    strict: || Minitest::open(|_, line| upstream::minitest_line(line).map(|(name, _)| name.to_owned())),
    ..MINITEST
};

const TEST_UNIT: Parser = Parser {
    name: "parse_log_ruby_unit",
    origin: Origin::SweRebench2,
    language: "Ruby",
    framework: "test-unit --verbose",
    reads: &[],
    split: Split::Lf,
    upstream: Some(|| each(upstream::ruby_unit)),
    strict: || Box::<test_unit::TestUnit>::default(),
};

const FLATTENED: Parser = Parser {
    name: "parse_log_rspec_transformed_json",
    origin: Origin::SweRebench2,
    language: "Ruby",
    framework: "RSpec, flattened JSON",
    reads: &[RSPEC_JSON],
    split: Split::Lf,
    upstream: Some(|| each(upstream::rspec_transformed_json)),
    strict: || each(rspec::flattened),
};

const OWN_MINITEST: Parser = Parser {
    name: "minitest",
    origin: Origin::Memtrial,
    language: "Ruby",
    framework: "minitest",
    reads: &[],
    split: Split::Lf,
    upstream: None,
    strict: || Minitest::open(|_, _| None),
};

const RSPEC: Parser = Parser {
    name: "rspec",
    origin: Origin::Memtrial,
    language: "Ruby",
    framework: "RSpec",
    reads: &[RSPEC_JSON],
    split: Split::Lf,
    upstream: None,
    strict: || Box::<rspec::Rspec>::default(),
};

pub(super) const FAMILY: Family = Family {
    parsers: &[
        REPORTERS,
        VERBOSE,
        MINITEST,
        CUCUMBER,
        TEST_UNIT,
        FLATTENED,
        OWN_MINITEST,
        RSPEC,
        JEKYLL,
        Parser { origin: Origin::SweBench5, ..JEKYLL },
        Parser { origin: Origin::SweBench4, ..MINITEST },
        Parser { origin: Origin::SweBench4, ..CUCUMBER },
        Parser { origin: Origin::SweBench4, ..TEST_UNIT },
        Parser { origin: Origin::SweBench4, ..FLATTENED },
        Parser { origin: Origin::SweBench5, ..MINITEST },
        Parser { origin: Origin::SweBench5, ..CUCUMBER },
        Parser { origin: Origin::SweBench5, ..TEST_UNIT },
        Parser { origin: Origin::SweBench5, ..FLATTENED },
    ],
    aliases: &[],
};
