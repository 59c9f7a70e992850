//! What a report must be told about a study besides its trials.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::study::TrialRecord;
use crate::task::InstanceId;

/// Facts about a study that its trials do not hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyFacts {
    /// The study's name.
    pub name: String,
    /// The condition that the others are compared with.
    pub baseline: String,
    /// All conditions, in the study's order; the baseline is one of them.
    pub conditions: Vec<String>,
    /// All solvers, in the study's order.
    pub solvers: Vec<String>,
    /// Replicates of each trial.
    pub replicates: u32,
    /// Targets of the study, excluded ones included.
    pub targets: usize,
    /// Targets that were taken out before the trials, for example because their gold patch fails.
    pub excluded: Vec<Exclusion>,
    /// Where the two chronologies (number, merge date) order a target and its history differently; one line each.
    pub chronology_disagreements: Vec<String>,
    /// What a reader must know first, for example that this is a planted demonstration; printed at the top.
    pub notes: Vec<String>,
    /// The seed of the bootstrap and of random sign flips.
    pub seed: u64,
    /// The digest of the lock file.
    pub lock_digest: String,
    /// Whether targets whose answer a block gave away leave every arm of the main comparisons.
    #[serde(default)]
    pub exclude_leaks: bool,
    /// Conditions that are chosen with knowledge of the answer.
    #[serde(default)]
    pub ceilings: Vec<String>,
    /// Differences smaller than this share count as "no difference" (0.03: 3 percentage points).
    pub equivalence_margin: f64,
}

/// A target that left every arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusion {
    /// The target.
    pub instance_id: InstanceId,
    /// Why.
    pub reason: String,
}

/// Why trials and study do not fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReportError {
    /// The baseline is not among the conditions.
    #[error("baseline {baseline:?} is no condition of study {study:?}; its conditions are {conditions}")]
    UnknownBaseline {
        /// The study.
        study: String,
        /// The name that was given.
        baseline: String,
        /// The names that exist.
        conditions: String,
    },
    /// A name stands twice in the study's grid.
    #[error("study {study:?} names {what} {name:?} twice; give each its own name")]
    NameTwice {
        /// The study.
        study: String,
        /// `condition` or `solver`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A trial belongs to no place of the grid.
    #[error(
        "trial {trial} is not of study {study:?}: {reason}; \
         the trials folder holds records of another study or of an older study file"
    )]
    ForeignTrial {
        /// The study.
        study: String,
        /// condition/solver/replicate/instance.
        trial: String,
        /// What does not fit.
        reason: String,
    },
    /// Two records have one key.
    #[error("trial {trial} has two records; keep the one of the latest attempt")]
    TrialTwice {
        /// condition/solver/replicate/instance.
        trial: String,
    },
    /// The equivalence margin is no share.
    #[error("equivalence margin {margin} is not between 0 and 1 (0.03 means 3 percentage points)")]
    Margin {
        /// What was given.
        margin: f64,
    },
}

impl StudyFacts {
    /// `(condition, solver)` of each arm, in the study's order.
    pub fn grid(&self) -> impl Iterator<Item = (&str, &str)> {
        self.conditions.iter().flat_map(|c| self.solvers.iter().map(move |s| (c.as_str(), s.as_str())))
    }

    /// Checks that the trials are of this study, each once.
    pub(super) fn check(&self, trials: &[TrialRecord]) -> Result<(), ReportError> {
        self.check_names("condition", &self.conditions)?;
        self.check_names("solver", &self.solvers)?;
        if !self.conditions.contains(&self.baseline) {
            return Err(ReportError::UnknownBaseline {
                study: self.name.clone(),
                baseline: self.baseline.clone(),
                conditions: self.conditions.join(", "),
            });
        }
        if !(self.equivalence_margin > 0.0 && self.equivalence_margin < 1.0) {
            return Err(ReportError::Margin { margin: self.equivalence_margin });
        }
        let mut seen = BTreeSet::new();
        for trial in trials {
            let key = &trial.key;
            let name = || format!("{}/{}/{}/{}", key.condition, key.solver, key.replicate, key.instance_id);
            if let Some(reason) = self.misfit(trial) {
                return Err(ReportError::ForeignTrial { study: self.name.clone(), trial: name(), reason });
            }
            if !seen.insert(key) {
                return Err(ReportError::TrialTwice { trial: name() });
            }
        }
        Ok(())
    }

    fn check_names(&self, what: &'static str, names: &[String]) -> Result<(), ReportError> {
        let mut seen = BTreeSet::new();
        match names.iter().find(|name| !seen.insert(*name)) {
            None => Ok(()),
            Some(name) => Err(ReportError::NameTwice { study: self.name.clone(), what, name: name.clone() }),
        }
    }

    fn misfit(&self, trial: &TrialRecord) -> Option<String> {
        let key = &trial.key;
        if !self.conditions.contains(&key.condition) {
            Some(format!("it has no condition {:?}", key.condition))
        } else if !self.solvers.contains(&key.solver) {
            Some(format!("it has no solver {:?}", key.solver))
        } else if key.replicate == 0 || key.replicate > self.replicates {
            Some(format!("its replicates are 1 to {}", self.replicates))
        } else {
            None
        }
    }
}
