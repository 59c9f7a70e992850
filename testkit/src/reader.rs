//! The reader: a fake model that solves a task exactly when what it is shown says how.
//!
//! It stands for a model whose only ability is to use what it reads. A needle is a line that one record of memory
//! holds; planted where a target may see it, in its own run, or in a later one, it shows whether a trial delivers what
//! it should and nothing else. Offered the memory tool, it calls it once, with the issue's title. The reader keeps no state: what it does next follows from the conversation it is sent,
//! so a resumed run goes on as an undisturbed one does.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::act::Act;
use crate::patch::{self, Files};
use crate::server::Player;
use crate::shell;

/// What the reader knows of one task: a line of `reader.jsonl`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReaderTask {
    /// The task.
    pub instance_id: String,
    /// A text by which the task is known: only prompts for this task hold it. Where memory may quote earlier tasks'
    /// issue texts, it must take in some of the prompt's own words around the problem statement.
    pub marker: String,
    /// What the reader must read to solve the task; `None`: nothing helps.
    #[serde(default)]
    pub needle: Option<String>,
    /// What keeps it from solving a task that it could solve alone.
    #[serde(default)]
    pub poison: Option<String>,
    /// Whether it solves the task with no help.
    #[serde(default)]
    pub solves_alone: bool,
    /// The patch it submits when it solves the task.
    pub good_patch: String,
    /// The patch it submits when it does not; may be empty.
    #[serde(default)]
    pub bad_patch: String,
}

/// The fake model that reads.
#[derive(Debug)]
pub struct Reader {
    tasks: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    task: ReaderTask,
    good: Vec<Step>,
    bad: Vec<Step>,
}

/// What it says and runs in one turn.
#[derive(Debug)]
struct Step {
    thought: &'static str,
    command: String,
}

impl Reader {
    /// Reads `reader.jsonl`. Tasks that could not work as planted are refused: a marker that another holds, a needle
    /// that the reader's own patches would show it.
    pub fn from_file(path: &Path) -> Result<Self> {
        let text = fs_err::read_to_string(path)?;
        let mut tasks = Vec::new();
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = || format!("{}, line {}", path.display(), n + 1);
            tasks.push(serde_json::from_str(line).with_context(place)?);
        }
        Self::new(tasks).with_context(|| path.display().to_string())
    }

    /// A reader of these tasks.
    pub fn new(tasks: Vec<ReaderTask>) -> Result<Self> {
        let mut ids = BTreeSet::new();
        for task in &tasks {
            check(task).with_context(|| task.instance_id.clone())?;
            ensure!(ids.insert(&task.instance_id), "{} stands there twice", task.instance_id);
        }
        for task in &tasks {
            let holds = |other: &&ReaderTask| {
                other.instance_id != task.instance_id && other.marker.contains(&task.marker)
            };
            if let Some(other) = tasks.iter().find(holds) {
                bail!("the marker of {} is part of the marker of {}", task.instance_id, other.instance_id);
            }
        }
        let known = tasks.into_iter().map(|task| {
            let good =
                steps(&task.good_patch).with_context(|| format!("{}: good_patch", task.instance_id))?;
            let bad = steps(&task.bad_patch).with_context(|| format!("{}: bad_patch", task.instance_id))?;
            Ok(Known { task, good, bad })
        });
        Ok(Self { tasks: known.collect::<Result<_>>()? })
    }

    /// The one task whose marker the prompt holds: what was said before the model first spoke.
    fn recognise(&self, messages: &[Value]) -> Result<&Known, String> {
        let prompt: Vec<String> =
            messages.iter().take_while(|message| message["role"] != "assistant").map(text).collect();
        let known = |known: &&Known| prompt.iter().any(|text| text.contains(&known.task.marker));
        let mut found = self.tasks.iter().filter(known);
        match (found.next(), found.next()) {
            (Some(known), None) => Ok(known),
            (None, _) => Err("the reader finds no task's marker in the prompt".into()),
            (Some(one), Some(other)) => Err(format!(
                "the reader finds the markers of several tasks in the prompt: {} and {}",
                one.task.instance_id, other.task.instance_id
            )),
        }
    }
}

