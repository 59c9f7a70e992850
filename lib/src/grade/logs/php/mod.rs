//! PHP: PHPUnit and Pest.

use super::scan::{Scan, each};
use super::structured::junit::JUNIT;
use super::table::{Family, Origin, Parser, Split};

mod printer;
mod report;
mod strict;
mod testdox;
#[cfg(test)]
mod tests;

const fn phpunit(origin: Origin, upstream: fn() -> Box<dyn Scan>) -> Parser {
    Parser {
        name: "parse_log_phpunit",
        origin,
        language: "PHP",
        framework: "PHPUnit",
        reads: &[JUNIT],
        split: Split::Lf,
        upstream: Some(upstream),
        strict: strict::phpunit,
    }
}

pub(super) const FAMILY: Family = Family {
    parsers: &[
        phpunit(Origin::SweRebench2, testdox::Testdox::timed),
        phpunit(Origin::SweBench4, testdox::Testdox::untimed),
        phpunit(Origin::SweBench5, testdox::Testdox::untimed),
        Parser {
            name: "parse_log_php_v1",
            origin: Origin::SweRebench2,
            language: "PHP",
            framework: "Pest, PHPUnit printers",
            reads: &[JUNIT],
            split: Split::Unicode,
            upstream: Some(|| each(printer::php_v1)),
            strict: strict::pest,
        },
    ],
    aliases: &[],
};
