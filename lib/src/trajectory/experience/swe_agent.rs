//! SWE-agent's `.traj`: steps of an action and its observation, the issue among the messages of `history`.

use std::path::Path;

use serde_json::{Map, Value};

use super::read::{Sink, elements};
use super::run::{RunCost, RunFormat, RunHead};
use super::source::Source;
use super::teller::{Teller, text_of};
use crate::trajectory::json::Counts;
use crate::trajectory::skim::Keep;
use crate::trajectory::{TrajectoryError, Usage};

/// A step without the messages that it was made from, which grow with the square of the run.
const STEP: Keep = Keep::Only(&[
    ("action", Keep::All),
    ("observation", Keep::All),
    ("response", Keep::All),
    ("thought", Keep::All),
    ("state", Keep::All),
]);

/// A message of a demonstration, which is `history` alone.
const MESSAGE: Keep = Keep::Only(&[
    ("role", Keep::All),
    ("content", Keep::All),
    ("is_demo", Keep::All),
    ("message_type", Keep::All),
    ("thought", Keep::All),
    ("action", Keep::All),
]);

pub(super) fn read(
    source: &Source<'_>,
    top: &Map<String, Value>,
    sink: &mut Sink<'_>,
) -> Result<Counts, TrajectoryError> {
    let info = top.get("info").unwrap_or(&Value::Null);
    let text = |key: &str| info.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut head = RunHead::new(RunFormat::SweAgent).of_task(task_of(source.path));
    head.session = top.get("environment").and_then(Value::as_str).map(str::to_owned);
    if sink.head(&head).is_break() {
        return Ok(Counts::default());
    }
    let mut teller = Teller::default();
    let mut steps = 0;
    let counts = if top.get("trajectory").is_some_and(Value::is_array) {
        if let Some(issue) = first_asked(top) {
            teller.asked(&issue);
        }
        let mut open = None;
        elements(source, "trajectory", &STEP, &mut |step| {
            steps +=
                u64::from(step.get("response").and_then(Value::as_str).is_some_and(|said| !said.is_empty()));
            tell(&step, &mut open, &mut teller);
            sink.events(&mut teller)
        })?
    } else {
        elements(source, "history", &MESSAGE, &mut |message| {
            steps += u64::from(message["role"] == "assistant");
            hear(&message, &mut teller);
            sink.events(&mut teller)
        })?
    };
    let status = text("exit_status");
    // the patch is kept after an error too: "submitted (exit_cost)"
    let submitted = status.is_some_and(|status| status.starts_with("submitted"));
    teller.ended(text("submission").filter(|_| submitted), status.map(str::to_owned), None);
    if sink.events(&mut teller).is_continue() {
        let count = |key: &str| info.pointer(&format!("/model_stats/{key}")).and_then(Value::as_u64);
        let usage = count("tokens_sent").zip(count("tokens_received")).filter(|(sent, _)| *sent > 0).map(
            |(prompt_tokens, completion_tokens)| Usage { prompt_tokens, cached_tokens: 0, completion_tokens },
        );
        let _ = sink.end(RunCost { steps, usage });
    }
    Ok(counts)
}

/// The task that the file is named after; a run's own file states none.
fn task_of(path: &Path) -> Option<&str> {
    let stem = path.file_stem()?.to_str()?;
    crate::task::InstanceId::parse(stem).is_ok().then_some(stem)
}

/// What the agent was asked, among the first messages: no demonstration.
fn first_asked(top: &Map<String, Value>) -> Option<String> {
    let messages = top.get("history")?.as_array()?;
    let asked = messages.iter().find(|message| message["role"] == "user" && !is_demo(message))?;
    Some(text_of(&asked["content"]))
}

fn is_demo(message: &Value) -> bool {
    message["is_demo"] == true || message["message_type"] == "demonstration"
}

fn tell(step: &Value, open: &mut Option<String>, teller: &mut Teller) {
    let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
    teller.settle();
    let thought = text("thought");
    teller.thought(&[if thought.is_empty() && text("action").is_empty() {
        text("response")
    } else {
        thought
    }]);
    let action = text("action").trim_end();
    if action.is_empty() {
        teller.settle();
    } else {
        act(action, open.as_deref(), teller);
        teller.observed(None, text("observation").to_owned(), None);
    }
    // what is open after this step is what the next one edits
    let state = match step.get("state") {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(state) => state.clone(),
        None => Value::Null,
    };
    if let Some(folder) = state.get("working_dir").and_then(Value::as_str) {
        teller.place.work_in(folder);
    }
    let shown =
        state.get("open_file").and_then(Value::as_str).filter(|file| !file.is_empty() && *file != "n/a");
    *open = shown.map(str::to_owned);
}

/// SWE-agent's own commands stand in the action as shell commands do: `create FILE`, `edit 3:5 …`.
fn act(action: &str, open: Option<&str>, teller: &mut Teller) {
    let mut words = action.split_whitespace();
    let (name, first) = (words.next().unwrap_or_default(), words.next());
    let second = words.next();
    let edited = match name {
        "create" => first,
        "edit" | "insert" | "append" => open,
        "str_replace_editor" if first.is_some_and(|verb| !matches!(verb, "view" | "undo_edit")) => second,
        "str_replace_editor" | "open" | "goto" | "scroll_up" | "scroll_down" | "submit" | "search_file"
        | "search_dir" | "find_file" => None,
        _ => {
            teller.shell(None, action.to_owned());
            return;
        }
    };
    let unquoted = edited.map(|path| path.trim_matches(['"', '\'']));
    let edits = unquoted.map(|path| teller.place.relative(path)).into_iter().collect();
    let event = super::Event::Command { text: action.to_owned(), edits, tests: false };
    teller.command(None, event);
}

/// A message of a demonstration.
fn hear(message: &Value, teller: &mut Teller) {
    let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("role") {
        _ if is_demo(message) => {}
        "user" | "tool" if teller.was_asked() => teller.observed(None, text_of(&message["content"]), None),
        "user" => teller.asked(&text_of(&message["content"])),
        "assistant" => {
            teller.settle();
            teller.thought(&[text("thought")]);
            let action = text("action").trim_end();
            if !action.is_empty() {
                act(action, None, teller);
            }
        }
        _ => {}
    }
}
