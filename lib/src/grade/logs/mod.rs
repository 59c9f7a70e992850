//! What a test log says: one small parser a family of runners, under two sets of rules.
//!
//! [`Rules::Upstream`] is what SWE-rebench V2's reference parsers make of a log, quirks included: expected
//! names in datasets were recorded by them. [`Rules::Strict`] is what really happened: whole ids, no lines
//! that tests printed themselves, no file lines, every status. Each strict observation carries the name that
//! upstream would give it, so that an expected name finds it ([`crate::grade::expect`]).

pub mod text;

mod cargo;
mod gotest;
mod jest;
mod js4;
mod mocha;
mod pytest;
#[cfg(test)]
mod tests;
mod vitest;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Which rules a log is read by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// Identical to the reference parsers.
    Upstream,
    /// What really happened.
    #[default]
    Strict,
}

/// How one test ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Status {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// Its set-up or tear-down failed.
    Error,
    /// It did not run.
    Skipped,
    /// It failed as expected.
    Xfail,
    /// It passed where a failure was expected, and the runner lets that pass.
    Xpass,
    /// What an upstream parser takes for a status (`ERROR:`); never under strict rules.
    Other(String),
}

impl Status {
    /// As written in logs and reports.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Passed => "PASSED",
            Self::Failed => "FAILED",
            Self::Error => "ERROR",
            Self::Skipped => "SKIPPED",
            Self::Xfail => "XFAIL",
            Self::Xpass => "XPASS",
            Self::Other(text) => text,
        }
    }

    /// From worst (0) to best: the order in which one of several observations of a test wins.
    fn rank(&self) -> u8 {
        match self {
            Self::Failed => 0,
            Self::Error => 1,
            Self::Other(_) => 2,
            Self::Skipped => 3,
            Self::Xfail => 4,
            Self::Xpass => 5,
            Self::Passed => 6,
        }
    }

    /// The worse of two.
    #[must_use]
    pub fn worse<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.rank() < self.rank() { other } else { self }
    }
}

impl From<String> for Status {
    fn from(text: String) -> Self {
        match text.as_str() {
            "PASSED" => Self::Passed,
            "FAILED" => Self::Failed,
            "ERROR" => Self::Error,
            "SKIPPED" => Self::Skipped,
            "XFAIL" => Self::Xfail,
            "XPASS" => Self::Xpass,
            _ => Self::Other(text),
        }
    }
}

impl From<&str> for Status {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<Status> for String {
    fn from(status: Status) -> Self {
        status.as_str().to_owned()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One result line of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// The test.
    pub name: String,
    /// The name that upstream's parser gives to the same line, where it differs.
    pub alias: Option<String>,
    /// How it ended.
    pub status: Status,
    /// The line of the log, from 1 (after newline translation).
    pub line: usize,
}

impl Observation {
    fn new(name: impl Into<String>, status: Status, line: usize) -> Self {
        Self { name: name.into(), alias: None, status, line }
    }

    /// With upstream's name for it.
    fn known_as(mut self, alias: Option<String>) -> Self {
        self.alias = alias.filter(|alias| *alias != self.name);
        self
    }
}

/// Reads as most upstream parsers do: split at LF alone, one result a line at most.
fn line_by_line(log: &str, result: fn(&str) -> Option<(&str, Status)>) -> Vec<Observation> {
    let lines = log.split('\n').zip(1..);
    lines
        .filter_map(|(line, at)| result(line).map(|(name, status)| Observation::new(name, status, at)))
        .collect()
}

/// A line that tells of a failure of something larger than a test: a file, a package, a crate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuiteFailure {
    /// The line of the log, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// Whether code could not be built or loaded, so that its tests never ran.
    pub build: bool,
}

/// What a parser found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StatusMap {
    /// Each test's status: under strict rules the worst seen, under upstream's by the parser's own policy.
    pub statuses: BTreeMap<String, Status>,
    /// Every result line, in order.
    pub observations: Vec<Observation>,
    /// Failures of files, packages and crates (strict rules only).
    pub suite_failures: Vec<SuiteFailure>,
}

/// Why a log could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No parser of this name is known.
    #[error("log parser {name:?} is not known; known: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The known names.
        known: String,
    },
    /// The reference parser raises an exception here; only under [`Rules::Upstream`].
    #[error("{parser}, line {line}: the reference parser raises {exception} on {text:?}; use strict rules")]
    Raises {
        /// The parser.
        parser: &'static str,
        /// From 1.
        line: usize,
        /// The line.
        text: String,
        /// The Python exception.
        exception: &'static str,
    },
}

/// What becomes of several results of one test under upstream's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// Every result overwrites.
    Last,
    /// A pass is written only where nothing is; every other status overwrites.
    FailureKept,
}

type UpstreamRule = fn(&str) -> Result<Vec<Observation>, ParseError>;
type StrictRule = fn(&str) -> (Vec<Observation>, Vec<SuiteFailure>);

/// A log parser: the pair of rules for one kind of log.
#[derive(Debug, Clone, Copy)]
pub struct Parser {
    /// As in `install_config.log_parser`.
    pub name: &'static str,
    /// The runner whose logs it reads.
    pub runner: &'static str,
    policy: Policy,
    upstream: UpstreamRule,
    strict: StrictRule,
}

