//! Java, Kotlin, Scala and Clojure.

mod gradle;
mod junit_text;
mod lein;
mod maven;
mod scala;
mod strict;
mod swe_bench;
#[cfg(test)]
mod tests;

use strict::maven::{Maven, Naming};

use super::scan::{Format, Scan, each, whole};
use super::structured::junit::{self, Case, JUNIT};
use super::table::{Family, Origin, Parser, Split};

/// JUnit's XML, where upstream calls a case `name (class)`.
const GRADLE: Format = Format {
    name: "JUnit XML",
    open: || junit::open(|document, line, found| junit::read(document, line, found, gradle_style)),
};

/// JUnit's XML, where upstream calls a case `class name`.
const JOINED: Format = Format {
    name: "JUnit XML",
    open: || junit::open(|document, line, found| junit::read(document, line, found, joined_style)),
};

fn gradle_style(case: &Case<'_>) -> (String, Option<String>) {
    (junit::plain(case).0, Some(gradle::case_name(case.name, case.class)))
}

fn joined_style(case: &Case<'_>) -> (String, Option<String>) {
    let joined =
        if case.class.is_empty() { case.name.to_owned() } else { format!("{} {}", case.class, case.name) };
    (junit::plain(case).0, Some(joined))
}

const fn row(
    name: &'static str,
    [language, framework]: [&'static str; 2],
    split: Split,
    upstream: fn() -> Box<dyn Scan>,
    strict: fn() -> Box<dyn Scan>,
) -> Parser {
    let origin = Origin::SweRebench2;
    Parser { name, origin, language, framework, reads: &[JOINED], split, upstream: Some(upstream), strict }
}

const GRADLE_TEXT: Parser = row(
    "parse_log_gradle_custom",
    ["Java", "Gradle"],
    Split::Lf,
    || each(gradle::custom),
    || Box::<strict::gradle::Results>::default(),
);

const MAVEN: Parser = row(
    "parse_log_maven",
    ["Java", "Maven, -Dtest"],
    Split::Lf,
    || Box::<maven::Build>::default(),
    || Box::new(Maven::new(Naming::Build)),
);

const ANT: Parser = row(
    "parse_log_ant",
    ["Java", "Ant junit"],
    Split::Lf,
    || each(maven::ant),
    || Box::<strict::ant::Junit>::default(),
);

pub(super) const FAMILY: Family = Family {
    parsers: &[
        Parser {
            name: "junit-xml",
            origin: Origin::Memtrial,
            language: "any",
            framework: "JUnit XML",
            reads: &[JUNIT],
            split: Split::Lf,
            upstream: None,
            strict: || each(|_, _| {}),
        },
        Parser {
            reads: &[GRADLE],
            ..row(
                "parse_log_gradlew_v1",
                ["Kotlin", "Gradle, JUnit XML"],
                Split::Lf,
                || Box::<gradle::Reports>::default(),
                || Box::<strict::gradle::Results>::default(),
            )
        },
        row(
            "parse_log_sbt",
            ["Scala", "sbt, JUnit XML"],
            Split::Lf,
            || whole(junit_text::junit),
            || Box::new(strict::scala::Results::new(each(|_, _| {}))),
        ),
        GRADLE_TEXT,
        Parser { origin: Origin::SweBench4, upstream: Some(|| each(swe_bench::gradle_4)), ..GRADLE_TEXT },
        Parser {
            origin: Origin::SweBench5,
            upstream: Some(|| Box::<swe_bench::Gradle5>::default()),
            ..GRADLE_TEXT
        },
        row(
            "parse_logs_kotlin_junit",
            ["Kotlin", "Maven surefire, classes"],
            Split::Unicode,
            || Box::<maven::Classes>::default(),
            || Box::new(Maven::new(Naming::Classes)),
        ),
        row(
            "parse_java_mvn",
            ["Java", "Maven surefire"],
            Split::Lf,
            || Box::<maven::Surefire>::default(),
            || Box::new(Maven::new(Naming::Surefire)),
        ),
        row(
            "parse_java_mvn_v2",
            ["Java", "Maven reactor"],
            Split::Unicode,
            || Box::new(maven::Reactor),
            || Box::new(Maven::new(Naming::Reactor)),
        ),
        MAVEN,
        Parser { origin: Origin::SweBench4, ..MAVEN },
        Parser {
            origin: Origin::SweBench5,
            upstream: Some(|| Box::<swe_bench::Builds5>::default()),
            ..MAVEN
        },
        ANT,
        Parser { origin: Origin::SweBench4, ..ANT },
        Parser { origin: Origin::SweBench5, ..ANT },
        row(
            "parse_log_lein",
            ["Clojure", "Leiningen"],
            Split::Unicode,
            || Box::<lein::Lein>::default(),
            || Box::<strict::lein::Namespaces>::default(),
        ),
        row(
            "parse_log_scala",
            ["Scala", "ScalaTest"],
            Split::Unicode,
            || each(scala::scala),
            || Box::new(strict::scala::Results::new(each(scala::scala))),
        ),
        row(
            "parse_log_scala_v2",
            ["Scala", "munit, zio-test, weaver"],
            Split::Unicode,
            || each(scala::scala_v2),
            || Box::new(strict::scala::Results::new(each(scala::scala_v2))),
        ),
        row(
            "parse_log_scala_v3",
            ["Scala", "ScalaTest with suites"],
            Split::Unicode,
            || Box::<scala::Suites>::default(),
            || Box::new(strict::scala::Results::new(Box::<scala::Suites>::default())),
        ),
    ],
    aliases: &[
        ("parse_log_junit", "parse_log_sbt"),
        ("parse_log_kotlin_junit", "parse_logs_kotlin_junit"),
        ("parse_log_java_mvn", "parse_java_mvn"),
        ("parse_log_java_mvn_v2", "parse_java_mvn_v2"),
    ],
};
