//! One run of a program on one task.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err as fs;
use serde_json::{Map, Value, json};

use super::collect::{self, CollectError};
use super::program::{Program, Started, Variables};
use super::{convert, patch};
use crate::agent::config::Dialect;
use crate::agent::journal::JournalError;
use crate::agent::trajectory::MINI_VERSION;
use crate::agent::{AgentError, Finished, exit, message};
use crate::context;
use crate::llm::LlmError;
use crate::llm::gateway::{Admission, Standing, exchanges, transcript_place};
use crate::sandbox::{Ended, Exec, Output, OutputLimit, Place, Sandbox};
use crate::task::SolverView;
use crate::trajectory::write_atomic;

/// How much of a program's last words an error quotes.
const LAST_WORDS: usize = 2000;

/// One run of a program on one task. It cannot be taken up again: a run that was interrupted is made anew.
pub struct CommandRun<'a> {
    /// What it may know of the task.
    pub task: &'a SolverView,
    /// The program.
    pub program: &'a Program,
    /// The model's name, for templates.
    pub model: &'a str,
    /// The replicate's number, for templates.
    pub seed: Option<u64>,
    /// Its right to call; the journal lies in `folder`.
    pub admission: Admission,
    /// That journal.
    pub journal: PathBuf,
    /// A fresh sandbox with the repository in it, whose gateway it is admitted to.
    pub sandbox: &'a mut dyn Sandbox,
    /// Where the repository lies.
    pub place: &'a Place,
    /// The block of text that memory delivered.
    pub memory: Option<&'a str>,
    /// After this it is ended.
    pub time_limit: Duration,
    /// Where the run is written: `agent-log/` and `<id>.traj.json`.
    pub folder: &'a Path,
    /// More facts for `info.config.memtrial` of the trajectory.
    pub facts: Map<String, Value>,
}

/// Runs the program to its end.
///
/// # Errors
/// Where the harness failed: see the table in [the module](super). What the program wrote and asked is kept all the
/// same.
pub async fn run_command(run: CommandRun<'_>) -> Result<Finished, AgentError> {
    let began = Instant::now();
    let started = run.program.start(&Variables {
        task: &run.task.problem_statement,
        memory: run.memory,
        instance_id: run.task.instance_id.as_str(),
        model: run.model,
        workdir: &run.place.workdir,
        seed: run.seed,
        token: run.admission.token(),
    })?;
    let log = run.folder.join("agent-log");
    fs::create_dir_all(&log).map_err(at(&log))?;
    write(&log.join("prompt.md"), started.prompt.as_bytes())?;
    if let Some(file) = started.file {
        run.sandbox.put(file, started.prompt.as_bytes(), 0o644).await?;
    }
    let base = patch::base(run.sandbox, run.place).await?;
    let base = base.ok_or(AgentError::NoRepository { workdir: run.place.workdir.clone() })?;
    let exec = run.exec(started);
    let home = exec.env.get("HOME").cloned().unwrap_or_else(|| "/root".into());
    let output = run.sandbox.exec(&exec).await?;
    let seconds = began.elapsed().as_secs_f64();
    write(&log.join("output.txt"), output.text().as_bytes())?;
    let changed = patch::since(&base, &run.program.exclude, run.sandbox, run.place).await?;
    let files = log.join("files");
    let files = collect::files(&run.program.logs, &home, run.sandbox, run.place, &files).await;
    let files = files.map_err(|error| match error {
        CollectError::Sandbox(error) => AgentError::from(error),
        CollectError::Io(error) => at(&log)(error),
    })?;
    let standing = run.admission.standing();
    run.ended(End { output, changed, files, standing, seconds }, &log).await
}

/// What is known when the program has ended.
struct End {
    output: Output,
    changed: Result<String, String>,
    files: Vec<Value>,
    standing: Standing,
    seconds: f64,
}