impl Parser {
    const fn new(
        name: &'static str,
        runner: &'static str,
        policy: Policy,
        upstream: UpstreamRule,
        strict: StrictRule,
    ) -> Self {
        Self { name, runner, policy, upstream, strict }
    }

    /// Reads a log.
    ///
    /// # Errors
    /// Under upstream's rules, where the reference parser raises.
    pub fn parse(&self, log: &str, rules: Rules) -> Result<StatusMap, ParseError> {
        let log = text::universal_newlines(log);
        match rules {
            Rules::Upstream => {
                let observations = (self.upstream)(&log)?;
                let statuses = self.fold(&observations);
                Ok(StatusMap { statuses, observations, suite_failures: Vec::new() })
            }
            Rules::Strict => {
                let (observations, suite_failures) = (self.strict)(&text::strip_ansi(&log));
                Ok(StatusMap { statuses: worst(&observations), observations, suite_failures })
            }
        }
    }

    fn fold(&self, observations: &[Observation]) -> BTreeMap<String, Status> {
        let mut statuses = BTreeMap::new();
        for seen in observations {
            let keep = self.policy == Policy::FailureKept
                && seen.status == Status::Passed
                && statuses.contains_key(&seen.name);
            if !keep {
                statuses.insert(seen.name.clone(), seen.status.clone());
            }
        }
        statuses
    }
}

fn worst(observations: &[Observation]) -> BTreeMap<String, Status> {
    let mut statuses: BTreeMap<String, Status> = BTreeMap::new();
    for seen in observations {
        statuses
            .entry(seen.name.clone())
            .and_modify(|status| *status = status.worse(&seen.status).clone())
            .or_insert_with(|| seen.status.clone());
    }
    statuses
}

/// Every parser; a new family adds its file and its rows here.
static PARSERS: &[Parser] = &[
    Parser::new("parse_log_cargo", "cargo test", Policy::Last, cargo::upstream, cargo::strict),
    Parser::new("parse_log_gotest", "go test -v", Policy::Last, gotest::upstream, gotest::strict),
    Parser::new("parse_log_jest", "jest --verbose", Policy::Last, jest::upstream, jest::strict),
    Parser::new("parse_log_jest_json", "jest, flattened JSON", Policy::Last, jest::json, jest::json_strict),
    Parser::new("parse_log_js", "mocha", Policy::FailureKept, mocha::js, mocha::js_strict),
    Parser::new("parse_log_js_2", "mocha", Policy::FailureKept, mocha::js_2, mocha::js_2_strict),
    Parser::new(
        "parse_log_js_4",
        "jest, vitest, playwright",
        Policy::FailureKept,
        js4::upstream,
        js4::strict,
    ),
    Parser::new("parse_log_npx", "mocha", Policy::Last, mocha::npx, mocha::npx_strict),
    Parser::new("parse_log_pytest", "pytest -rA", Policy::Last, pytest::upstream, pytest::strict),
    Parser::new("parse_log_pytest_nebo", "pytest -v", Policy::Last, pytest::nebo, pytest::nebo_strict),
    Parser::new(
        "parse_log_pytest_options",
        "pytest -rA",
        Policy::Last,
        pytest::options,
        pytest::options_strict,
    ),
    Parser::new("parse_log_pytest_v2", "pytest, coloured", Policy::Last, pytest::v2, pytest::v2_strict),
    Parser::new("parse_log_vitest", "vitest", Policy::Last, vitest::upstream, vitest::strict),
];

/// Other names of parsers: upstream also finds them by repository.
static ALIASES: &[(&str, &str)] = &[
    ("parse_log_astroid", "parse_log_pytest"),
    ("parse_log_astropy", "parse_log_pytest_v2"),
    ("parse_log_dvc", "parse_log_pytest"),
    ("parse_log_flask", "parse_log_pytest"),
    ("parse_log_marshmallow", "parse_log_pytest"),
    ("parse_log_pvlib", "parse_log_pytest"),
    ("parse_log_pydantic", "parse_log_pytest"),
    ("parse_log_pydicom", "parse_log_pytest_options"),
    ("parse_log_pylint", "parse_log_pytest_options"),
    ("parse_log_pyvista", "parse_log_pytest"),
    ("parse_log_requests", "parse_log_pytest_options"),
    ("parse_log_scikit", "parse_log_pytest_v2"),
    ("parse_log_sphinx", "parse_log_pytest_v2"),
    ("parse_log_sqlfluff", "parse_log_pytest"),
    ("parse_log_xarray", "parse_log_pytest"),
];

/// Every parser, by name.
pub fn parsers() -> &'static [Parser] {
    PARSERS
}

/// The parser of this name.
///
/// # Errors
/// When there is none.
pub fn parser(name: &str) -> Result<&'static Parser, ParseError> {
    let own = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
    PARSERS.iter().find(|parser| parser.name == own).ok_or_else(|| ParseError::Unknown {
        name: name.to_owned(),
        known: PARSERS.iter().map(|parser| parser.name).collect::<Vec<_>>().join(", "),
    })
}

/// Reads a log with the parser of this name.
///
/// # Errors
/// When there is no such parser, or, under upstream's rules, where the reference parser raises.
pub fn parse_log(name: &str, log: &str, rules: Rules) -> Result<StatusMap, ParseError> {
    parser(name)?.parse(log, rules)
}
