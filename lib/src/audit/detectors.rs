//! What is looked for, by name.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The answer, or a later state of the repository, can be read.
    Leak,
    /// It names something later, or a way to it.
    Trace,
}

/// One kind of thing that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Detector {
    /// Its name.
    pub name: &'static str,
    /// How bad what it finds is.
    pub severity: Severity,
    /// What it looks for.
    pub about: &'static str,
}

const fn leak(name: &'static str, about: &'static str) -> Detector {
    Detector { name, severity: Severity::Leak, about }
}

const fn trace(name: &'static str, about: &'static str) -> Detector {
    Detector { name, severity: Severity::Trace, about }
}

/// Every detector. "Later" is what is no part of the base commit's past.
pub const DETECTORS: [Detector; 47] = [
    // refs
    leak("branch", "branches onto later commits"),
    leak("tag", "tags onto later commits"),
    leak("remote-ref", "remote-tracking refs onto later commits"),
    leak("notes", "notes on commits"),
    leak("stash", "stashed work"),
    leak("replace-ref", "objects put in another's place"),
    leak("other-ref", "refs of any other kind onto later commits (pull requests, bisections, originals)"),
    leak("head", "a HEAD past the base commit that is no commit of those who set the environment up"),
    // what names commits
    trace("packed-refs", "stale lines of packed-refs that name later commits"),
    trace("reflog", "reflogs that name later commits"),
    trace(
        "special-head",
        "ORIG_HEAD, FETCH_HEAD, MERGE_HEAD, AUTO_MERGE and the like that name later objects",
    ),
    trace("message", "messages of other commits left by an editor, a merge or a squash"),
    trace("operation", "an unfinished rebase, cherry-pick or bisection"),
    trace("worktree", "linked worktrees at later commits"),
    trace("shallow", "a shallow file that names later commits"),
    trace("promisor", "a partial clone, and promisor packs that name later refs"),
    trace("grafts", "grafts onto later commits"),
    trace("commit-graph", "a commit-graph or multi-pack-index that names later objects"),
    trace("pack-remnant", "indexes of packs that are gone, objects of unfinished transfers"),
    trace(
        "git-leftover",
        "other files in the repository's folder that name later objects (gitk's cache, copies of refs, …)",
    ),
    trace("remote", "remotes: ways to a later state, also by a path or a bundle"),
    // objects
    leak("alternates", "objects borrowed from elsewhere"),
    leak("index", "staged files that no commit of the past holds, in the index or a copy of it"),
    leak("dangling-loose", "loose objects that nothing of the past reaches"),
    leak("dangling-packed", "packed objects that nothing of the past reaches"),
    leak("cruft-pack", "unreachable objects in a cruft pack"),
    leak("submodule", "what a submodule's own repository shows of later than its pinned commit"),
    leak("nested-repository", "other copies of the repository, bare, renamed or cloned, with later objects"),
    leak("bundle", "git bundles in files"),
    leak("pack-file", "git packs outside a repository"),
    // the answer itself
    leak("patch-file", "diffs and left-overs of patching that hold what the patches add"),
    leak("answer-lines", "files that hold lines which the gold patch adds"),
    leak("test-lines", "files that hold lines which the test patch adds"),
    leak("bytecode", "compiled files with names that the gold patch brings in"),
    leak("archive", "archives that hold lines which the patches add"),
    leak("build-output", "what a build of a later state left"),
    leak("tool-cache", "editors' caches, swap files and local histories that hold lines of the patches"),
    leak("eval-script", "scripts that hold the deciding tests"),
    leak("task-fields", "rows of the task's data"),
    leak("hidden-text", "comments, hints and the pull request's text"),
    trace("pull-request", "the address of the pull request"),
    trace("test-names", "names of the tests that decide"),
    // the package itself
    leak("installed-package", "a later version of the package itself, installed"),
    leak("installed-copy", "installed packages that hold lines of the patches"),
    leak(
        "package-cache",
        "a later version of the package itself in a package manager's cache, or lines of the patches there",
    ),
    // around the files
    leak("environment-variable", "variables that hold a piece of the answer, or lead git to other objects"),
    leak("image-metadata", "an image's labels, variables and history that hold a piece of the answer"),
];
