//! One prediction in one sandbox: apply, protect the tests, run, judge.
//!
//! Order: the model's patch; then every file that the test patch touches is put back to the base commit, and
//! so is every file that gold leaves alone and that decides how tests run (`protect`); then the test patch;
//! builds; tests.
//!
//! A test patch that does not apply is the row's fault (`GoldFails`) only where it does not apply to the base
//! commit either; otherwise the prediction made it so (a file where the tests need a folder):
//! `PatchNotApplied`.

use std::time::Instant;

use super::execute::{Log, Ran, build, tests};
use super::graded::{Flag, Graded, Options};
use super::judge::{judge, usable};
use super::patch::apply::{ApplyError, Step, apply, commit, settle, undo};
use super::patch::is_empty;
use super::protect::protect;
use super::{VerdictClass, host};
use crate::sandbox::{Ended, Place, Sandbox, SandboxError};
use crate::task::Task;

/// Grades one prediction in a fresh sandbox that holds the task's repository at its base commit.
///
/// `patch` is `None` where there is no prediction; a blank one changes nothing. Never fails: what goes wrong
/// is a class of its own.
pub async fn grade(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    task: &Task,
    patch: Option<&str>,
    options: &Options,
) -> Graded {
    let began = Instant::now();
    let mut graded = match without_sandbox(task, patch, options) {
        Some(graded) => graded,
        None => match attempt(sandbox, place, task, patch.unwrap_or_default(), options).await {
            Ok(graded) => graded,
            Err(error) => of_sandbox_error(&error, options),
        },
    };
    graded.seconds = began.elapsed().as_secs_f64();
    graded
}

/// The verdict where none needs a sandbox: an unusable row, no prediction, an empty patch.
pub fn without_sandbox(task: &Task, patch: Option<&str>, options: &Options) -> Option<Graded> {
    let verdict = |class, reason: String| Some(Graded::without_run(class, Some(reason), options));
    if let Err(reason) = usable(task, options.parser.as_ref()) {
        return verdict(VerdictClass::Unparseable, reason);
    }
    match patch {
        None => verdict(VerdictClass::NoPrediction, "there is no prediction for this task".to_owned()),
        Some(_) if is_empty(patch) && !options.run_empty => {
            verdict(VerdictClass::EmptyPatch, "the patch changes nothing".to_owned())
        }
        Some(_) => None,
    }
}

/// The verdict where a sandbox failed under a grading.
///
/// One that ended under the tests because its own memory limit was reached is the prediction's doing. The
/// host's shortage is told apart by what the host says.
pub fn of_sandbox_error(error: &SandboxError, options: &Options) -> Graded {
    let own_limit = matches!(error, SandboxError::Lost { reason, .. } if reason.contains("memory limit"));
    let class = match error {
        SandboxError::Lost { .. } if host::is_short_of_memory() => VerdictClass::HostOutOfMemory,
        _ if own_limit => VerdictClass::Unresolved,
        _ => VerdictClass::Infrastructure,
    };
    Graded::without_run(class, Some(error.to_string()), options)
}

async fn attempt(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    task: &Task,
    patch: &str,
    options: &Options,
) -> Result<Graded, SandboxError> {
    // `without_sandbox` has looked: an unusable row does not get here.
    let parser = match usable(task, options.parser.as_ref()) {
        Ok(parser) => parser,
        Err(reason) => return Ok(Graded::without_run(VerdictClass::Unparseable, Some(reason), options)),
    };
    let mut graded = Graded::without_run(VerdictClass::Unresolved, None, options);
    settle(sandbox, place).await?;
    if !is_empty(Some(patch)) {
        match apply(sandbox, place, patch, &Step::CHAIN).await {
            Ok((step, refusals)) => (graded.applied, graded.refusals) = (Some(step), refusals),
            Err(ApplyError::Sandbox(error)) => return Err(error),
            Err(error @ ApplyError::Refused(_)) => {
                let reason = error.to_string();
                if let ApplyError::Refused(refusals) = error {
                    graded.refusals = refusals;
                }
                return Ok(graded.verdict(VerdictClass::PatchNotApplied, reason));
            }
        }
    }
    graded.flags.extend(protect(sandbox, place, task, patch).await?);
    match apply_tests(sandbox, place, task).await? {
        Ok(None | Some(Step::Plain)) => {}
        Ok(Some(step)) => {
            graded.flags.insert(Flag::TestPatchStep { step });
        }
        Err((class, reason)) => return Ok(graded.verdict(class, reason)),
    }
    if let Some(built) = build(sandbox, place, task, options.build_timeout).await? {
        let mut log = Log::default();
        log.push(&built);
        graded.log = log.bytes;
        if let Some(reason) = build_failure(&built) {
            return Ok(graded.verdict(VerdictClass::BuildFailed, reason));
        }
    }
    let ran = tests(sandbox, place, task, options.timeout).await?;
    Ok(judge(graded, task, &parser, &ran, options))
}

fn build_failure(built: &Ran) -> Option<String> {
    match built.output.ended {
        Ended::Exited(0) => None,
        Ended::TimedOut => Some("the commands between patch and tests ran out of time".to_owned()),
        _ => {
            let text = built.output.text();
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            Some(format!("a command between patch and tests failed: {last}"))
        }
    }
}

type TestPatch = Result<Option<Step>, (VerdictClass, String)>;

/// Applies the test patch; where it does not apply, finds out whose fault that is.
async fn apply_tests(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    task: &Task,
) -> Result<TestPatch, SandboxError> {
    let patch = &task.evaluator.test_patch;
    if is_empty(Some(patch)) {
        return Ok(Ok(None));
    }
    match apply(sandbox, place, patch, &[Step::Plain]).await {
        Ok((step, _)) => return Ok(Ok(Some(step))),
        Err(ApplyError::Sandbox(error)) => return Err(error),
        Err(ApplyError::Refused(_)) => {}
    }
    // The tolerant steps need a tree that equals `HEAD`.
    commit(sandbox, place).await?;
    let refused = match apply(sandbox, place, patch, &Step::CHAIN).await {
        Ok((step, _)) => return Ok(Ok(Some(step))),
        Err(ApplyError::Sandbox(error)) => return Err(error),
        Err(error) => error,
    };
    undo(sandbox, place).await?;
    Ok(match apply(sandbox, place, patch, &Step::CHAIN).await {
        Err(ApplyError::Sandbox(error)) => return Err(error),
        Err(refused) => Err((
            VerdictClass::GoldFails,
            format!("the test patch does not apply to the base commit: {refused}"),
        )),
        Ok(_) => Err((
            VerdictClass::PatchNotApplied,
            format!("the test patch applies to the base commit, but not above this patch: {refused}"),
        )),
    })
}
