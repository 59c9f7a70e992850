//! The report of a study's folder.

use std::path::Path;

use super::{Exclusion, Report, ReportError, StudyFacts};
use crate::grade::files::{OutError, write, write_json};
use crate::study::{Bench, Design, Solver, StudyError};

/// Differences under three percentage points count as none.
const EQUIVALENCE_MARGIN: f64 = 0.03;

/// Why a study has no report.
#[derive(Debug, thiserror::Error)]
pub enum StudyReportError {
    /// Its records cannot be read, or the report not be written.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// Its records do not fit its design.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// A recorded run says what it said then, whatever it is shown now.
fn replay_notes(design: &Design) -> impl Iterator<Item = String> {
    let replays = design.solvers.iter().filter(|(_, solver)| matches!(solver, Solver::Replay { .. }));
    replays.map(|(name, _)| {
        format!(
            "Solver {name} replays recorded runs: its replies cannot react to memory and cost nothing, so its arms say \
             nothing about memory; they check the harness."
        )
    })
}

impl Report {
    /// The report on what a study has finished so far.
    ///
    /// # Errors
    /// When a record cannot be read or does not fit the study.
    pub fn of(bench: &Bench) -> Result<Self, StudyReportError> {
        bench.expect_begun()?;
        let design = bench.design();
        let excluded = bench.excluded()?.into_iter();
        let facts = StudyFacts {
            name: design.name.clone(),
            baseline: design.baseline.clone(),
            conditions: design.conditions.keys().cloned().collect(),
            solvers: design.solvers.keys().cloned().collect(),
            replicates: design.replicates,
            targets: bench.targets(),
            excluded: excluded.map(|e| Exclusion { instance_id: e.target, reason: e.reason }).collect(),
            chronology_disagreements: bench.disagreements(),
            notes: design.note.iter().cloned().chain(replay_notes(design)).collect(),
            seed: design.stats.seed,
            lock_digest: bench.lock_digest(),
            exclude_leaks: design.audit.exclude_leaks,
            ceilings: design
                .conditions
                .iter()
                .filter(|(_, condition)| condition.is_ceiling())
                .map(|(name, _)| name.clone())
                .collect(),
            equivalence_margin: EQUIVALENCE_MARGIN,
        };
        let records: Vec<_> = bench.records()?.into_values().collect();
        Ok(Self::build(facts, &records)?)
    }

    /// Writes `report.json`, `report.html` and `report.txt` into a folder, each whole.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), OutError> {
        write_json(&folder.join("report.json"), self)?;
        write(&folder.join("report.html"), self.html().as_bytes())?;
        write(&folder.join("report.txt"), self.text().as_bytes())
    }
}
