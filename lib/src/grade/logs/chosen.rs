//! A parser as a user chooses it: by name, or by the file that describes it.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::described::{Description, DescriptionError, Fault, File};
use super::found::StatusMap;
use super::scan::ReadError;
use super::table::{Parser, parser};
use super::{ParseError, Rules};

/// A parser of the table, or one that a user described.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum LogParser {
    /// Of the table.
    Named(&'static Parser),
    /// Described in a file.
    Described(Arc<Description>),
}

/// How a choice is written down: what decides its results, whole.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Name(String),
    File(Box<File>),
}

/// Why there is no such parser.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// No parser has this name.
    #[error(transparent)]
    Name(#[from] ParseError),
    /// The file is no description.
    #[error(transparent)]
    File(#[from] DescriptionError),
    /// The description does not hold together.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl LogParser {
    /// The parser of this name, or, where it ends in `.toml`, the one that this file describes.
    ///
    /// # Errors
    /// When there is none.
    pub fn choose(name: &str) -> Result<Self, ChoiceError> {
        if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
            return Ok(Self::Described(Arc::new(Description::load(Path::new(name))?)));
        }
        Ok(Self::Named(parser(name)?))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(parser) => parser.name,
            Self::Described(description) => description.name(),
        }
    }

    /// Reads a log.
    ///
    /// # Errors
    /// As [`Parser::parse`]; a described parser has no upstream rules.
    pub fn parse(&self, log: &str, rules: Rules) -> Result<StatusMap, ParseError> {
        match self {
            Self::Named(parser) => parser.parse(log, rules),
            Self::Described(description) => description.parse(log, rules),
        }
    }

    /// Reads a log from a stream.
    ///
    /// # Errors
    /// As [`LogParser::parse`], and when the stream fails.
    pub fn read(&self, log: impl BufRead, rules: Rules) -> Result<StatusMap, ReadError> {
        match self {
            Self::Named(parser) => parser.read(log, rules),
            Self::Described(description) => description.read(log, rules),
        }
    }
}

impl PartialEq for LogParser {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(a), Self::Named(b)) => (a.origin, a.name) == (b.origin, b.name),
            (Self::Described(a), Self::Described(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for LogParser {}

impl From<LogParser> for Written {
    fn from(chosen: LogParser) -> Self {
        match chosen {
            LogParser::Named(parser) => Self::Name(format!("{}:{}", parser.origin.as_str(), parser.name)),
            LogParser::Described(description) => Self::File(Box::new(description.file().clone())),
        }
    }
}

impl TryFrom<Written> for LogParser {
    type Error = ChoiceError;

    fn try_from(written: Written) -> Result<Self, ChoiceError> {
        Ok(match written {
            Written::Name(name) => Self::Named(parser(&name)?),
            Written::File(file) => Self::Described(Arc::new(Description::new(*file)?)),
        })
    }
}
