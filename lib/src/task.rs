//! What a problem is, and who may see which of its fields.
//!
//! A dataset row is taken apart into three types by visibility (VibeMemBench's classes): [`SolverView`] may reach
//! prompts, memory queries and the sandbox; [`HiddenView`] may be read by no one at run time; [`EvaluatorView`] only by
//! the grading step, after the agent has stopped. Agent, context and memory code takes a [`SolverView`], so a leak
//! does not compile:
//!
//! ```compile_fail
//! fn prompt(task: &memtrial::task::SolverView) -> String {
//!     task.patch.clone() // the gold patch belongs to the evaluator
//! }
//! ```
//!
//! ```compile_fail
//! fn prompt(task: &memtrial::task::SolverView) -> String {
//!     task.hints_text.clone() // written after the issue: hidden
//! }
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a task: `owner__name-NUMBER`, where NUMBER is the pull request's.
///
/// GitHub owners hold no underscore, names may hold `__`: the key is split at the first `__`
/// (`a__b__c-7` is owner `a`, name `b__c`, number 7).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId {
    text: String,
    owner_end: usize,
    key_end: usize,
    number: u64,
}

/// The most bytes of an id: files are named after it, with endings of their own.
const MAX_ID: usize = 200;

/// Why a text is no [`InstanceId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("instance id {text:?} {reason}; expected owner__name-NUMBER, for example acme__widget-7")]
pub struct InstanceIdError {
    text: String,
    reason: &'static str,
}

impl InstanceId {
    /// Reads `owner__name-NUMBER`.
    ///
    /// # Errors
    /// When there is no trailing number, a number with leading zeros, no `__`, an empty part, a character that cannot
    /// be part of a file name, or when it is longer than 200 bytes.
    pub fn parse(text: &str) -> Result<Self, InstanceIdError> {
        let fail = |reason| InstanceIdError { text: text.to_owned(), reason };
        if text.len() > MAX_ID {
            let start: String = text.chars().take(40).chain(['…']).collect();
            return Err(InstanceIdError { text: start, reason: "is longer than 200 bytes" });
        }
        let (key, digits) = text.rsplit_once('-').ok_or_else(|| fail("has no `-NUMBER` at its end"))?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(fail("has no `-NUMBER` at its end"));
        }
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(fail("has a number with leading zeros: another spelling of the same task"));
        }
        let number = digits.parse().map_err(|_| fail("has a number that is too large"))?;
        let (owner, name) = key.split_once("__").ok_or_else(|| fail("has no `__` between owner and name"))?;
        if owner.is_empty() || name.is_empty() {
            return Err(fail("has an empty owner or name"));
        }
        if text.contains(['/', '\\', '\0']) || text.chars().any(char::is_control) {
            return Err(fail("holds a character that no file name can hold"));
        }
        Ok(Self { owner_end: owner.len(), key_end: key.len(), number, text: text.to_owned() })
    }

    /// The id as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The owner of the repository.
    pub fn owner(&self) -> &str {
        &self.text[..self.owner_end]
    }

    /// The name of the repository.
    pub fn name(&self) -> &str {
        &self.text[self.owner_end + 2..self.key_end]
    }

    /// `owner__name`: the folder of the repository's history.
    pub fn repo_key(&self) -> &str {
        &self.text[..self.key_end]
    }

    /// The trailing number: the pull request's.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether both ids name the same repository. GitHub compares names without case.
    pub fn same_repo(&self, other: &Self) -> bool {
        self.repo_key().eq_ignore_ascii_case(other.repo_key())
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for InstanceId {
    type Error = InstanceIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<InstanceId> for String {
    fn from(id: InstanceId) -> Self {
        id.text
    }
}

/// One repository problem with tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    /// What the solver, the memory and the sandbox may see.
    pub solver: SolverView,
    /// What nothing may read at run time.
    pub hidden: HiddenView,
    /// What only the grading step may read.
    pub evaluator: EvaluatorView,
}

impl Task {
    /// The task's name.
    pub fn id(&self) -> &InstanceId {
        &self.solver.instance_id
    }
}

/// The fields of a task that the solver may see.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SolverView {
    /// `owner__name-NUMBER`.
    pub instance_id: InstanceId,
    /// `owner/name`, its case kept.
    pub repo: String,
    /// The commit that the task starts from.
    pub base_commit: String,
    /// The issue text, its bytes untouched.
    pub problem_statement: String,
    /// The programming language in lower case, where the dataset states it.
    pub language: Option<String>,
    /// The published image with the prepared environment.
    pub image_name: Option<String>,
    /// `major.minor` of the repository at the base commit, where stated.
    pub version: Option<String>,
    /// How the environment is built and the tests are run.
    pub recipe: Recipe,
}

