//! What was asked and answered, in the words of chat completions: `<journal>.talk.jsonl` beside the journal.
//!
//! Each request repeats its whole conversation. A line holds what it adds: to which conversation, after how many of its
//! messages, and the reply. A request that goes on where none ended (another conversation beside the first, or one
//! whose past was rewritten) begins a new one, which shares the start of an earlier one.

use std::fs::File;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::front;
use crate::llm::journal::digest_of;
use crate::llm::{Cost, Protocol, Reply};

/// One answered call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the answer was handed out: Unix time in seconds.
    pub at: f64,
    /// The conversation it belongs to, from 0.
    pub talk: usize,
    /// The conversation whose first `shared` messages it keeps; itself where it goes on.
    pub from: usize,
    /// How many messages those are.
    pub shared: usize,
    /// The messages of the request after them.
    pub messages: Vec<Value>,
    /// The answer.
    pub reply: Value,
    /// How it ended.
    pub finish_reason: Option<String>,
    /// What it cost when it was made.
    pub cost: Cost,
    /// Whether it had been paid for before: by an earlier life of the trial, or for a caller who hung up.
    pub replayed: bool,
}

/// The file beside a journal.
pub fn place(journal: &Path) -> PathBuf {
    journal.with_extension("talk.jsonl")
}

/// The exchanges of a file, in order; a torn last line is left out, a missing file holds none.
///
/// # Errors
/// When it cannot be read; a line that does not fit is an error that names it.
pub fn exchanges(path: &Path) -> std::io::Result<Vec<Exchange>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut reader = std::io::BufReader::new(file);
    let (mut found, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line)? > 0 && line.ends_with('\n') {
        found.push(serde_json::from_str(&line)?);
        line.clear();
    }
    Ok(found)
}

/// An open file, and what it takes to see where a request goes on.
#[derive(Debug)]
pub(super) struct Transcript {
    file: File,
    /// For each conversation, what its messages are known by.
    talks: Vec<Vec<String>>,
}

impl Transcript {
    /// Begins an empty one: a trial's new life is told from its start, replies that it is given again included.
    pub(super) fn begin(journal: &Path) -> std::io::Result<Self> {
        Ok(Self { file: File::create(place(journal))?, talks: Vec::new() })
    }

    /// Writes a call down.
    pub(super) fn add(
        &mut self,
        protocol: Protocol,
        body: &Map<String, Value>,
        reply: &Reply,
        replayed: bool,
    ) -> std::io::Result<()> {
        let mut messages = chat_messages(protocol, body);
        let marks: Vec<String> = messages.iter().map(mark).collect();
        let (from, shared) = self.longest_shared(&marks);
        let goes_on = self.talks.get(from).is_some_and(|talk| talk.len() == shared);
        let talk = if goes_on { from } else { self.talks.len() };
        let mut known = marks;
        known.push(mark(&reply.message));
        match self.talks.get_mut(talk) {
            Some(talk) => *talk = known,
            None => self.talks.push(known),
        }
        let exchange = Exchange {
            at: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0.0, |time| time.as_secs_f64()),
            talk,
            from: if shared == 0 { talk } else { from },
            shared,
            messages: messages.split_off(shared),
            reply: reply.message.clone(),
            finish_reason: reply.finish_reason.clone(),
            cost: reply.cost,
            replayed,
        };
        let mut line = serde_json::to_vec(&exchange)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }

    /// The conversation that shares most with a request, the latest of equals, and how much that is.
    fn longest_shared(&self, marks: &[String]) -> (usize, usize) {
        let shared = |talk: &Vec<String>| talk.iter().zip(marks).take_while(|(a, b)| a == b).count();
        let shared = self.talks.iter().enumerate().map(|(number, talk)| (shared(talk), number));
        shared.max().map_or((0, 0), |(shared, number)| (number, shared))
    }
}

/// The messages of a request in the words of chat completions.
fn chat_messages(protocol: Protocol, body: &Map<String, Value>) -> Vec<Value> {
    let list = |body: &Map<String, Value>| body.get("messages").and_then(Value::as_array).cloned();
    let translated = match protocol {
        Protocol::Openai => None,
        // What does not translate is kept as it is.
        Protocol::Anthropic => front::messages_to_chat(body).ok(),
    };
    list(translated.as_ref().unwrap_or(body)).unwrap_or_default()
}

/// What a message is known by when it comes again. Clients echo an answer in their own way, and move the marks of caches
/// and the time of day in system prompts from one request to the next.
fn mark(message: &Value) -> String {
    let text = match &message["content"] {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>().trim().to_owned()
        }
        _ => String::new(),
    };
    match message["role"].as_str() {
        Some("system" | "developer") => "system".into(),
        Some("assistant") => {
            let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
            let names: Vec<_> = calls.iter().map(|call| &call["function"]["name"]).collect();
            digest_of(json!(["assistant", if calls.is_empty() { text } else { String::new() }, names]))
        }
        role => digest_of(json!([role, text, message["tool_call_id"]])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(transcript: &mut Transcript, messages: &[Value], answer: &Value) {
        let body = json!({ "messages": messages }).as_object().cloned().unwrap();
        let reply =
            Reply { message: answer.clone(), finish_reason: None, response: Value::Null, cost: Cost::ZERO };
        transcript.add(Protocol::Openai, &body, &reply, false).unwrap();
    }

    #[test]
    fn each_line_holds_what_its_request_adds() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("calls.jsonl");
        let mut transcript = Transcript::begin(&journal).unwrap();
        let message = |role: &str, text: &str| json!({"role": role, "content": text});
        let first = [message("system", "s 12:00"), message("user", "fix")];
        let answer = message("assistant", "look ");
        ask(&mut transcript, &first, &answer);
        // A conversation beside it, the first one going on (its system prompt and the echo altered), then its past
        // rewritten.
        ask(&mut transcript, &[message("user", "name this")], &message("assistant", "a name"));
        let parts =
            json!({"role": "user", "content": [{"type": "text", "text": "fix", "cache_control": {}}]});
        let more =
            [message("system", "s 12:01"), parts, message("assistant", "look"), message("user", "seen")];
        ask(&mut transcript, &more, &message("assistant", "done"));
        ask(
            &mut transcript,
            &[message("system", "s"), message("user", "summary")],
            &message("assistant", "x"),
        );

        let found = exchanges(&place(&journal)).unwrap();
        let shape: Vec<_> = found.iter().map(|e| (e.talk, e.from, e.shared, e.messages.len())).collect();
        assert_eq!(shape, [(0, 0, 0, 2), (1, 1, 0, 1), (0, 0, 3, 1), (2, 0, 1, 1)]);
        assert_eq!(found[2].messages, [message("user", "seen")]);
        assert_eq!(found[0].reply, answer);
    }

    #[test]
    fn a_request_in_anthropics_words_is_told_in_those_of_chat() {
        let body = json!({"system": "s", "messages": [{"role": "user", "content": "fix"}]});
        let messages = chat_messages(Protocol::Anthropic, body.as_object().unwrap());
        assert_eq!(messages[0], json!({"role": "system", "content": "s"}));
        assert_eq!(messages[1]["content"], "fix");
    }
}
