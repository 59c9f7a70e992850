//! Java, Kotlin, Scala and Clojure.

mod classes;
mod gradle;
mod junit_text;
mod lein;
mod maven;
mod scala;
mod strict_scala;
#[cfg(test)]
mod tests;

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
    (junit::plain(case).0, Some(classes::gradle_name(case.name, case.class)))
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

/// The row of another origin.
const fn of(origin: Origin, parser: Parser) -> Parser {
    Parser { origin, ..parser }
}

const GRADLE_TEXT: Parser = row(
    "parse_log_gradle_custom",
    ["Java", "Gradle"],
    Split::Lf,
    || each(gradle::upstream),
    || each(gradle::strict),
);
const MAVEN: Parser = row(
    "parse_log_maven",
    ["Java", "Maven"],
    Split::Lf,
    || Box::<maven::Builds>::default(),
    || Box::<maven::Strict>::default(),
);
const ANT: Parser = row(
    "parse_log_ant",
    ["Java", "ant"],
    Split::Lf,
    || each(classes::ant_upstream),
    || each(classes::ant_strict),
);

pub(super) const FAMILY: Family = Family {
    name: "jvm",
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
                ["Kotlin", "Gradle"],
                Split::Lf,
                || Box::<classes::GradleXml>::default(),
                || each(gradle::strict),
            )
        },
        row("parse_log_sbt", ["Scala", "sbt"], Split::Lf, || whole(junit_text::upstream), || each(|_, _| {})),
        GRADLE_TEXT,
        Parser { origin: Origin::SweBench4, upstream: Some(|| each(gradle::upstream_4)), ..GRADLE_TEXT },
        Parser {
            origin: Origin::SweBench5,
            upstream: Some(|| Box::<gradle::Upstream5>::default()),
            ..GRADLE_TEXT
        },
        row(
            "parse_logs_kotlin_junit",
            ["Kotlin", "Maven surefire"],
            Split::Unicode,
            || Box::<classes::Kotlin>::default(),
            || Box::<maven::Strict>::default(),
        ),
        row(
            "parse_java_mvn",
            ["Java", "Maven surefire"],
            Split::Lf,
            || whole(maven::upstream),
            || Box::<maven::Strict>::default(),
        ),
        row(
            "parse_java_mvn_v2",
            ["Java", "Maven reactor"],
            Split::Unicode,
            || Box::<maven::Modules>::default(),
            || Box::<maven::Strict>::default(),
        ),
        MAVEN,
        of(Origin::SweBench4, MAVEN),
        Parser { origin: Origin::SweBench5, upstream: Some(|| Box::<maven::Builds5>::default()), ..MAVEN },
        ANT,
        of(Origin::SweBench4, ANT),
        of(Origin::SweBench5, ANT),
        row(
            "parse_log_lein",
            ["Clojure", "Leiningen"],
            Split::Unicode,
            || Box::<lein::Upstream>::default(),
            || Box::<lein::Strict>::default(),
        ),
        row(
            "parse_log_scala",
            ["Scala", "ScalaTest"],
            Split::Unicode,
            || each(scala::upstream),
            || strict_scala::Strict::open(each(scala::upstream)),
        ),
        row(
            "parse_log_scala_v2",
            ["Scala", "munit"],
            Split::Unicode,
            || each(scala::upstream_2),
            || strict_scala::Strict::open(each(scala::upstream_2)),
        ),
        row(
            "parse_log_scala_v3",
            ["Scala", "ScalaTest"],
            Split::Unicode,
            || Box::<scala::Upstream3>::default(),
            || strict_scala::Strict::open(Box::<scala::Upstream3>::default()),
        ),
    ],
    aliases: &[
        ("parse_log_junit", "parse_log_sbt"),
        ("parse_log_kotlin_junit", "parse_logs_kotlin_junit"),
        ("parse_log_java_mvn", "parse_java_mvn"),
        ("parse_log_java_mvn_v2", "parse_java_mvn_v2"),
    ],
};
