//! C and C++.

use super::scan::{Scan, each, whole};
use super::structured::junit::JUNIT;
use super::table::{Family, Origin, Parser, Split};

mod boost;
mod ctest;
mod doctest;
mod gtest;
mod lines;
mod plain;
#[cfg(test)]
mod tests;
mod words;

type Open = fn() -> Box<dyn Scan>;

const fn row(name: &'static str, framework: &'static str, upstream: Open, strict: Open) -> Parser {
    Parser {
        name,
        origin: Origin::SweRebench2,
        language: "C++",
        framework,
        reads: &[JUNIT],
        split: Split::Lf,
        upstream: Some(upstream),
        strict,
    }
}

const fn unicode(parser: Parser) -> Parser {
    Parser { split: Split::Unicode, ..parser }
}

const fn of(origin: Origin, parser: Parser) -> Parser {
    Parser { origin, ..parser }
}

const fn own(name: &'static str, framework: &'static str, strict: Open) -> Parser {
    Parser {
        name,
        origin: Origin::Memtrial,
        language: "C++",
        framework,
        reads: &[JUNIT],
        split: Split::Lf,
        upstream: None,
        strict,
    }
}

const DOCTEST: Parser =
    row("parse_log_doctest", "doctest, XML", || whole(doctest::upstream), || whole(doctest::strict));
const JQ: Parser = row("parse_log_jq", "automake", || each(lines::automake), || each(plain::automake));
const REDIS: Parser = row("parse_log_redis", "redis tests", || each(lines::redis), || each(plain::redis));
const MICROPYTHON: Parser = row(
    "parse_log_micropython_test",
    "micropython tests",
    || each(lines::micropython),
    || each(plain::micropython),
);
const GOOGLETEST: Parser =
    row("parse_log_googletest", "GoogleTest", || each(lines::googletest), gtest::strict);

pub(super) const FAMILY: Family = Family {
    parsers: &[
        DOCTEST,
        of(Origin::SweBench4, DOCTEST),
        of(Origin::SweBench5, DOCTEST),
        JQ,
        of(Origin::SweBench4, JQ),
        of(Origin::SweBench5, JQ),
        REDIS,
        of(Origin::SweBench4, REDIS),
        of(Origin::SweBench5, REDIS),
        MICROPYTHON,
        of(Origin::SweBench4, MICROPYTHON),
        of(Origin::SweBench5, MICROPYTHON),
        GOOGLETEST,
        of(Origin::SweBench4, GOOGLETEST),
        of(Origin::SweBench5, GOOGLETEST),
        unicode(row(
            "parse_log_cpp",
            "pytest -v, as C++ projects print it",
            || Box::new(words::Cpp::default()),
            || Box::new(plain::Pytest::default()),
        )),
        unicode(row("parse_log_cpp_v2", "Test name passed", || each(words::cpp_v2), || each(plain::named))),
        unicode(row("parse_log_cpp_v3", "name... OK, Botan", || each(words::cpp_v3), || each(plain::dotted))),
        unicode(row("parse_log_cpp_v4", "CTest", || each(words::cpp_v4), ctest::strict)),
        own("ctest", "CTest", ctest::strict),
        own("boost", "Boost.Test", boost::strict),
        own("meson", "meson test", || each(plain::meson)),
    ],
    aliases: &[],
};