/// The fields of a task that nothing may read at run time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HiddenView {
    /// Issue comments.
    pub hints_text: Option<String>,
    /// The pull request's text: it often states the fix.
    pub pr_description: Option<String>,
    /// The interface that the tests expect.
    pub interface: Option<String>,
    /// When the pull request was opened, as the row says it: ISO text, or epoch seconds or milliseconds.
    pub created_at: Option<serde_json::Value>,
    /// When the pull request was merged (RFC 3339), where the row's `meta` says so.
    pub merged_at: Option<String>,
    /// Every other column, untouched.
    pub other: BTreeMap<String, serde_json::Value>,
}

/// The fields of a task that only the grading step may read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EvaluatorView {
    /// The gold patch.
    pub patch: String,
    /// The patch that adds the deciding tests.
    pub test_patch: String,
    /// Tests that must flip to passing.
    pub fail_to_pass: Vec<String>,
    /// Tests that must keep passing.
    pub pass_to_pass: Vec<String>,
}

/// `install_config`: how a task's environment is built and its tests are run.
///
/// The keys of SWE-rebench v1 (`python`, `packages`, `reqs_path`, …) and V2 (`base_image_name`, `install` as a list, …)
/// in one type; what a row lacks is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Recipe {
    /// v1: the Python version, for example `3.9`.
    pub python: Option<String>,
    /// v1: `requirements.txt`, `environment.yml`, or package names with blanks between.
    pub packages: Option<String>,
    /// v1: requirement files, read from the repository.
    pub reqs_path: Vec<String>,
    /// v1: conda environment files, read from the repository.
    pub env_yml_path: Vec<String>,
    /// v1: more packages for pip.
    pub pip_packages: Vec<String>,
    /// v1: commands before the installation.
    pub pre_install: Vec<String>,
    /// The installation: one command (v1) or several (V2), run in one shell.
    pub install: Vec<String>,
    /// V2: commands between the patch and the tests, where a row has them.
    pub build: Vec<String>,
    /// The test command, or several.
    pub test_cmd: Vec<String>,
    /// The name of the log parser, as in `parse_log_pytest`.
    pub log_parser: Option<String>,
    /// V2: the base image, for example `python 3.11`.
    pub base_image_name: Option<String>,
    /// Environment variables for installation and tests (`env` or v1's `env_vars`).
    pub env: BTreeMap<String, String>,
    /// v1: whether the dataset's harness appends the test files of the test patch to the test command.
    pub tests_as_arguments: bool,
    /// Keys that memtrial does not know, untouched.
    pub other: BTreeMap<String, serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_owner_name_and_number() {
        let id = InstanceId::parse("a__b__c-7").unwrap();
        assert_eq!((id.owner(), id.name(), id.number(), id.repo_key()), ("a", "b__c", 7, "a__b__c"));
        let id = InstanceId::parse("scikit-learn__scikit-learn-25570").unwrap();
        assert_eq!((id.owner(), id.name(), id.number()), ("scikit-learn", "scikit-learn", 25570));
    }

    #[test]
    fn refuses_what_is_no_id() {
        for text in [
            "",
            "a__b",
            "a__b-",
            "a__b-x1",
            "ab-7",
            "__b-7",
            "a__-7",
            "a__../b-7",
            "a__b-99999999999999999999",
        ] {
            assert!(InstanceId::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_task_has_one_spelling_that_fits_into_a_file_name() {
        let reason = |text: &str| InstanceId::parse(text).unwrap_err().to_string();
        insta::assert_snapshot!(
            reason("acme__widget-04"),
            @r#"instance id "acme__widget-04" has a number with leading zeros: another spelling of the same task; expected owner__name-NUMBER, for example acme__widget-7"#
        );
        let id = |length: usize| format!("a__{}-7", "b".repeat(length - 5));
        assert_eq!(InstanceId::parse(&id(200)).unwrap().as_str().len(), 200);
        insta::assert_snapshot!(
            reason(&id(201)),
            @r#"instance id "a__bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…" is longer than 200 bytes; expected owner__name-NUMBER, for example acme__widget-7"#
        );
        assert_eq!(InstanceId::parse("a__b-0").unwrap().number(), 0);
    }
}
