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
    /// Whether [`Rules::Upstream`] exist for it.
    pub fn has_upstream(&self) -> bool {
        self.upstream.is_some()
    }

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
    origins
        .iter()
        .find_map(|origin| named(*origin, plain))
        .ok_or_else(|| ParseError::Unknown { name: name.to_owned(), near: near(plain) })
}

fn named(origin: Origin, name: &str) -> Option<&'static Parser> {
    FAMILIES.iter().find_map(|family| {
        let own = family.aliases.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
        family.parsers.iter().find(|parser| parser.origin == origin && parser.name == own)
    })
}

/// The known names that differ least from this one, at most three.
fn near(name: &str) -> Vec<String> {
    let wanted = name.to_lowercase();
    let names = FAMILIES.iter().flat_map(|family| {
        family.parsers.iter().map(|parser| parser.name).chain(family.aliases.iter().map(|(alias, _)| *alias))
    });
    let core = wanted.trim_start_matches("parse_log_");
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|known| {
            let inside = core.len() > 2 && known.contains(core);
            let away = edits(known.trim_start_matches("parse_log_"), core);
            (inside || away <= 1 + core.chars().count() / 4).then_some((away, known))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(3).map(|(_, known)| known.to_owned()).collect()
}

/// How many characters must be changed, added or taken away to make one text the other.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Other names of a parser of the table.
pub fn aliases(parser: &Parser) -> Vec<&'static str> {
    let own = |family: &&Family| family.parsers.iter().any(|known| std::ptr::eq(known, parser));
    let family = FAMILIES.iter().find(own);
    let all = family.into_iter().flat_map(|family| family.aliases);
    all.filter(|(_, name)| *name == parser.name).map(|(alias, _)| *alias).collect()
}

/// Reads a log with the parser of this name.
///
/// # Errors
/// When there is no such parser, or, under upstream's rules, where the reference parser raises.
pub fn parse_log(name: &str, log: &str, rules: Rules) -> Result<StatusMap, ParseError> {
    parser(name)?.parse(log, rules)
}
