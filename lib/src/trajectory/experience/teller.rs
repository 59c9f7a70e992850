//! What every reader of a format does alike: events in their order, each observation after its command.

use std::collections::VecDeque;

use serde_json::Value;

use super::command::Commands;
use super::event::Event;
use super::place::Place;
use super::tool;
use crate::trajectory::issue_text;

/// Collects the events of one run.
#[derive(Debug, Default)]
pub(super) struct Teller {
    /// Where the run works.
    pub place: Place,
    /// Events that are told and not yet taken.
    pub out: Vec<Event>,
    commands: Commands,
    /// Commands whose observation is not told yet, in their order.
    waiting: VecDeque<Waiting>,
    asked: bool,
    ended: bool,
}

#[derive(Debug)]
struct Waiting {
    id: Option<String>,
    observation: Option<Event>,
}

impl Teller {
    /// Whether the agent was asked for something already.
    pub fn was_asked(&self) -> bool {
        self.asked
    }

    /// What the agent is asked to do.
    pub fn asked(&mut self, text: &str) {
        self.settle();
        self.asked = true;
        self.out.push(Event::Issue { text: issue_text(text).to_owned() });
    }

    /// What the agent says or thinks.
    pub fn thought(&mut self, parts: &[&str]) {
        let said: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
        if !said.is_empty() {
            self.out.push(Event::Thought { text: said.join("\n") });
        }
    }

    /// A command line for a shell.
    pub fn shell(&mut self, id: Option<&str>, line: String) {
        let event = tool::shell(line, &self.place, &mut self.commands);
        self.command(id, event);
    }

    /// The call of a tool.
    pub fn call(&mut self, id: Option<&str>, name: &str, arguments: &Value, open: Option<&str>) {
        let event = tool::call(name, arguments, open, &self.place, &mut self.commands);
        self.command(id, event);
    }

    /// A command about which it is known what it does.
    pub fn command(&mut self, id: Option<&str>, event: Event) {
        self.out.push(event);
        self.waiting.push_back(Waiting { id: id.map(str::to_owned), observation: None });
    }

    /// Whether a command waits for its observation.
    pub fn waits(&self) -> bool {
        self.waiting.iter().any(|waiting| waiting.observation.is_none())
    }

    /// What came back from a command: the one with this id, or the first that waits. What answers no command is dropped.
    pub fn observed(&mut self, id: Option<&str>, text: String, exit_code: Option<i64>) {
        let open = |waiting: &Waiting| waiting.observation.is_none();
        let place = match id {
            Some(_) => self.waiting.iter().position(|waiting| open(waiting) && waiting.id.as_deref() == id),
            None => None,
        };
        let nameless = |waiting: &Waiting| open(waiting) && (id.is_none() || waiting.id.is_none());
        let Some(place) = place.or_else(|| self.waiting.iter().position(nameless)) else { return };
        self.waiting[place].observation = Some(Event::Observation { text, exit_code });
        while let Some(observation) = self.waiting.front_mut().and_then(|first| first.observation.take()) {
            self.out.push(observation);
            self.waiting.pop_front();
        }
    }

    /// The turn is over: a command that was not answered gets an empty observation, so that those after it pair.
    pub fn settle(&mut self) {
        for waiting in self.waiting.drain(..) {
            let nothing = Event::Observation { text: String::new(), exit_code: None };
            self.out.push(waiting.observation.unwrap_or(nothing));
        }
    }

    /// The run is over. Only the first call counts; the last commands stay unanswered.
    pub fn ended(&mut self, patch: Option<&str>, status: Option<String>, resolved: Option<bool>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        while self.waiting.back().is_some_and(|last| last.observation.is_none()) {
            self.waiting.pop_back();
        }
        self.settle();
        if let Some(patch) = patch.filter(|patch| !patch.trim().is_empty()) {
            self.out.push(Event::Submission { patch: patch.to_owned() });
        }
        self.out.push(Event::Ended { status, resolved });
    }
}

/// A text, or the text parts of a list of parts, joined; empty where there is none.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let text = |part: &Value| match part {
                Value::String(text) => Some(text.clone()),
                part => part.get("text").and_then(Value::as_str).map(str::to_owned),
            };
            parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
        }
        Value::Object(part) => part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

/// Arguments of a call: an object, or a text that holds one; another text is the argument itself.
pub(super) fn arguments_of(arguments: Option<&Value>) -> Value {
    match arguments {
        None => Value::Null,
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(object @ (Value::Object(_) | Value::Array(_))) => object,
            _ => Value::String(text.clone()),
        },
        Some(other) => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(teller: &mut Teller) -> Vec<String> {
        let said = |event: Event| match event {
            Event::Command { text, .. } | Event::Observation { text, .. } => text,
            other => format!("{other:?}"),
        };
        teller.out.drain(..).map(said).collect()
    }

    #[test]
    fn observations_come_in_the_order_of_commands() {
        let mut teller = Teller::default();
        for id in ["a", "b", "c"] {
            teller.shell(Some(id), id.to_owned());
        }
        for id in ["b", "x", "a"] {
            teller.observed(Some(id), format!("<{id}"), None);
        }
        assert_eq!(told(&mut teller), ["a", "b", "c", "<a", "<b"]);
        teller.settle();
        teller.shell(None, "d".into());
        teller.observed(Some("late"), "<d".into(), None);
        teller.shell(None, "e".into());
        assert_eq!(told(&mut teller), ["", "d", "<d", "e"]);
        teller.ended(None, None, None);
        teller.ended(None, None, None);
        assert_eq!(told(&mut teller), ["Ended { status: None, resolved: None }"]);
    }
}
