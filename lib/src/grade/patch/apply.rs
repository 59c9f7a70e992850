//! Applying a patch inside a sandbox: from strict to tolerant, never fuzzy, the tree restored between
//! attempts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::normalise;
use crate::sandbox::{Exec, Output, Place, Sandbox, SandboxError};

/// Which step of the chain took a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// `git apply`.
    Plain,
    /// The tree already holds the change: nothing was done.
    AlreadyApplied,
    /// `--3way --recount`: other context, wrong line counts.
    ThreeWay,
    /// `--recount --ignore-whitespace`: CRLF against LF, other indentation of context.
    IgnoreWhitespace,
}

impl Step {
    /// From strict to tolerant. Only for a tree that equals `HEAD`: a three-way merge can leave marks.
    pub const CHAIN: [Self; 4] = [Self::Plain, Self::AlreadyApplied, Self::ThreeWay, Self::IgnoreWhitespace];

    fn arguments(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::AlreadyApplied => "--check --reverse",
            Self::ThreeWay => "--3way --recount",
            Self::IgnoreWhitespace => "--recount --ignore-whitespace",
        }
    }
}

/// A step that did not take the patch, and what git said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The step.
    pub step: Step,
    /// git's `error:` lines without that word: file, line of the hunk, reason.
    pub errors: Vec<String>,
}

/// Why a patch was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// No step took it.
    #[error("no step took the patch; git apply: {}", first_errors(.0))]
    Refused(Vec<Refusal>),
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

fn first_errors(refusals: &[Refusal]) -> String {
    refusals.first().map_or_else(String::new, |refusal| refusal.errors.join("; "))
}

/// How long one git command may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(120);

/// git without the settings, hooks and ownership checks of wherever it runs.
const GIT: &str = "git() { command git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.autocrlf=false \
                   -c advice.detachedHead=false \"$@\"; }\n";

/// Runs a git script in the repository.
async fn git(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    script: &str,
    stdin: Vec<u8>,
) -> Result<Output, SandboxError> {
    let mut env: BTreeMap<String, String> = place.env.clone();
    for (key, value) in [
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "memtrial"),
        ("GIT_AUTHOR_EMAIL", "memtrial@localhost"),
        ("GIT_COMMITTER_NAME", "memtrial"),
        ("GIT_COMMITTER_EMAIL", "memtrial@localhost"),
    ] {
        env.insert(key.to_owned(), value.to_owned());
    }
    let mut exec = Exec::bash(format!("{GIT}{script}"), &place.workdir).timeout(GIT_TIMEOUT).env(env);
    exec.stdin = stdin;
    sandbox.exec(&exec).await
}

/// As [`git`]; a script that fails is a failure of the sandbox: it holds no usable repository.
async fn must(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    action: &str,
    script: &str,
    stdin: Vec<u8>,
) -> Result<Output, SandboxError> {
    let output = git(sandbox, place, script, stdin).await?;
    if output.success() {
        return Ok(output);
    }
    let reason = format!("in {}: {:?}: {}", place.workdir, output.ended, output.text().trim_end());
    Err(SandboxError::Failed { backend: "git", action: action.to_owned(), reason })
}

/// Commits what the installation changed in tracked files, so that `HEAD` is the tree that every patch starts
/// from and restoring it loses nothing. Untracked files stay untracked.
///
/// # Errors
/// When the sandbox fails or its folder is no git repository.
pub async fn settle(sandbox: &mut dyn Sandbox, place: &Place) -> Result<(), SandboxError> {
    let script = "[ -z \"$(git status --porcelain -uno)\" ] || git commit -q --no-verify -a -m environment";
    must(sandbox, place, "look at the repository", script, Vec::new()).await.map(drop)
}

/// Commits everything but ignored files, so that the tree equals `HEAD`; [`undo`] takes the commit back.
///
/// # Errors
/// When the sandbox fails.
pub async fn commit(sandbox: &mut dyn Sandbox, place: &Place) -> Result<(), SandboxError> {
    let script = "git add -A && git commit -q --no-verify --allow-empty -m prediction";
    must(sandbox, place, "commit the prediction", script, Vec::new()).await.map(drop)
}

