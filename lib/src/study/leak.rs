//! Whether an injected block gave its target's answer away: looked at after the run, on the grading side. What is found
//! goes into the trial's record and nowhere else.

use super::trial::Trial;
use crate::agent::Recalled;
use crate::audit::memory::{AtBase, LeakScan, Source, scan};
use crate::dataset::Entry;
use crate::memory::host::{Injection, Outcome, Retrieved};
use crate::sandbox::environment::find_clone;
use crate::task::Task;
use crate::trajectory::Limits;

impl Trial<'_> {
    /// Scans what was injected, at the start and in the run; `None`: nothing was.
    pub(super) async fn scan(&self, start: &Retrieved, during: &[Recalled]) -> Option<LeakScan> {
        let shown =
            during.iter().filter(|recalled| recalled.text.is_some()).map(|recalled| &recalled.retrieved);
        let injections: Vec<&Injection> = std::iter::once(start).chain(shown).filter_map(injection).collect();
        if injections.is_empty() {
            return None;
        }
        let text = injections.iter().map(|injection| injected(injection)).collect::<Vec<_>>().join("\n");
        let is_source = |entry: &&Entry| injections.iter().any(|i| i.sources.contains(entry.id()));
        let entries = self.target.history.iter().flat_map(|history| history.entries());
        let entries: Vec<Entry> = entries.filter(is_source).cloned().collect();
        let (task, repos) = (self.target.task.clone(), self.bench().design.repos.clone());
        // reading runs and asking git takes its time
        let looked = tokio::task::spawn_blocking(move || {
            let sources: Vec<Source> = entries.iter().map(source).collect();
            let base = find_clone(&repos, &task.solver.repo).ok();
            look(
                &text,
                &sources,
                &task,
                base.and_then(|clone| AtBase::open(&clone, &task.solver.base_commit)),
            )
        });
        looked.await.ok()
    }
}

fn look(text: &str, sources: &[Source], task: &Task, base: Option<AtBase>) -> LeakScan {
    match base {
        Some(base) => scan(text, sources, task, Some(&|text| base.has(text))),
        None => scan(text, sources, task, None),
    }
}

fn injection(retrieved: &Retrieved) -> Option<&Injection> {
    match &retrieved.outcome {
        Outcome::Injected(injection) => Some(injection),
        Outcome::Abstained { .. } => None,
    }
}

/// Everything that the agent could read.
fn injected(injection: &Injection) -> String {
    let files = injection.files.iter().map(|file| file.content.as_str());
    std::iter::once(injection.block.as_str()).chain(files).collect::<Vec<_>>().join("\n")
}

/// A run that cannot be read any more is known by its name alone.
fn source(entry: &Entry) -> Source {
    let summary = entry.summary(&Limits::default()).ok();
    let (issue, patch) = summary.map_or((None, None), |summary| (summary.issue, summary.submission));
    Source { id: entry.id().clone(), issue, patch }
}
