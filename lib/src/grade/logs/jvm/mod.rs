//! Java, Kotlin, Scala and Clojure.

mod gradle;
mod junit_text;
mod lein;
mod maven;
mod scala;
mod strict;

use strict::maven::{Maven, Naming};

use super::scan::{each, whole};
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    name: "jvm",
    parsers: &[
        Parser {
            name: "parse_log_gradlew_v1",
            origin: Origin::SweRebench2,
            language: "Kotlin",
            framework: "Gradle, JUnit XML",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| Box::<gradle::Reports>::default()),
            strict: || Box::<strict::gradle::Results>::default(),
        },
        Parser {
            name: "parse_log_sbt",
            origin: Origin::SweRebench2,
            language: "Scala",
            framework: "JUnit XML as text",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| whole(junit_text::junit)),
            strict: || Box::new(strict::scala::Results::new(Box::<scala::Suites>::default())),
        },
        Parser {
            name: "parse_log_gradle_custom",
            origin: Origin::SweRebench2,
            language: "Java",
            framework: "Gradle",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| each(gradle::custom)),
            strict: || Box::<strict::gradle::Results>::default(),
        },
        Parser {
            name: "parse_logs_kotlin_junit",
            origin: Origin::SweRebench2,
            language: "Kotlin",
            framework: "surefire, classes",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::<maven::Classes>::default()),
            strict: || Box::new(Maven::new(Naming::Classes)),
        },
        Parser {
            name: "parse_java_mvn",
            origin: Origin::SweRebench2,
            language: "Java",
            framework: "Maven surefire",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| Box::<maven::Surefire>::default()),
            strict: || Box::new(Maven::new(Naming::Surefire)),
        },
        Parser {
            name: "parse_java_mvn_v2",
            origin: Origin::SweRebench2,
            language: "Java",
            framework: "Maven reactor",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::new(maven::Reactor)),
            strict: || Box::new(Maven::new(Naming::Reactor)),
        },
        Parser {
            name: "parse_log_maven",
            origin: Origin::SweRebench2,
            language: "Java",
            framework: "Maven -Dtest",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| Box::<maven::Build>::default()),
            strict: || Box::new(Maven::new(Naming::Build)),
        },
        Parser {
            name: "parse_log_ant",
            origin: Origin::SweRebench2,
            language: "Java",
            framework: "Ant junit",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| each(maven::ant)),
            strict: || Box::<strict::ant::Junit>::default(),
        },
        Parser {
            name: "parse_log_lein",
            origin: Origin::SweRebench2,
            language: "Clojure",
            framework: "Leiningen",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::<lein::Lein>::default()),
            strict: || Box::<strict::lein::Namespaces>::default(),
        },
        Parser {
            name: "parse_log_scala",
            origin: Origin::SweRebench2,
            language: "Scala",
            framework: "ScalaTest",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| each(scala::scala)),
            strict: || Box::new(strict::scala::Results::new(each(scala::scala))),
        },
        Parser {
            name: "parse_log_scala_v2",
            origin: Origin::SweRebench2,
            language: "Scala",
            framework: "munit, zio-test, weaver",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| each(scala::scala_v2)),
            strict: || Box::new(strict::scala::Results::new(each(scala::scala_v2))),
        },
        Parser {
            name: "parse_log_scala_v3",
            origin: Origin::SweRebench2,
            language: "Scala",
            framework: "ScalaTest with suites",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::<scala::Suites>::default()),
            strict: || Box::new(strict::scala::Results::new(Box::<scala::Suites>::default())),
        },
    ],
    aliases: &[
        ("parse_log_junit", "parse_log_sbt"),
        ("parse_log_kotlin_junit", "parse_logs_kotlin_junit"),
        ("parse_log_java_mvn", "parse_java_mvn"),
        ("parse_log_java_mvn_v2", "parse_java_mvn_v2"),
    ],
};