impl CommandRun<'_> {
    fn exec(&self, started: Started) -> Exec {
        let mut env = self.place.env.clone();
        let more = self.program.mounts.iter().filter(|mount| mount.host.join("bin").is_dir());
        let more: Vec<_> = more.map(|mount| mount.inside.join("bin").display().to_string()).collect();
        if !more.is_empty() {
            // Behind the task's own: the program's interpreters are not the task's.
            let path = env.get("PATH").map_or(crate::sandbox::PATH, String::as_str);
            let path = [path].into_iter().chain(more.iter().map(String::as_str));
            env.insert("PATH".into(), path.collect::<Vec<_>>().join(":"));
        }
        env.extend(started.env);
        Exec {
            argv: started.argv,
            cwd: self.place.workdir.clone(),
            env,
            stdin: started.stdin,
            timeout: self.time_limit,
            output: OutputLimit::default(),
        }
    }

    /// Writes down how it ended and what it said, and judges.
    async fn ended(self, end: End, log: &Path) -> Result<Finished, AgentError> {
        let Self { task, program, model, admission, journal, place, memory, folder, facts, .. } = self;
        // The right to call ends with the program; what it still waited for is paid, and counted.
        let cost = admission.finish().await;
        let judged = judge(&end);
        let (status, submission) = match &judged {
            Ok((status, submission)) => ((*status).to_owned(), submission.clone()),
            Err(error) => (
                error.exception(Dialect::V2).map(|exception| exception.class).unwrap_or_default(),
                String::new(),
            ),
        };
        let note = json!({
            "ended": end.output.ended,
            "seconds": end.seconds,
            "out_of_memory": end.output.out_of_memory,
            "answered_calls": end.standing.answered,
            "replayed_calls": end.standing.replayed,
            "cap": end.standing.capped.as_ref().map(ToString::to_string),
            "last_call_failed": end.standing.failed.as_ref().map(ToString::to_string),
            "no_patch": end.changed.as_ref().err(),
            "files": end.files,
        });
        write_json(&log.join("run.json"), &note)?;
        if let Some(unsubmitted) =
            end.changed.as_ref().ok().filter(|patch| submission.is_empty() && !patch.is_empty())
        {
            write(&log.join("unsubmitted.diff"), unsubmitted.as_bytes())?;
        }
        let told = transcript_place(&journal);
        let exchanges = exchanges(&told).map_err(at(&told))?;
        let mut messages = convert::messages(&exchanges);
        let commands =
            messages.iter().filter_map(|message| message["extra"]["actions"].as_array()).map(Vec::len);
        let commands = commands.sum::<usize>() as u64;
        messages.push(match &judged {
            Ok((exit::SUBMITTED | exit::NON_ZERO_EXIT, submission)) => {
                message::handed_in(&status, submission)
            }
            Ok((status, _)) => message::stopped(status),
            Err(error) => {
                error.exception(Dialect::V2).map_or_else(|| message::stopped(&status), |e| message::crash(&e))
            }
        });
        let mut own = facts;
        let known = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "solver": model,
            "memory_tokens": context::estimate(&context::memory_section(memory)),
            "commands": commands,
            "cost": cost,
            "elapsed_seconds": end.seconds,
            "run": note,
        });
        own.extend(known.as_object().cloned().unwrap_or_default());
        let value = json!({
            "info": {
                "model_stats": {"instance_cost": message::usd(&cost), "api_calls": end.standing.answered},
                "config": {
                    "agent": program,
                    "agent_type": "memtrial.agent.command",
                    "model": {"model_name": model},
                    "model_type": "memtrial.llm.gateway",
                    "environment": {"cwd": place.workdir},
                    "environment_type": "memtrial.sandbox",
                    "memtrial": own,
                },
                "mini_version": MINI_VERSION,
                "exit_status": status,
                "submission": submission,
            },
            "messages": messages,
            "trajectory_format": "mini-swe-agent-1.1",
            "instance_id": task.instance_id,
        });
        let trajectory = folder.join(format!("{}.traj.json", task.instance_id));
        write_json(&trajectory, &value)?;
        let (standing, seconds) = (end.standing, end.seconds);
        judged.map(|(status, submission)| Finished {
            exit_status: status.to_owned(),
            submission,
            calls: standing.answered,
            commands,
            cost,
            seconds,
            replayed: standing.replayed,
            trajectory,
        })
    }
}

/// The exit status and the submission, or the failure of the harness.
fn judge(end: &End) -> Result<(&'static str, String), AgentError> {
    let End { output, changed, standing, .. } = end;
    let well = output.success();
    if let Some(error) = standing.failed.as_ref().filter(|error| !well && is_the_endpoints(error)) {
        return Err(AgentError::Model(error.clone()));
    }
    let patch = changed.as_ref().map(String::as_str).unwrap_or_default();
    if standing.answered == 0 && (!well || patch.is_empty()) {
        return Err(AgentError::Idle { ended: how(output.ended), output: last_words(&output.text()) });
    }
    Ok(match (&standing.capped, output.ended) {
        (Some(_), _) => (exit::LIMITS_EXCEEDED, String::new()),
        (None, Ended::TimedOut) => (exit::TIME_EXCEEDED, String::new()),
        (None, _) if changed.is_err() => (exit::NO_DIFFERENCE, String::new()),
        (None, _) if well => (exit::SUBMITTED, patch.to_owned()),
        (None, _) => (exit::NON_ZERO_EXIT, patch.to_owned()),
    })
}

