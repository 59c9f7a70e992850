//! Java, Kotlin, Scala and Clojure.

use super::scan::each;
use super::structured::junit::JUNIT;
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    name: "jvm",
    parsers: &[Parser {
        name: "junit-xml",
        origin: Origin::Memtrial,
        language: "any",
        framework: "JUnit XML",
        reads: &[JUNIT],
        split: Split::Lf,
        upstream: None,
        strict: || each(|_, _| {}),
    }],
    aliases: &[],
};