/// Drops the last commit and its changes.
///
/// # Errors
/// When the sandbox fails.
pub async fn undo(sandbox: &mut dyn Sandbox, place: &Place) -> Result<(), SandboxError> {
    let script = "git reset -q --hard HEAD~1 && git clean -fdq";
    must(sandbox, place, "take the prediction back", script, Vec::new()).await.map(drop)
}

/// Makes the tree equal `HEAD` again. Files that git ignores or that `.git/info/exclude` lists (what the
/// installation left) stay.
///
/// # Errors
/// When the sandbox fails.
pub async fn restore(sandbox: &mut dyn Sandbox, place: &Place) -> Result<(), SandboxError> {
    let script = "git reset -q --hard && git clean -fdq";
    must(sandbox, place, "restore the repository", script, Vec::new()).await.map(drop)
}

/// Applies a patch: the first of the steps that takes it wins. When none does, the tree is as before.
///
/// # Errors
/// [`ApplyError::Refused`] with what git said at each step.
pub async fn apply(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    patch: &str,
    steps: &[Step],
) -> Result<(Step, Vec<Refusal>), ApplyError> {
    let bytes = normalise(patch).into_owned().into_bytes();
    let mut refusals = Vec::new();
    for &step in steps {
        let script = format!("git apply {} --whitespace=nowarn -", step.arguments());
        let output = git(sandbox, place, &script, bytes.clone()).await?;
        if output.success() {
            return Ok((step, refusals));
        }
        // A three-way merge leaves conflict markers where it fails.
        if step == Step::ThreeWay {
            restore(sandbox, place).await?;
        }
        if step != Step::AlreadyApplied {
            refusals.push(Refusal { step, errors: errors(&output.text()) });
        }
    }
    Err(ApplyError::Refused(refusals))
}

fn errors(output: &str) -> Vec<String> {
    output.lines().filter_map(|line| line.strip_prefix("error: ")).map(str::to_owned).collect()
}

/// Every file that differs from `HEAD` or is new and not ignored.
///
/// # Errors
/// When the sandbox fails.
pub async fn touched(sandbox: &mut dyn Sandbox, place: &Place) -> Result<BTreeSet<String>, SandboxError> {
    let script = "git status --porcelain -z --no-renames -uall";
    let output = must(sandbox, place, "list the changed files", script, Vec::new()).await?;
    // `XY path`, ended by NUL.
    Ok(output
        .text()
        .split('\0')
        .filter_map(|entry| entry.get(3..))
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Those of some paths that `HEAD` has.
///
/// # Errors
/// When the sandbox fails.
pub async fn there(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    paths: &BTreeSet<String>,
) -> Result<BTreeSet<String>, SandboxError> {
    let script = "while IFS= read -r -d '' path; do \
                  if git cat-file -e \"HEAD:$path\" 2>/dev/null; then printf '%s\\0' \"$path\"; fi; done";
    let list = paths.iter().flat_map(|path| path.bytes().chain([0])).collect();
    let output = must(sandbox, place, "look for files", script, list).await?;
    Ok(output.text().split_terminator('\0').map(str::to_owned).collect())
}

/// Puts files back to what `HEAD` holds at their paths: the content, or nothing.
///
/// # Errors
/// When the sandbox fails.
pub async fn put_back(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    paths: &BTreeSet<String>,
) -> Result<(), SandboxError> {
    if paths.is_empty() {
        return Ok(()); // a checkout without paths would reset the whole tree
    }
    let script = "while IFS= read -r -d '' path; do rm -rf -- \"./$path\"; \
                  if git cat-file -e \"HEAD:$path\" 2>/dev/null; \
                  then git --literal-pathspecs checkout -q HEAD -- \"$path\" || exit 1; fi; done";
    let inside = |path: &&String| !path.split('/').any(|part| part == "..");
    let list = paths.iter().filter(inside).flat_map(|path| path.bytes().chain([0])).collect();
    must(sandbox, place, "put test files back", script, list).await.map(drop)
}
