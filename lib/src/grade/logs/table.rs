//! The parsers by name.

use std::io::BufRead;

use serde::{Deserialize, Serialize};

use super::found::StatusMap;
use super::scan::{Format, ReadError, Reading, Scan};
use super::{FAMILIES, ParseError};

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

/// Whose reference parser the upstream rules of a parser follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// SWE-rebench V2 (`lib/agent/log_parsers.py`).
    SweRebench2,
    /// SWE-bench 4.1.0 and SWE-rebench's fork of it.
    SweBench4,
    /// SWE-bench 5.0.
    SweBench5,
    /// memtrial's own: strict rules alone.
    Memtrial,
}

impl Origin {
    /// Every origin, in the order in which a name without origin is looked up.
    pub const ALL: [Self; 4] = [Self::SweRebench2, Self::SweBench4, Self::SweBench5, Self::Memtrial];

    /// As written before a parser's name (`swe-bench-5:parse_log_jest`).
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SweRebench2 => "swe-rebench-2",
            Self::SweBench4 => "swe-bench-4",
            Self::SweBench5 => "swe-bench-5",
            Self::Memtrial => "memtrial",
        }
    }
}

/// Where the reference parser splits lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// At line feeds.
    Lf,
    /// As Python's `str.splitlines`.
    Unicode,
}

/// A log parser: the pair of rules for one kind of log.
#[derive(Debug, Clone, Copy)]
pub struct Parser {
    /// As in `install_config.log_parser`.
    pub name: &'static str,
    /// Whose rules [`Rules::Upstream`] are.
    pub origin: Origin,
    /// The language of the projects whose logs it reads.
    pub language: &'static str,
    /// The runner whose logs it reads.
    pub framework: &'static str,
    /// Structured formats that it reads under strict rules, where the log holds them.
    pub reads: &'static [Format],
    pub(super) split: Split,
    pub(super) upstream: Option<fn() -> Box<dyn Scan>>,
    pub(super) strict: fn() -> Box<dyn Scan>,
}

impl Parser {
    /// Reads a log.
    ///
    /// # Errors
    /// Under upstream's rules, where the reference parser raises, or where there is none.
    pub fn parse(&self, log: &str, rules: Rules) -> Result<StatusMap, ParseError> {
        Reading::new(self, rules)?.text(log)
    }

    /// Reads a log from a stream, in the memory of its longest line and its results (some reference parsers need the
    /// whole log). Bytes that are no UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// As [`Parser::parse`], and when the stream fails.
    pub fn read(&self, log: impl BufRead, rules: Rules) -> Result<StatusMap, ReadError> {
        Reading::new(self, rules)?.stream(log)
    }
}

/// A family of runners: its parsers, and other names of them.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) parsers: &'static [Parser],
    /// (other name, parser), of the same origin.
    pub(super) aliases: &'static [(&'static str, &'static str)],
}

/// Every parser, family by family.
pub fn parsers() -> impl Iterator<Item = &'static Parser> {
    FAMILIES.iter().flat_map(|family| family.parsers)
}

/// The parser of this name: of the origin that stands before it (`swe-bench-5:parse_log_jest`), or of the first of
/// [`Origin::ALL`] that has one.
///
/// # Errors
/// When there is none.
pub fn parser(name: &str) -> Result<&'static Parser, ParseError> {
    let (origins, plain) = match name.split_once(':') {
        None => (&Origin::ALL[..], name),
        Some((origin, plain)) => {
            let at = Origin::ALL.iter().position(|known| known.as_str() == origin);
            (at.map_or(&[][..], |at| &Origin::ALL[at..=at]), plain)
        }
    };
    origins.iter().find_map(|origin| named(*origin, plain)).ok_or_else(|| ParseError::Unknown {
        name: name.to_owned(),
        known: parsers().map(|parser| parser.name).collect::<Vec<_>>().join(", "),
    })
}

fn named(origin: Origin, name: &str) -> Option<&'static Parser> {
    FAMILIES.iter().find_map(|family| {
        let own = family.aliases.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
        family.parsers.iter().find(|parser| parser.origin == origin && parser.name == own)
    })
}

/// Reads a log with the parser of this name.
///
/// # Errors
/// When there is no such parser, or, under upstream's rules, where the reference parser raises.
pub fn parse_log(name: &str, log: &str, rules: Rules) -> Result<StatusMap, ParseError> {
    parser(name)?.parse(log, rules)
}
