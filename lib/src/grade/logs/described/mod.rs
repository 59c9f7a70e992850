//! Parsers that users describe in a TOML file, without code: for runners that the table has no parser for.
//!
//! [`File`] is what is written, [`Description`] the same checked and compiled, `walk` reads a log by it and
//! [`learn`] proposes one from logs whose outcomes are known.

mod compile;
mod file;
pub mod learn;
#[cfg(test)]
mod tests;
mod walk;

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use file::{Context, Duplicates, Ended, Failure, File, Line, Section};

use super::found::StatusMap;
use super::scan::{ReadError, Reading};
use super::{ParseError, Rules};

/// A description that cannot be used, with what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is no TOML, or no description.
    #[error("{}: no description of a parser: {reason}", .path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// It is one, but does not hold together.
    #[error("{}: {fault}", .path.display())]
    Fault {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: Fault,
    },
}

/// What is wrong in a description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Fault {
    /// The field, such as `line[2].pattern`; lists count from 1.
    pub field: String,
    /// What is wrong there, and what to do.
    pub reason: String,
}

/// A parser that a user described: checked, its patterns compiled.
#[derive(Debug, Clone)]
pub struct Description {
    file: File,
    rules: Arc<compile::Rules>,
}

impl PartialEq for Description {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

impl Eq for Description {}

impl Description {
    /// Checks a description.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn new(file: File) -> Result<Self, Fault> {
        let rules = Arc::new(compile::rules(&file)?);
        Ok(Self { file, rules })
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no valid description.
    pub fn load(path: &Path) -> Result<Self, DescriptionError> {
        Self::from_toml(path, &fs_err::read_to_string(path)?)
    }

    /// Checks the content of a file.
    ///
    /// # Errors
    /// When it is no valid description.
    pub fn from_toml(path: &Path, text: &str) -> Result<Self, DescriptionError> {
        let file = toml::from_str(text).map_err(|error| DescriptionError::Toml {
            path: path.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        Self::new(file).map_err(|fault| DescriptionError::Fault { path: path.to_owned(), fault })
    }

    /// The file that describes it.
    ///
    /// # Errors
    /// When it cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(&self.file)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// As it is written.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reads a log.
    ///
    /// # Errors
    /// Under upstream's rules: there are none.
    pub fn parse(&self, log: &str, rules: Rules) -> Result<StatusMap, ParseError> {
        self.reading(rules)?.text(log)
    }

    /// Reads a log from a stream, in the memory of its longest line and its results.
    ///
    /// # Errors
    /// Under upstream's rules, and when the stream fails.
    pub fn read(&self, log: impl BufRead, rules: Rules) -> Result<StatusMap, ReadError> {
        self.reading(rules)?.stream(log)
    }

    fn reading(&self, rules: Rules) -> Result<Reading, ParseError> {
        match rules {
            Rules::Strict => Ok(Reading::strict("a described parser", walk::open(Arc::clone(&self.rules)))),
            Rules::Upstream => Err(ParseError::NoUpstream { parser: self.file.name.clone() }),
        }
    }
}
