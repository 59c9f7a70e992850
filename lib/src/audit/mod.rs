//! Is the answer in there? What an environment, a published image or a folder shows of its task's solution.
//!
//! Agents find what is left: later commits in `.git`, a later release of the package, a patch in `/tmp`. [`audit`] looks
//! for all of it inside a sandbox, with the evaluator's view of the task in hand, so it stands above grading and nothing
//! that an agent runs may use it. [`DETECTORS`] lists what it looks for; each finding says what and where.

mod answer;
mod archive;
mod content;
mod detectors;
mod files;
mod fix;
mod graph;
mod history;
mod listing;
pub mod memory;
mod packages;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

pub use detectors::{DETECTORS, Detector, Severity};
pub use fix::{Fixed, fix, fix_folder, fixed_key};

use crate::sandbox::environment::history::HistoryError;
use crate::sandbox::{Exec, Sandbox, SandboxError};
use crate::task::Task;

/// Where lists lie in the sandbox while it is looked into.
const STATE: &str = "/tmp/memtrial-audit";

/// Where the repository's own words that are accepted without being the base commit's are laid out: the commit that set
/// the environment up is known by who made it, a tag by what it is on, so what they hold is searched.
const AHEAD: &str = "/tmp/memtrial-audit/ahead";

/// What is looked into.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// The task whose answer is looked for; without one, only what is later than the base commit.
    pub task: Option<&'a Task>,
    /// The folder of the repository: absolute.
    pub workdir: String,
    /// The commit that nothing may be later than; `None`: HEAD.
    pub base: Option<String>,
    /// The folders that are searched: `/` for a whole environment.
    pub roots: Vec<String>,
    /// Folders that are not entered: the host's own system, where it is the base.
    pub closed: Vec<String>,
    /// Folders whose files' content is not searched: toolchains.
    pub toolchains: Vec<String>,
    /// What an image says of itself: labels, variables, the commands that made it. Place and text.
    pub facts: Vec<(String, String)>,
    /// How long each step may take.
    pub timeout: Duration,
}

impl<'a> Subject<'a> {
    /// A whole environment with the repository in `workdir`.
    pub fn environment(task: &'a Task, workdir: &str) -> Self {
        Self {
            task: Some(task),
            workdir: workdir.to_owned(),
            base: Some(task.solver.base_commit.clone()),
            roots: vec!["/".into()],
            closed: Vec::new(),
            toolchains: Vec::new(),
            facts: Vec::new(),
            timeout: Duration::from_secs(300),
        }
    }

    /// The host's own system is no part of the environment, but for the packages that it shares with it.
    #[must_use]
    pub fn on_the_host(mut self) -> Self {
        let own = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];
        let shared =
            ["/usr/local", "/usr/src", "/usr/lib/python3*", "/usr/lib/node_modules", "/usr/share/nodejs"];
        self.closed = own.map(str::to_owned).into();
        self.roots.extend(shared.map(str::to_owned));
        self
    }

    /// One folder.
    pub fn folder(task: Option<&'a Task>, workdir: &str, base: Option<String>) -> Self {
        Self {
            task,
            workdir: workdir.to_owned(),
            base,
            roots: vec![workdir.to_owned()],
            closed: Vec::new(),
            toolchains: Vec::new(),
            facts: Vec::new(),
            timeout: Duration::from_secs(300),
        }
    }
}

/// Something that gives the answer away, or a way to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// Which detector found it: see [`DETECTORS`].
    pub detector: &'static str,
    /// Where: a path, a repository's folder and a ref, a variable.
    #[serde(rename = "where")]
    pub place: String,
    /// What is there, shortened.
    pub what: String,
    /// How bad it is.
    pub severity: Severity,
    /// Whether `--fix` can take it away.
    pub fixable: bool,
    /// How.
    #[serde(skip)]
    pub(crate) remedy: Remedy,
}

/// How a finding is taken away.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remedy {
    /// Not by us.
    None,
    /// By the strip of the repository's history.
    Strip,
    /// By removing this file or folder.
    Remove(String),
}

/// A detector that could not look.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unchecked {
    /// What could not be looked at.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// What an audit found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was found, in the order of detectors' names and places.
    pub findings: Vec<Finding>,
    /// What could not be looked at.
    pub unchecked: Vec<Unchecked>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// Files that were there.
    pub files: usize,
    /// Files whose content was searched.
    pub searched: usize,
}

