//! mini-swe-agent's messages as events, all its formats.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::event::Event;
use super::teller::{Teller, text_of};
use crate::trajectory::{ActionPattern, Message, Role, Usage};

/// Turns the messages of a run into events, one message at a time.
#[derive(Debug)]
pub struct MiniEvents {
    pattern: ActionPattern,
    teller: Teller,
    /// How the run ended, as `info` says: its status and, of a run that submitted, its patch.
    stated: Option<(Option<String>, Option<String>)>,
    /// Tokens of the replies whose endpoint counted them.
    usage: Option<Usage>,
    replies: u64,
}

impl MiniEvents {
    /// For a run whose text actions stand where `pattern` finds them.
    pub fn new(pattern: ActionPattern) -> Self {
        Self { pattern, teller: Teller::default(), stated: None, usage: None, replies: 0 }
    }

    /// For the run of a file: `info` tells the pattern of its actions, where it works and how it ended.
    ///
    /// # Errors
    /// When its `action_regex` is none that memtrial can run.
    pub fn of_run(info: Option<&Value>) -> Result<Self, String> {
        let mut events = Self::new(ActionPattern::of(info)?);
        let Some(info) = info else { return Ok(events) };
        let text = |key: &str| info.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let status = text("exit_status").map(str::to_owned);
        // after an exception the submission is its text
        let submitted = status.as_deref() == Some("Submitted");
        let patch = text("submission").filter(|_| submitted).map(str::to_owned);
        if status.is_some() || patch.is_some() {
            events.stated = Some((status, patch));
        }
        if let Some(folder) = info.pointer("/config/environment/cwd").and_then(Value::as_str) {
            events.teller.place.work_in(folder);
        }
        Ok(events)
    }

    /// The events of the next message.
    pub fn message(&mut self, message: &Message, on: &mut dyn FnMut(Event)) {
        self.take(message);
        self.teller.out.drain(..).for_each(on);
    }

    /// The events that end the run; none where its exit message gave them.
    pub fn finish(&mut self, on: &mut dyn FnMut(Event)) {
        let (status, patch) = self.stated.take().unwrap_or_default();
        self.teller.ended(patch.as_deref(), status, None);
        self.teller.out.drain(..).for_each(on);
    }

    /// Replies and their tokens so far.
    pub fn cost(&self) -> (u64, Option<Usage>) {
        (self.replies, self.usage)
    }

    fn take(&mut self, message: &Message) {
        let actions = message.actions(&self.pattern);
        let is_interrupt = message.extra("interrupt_type").is_some();
        match message.role() {
            Role::System => {}
            Role::Assistant => self.reply(message),
            Role::User if !self.teller.was_asked() => self.teller.asked(&message.text()),
            // what memory said is no observation of this run, and no experience of it
            Role::User | Role::Tool if message.extra("memtrial_recall").is_some() => {}
            // a person's own command
            Role::User if !actions.is_empty() => self.act(message),
            Role::User if is_interrupt => self.counted(message),
            Role::User | Role::Tool => {
                let text = message.text();
                let is_submission = self.stated.as_ref().is_some_and(|(_, patch)| {
                    patch.as_deref().is_some_and(|patch| patch.trim() == text.trim())
                });
                if self.teller.waits() && !is_submission {
                    self.observed(message, &text);
                }
            }
            Role::Exit => {
                let text = |key| message.extra(key).and_then(Value::as_str).filter(|text| !text.is_empty());
                let status = text("exit_status").map(str::to_owned);
                let submitted = status.as_deref().is_none_or(|status| status == "Submitted");
                self.teller.ended(text("submission").filter(|_| submitted), status, None);
            }
        }
    }

    fn counted(&mut self, message: &Message) {
        if message.role() == Role::Assistant || message.response().is_some() {
            self.replies += 1;
            self.usage = match (self.usage, message.usage()) {
                (Some(sum), Some(more)) => Some(sum.plus(more)),
                (sum, more) => sum.or(more),
            };
        }
    }

