//! The repository, its submodules, and other repositories around it.

use super::listing::{self, Entry};
use super::{AuditError, Past, Remedy, Report, STATE, Subject, answer::Answer, graph};
use crate::sandbox::Sandbox;
use crate::sandbox::environment::history::{History, HistoryError, Trace, UNREADABLE};

/// Index files larger than this are not read.
const MOST: u64 = 256 << 20;

/// Of more repositories than this, only the first are compared.
const MOST_REPOSITORIES: usize = 200;

/// Looks into all repositories, and forgets those texts of the answer that the base commit has.
pub(super) async fn look(
    sandbox: &mut dyn Sandbox,
    subject: &Subject<'_>,
    entries: &[Entry],
    answer: &mut Answer,
    report: &mut Report,
) -> Result<Past, AuditError> {
    let mut past = Past { repositories: listing::repositories(entries), ..Past::default() };
    let own = format!("{}/.git", subject.workdir);
    if !past.repositories.contains(&own) && !past.repositories.contains(&subject.workdir) {
        report.could_not(
            "history",
            &format!(
                "{} holds no git repository: what is as at the base commit is not known",
                subject.workdir
            ),
        );
        return Ok(past);
    }
    let base = subject.base.clone().unwrap_or_default();
    let mut history = own_history(sandbox, subject);
    let traces = match history.probe(&base).await {
        Ok(traces) => traces,
        Err(HistoryError::Sandbox(error)) => return Err(error.into()),
        Err(error) => {
            report.could_not("history", &error.to_string());
            return Ok(past);
        }
    };
    let blind = traces.iter().find(|trace| trace.detector == UNREADABLE);
    if let Some(trace) = blind {
        report.could_not("history", &format!("{}: {}", trace.place, trace.what));
        return Ok(past);
    }
    for trace in &traces {
        report.add(&trace.detector, &trace.place, &trace.what, Remedy::Strip);
    }
    let step = async {
        let changed: std::collections::BTreeSet<String> =
            history.changed_files().await?.into_iter().collect();
        answer.forget(&history.said_at_base(&answer.questions()).await?);
        let (tracked, versions) = history.names().await?;
        history.lay_out_ahead().await?;
        Ok::<_, HistoryError>((changed, tracked, versions))
    };
    match step.await {
        Ok((changed, tracked, versions)) => {
            past.changed = Some(changed);
            past.tracked = tracked.into_iter().collect();
            past.versions = versions;
        }
        Err(HistoryError::Sandbox(error)) => return Err(error.into()),
        Err(error) => report.could_not("files of the base commit", &error.to_string()),
    }
    graphs(sandbox, subject, entries, &own, report).await?;
    let others: Vec<&String> =
        past.repositories.iter().filter(|it| **it != own && **it != subject.workdir).collect();
    if others.len() > MOST_REPOSITORIES {
        report.could_not(
            "other repositories",
            &format!("there are {}: only {MOST_REPOSITORIES} were compared", others.len()),
        );
    }
    for other in others.into_iter().take(MOST_REPOSITORIES) {
        let modules = format!("{own}/modules");
        let found = if listing::is_under(other, &modules) {
            let found = History::new(&mut *sandbox, other, subject.timeout).probe("").await;
            found.map(|traces| (traces, Remedy::Strip))
        } else {
            let mut history = own_history(sandbox, subject);
            let found = history.related(other).await;
            found.map(|traces| (traces, Remedy::Remove(other.clone())))
        };
        match found {
            Ok((traces, remedy)) => {
                for trace in traces {
                    other_trace(&trace, other, &remedy, report);
                }
            }
            Err(HistoryError::Sandbox(error)) => return Err(error.into()),
            Err(error) => report.could_not("another repository", &error.to_string()),
        }
    }
    Ok(past)
}

fn own_history<'a>(sandbox: &'a mut dyn Sandbox, subject: &Subject<'_>) -> History<'a> {
    History::new(sandbox, &subject.workdir, subject.timeout).with_lists(STATE)
}

fn other_trace(trace: &Trace, other: &str, remedy: &Remedy, report: &mut Report) {
    match (trace.detector.as_str(), remedy) {
        (UNREADABLE, _) => report.could_not("another repository", &format!("{other}: {}", trace.what)),
        // its own address is how a submodule is known
        ("remote", Remedy::Strip) => {}
        (_, Remedy::Strip) => report.add(
            "submodule",
            &trace.place,
            &format!("{}: {}", trace.detector, trace.what),
            Remedy::Strip,
        ),
        (detector, remedy) => report.add(detector, &trace.place, &trace.what, remedy.clone()),
    }
}

/// The names in git's index files that no object of the past has.
async fn graphs(
    sandbox: &mut dyn Sandbox,
    subject: &Subject<'_>,
    entries: &[Entry],
    own: &str,
    report: &mut Report,
) -> Result<(), AuditError> {
    let places = [format!("{own}/objects/info/commit-graph"), format!("{own}/objects/pack/multi-pack-index")];
    let chain = format!("{own}/objects/info/commit-graphs/");
    let is_graph =
        |path: &String| places.contains(path) || (path.starts_with(&chain) && path.ends_with(".graph"));
    let found: Vec<&Entry> = entries.iter().filter(|entry| is_graph(&entry.path)).collect();
    if found.is_empty() {
        return Ok(());
    }
    let known = match own_history(sandbox, subject).known().await {
        Ok(known) => known,
        Err(HistoryError::Sandbox(error)) => return Err(error.into()),
        Err(error) => {
            report.could_not("commit-graph", &error.to_string());
            return Ok(());
        }
    };
    for entry in found {
        let names = sandbox.get(&entry.path, MOST).await?.and_then(|bytes| graph::names(&bytes));
        let Some(names) = names else {
            report.could_not("commit-graph", &format!("{}: its format is not known", entry.path));
            continue;
        };
        let later: Vec<&String> = names.iter().filter(|name| known.binary_search(name).is_err()).collect();
        if let Some(first) = later.first() {
            let what = format!("names {} later objects, for example {first}", later.len());
            report.add("commit-graph", &entry.path, &what, Remedy::Strip);
        }
    }
    Ok(())
}