/// Whether a call failed by no fault of who made it.
fn is_the_endpoints(error: &LlmError) -> bool {
    match error {
        LlmError::ContextWindowExceeded { .. }
        | LlmError::Untranslatable { .. }
        | LlmError::Capped { .. } => false,
        LlmError::Refused { status, .. } => !matches!(status, 400 | 404 | 413 | 422),
        _ => true,
    }
}

fn how(ended: Ended) -> String {
    match ended {
        Ended::Exited(code) => format!("with code {code}"),
        Ended::Signaled(signal) => format!("by signal {signal}"),
        Ended::TimedOut => "by its time limit".into(),
    }
}

fn last_words(text: &str) -> String {
    let text = text.trim_end();
    let start = text.char_indices().rev().nth(LAST_WORDS).map_or(0, |(at, _)| at);
    text[start..].to_owned()
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> AgentError + use<> {
    let path = path.to_owned();
    |source| JournalError::Io { path, source }.into()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), AgentError> {
    write_atomic(path, bytes).map_err(at(path))
}

fn write_json(path: &Path, value: &Value) -> Result<(), AgentError> {
    let bytes = serde_json::to_vec_pretty(value).map_err(|error| at(path)(error.into()))?;
    write(path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(ended: Ended, answered: u64, patch: &str) -> End {
        End {
            output: Output {
                ended,
                bytes: b"usage: tool".to_vec(),
                elided: None,
                wall: Duration::ZERO,
                out_of_memory: false,
            },
            changed: Ok(patch.into()),
            files: Vec::new(),
            standing: Standing { answered, ..Standing::default() },
            seconds: 0.0,
        }
    }

    fn told(end: &End) -> String {
        match judge(end) {
            Ok((status, submission)) => format!("{status} {submission:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn ends_are_the_agents_or_the_harnesss() {
        let good = Ended::Exited(0);
        assert_eq!(told(&end(good, 1, "diff")), "Submitted \"diff\"");
        assert_eq!(told(&end(good, 1, "")), "Submitted \"\"");
        assert_eq!(told(&end(Ended::Exited(3), 1, "diff")), "NonZeroExit \"diff\"");
        assert_eq!(told(&end(Ended::TimedOut, 1, "diff")), "TimeExceeded \"\"");
        assert_eq!(told(&end(good, 0, "diff")), "Submitted \"diff\"", "a program may need no model");
        let lost = End { changed: Err("git cannot tell".into()), ..end(good, 1, "") };
        assert_eq!(told(&lost), "NoDifference \"\"");
        for (idle, how) in [
            (end(Ended::Exited(127), 0, ""), "with code 127"),
            (end(good, 0, ""), "with code 0"),
            (end(Ended::TimedOut, 0, ""), "by its time limit"),
            (end(Ended::Signaled(6), 0, "diff"), "by signal 6"),
        ] {
            let words = told(&idle);
            assert!(words.contains(how) && words.contains("usage: tool"), "{words}");
        }
    }

    #[test]
    fn a_cap_is_the_agents_limit_and_a_dead_endpoint_is_not_its_fault() {
        let mut capped = end(Ended::Exited(1), 3, "diff");
        capped.standing.capped = Some(LlmError::Capped { reason: "cap reached".into() });
        assert_eq!(told(&capped), "LimitsExceeded \"\"");
        let dead = || LlmError::Unreachable {
            endpoint: "e".into(),
            reason: "gone".into(),
            attempts: 3,
            status: None,
        };
        let mut failed = end(Ended::Exited(1), 3, "diff");
        failed.standing.failed = Some(dead());
        assert!(told(&failed).contains("gone"), "{}", told(&failed));
        failed.output.ended = Ended::Exited(0);
        assert_eq!(told(&failed), "Submitted \"diff\"", "it coped");
        let mut long = end(Ended::Exited(1), 3, "diff");
        long.standing.failed = Some(LlmError::ContextWindowExceeded { reason: "long".into() });
        assert_eq!(told(&long), "NonZeroExit \"diff\"");
    }

    #[test]
    fn last_words_are_cut_at_a_character() {
        let text = "ä".repeat(LAST_WORDS * 2);
        assert_eq!(last_words(&text).chars().count(), LAST_WORDS + 1);
    }
}