    fn reply(&mut self, message: &Message) {
        self.counted(message);
        self.teller.settle();
        let said = message.text();
        let calls_tools = !message.tool_calls().is_empty();
        let said = if calls_tools { said } else { self.pattern.beside(&said).into() };
        self.teller.thought(&[&reasoning(message), &said]);
        self.act(message);
    }

    fn act(&mut self, message: &Message) {
        let recorded = message.extra("actions").and_then(Value::as_array);
        for (index, action) in message.actions(&self.pattern).into_iter().enumerate() {
            let id = action.tool_call_id.as_deref();
            let own = recorded.and_then(|all| all.get(index)?.get(OWN));
            match own.and_then(|own| serde_json::from_value::<OwnAction>(own.clone()).ok()) {
                Some(OwnAction { edits, tests }) => {
                    self.teller.command(id, Event::Command { text: action.command, edits, tests });
                }
                None => self.teller.shell(id, action.command),
            }
        }
    }

    fn observed(&mut self, message: &Message, text: &str) {
        let id = ["tool_call_id", "call_id"].iter().find_map(|key| message.raw().get(*key)?.as_str());
        match message.observation() {
            Some(seen) => self.teller.observed(id, seen.raw_output, seen.returncode),
            None => {
                let (text, exit_code) = unframed(text);
                self.teller.observed(id, text, exit_code);
            }
        }
    }
}

/// The model's reasoning in whichever place the endpoint gave it.
fn reasoning(message: &Message) -> String {
    if let Some(text) = message.reasoning() {
        return text.to_owned();
    }
    let list =
        |key: &str| message.raw().get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let blocks =
        list("thinking_blocks").iter().filter_map(|block| block.get("thinking")?.as_str().map(str::to_owned));
    let items =
        list("output").iter().filter(|item| item.get("type").and_then(Value::as_str) == Some("reasoning"));
    let summaries = items.filter_map(|item| item.get("summary")).map(text_of);
    blocks.chain(summaries).collect::<Vec<_>>().join("\n")
}

/// An observation without the frame that mini-swe-agent's templates put around it, and the exit code that it states.
pub(super) fn unframed(text: &str) -> (String, Option<i64>) {
    parts(text).unwrap_or_else(|| (text.to_owned(), None))
}

fn parts(text: &str) -> Option<(String, Option<i64>)> {
    let (code, rest) = text.trim_start().strip_prefix("<returncode>")?.split_once("</returncode>")?;
    let code = code.trim().parse().ok()?;
    let mut rest = rest.trim_start();
    if let Some(warned) = rest.strip_prefix("<warning>") {
        rest = warned.split_once("</warning>")?.1.trim_start();
    }
    let rest = rest.trim_end();
    let line = |text: &str| text.strip_prefix('\n').unwrap_or(text).to_owned();
    if let Some(output) = rest.strip_prefix("<output>") {
        return Some((line(output.strip_suffix("</output>")?), Some(code)));
    }
    let (head, rest) = rest.strip_prefix("<output_head>")?.split_once("</output_head>")?;
    let (left_out, tail) = rest.split_once("<output_tail>")?;
    let tail = tail.strip_suffix("</output_tail>")?;
    let left_out = left_out.trim().strip_prefix("<elided_chars>")?.strip_suffix("</elided_chars>")?.trim();
    Some((format!("{}[{left_out}]{tail}", line(head)), Some(code)))
}

/// The key of our own facts in an action that was written from events.
const OWN: &str = "memtrial";

#[derive(serde::Serialize, serde::Deserialize)]
struct OwnAction {
    #[serde(default)]
    edits: Vec<String>,
    #[serde(default)]
    tests: bool,
}

/// Events as messages of mini-swe-agent 1.1 (chat), one event at a time.
#[derive(Debug, Default)]
pub struct MiniMessages {
    thoughts: Vec<String>,
    /// The turn that is being put together: its commands and their calls' ids.
    calls: Vec<Value>,
    actions: Vec<Value>,
    answered: usize,
    /// Calls without an observation, in order.
    open: VecDeque<String>,
    asked: bool,
    made: usize,
    patch: String,
}

