//! The file of a described parser, as it is written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::status::Status;

/// A parser's description, as a TOML file holds it. [`super::Description`] is one that has been checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct File {
    /// What the parser is called.
    pub name: String,
    /// The language of the projects whose logs it reads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// The runner whose logs it reads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub framework: String,
    /// What stands between the parts of a name.
    #[serde(default = "joiner")]
    pub joiner: String,
    /// Which of several results of one test counts.
    #[serde(default)]
    pub duplicates: Duplicates,
    /// Whether a duration at the end of a name is taken away.
    #[serde(default, skip_serializing_if = "is_false")]
    pub strip_durations: bool,
    /// What captured status words mean.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status: BTreeMap<String, Ended>,
    /// Parts of a log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub section: Vec<Section>,
    /// Headers whose text belongs to the names of the tests below them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Context>,
    /// Result lines; the first that fits a line reads it.
    #[serde(default)]
    pub line: Vec<Line>,
    /// Lines that tell of a failure of something larger than a test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure: Vec<Failure>,
}

fn joiner() -> String {
    " > ".to_owned()
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_true(flag: &bool) -> bool {
    *flag
}

/// Which of several results of one test counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicates {
    /// The worst.
    #[default]
    Worst,
    /// The last.
    Last,
    /// The last that is no pass; a pass only where nothing else was seen.
    KeepFailure,
}

/// How a test ended, as descriptions write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
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
    /// It passed where a failure was expected.
    Xpass,
}

impl From<Ended> for Status {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Passed => Self::Passed,
            Ended::Failed => Self::Failed,
            Ended::Error => Self::Error,
            Ended::Skipped => Self::Skipped,
            Ended::Xfail => Self::Xfail,
            Ended::Xpass => Self::Xpass,
        }
    }
}

impl TryFrom<&Status> for Ended {
    type Error = String;

    fn try_from(status: &Status) -> Result<Self, String> {
        Ok(match status {
            Status::Passed => Self::Passed,
            Status::Failed => Self::Failed,
            Status::Error => Self::Error,
            Status::Skipped => Self::Skipped,
            Status::Xfail => Self::Xfail,
            Status::Xpass => Self::Xpass,
            Status::Other(text) => return Err(text.clone()),
        })
    }
}

/// The lines between two, without them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Section {
    /// What rules call it.
    pub name: String,
    /// The line before it.
    pub begin: String,
    /// The line after it; without it, the section lasts to the end of the log. A group that `begin` has too must
    /// hold the same text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Whether no rule holds in it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore: bool,
    /// How the test that the group `name` of `begin` names ended, where the section does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Ended>,
}

/// A header whose group `name` stands before the names of the tests below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Context {
    /// The header. With a group `indent` it holds for what stands deeper; otherwise until `end`, or, without one,
    /// until a header of this or of a later context.
    pub pattern: String,
    /// The line that ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Only in this section.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
}

/// A result line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Line {
    /// The line, with the group `name`, or `name1` to `name9`, which are joined; `status` where the line tells it;
    /// `indent` where contexts go by indentation.
    pub pattern: String,
    /// How the test ended, where the line has no group `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Ended>,
    /// Only in this section.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Not in this section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in: Option<String>,
    /// Whether contexts stand before the name.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub context: bool,
    /// Whether this is the result of something larger than a test.
    #[serde(default, skip_serializing_if = "is_false")]
    pub group: bool,
}

/// A line that tells of a failure of something larger than a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Failure {
    /// The line.
    pub pattern: String,
    /// Whether code could not be built or loaded, so that its tests never ran.
    #[serde(default, skip_serializing_if = "is_false")]
    pub build: bool,
}
