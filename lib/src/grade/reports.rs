//! SWE-bench's report files: one an instance (schema of version 5), one a run (`schema_version` 2).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::graded::{Graded, Split};
use super::{Coding, VerdictClass};

/// `tests_status` of an instance report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct TestsStatus {
    /// Tests that must flip.
    pub fail_to_pass: Split,
    /// Tests that must stay.
    pub pass_to_pass: Split,
    /// Always empty.
    pub fail_to_fail: Split,
    /// Always empty.
    pub pass_to_fail: Split,
}

/// The value of an instance's `report.json`, an object with one key: the id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceReport {
    /// Whether there is no patch.
    #[serde(rename = "patch_is_None")]
    pub patch_is_none: bool,
    /// Whether there is one.
    pub patch_exists: bool,
    /// Whether it was applied and the log could be graded.
    pub patch_successfully_applied: bool,
    /// The verdict.
    pub resolved: bool,
    /// Whether the harness failed rather than the patch.
    pub infra_failure: bool,
    /// Which failure, where there is a name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra_failure_reason: Option<String>,
    /// The tests; absent where the log could not be graded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_status: Option<TestsStatus>,
}

impl InstanceReport {
    /// The report on a verdict.
    pub fn new(patch: Option<&str>, graded: &Graded) -> Self {
        let gradable = matches!(graded.class, VerdictClass::Resolved | VerdictClass::Unresolved)
            && !graded.tests.is_empty();
        Self {
            patch_is_none: patch.is_none(),
            patch_exists: patch.is_some_and(|patch| !patch.is_empty()),
            patch_successfully_applied: gradable,
            resolved: graded.class == VerdictClass::Resolved,
            infra_failure: graded.class.coding() == Coding::Missing,
            infra_failure_reason: failure_reason(graded.class).map(str::to_owned),
            tests_status: gradable.then(|| TestsStatus {
                fail_to_pass: graded.f2p.clone(),
                pass_to_pass: graded.p2p.clone(),
                ..TestsStatus::default()
            }),
        }
    }
}

/// SWE-bench's name for a failure.
fn failure_reason(class: VerdictClass) -> Option<&'static str> {
    match class {
        VerdictClass::Infrastructure => Some("container_unavailable"),
        VerdictClass::HostOutOfMemory => Some("out_of_memory"),
        VerdictClass::TestTimeout => Some("tests_timed_out"),
        VerdictClass::NoResults => Some("no_tests_collected"),
        _ => None,
    }
}

/// The `report.json` of a run.
///
/// Every task is in exactly one of `incomplete_ids` (no prediction), `empty_patch_ids`, `resolved_ids`,
/// `unresolved_ids` and `error_ids`. As in SWE-bench, a patch that does not apply, a time-out and a failed
/// harness are errors; a log without results, a failed build among the causes, is unresolved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunReport {
    /// Tasks.
    pub total_instances: usize,
    /// Predictions, for unknown tasks, too.
    pub submitted_instances: usize,
    /// Resolved or unresolved.
    pub completed_instances: usize,
    /// Resolved.
    pub resolved_instances: usize,
    /// Unresolved.
    pub unresolved_instances: usize,
    /// Failures of the harness.
    pub infra_failure_instances: usize,
    /// Failures that can be the harness's or the patch's.
    pub ambiguous_failure_instances: usize,
    /// Empty patches.
    pub empty_patch_instances: usize,
    /// Everything else.
    pub error_instances: usize,
    /// See `completed_instances`.
    pub completed_ids: BTreeSet<String>,
    /// Tasks without a prediction (or, after an interruption, without a verdict).
    pub incomplete_ids: BTreeSet<String>,
    /// See `empty_patch_instances`.
    pub empty_patch_ids: BTreeSet<String>,
    /// See `submitted_instances`.
    pub submitted_ids: BTreeSet<String>,
    /// See `resolved_instances`.
    pub resolved_ids: BTreeSet<String>,
    /// See `unresolved_instances`.
    pub unresolved_ids: BTreeSet<String>,
    /// See `infra_failure_instances`.
    pub infra_failure_ids: BTreeSet<String>,
    /// See `ambiguous_failure_instances`.
    pub ambiguous_failure_ids: BTreeSet<String>,
    /// id → SWE-bench's name of the failure.
    pub failure_reasons: BTreeMap<String, String>,
    /// See `error_instances`.
    pub error_ids: BTreeSet<String>,
    /// memtrial's own: tasks without a fair verdict in any run (gold fails, or the log or row cannot be read). Also among
    /// `error_ids`; `memtrial compare` leaves them out.
    pub excluded_ids: BTreeSet<String>,
    /// 2.
    pub schema_version: u32,
    /// Always 0: a sandbox ends with its process.
    pub unstopped_instances: usize,
    /// Always empty.
    pub unstopped_containers: Vec<String>,
    /// Always empty.
    pub unremoved_images: Vec<String>,
}

impl RunReport {
    /// The report on these verdicts. A task without one is incomplete.
    pub fn new(
        tasks: impl IntoIterator<Item = String>,
        submitted: impl IntoIterator<Item = String>,
        verdicts: &BTreeMap<String, VerdictClass>,
    ) -> Self {
        let mut report =
            Self { schema_version: 2, submitted_ids: submitted.into_iter().collect(), ..Self::default() };
        for id in tasks {
            report.total_instances += 1;
            let class = verdicts.get(&id).copied().unwrap_or(VerdictClass::NoPrediction);
            report.add(id, class);
        }
        report.completed_ids = &report.resolved_ids | &report.unresolved_ids;
        report.submitted_instances = report.submitted_ids.len();
        report.completed_instances = report.completed_ids.len();
        report.resolved_instances = report.resolved_ids.len();
        report.unresolved_instances = report.unresolved_ids.len();
        report.infra_failure_instances = report.infra_failure_ids.len();
        report.ambiguous_failure_instances = report.ambiguous_failure_ids.len();
        report.empty_patch_instances = report.empty_patch_ids.len();
        report.error_instances = report.error_ids.len();
        report
    }