impl MiniMessages {
    /// The messages that are complete with this event, in order.
    pub fn event(&mut self, event: Event, on: &mut dyn FnMut(Map<String, Value>)) {
        match event {
            Event::Issue { text } => {
                self.turn(on);
                let kind = if std::mem::replace(&mut self.asked, true) { "UserNewTask" } else { "" };
                let mut message = json!({"role": "user", "content": text});
                if !kind.is_empty() {
                    message["extra"] = json!({"interrupt_type": kind});
                }
                give(message, on);
            }
            Event::Thought { text } => {
                if !self.actions.is_empty() {
                    self.turn(on);
                }
                self.thoughts.push(text);
            }
            Event::Command { text, edits, tests } => {
                if self.answered > 0 {
                    self.turn(on);
                }
                self.made += 1;
                let id = format!("call_{}", self.made);
                let arguments = json!({"command": text}).to_string();
                self.calls.push(json!({"id": id, "type": "function",
                                       "function": {"name": "bash", "arguments": arguments}}));
                self.open.push_back(id.clone());
                self.actions
                    .push(json!({"command": text, "tool_call_id": id, OWN: OwnAction { edits, tests }}));
            }
            Event::Observation { text, exit_code } => {
                if self.answered == 0 {
                    self.say(on);
                }
                let content = match exit_code {
                    Some(code) => format!("<returncode>{code}</returncode>\n<output>\n{text}</output>"),
                    None => format!("<output>\n{text}</output>"),
                };
                let Some(id) = self.open.pop_front() else { return };
                give(
                    json!({"role": "tool", "tool_call_id": id, "content": content,
                           "extra": {"raw_output": text, "returncode": exit_code, "exception_info": ""}}),
                    on,
                );
                self.answered += 1;
            }
            Event::Submission { patch } => {
                self.turn(on);
                self.patch = patch;
            }
            Event::Ended { status, resolved: _ } => {
                self.turn(on);
                let patch = std::mem::take(&mut self.patch);
                let stated = if patch.is_empty() { status } else { Some("Submitted".to_owned()) };
                give(
                    json!({"role": "exit", "content": patch,
                           "extra": {"exit_status": stated.unwrap_or_default(), "submission": patch}}),
                    on,
                );
            }
        }
    }

    /// Ends the turn: what was said and done is told, if it was not yet.
    fn turn(&mut self, on: &mut dyn FnMut(Map<String, Value>)) {
        if self.answered == 0 {
            self.say(on);
        }
        self.answered = 0;
        self.actions.clear();
    }

    fn say(&mut self, on: &mut dyn FnMut(Map<String, Value>)) {
        if self.thoughts.is_empty() && self.actions.is_empty() {
            return;
        }
        let mut message =
            json!({"role": "assistant", "content": std::mem::take(&mut self.thoughts).join("\n")});
        message["tool_calls"] = match std::mem::take(&mut self.calls) {
            calls if calls.is_empty() => Value::Null,
            calls => Value::Array(calls),
        };
        message["extra"] = json!({"actions": self.actions});
        give(message, on);
    }
}

