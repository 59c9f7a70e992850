//! What stays of graded instances: their folders, and how their repeats agree.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::grade::Explanation;
use crate::grade::expect::Found;
use crate::grade::files::{OutError, write, write_json};
use crate::grade::graded::Graded;
use crate::grade::reports::InstanceReport;
use crate::grade::{Coding, VerdictClass};
use crate::task::InstanceId;

/// `verdict.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The task.
    pub instance_id: InstanceId,
    /// Of everything that decides the verdict: patch, row, options, sandbox, version. Where it matches, the
    /// verdict is reused.
    pub digest: String,
    /// SHA-256 of `test_output.txt`.
    pub log_sha256: String,
    /// How many sandboxes it took.
    pub attempts: u32,
    /// The published image that the tests ran in, as `NAME@DIGEST`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What grading found.
    #[serde(flatten)]
    pub graded: Graded,
}

/// The verdicts on one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stability {
    /// The deciding verdict.
    pub class: VerdictClass,
    /// Why.
    pub reason: Option<String>,
    /// Every repeat's, in order.
    pub classes: Vec<VerdictClass>,
    /// Whether all are equal.
    pub consistent: bool,
    /// Expected tests whose status was not the same in all repeats that ran them.
    pub flaky_tests: BTreeMap<String, Vec<Found>>,
    /// Where strict and upstream rules differ on an expected test of the deciding repeat, and why.
    #[serde(skip)]
    pub explanation: Option<Explanation>,
    /// Wall-clock seconds of all repeats.
    #[serde(skip)]
    pub seconds: f64,
}

const FILES: [&str; 4] = ["patch.diff", "test_output.txt", "report.json", "verdict.json"];

/// A verdict of an earlier run, where it is whole and was reached from the same inputs. One that the harness
/// failed to reach is not kept.
pub(super) fn earlier(folder: &Path, digest: &str) -> Option<Recorded> {
    let bytes = fs_err::read(folder.join("verdict.json")).ok()?;
    let recorded: Recorded = serde_json::from_slice(&bytes).ok()?;
    (recorded.digest == digest && recorded.graded.class.coding() != Coding::Missing).then_some(recorded)
}

/// Writes an instance's folder. `verdict.json` goes first and comes last: where it stands, the rest belongs
/// to it.
pub(super) fn save(folder: &Path, patch: Option<&str>, recorded: &Recorded) -> Result<(), OutError> {
    clear(folder)?;
    if let Some(patch) = patch {
        write(&folder.join("patch.diff"), patch.as_bytes())?;
    }
    write(&folder.join("test_output.txt"), &recorded.graded.log)?;
    let report = InstanceReport::new(patch, &recorded.graded);
    write_json(&folder.join("report.json"), &BTreeMap::from([(recorded.instance_id.as_str(), report)]))?;
    write_json(&folder.join("verdict.json"), recorded)
}

fn clear(folder: &Path) -> Result<(), OutError> {
    for name in FILES.iter().rev() {
        let path = folder.join(name);
        match fs_err::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(OutError::new(&path, source));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn copy(from: &Path, to: &Path) -> Result<(), OutError> {
    clear(to)?;
    for name in FILES {
        let path = from.join(name);
        match fs_err::read(&path) {
            Ok(bytes) => write(&to.join(name), &bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(OutError::new(&path, error)),
        }
    }
    Ok(())
}

/// Which repeat decides, and how the repeats agree. The worst decides: one that excludes the target, then one
/// that is not resolved, then a resolved one; a repeat that the harness failed decides only where all did.
pub(super) fn stability(repeats: &BTreeMap<u32, Recorded>) -> (u32, Stability) {
    let rank = |class: VerdictClass| match class.coding() {
        Coding::Excluded => 0,
        Coding::Zero => 1,
        Coding::One => 2,
        Coding::Missing => 3,
    };
    let classes: Vec<VerdictClass> = repeats.values().map(|one| one.graded.class).collect();
    let worst = repeats.iter().min_by_key(|(repeat, one)| (rank(one.graded.class), **repeat));
    let decides = worst.map_or(1, |(repeat, _)| *repeat);
    let graded = worst.map(|(_, one)| &one.graded);
    let class = graded.map_or(VerdictClass::NoPrediction, |graded| graded.class);
    let reason = graded.and_then(|graded| graded.reason.clone());
    let explanation = graded.and_then(|graded| graded.explanation.clone());
    let mut seen: BTreeMap<String, Vec<Found>> = BTreeMap::new();
    for (name, outcome) in repeats.values().flat_map(|one| &one.graded.tests) {
        seen.entry(name.clone()).or_default().push(outcome.status.clone());
    }
    seen.retain(|_, statuses| statuses.windows(2).any(|pair| pair[0] != pair[1]));
    let consistent = classes.windows(2).all(|pair| pair[0] == pair[1]);
    let seconds = repeats.values().map(|one| one.graded.seconds).sum();
    (decides, Stability { class, reason, classes, consistent, flaky_tests: seen, explanation, seconds })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