    fn add(&mut self, id: String, class: VerdictClass) {
        if class.coding() == Coding::Excluded {
            self.excluded_ids.insert(id.clone());
        }
        if let Some(reason) = failure_reason(class) {
            self.failure_reasons.insert(id.clone(), reason.to_owned());
            let missing = class.coding() == Coding::Missing;
            let ids = if missing { &mut self.infra_failure_ids } else { &mut self.ambiguous_failure_ids };
            ids.insert(id.clone());
        }
        let ids = match class {
            VerdictClass::NoPrediction => &mut self.incomplete_ids,
            VerdictClass::EmptyPatch | VerdictClass::AgentLimit => &mut self.empty_patch_ids,
            VerdictClass::Resolved => &mut self.resolved_ids,
            VerdictClass::Unresolved | VerdictClass::BuildFailed | VerdictClass::NoResults => {
                &mut self.unresolved_ids
            }
            VerdictClass::PatchNotApplied
            | VerdictClass::TestTimeout
            | VerdictClass::Infrastructure
            | VerdictClass::HostOutOfMemory
            | VerdictClass::GoldFails
            | VerdictClass::Unparseable => &mut self.error_ids,
        };
        ids.insert(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::Options;

    #[test]
    fn every_task_is_in_exactly_one_list() {
        use VerdictClass::*;
        let classes = [
            Resolved,
            Unresolved,
            EmptyPatch,
            NoPrediction,
            PatchNotApplied,
            BuildFailed,
            AgentLimit,
            TestTimeout,
            NoResults,
            Infrastructure,
            HostOutOfMemory,
            GoldFails,
            Unparseable,
        ];
        let verdicts: BTreeMap<String, VerdictClass> =
            classes.iter().enumerate().map(|(n, class)| (format!("o__r-{n:02}"), *class)).collect();
        let tasks = verdicts.keys().cloned().chain(["o__r-99".to_owned()]);
        let report = RunReport::new(tasks, ["o__r-00".to_owned(), "x__y-1".to_owned()], &verdicts);
        let parts = [
            &report.incomplete_ids,
            &report.empty_patch_ids,
            &report.resolved_ids,
            &report.unresolved_ids,
            &report.error_ids,
        ];
        assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), report.total_instances);
        let together: BTreeSet<_> = parts.iter().flat_map(|part| part.iter()).collect();
        assert_eq!(together.len(), report.total_instances);
        insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap().replace("\n    ", " "), @r#"
        {
          "total_instances": 14,
          "submitted_instances": 2,
          "completed_instances": 4,
          "resolved_instances": 1,
          "unresolved_instances": 3,
          "infra_failure_instances": 2,
          "ambiguous_failure_instances": 2,
          "empty_patch_instances": 2,
          "error_instances": 6,
          "completed_ids": [ "o__r-00", "o__r-01", "o__r-05", "o__r-08"
          ],
          "incomplete_ids": [ "o__r-03", "o__r-99"
          ],
          "empty_patch_ids": [ "o__r-02", "o__r-06"
          ],
          "submitted_ids": [ "o__r-00", "x__y-1"
          ],
          "resolved_ids": [ "o__r-00"
          ],
          "unresolved_ids": [ "o__r-01", "o__r-05", "o__r-08"
          ],
          "infra_failure_ids": [ "o__r-09", "o__r-10"
          ],
          "ambiguous_failure_ids": [ "o__r-07", "o__r-08"
          ],
          "failure_reasons": { "o__r-07": "tests_timed_out", "o__r-08": "no_tests_collected", "o__r-09": "container_unavailable", "o__r-10": "out_of_memory"
          },
          "error_ids": [ "o__r-04", "o__r-07", "o__r-09", "o__r-10", "o__r-11", "o__r-12"
          ],
          "excluded_ids": [ "o__r-11", "o__r-12"
          ],
          "schema_version": 2,
          "unstopped_instances": 0,
          "unstopped_containers": [],
          "unremoved_images": []
        }
        "#);
    }

    #[test]
    fn an_instance_report_has_the_published_keys() {
        let mut graded = Graded::without_run(VerdictClass::TestTimeout, None, &Options::default());
        insta::assert_snapshot!(serde_json::to_string(&InstanceReport::new(Some("+x"), &graded)).unwrap(), @r#"{"patch_is_None":false,"patch_exists":true,"patch_successfully_applied":false,"resolved":false,"infra_failure":false,"infra_failure_reason":"tests_timed_out"}"#);
        graded.class = VerdictClass::Resolved;
        graded.f2p.success.push("t".into());
        let outcome = crate::grade::Outcome {
            status: crate::grade::expect::Found::Missing,
            expected: crate::grade::expect::Expected::FailToPass,
        };
        graded.tests.insert("t".into(), outcome);
        insta::assert_snapshot!(serde_json::to_string(&InstanceReport::new(Some("+x"), &graded)).unwrap(), @r#"{"patch_is_None":false,"patch_exists":true,"patch_successfully_applied":true,"resolved":true,"infra_failure":false,"tests_status":{"FAIL_TO_PASS":{"success":["t"],"failure":[]},"PASS_TO_PASS":{"success":[],"failure":[]},"FAIL_TO_FAIL":{"success":[],"failure":[]},"PASS_TO_FAIL":{"success":[],"failure":[]}}}"#);
    }
}