impl Player for Reader {
    fn play(&self, request: &Value) -> Act {
        let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let known = match self.recognise(messages) {
            Ok(known) => known,
            Err(reason) => return Act::status(400, &reason),
        };
        let steps = if known.task.is_solved(messages) { &known.good } else { &known.bad };
        // It looks things up first, where it can, and turns to its work after that.
        let (lookups, turns): (Vec<&Value>, Vec<&Value>) =
            messages.iter().filter(|message| message["role"] == "assistant").partition(|turn| looks_up(turn));
        if lookups.is_empty() && offers_memory(request) {
            return look_up(known.task.title(), messages.len());
        }
        let turn = turns.len();
        let foreign = shell::of(request);
        // Other agents end where the model calls no tool; the built-in one ends with what it hands in.
        let last = steps.last().filter(|_| foreign.is_none());
        let Some(step) = steps.get(turn).or(last) else { return Act::say("I am done.") };
        if let Some(shell) = foreign {
            return shell.call(step.thought, &step.command, messages.len());
        }
        if request.get("tools").is_some() {
            return Act::bash(step.thought, &step.command, messages.len());
        }
        let block = format!("{}\n\n```mswea_bash_command\n{}\n```", step.thought, step.command);
        Act::message(json!({"role": "assistant", "content": block}), "stop")
    }
}

/// Whether the memory tool is among the tools.
fn offers_memory(request: &Value) -> bool {
    let tools = request["tools"].as_array();
    tools.is_some_and(|tools| tools.iter().any(|tool| tool["function"]["name"] == "memory"))
}

/// Whether a turn of the model called it.
fn looks_up(turn: &Value) -> bool {
    turn["tool_calls"][0]["function"]["name"] == "memory"
}

fn look_up(query: &str, messages: usize) -> Act {
    let arguments = json!({ "query": query }).to_string();
    let call = json!({"id": format!("call_{messages}"), "type": "function",
        "function": {"name": "memory", "arguments": arguments}});
    let text = "I look for earlier work on this.";
    Act::message(json!({"role": "assistant", "content": text, "tool_calls": [call]}), "tool_calls")
}

impl ReaderTask {
    /// The issue's title: markers begin with it.
    fn title(&self) -> &str {
        self.marker.trim().lines().next().unwrap_or_default()
    }

    /// The rule: shown the needle, or able alone and not shown the poison.
    fn is_solved(&self, messages: &[Value]) -> bool {
        let shown = |what: &Option<String>| {
            what.as_ref().is_some_and(|what| messages.iter().any(|message| text(message).contains(what)))
        };
        shown(&self.needle) || (self.solves_alone && !shown(&self.poison))
    }
}

/// All text of a message.
fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn check(task: &ReaderTask) -> Result<()> {
    ensure!(!task.marker.trim().is_empty(), "the marker is empty");
    ensure!(!task.good_patch.trim().is_empty(), "good_patch is empty");
    for (name, what) in [("needle", &task.needle), ("poison", &task.poison)] {
        let Some(what) = what else { continue };
        ensure!(!what.trim().is_empty(), "the {name} is empty: write null");
        for (place, text) in
            [("marker", &task.marker), ("good_patch", &task.good_patch), ("bad_patch", &task.bad_patch)]
        {
            ensure!(
                !text.contains(what.as_str()),
                "the {name} is part of the {place}: it would always be shown"
            );
        }
    }
    Ok(())
}

/// The turns that lead to a patch: look round, change, make the diff, read it, hand it in.
fn steps(diff: &str) -> Result<Vec<Step>> {
    let files = patch::files(diff).map_err(anyhow::Error::msg)?;
    let mut steps =
        vec![Step { thought: "Let me look around first.", command: "git log --oneline -3 && ls".into() }];
    if !files.touched.is_empty() {
        steps.push(Step { thought: "I change the code.", command: apply(diff)? });
    }
    steps.push(Step { thought: "I make the patch.", command: make(&files) });
    steps.push(Step { thought: "I read it once more.", command: "cat patch.txt".into() });
    let submit = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt";
    steps.push(Step { thought: "I hand it in.", command: submit.into() });
    Ok(steps)
}

fn apply(diff: &str) -> Result<String> {
    const END: &str = "END_OF_READER_PATCH";
    ensure!(diff.lines().all(|line| line != END), "a line of the patch is {END}");
    let newline = if diff.ends_with('\n') { "" } else { "\n" };
    Ok(format!("cat > /tmp/reader.patch <<'{END}'\n{diff}{newline}{END}\ngit apply /tmp/reader.patch"))
}

fn make(files: &Files) -> String {
    if files.touched.is_empty() {
        return ": > patch.txt".into();
    }
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    let diff = format!("git diff -- {} > patch.txt", list(&files.touched));
    // Files that git does not know yet would not show in the diff.
    if files.new.is_empty() { diff } else { format!("git add -N -- {} && {diff}", list(&files.new)) }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