fn give(message: Value, on: &mut dyn FnMut(Map<String, Value>)) {
    if let Value::Object(message) = message {
        on(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(info: Option<&Value>, messages: &[Value]) -> Vec<Event> {
        let mut events = MiniEvents::of_run(info).unwrap();
        let mut told = Vec::new();
        for raw in messages {
            events.message(&Message::from_value(raw.clone()).unwrap(), &mut |event| told.push(event));
        }
        events.finish(&mut |event| told.push(event));
        told
    }

    fn thought(text: &str) -> Event {
        Event::Thought { text: text.into() }
    }

    fn plain(text: &str) -> Event {
        Event::Command { text: text.into(), edits: Vec::new(), tests: false }
    }

    fn seen(text: &str, exit_code: Option<i64>) -> Event {
        Event::Observation { text: text.into(), exit_code }
    }

    #[test]
    fn reads_version_1() {
        let info = json!({"exit_status": "Submitted", "submission": "diff\n", "config": {
            "agent": {"action_regex": "<run>(.*?)</run>"}, "environment": {"cwd": "/repo"}}});
        let cut = "<returncode>2</returncode>\n<warning>\nlong\n</warning><output_head>\nab\n</output_head>\n\
                   <elided_chars>\n7 characters elided\n</elided_chars>\n<output_tail>\nyz\n</output_tail>";
        let events = told(
            Some(&info),
            &[
                json!({"role": "system", "content": "S"}),
                json!({"role": "user", "content": "<pr_description>\nfix\n</pr_description>"}),
                json!({"role": "assistant", "content": "Look.\n<run>a</run> <run>b</run>"}),
                json!({"role": "user", "content": "one action, please"}),
                json!({"role": "assistant", "content": "Look.\n<run>cd /repo && ls > x/y</run>\nthen go on"}),
                json!({"role": "user", "content": cut}),
                json!({"role": "assistant", "content": "<run>submit</run>"}),
                json!({"role": "user", "content": "diff\n"}),
            ],
        );
        assert_eq!(
            events,
            [
                Event::Issue { text: "fix".into() },
                thought("Look.\n<run>a</run> <run>b</run>"),
                thought("Look.\nthen go on"),
                Event::Command {
                    text: "cd /repo && ls > x/y".into(),
                    edits: vec!["x/y".into()],
                    tests: false
                },
                seen("ab\n[7 characters elided]\nyz\n", Some(2)),
                plain("submit"),
                Event::Submission { patch: "diff\n".into() },
                Event::Ended { status: Some("Submitted".into()), resolved: None },
            ]
        );
    }

    #[test]
    fn an_exception_is_no_submission() {
        let info = json!({"exit_status": "RuntimeError", "submission": "no disk"});
        let events = told(Some(&info), &[json!({"role": "user", "content": "fix"})]);
        assert_eq!(events[1], Event::Ended { status: Some("RuntimeError".into()), resolved: None });
    }

    #[test]
    fn reads_the_responses_api() {
        let call = |id: &str, line: &str| {
            json!({"type": "function_call", "call_id": id, "name": "bash",
                                                 "arguments": json!({"command": line}).to_string()})
        };
        let events = told(
            None,
            &[
                json!({"role": "user", "content": "fix"}),
                json!({"object": "response", "output": [
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Go:\n```bash\nx\n```"}]},
                    call("a", "ls"), call("b", "pytest")]}),
                json!({"type": "function_call_output", "call_id": "b", "output": "2",
                       "extra": {"raw_output": "two", "returncode": 1}}),
                json!({"type": "function_call_output", "call_id": "a", "output": "<returncode>0</returncode>\n<output>\none\n</output>"}),
                json!({"role": "exit", "content": "", "extra": {"exit_status": "LimitsExceeded", "submission": ""}}),
            ],
        );
        assert_eq!(
            events[1..],
            [
                thought("hm\nGo:\n```bash\nx\n```"),
                plain("ls"),
                Event::Command { text: "pytest".into(), edits: Vec::new(), tests: true },
                seen("one\n", Some(0)),
                seen("two", Some(1)),
                Event::Ended { status: Some("LimitsExceeded".into()), resolved: None },
            ]
        );
    }

    #[test]
    fn events_survive_as_messages() {
        let events = vec![
            Event::Issue { text: "fix".into() },
            thought("first"),
            thought("second"),
            Event::Command {
                text: "Edit {\"file_path\":\"/r/a.py\"}".into(),
                edits: vec!["a.py".into()],
                tests: false,
            },
            plain("ls"),
            seen("edited", None),
            seen("a.py\n", Some(0)),
            plain("cat a.py"),
            seen("", Some(1)),
            thought("last word"),
            Event::Submission { patch: "diff\n".into() },
            Event::Ended { status: Some("Submitted".into()), resolved: None },
        ];
        let mut writer = MiniMessages::default();
        let mut messages = Vec::new();
        for event in events.clone() {
            writer.event(event, &mut |message| messages.push(Value::Object(message)));
        }
        let mut again = told(None, &messages);
        // thoughts of one turn are one
        again.splice(1..2, [thought("first"), thought("second")]);
        assert_eq!(again, events);
        assert_eq!(messages.last().unwrap()["role"], "exit");
    }
}
