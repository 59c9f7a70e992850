//! What grading one prediction found.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::VerdictClass;
use super::expect::{Expected, Found, NameDefect, ResolveRule};
use super::explain::Explanation;
use super::logs::{LogParser, Rules, StatusMap};
use super::patch::apply::{Refusal, Step};

/// How predictions are graded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// How logs are read.
    pub rules: Rules,
    /// What reads every log, whatever the tasks name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parser: Option<LogParser>,
    /// What counts as passing.
    pub resolve_rule: ResolveRule,
    /// For all test commands together.
    pub timeout: Duration,
    /// For the commands between patch and tests together.
    pub build_timeout: Duration,
    /// Whether an empty patch is run, too: the tests on the base commit.
    pub run_empty: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            parser: None,
            resolve_rule: ResolveRule::default(),
            timeout: Duration::from_secs(1800),
            build_timeout: Duration::from_secs(1800),
            run_empty: false,
        }
    }
}

/// One expected test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What the log says of it.
    pub status: Found,
    /// Which list names it.
    pub expected: Expected,
}

/// The tests of one list, by whether they count as passed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Passed, in the order of the task's list.
    pub success: Vec<String>,
    /// Did not.
    pub failure: Vec<String>,
}

/// Something that a reader of a verdict should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "flag")]
pub enum Flag {
    /// The patch changed a file that the test patch touches: it was put back.
    TestFileRestored {
        /// The file.
        path: String,
    },
    /// The patch changed a file that decides how tests are run (settings of the runner, a module in its place,
    /// the script of the test command) and that gold leaves alone: it was put back.
    ConfigRestored {
        /// The file.
        path: String,
    },
    /// The patch changed a file that can configure the test runner but holds dependencies or build rules as
    /// well, and gold leaves it alone. Suspect, left as it is.
    ConfigTouched {
        /// The file.
        path: String,
    },
    /// The patch adds code that names the test runner's insides, and gold does not. Suspect, left as it is:
    /// tested code runs in the runner's process and could forge its results.
    Suspect {
        /// The file.
        path: String,
        /// What it names.
        word: String,
    },
    /// A test command failed although its log shows no failure. Suspect: the log may be forged.
    ExitStatus {
        /// The command.
        command: String,
        /// The exit code as a shell reports it.
        code: i32,
    },
    /// The test patch needed a tolerant step.
    TestPatchStep {
        /// The step.
        step: Step,
    },
    /// The middle of the output was not kept.
    OutputCut {
        /// Bytes left out.
        bytes: u64,
    },
    /// The output held bytes that are no UTF-8.
    OutputLossy,
    /// The sandbox's memory limit killed something.
    MemoryLimit,
    /// An expected name is defective.
    Name {
        /// How.
        defect: NameDefect,
    },
}

/// What grading one prediction found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graded {
    /// The verdict.
    pub class: VerdictClass,
    /// Why, where it is not resolved.
    pub reason: Option<String>,
    /// The step that took the patch.
    pub applied: Option<Step>,
    /// The steps that did not, and what git said.
    pub refusals: Vec<Refusal>,
    /// The expected tests.
    pub tests: BTreeMap<String, Outcome>,
    /// `FAIL_TO_PASS`.
    pub f2p: Split,
    /// `PASS_TO_PASS`.
    pub p2p: Split,
    /// What else is to know.
    pub flags: BTreeSet<Flag>,
    /// Where strict and upstream rules differ on an expected test, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// The log parser.
    pub parser: Option<String>,
    /// How the log was read.
    pub rules: Rules,
    /// What counted as passing.
    pub resolve_rule: ResolveRule,
    /// The log of builds and tests: `test_output.txt`.
    #[serde(skip)]
    pub log: Vec<u8>,
    /// Every result of the log, with its line in [`Self::log`].
    #[serde(skip)]
    pub results: StatusMap,
}

impl Graded {
    /// A verdict without any test run.
    pub fn without_run(class: VerdictClass, reason: Option<String>, options: &Options) -> Self {
        Self {
            class,
            reason,
            applied: None,
            refusals: Vec::new(),
            tests: BTreeMap::new(),
            f2p: Split::default(),
            p2p: Split::default(),
            flags: BTreeSet::new(),
            explanation: None,
            seconds: 0.0,
            parser: None,
            rules: options.rules,
            resolve_rule: options.resolve_rule,
            log: Vec::new(),
            results: StatusMap::default(),
        }
    }

    /// With this verdict in place of its own.
    #[must_use]
    pub(super) fn verdict(mut self, class: VerdictClass, reason: impl Into<Option<String>>) -> Self {
        (self.class, self.reason) = (class, reason.into());
        self
    }

    /// As the verdict on a gold patch: what would be unresolved is a broken target, what left no results a
    /// log that cannot be read.
    #[must_use]
    pub fn of_gold(self) -> Self {
        let class = match self.class {
            VerdictClass::NoResults => VerdictClass::Unparseable,
            VerdictClass::Unresolved
            | VerdictClass::EmptyPatch
            | VerdictClass::PatchNotApplied
            | VerdictClass::BuildFailed
            | VerdictClass::TestTimeout => VerdictClass::GoldFails,
            other => return Self { class: other, ..self },
        };
        let before = serde_json::to_value(self.class).ok().and_then(|name| name.as_str().map(str::to_owned));
        let why = self.reason.clone().map_or_else(String::new, |reason| format!(": {reason}"));
        self.verdict(class, format!("gold is {}{why}", before.unwrap_or_default()))
    }
}
