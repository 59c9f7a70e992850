//! What a test log says: one small parser a family of runners, under two sets of rules.
//!
//! [`Rules::Upstream`] is what SWE-rebench V2's reference parsers make of a log, quirks included: expected
//! names in datasets were recorded by them. [`Rules::Strict`] is what really happened: whole ids, no lines
//! that tests printed themselves, no file lines, every status. Each strict observation carries the name that
//! upstream would give it, so that an expected name finds it ([`crate::grade::expect`]).
//!
//! `table` names the parsers, one folder a family holds them; `scan` walks the log, `found` is where they write.
//! [`text`] has what Python does to text and Rust does not. `structured` reads the formats that runners write for
//! programs.

pub mod text;

mod chosen;
pub mod described;
pub mod detect;
mod found;
mod scan;
mod spec_tree;
mod status;
mod structured;
mod table;
mod telltales;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod truth_tests;
mod xml;

mod c;
mod csharp;
mod dart;
mod elixir;
mod go;
mod haskell;
mod javascript;
mod julia;
mod jvm;
mod lua;
mod ocaml;
mod php;
mod python;
mod r;
mod ruby;
mod rust;
mod shell;
mod swift;

pub use chosen::{ChoiceError, LogParser};
pub use found::{Observation, StatusMap, SuiteFailure};
pub use scan::{Format, ReadError};
pub use status::Status;
pub use table::{Origin, Parser, Rules, aliases, parse_log, parser, parsers};

use table::Family;

/// Every family; a new one adds its folder and its line here.
static FAMILIES: &[Family] = &[
    c::FAMILY,
    csharp::FAMILY,
    dart::FAMILY,
    elixir::FAMILY,
    go::FAMILY,
    haskell::FAMILY,
    javascript::FAMILY,
    julia::FAMILY,
    jvm::FAMILY,
    lua::FAMILY,
    ocaml::FAMILY,
    php::FAMILY,
    python::FAMILY,
    r::FAMILY,
    ruby::FAMILY,
    rust::FAMILY,
    shell::FAMILY,
    swift::FAMILY,
];

/// Why a log could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No parser of this name is known.
    #[error("log parser {name:?} is not known{}; `memtrial parse-log --list` shows all", suggestion(.near))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Known names that are much like it.
        near: Vec<String>,
    },
    /// The parser is memtrial's own.
    #[error("{parser} has no upstream rules, for it is memtrial's own; use strict rules")]
    NoUpstream {
        /// The parser.
        parser: String,
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

fn suggestion(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(", ")) }
}