impl Report {
    /// Whether nothing was found and everything was looked at.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.unchecked.is_empty()
    }

    /// Names places by another folder: the one that `inside` is in the sandbox.
    #[must_use]
    pub fn relocated(mut self, inside: &str, folder: &str) -> Self {
        for finding in &mut self.findings {
            if listing::is_under(finding.place.split(' ').next().unwrap_or_default(), inside) {
                finding.place = finding.place.replacen(inside, folder, 1);
            }
        }
        for unchecked in &mut self.unchecked {
            unchecked.reason = unchecked.reason.replace(inside, folder);
        }
        self
    }

    fn add(&mut self, detector: &str, place: &str, what: &str, remedy: Remedy) {
        let Some(found) = DETECTORS.iter().find(|known| known.name == detector) else { return };
        let fixable = remedy != Remedy::None;
        let what = answer::shorten_to(what, 240);
        let (detector, severity) = (found.name, found.severity);
        self.findings.push(Finding { detector, place: place.to_owned(), what, severity, fixable, remedy });
    }

    /// Names what lies in [`AHEAD`] as git does. Only who made the commit or tag can take it away.
    fn name_the_commit(&mut self, workdir: &str) {
        for finding in &mut self.findings {
            let Some(inside) = finding.place.strip_prefix(AHEAD) else { continue };
            let name = match inside.strip_prefix("/files/") {
                Some(path) => format!("HEAD:{path}"),
                None if inside == "/tags" => "refs/tags".to_owned(),
                None => "HEAD".to_owned(),
            };
            finding.place = format!("{workdir}/.git {name}");
            (finding.remedy, finding.fixable) = (Remedy::None, false);
        }
    }

    fn could_not(&mut self, what: &str, reason: &str) {
        self.unchecked.push(Unchecked { what: what.to_owned(), reason: reason.to_owned() });
    }

    fn sort(&mut self) {
        self.findings.sort();
        self.findings.dedup_by(|one, other| one.detector == other.detector && one.place == other.place);
        self.unchecked.sort();
        self.unchecked.dedup();
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A step failed as a whole.
    #[error("{action}: {reason}")]
    Failed {
        /// Which.
        action: &'static str,
        /// What was said.
        reason: String,
    },
    /// The repository cannot be looked into.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// Looks for the answer in a sandbox. Nothing of the environment is changed, but for a folder under `/tmp` that is
/// removed at the end.
///
/// # Errors
/// When the sandbox or the listing of its files fails. A detector that could not look is told in the report.
pub async fn audit(sandbox: &mut dyn Sandbox, subject: &Subject<'_>) -> Result<Report, AuditError> {
    let mut report = Report::default();
    let entries = listing::list(sandbox, &subject.roots, &subject.closed, subject.timeout).await?;
    report.files = entries.iter().filter(|entry| !entry.folder).count();
    let mut answer = subject.task.map_or_else(answer::Answer::unknown, answer::Answer::of);
    let past = history::look(sandbox, subject, &entries, &mut answer, &mut report).await?;
    let ahead = listing::list(sandbox, &[AHEAD.to_owned()], &[], subject.timeout).await?;
    let entries = [entries, ahead].concat();
    if subject.task.is_some() && answer.has_no_lines() {
        let note =
            "the gold patch adds too little to tell a line of it from another: files are not searched for it";
        report.notes.push(note.to_owned());
    }
    let own = files::own_package(sandbox, subject, &past).await?;
    answer.also_tarballs(&own.names);
    let view = View { subject, entries: &entries, past: &past, answer: &answer };
    content::search(sandbox, &view, &own, &mut report).await?;
    files::look(sandbox, &view, &own, &mut report).await?;
    content::surroundings(sandbox, &view, &mut report).await?;
    sandbox
        .exec(&Exec { argv: ["rm", "-rf", STATE].map(str::to_owned).into(), ..Exec::bash("", "/") })
        .await?;
    report.name_the_commit(&subject.workdir);
    report.sort();
    Ok(report)
}

/// What the steps share.
struct View<'a> {
    subject: &'a Subject<'a>,
    entries: &'a [listing::Entry],
    past: &'a Past,
    answer: &'a answer::Answer,
}

impl View<'_> {
    /// The files whose content may hold the answer: none that are as at the base commit, or the system's own.
    fn candidates(&self) -> impl Iterator<Item = &listing::Entry> {
        self.entries.iter().filter(|entry| !entry.folder && entry.size > 0 && self.is_candidate(&entry.path))
    }

    fn is_candidate(&self, path: &str) -> bool {
        if listing::is_under(path, AHEAD) {
            return true;
        }
        if listing::is_under(path, STATE) || !listing::is_readable(path) {
            return false;
        }
        if self.subject.toolchains.iter().any(|folder| listing::is_under(path, folder)) {
            return false;
        }
        // objects are git's to read
        let store = |repository: &String| {
            path.strip_prefix(repository.as_str()).is_some_and(|rest| rest.starts_with("/objects/"))
        };
        if self.past.repositories.iter().any(store) {
            return false;
        }
        match path.strip_prefix(self.subject.workdir.as_str()).and_then(|rest| rest.strip_prefix('/')) {
            Some(inside) => self.past.is_changed(inside),
            None => true,
        }
    }

    /// How a file that gives something away is taken away: not where the repository or a package needs it.
    fn remedy(&self, path: &str) -> Remedy {
        let inside = path.strip_prefix(self.subject.workdir.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let needed =
            inside.is_some_and(|inside| self.past.tracked.contains(inside)) || listing::in_package(path);
        if needed && !listing::in_cache(path) { Remedy::None } else { Remedy::Remove(path.to_owned()) }
    }
}

/// What is known of the repository.
#[derive(Debug, Default)]
struct Past {
    /// Repositories by their own folders (`…/.git`).
    repositories: Vec<String>,
    /// The files that are not as at the base commit; `None`: that is not known.
    changed: Option<BTreeSet<String>>,
    /// The files that the base commit or HEAD has.
    tracked: BTreeSet<String>,
    /// Versions that tags of the past name.
    versions: Vec<String>,
}

impl Past {
    fn is_changed(&self, inside: &str) -> bool {
        let Some(changed) = &self.changed else { return true };
        if inside.starts_with(".git/") || changed.contains(inside) {
            return true;
        }
        // a folder with a repository of its own is told as a folder
        inside
            .match_indices('/')
            .any(|(at, _)| changed.contains(&inside[..=at]) || changed.contains(&inside[..at]))
    }
}
