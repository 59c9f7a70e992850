//! The parts of a trajectory one by one, at bounded memory.

use std::fmt;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::error::TrajectoryError;
use super::format::Format;
use super::json::{Counts, Lenient, TextCap};
use super::message::Message;

/// How much of a trajectory is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Larger files are refused.
    pub file_bytes: u64,
    /// Longer texts are cut in the middle; in code points. Every cut is counted in [`StreamReport`].
    pub text_chars: usize,
}

impl Limits {
    pub(super) fn cap(&self) -> TextCap {
        TextCap::total(self.text_chars)
    }
}

impl Default for Limits {
    /// 128 MiB a file, 100,000 characters a text.
    fn default() -> Self {
        Self { file_bytes: 128 << 20, text_chars: 100_000 }
    }
}

/// A part of a trajectory, in the order of the file.
#[derive(Debug)]
pub enum Part<'a> {
    /// A top-level field other than `messages`.
    Field {
        /// Its name.
        key: &'a str,
        /// Its value.
        value: &'a Value,
    },
    /// A message.
    Message {
        /// Its place in `messages`, from 0.
        index: usize,
        /// The message; yours to keep.
        message: Message,
    },
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamReport {
    /// The format; `None`: the caller stopped before the end.
    pub format: Option<Format>,
    /// Messages that were handed over.
    pub messages: usize,
    /// Bytes read, repairs and cuts.
    pub counts: Counts,
    /// The limits that it was read under.
    pub limits: Limits,
}

/// Streams a file.
///
/// # Errors
/// When the file cannot be read, is too large, is no valid JSON or no trajectory. Parts before the error were handed
/// over.
pub fn stream_file(
    path: &Path,
    limits: &Limits,
    on: &mut dyn FnMut(Part<'_>) -> ControlFlow<()>,
) -> Result<StreamReport, TrajectoryError> {
    let read_error = |cause| TrajectoryError::Read { path: path.to_owned(), cause };
    let file = std::fs::File::open(path).map_err(read_error)?;
    let bytes = file.metadata().map_err(read_error)?.len();
    if bytes > limits.file_bytes {
        return Err(TrajectoryError::TooLarge { path: path.to_owned(), bytes, limit: limits.file_bytes });
    }
    stream(std::io::BufReader::with_capacity(1 << 16, file), path, limits, on)
}

/// Streams from a reader; `name` is what errors call it. The callback may stop early.
///
/// # Errors
/// As [`stream_file`].
pub fn stream(
    reader: impl BufRead,
    name: &Path,
    limits: &Limits,
    on: &mut dyn FnMut(Part<'_>) -> ControlFlow<()>,
) -> Result<StreamReport, TrajectoryError> {
    let mut filter = Lenient::new(reader, Some(limits.cap()));
    let counts = filter.counts();
    let mut parser = serde_json::Deserializer::from_reader(&mut filter);
    let mut walk = Walk { on, messages: 0, top: Map::new(), end: None };
    let parsed = (&mut walk).deserialize(&mut parser).and_then(|()| parser.end());
    let Walk { messages, top, end, .. } = walk;
    match (end, parsed) {
        (Some(End::Stopped), _) => {
            return Ok(StreamReport { format: None, messages, counts: counts.get(), limits: *limits });
        }
        (Some(End::Message(reason)), _) => {
            return Err(TrajectoryError::Message { path: name.to_owned(), number: messages + 1, reason });
        }
        (Some(End::Format(reason)), _) => {
            return Err(TrajectoryError::Format { path: name.to_owned(), reason });
        }
        (None, Err(error)) => return Err(parse_error(error, name, counts.get())),
        (None, Ok(())) => {}
    }
    let format =
        Format::detect(&top).map_err(|reason| TrajectoryError::Format { path: name.to_owned(), reason })?;
    Ok(StreamReport { format: Some(format), messages, counts: counts.get(), limits: *limits })
}

/// The named error for what the parser said.
pub(super) fn parse_error(error: serde_json::Error, name: &Path, counts: Counts) -> TrajectoryError {
    let path = name.to_owned();
    if error.is_io() {
        return TrajectoryError::Read { path, cause: error.into() };
    }
    if counts.bytes == 0 {
        return TrajectoryError::Format { path, reason: "the file is empty".to_owned() };
    }
    let (line, column) = (error.line(), error.column());
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
    TrajectoryError::Json { path, line, column, reason }
}

/// Why the walk ended before the end of the file.
enum End {
    Stopped,
    Message(String),
    Format(String),
}

struct Walk<'c> {
    on: &'c mut dyn FnMut(Part<'_>) -> ControlFlow<()>,
    messages: usize,
    /// The top-level keys with small values only: what tells the format.
    top: Map<String, Value>,
    end: Option<End>,
}

impl Walk<'_> {
    fn stop<E: serde::de::Error>(&mut self, end: End) -> E {
        self.end = Some(end);
        E::custom("stopped")
    }

    fn hand_over<E: serde::de::Error>(&mut self, part: Part<'_>) -> Result<(), E> {
        match (self.on)(part) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(self.stop(End::Stopped)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for &mut Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `messages`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        let reason =
            "a list, where an object with `messages` is expected: only the messages were saved, not the run";
        Err(self.stop(End::Format(reason.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if self.top.contains_key(&key) {
                return Err(self.stop(End::Format(format!("the key `{key}` appears twice"))));
            }
            if key == "messages" {
                self.top.insert(key, Value::Null);
                map.next_value_seed(Messages(self))?;
                continue;
            }
            let value: Value = map.next_value()?;
            self.hand_over(Part::Field { key: &key, value: &value })?;
            let small = match value {
                Value::Object(_) => Value::Object(Map::new()),
                Value::Array(_) => Value::Array(Vec::new()),
                scalar => scalar,
            };
            self.top.insert(key, small);
        }
        Ok(())
    }
}

struct Messages<'w, 'c>(&'w mut Walk<'c>);

impl<'de> DeserializeSeed<'de> for Messages<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Messages<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Err(A::Error::custom("`messages` is an object, expected a list"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self(walk) = self;
        while let Some(raw) = list.next_element::<Value>()? {
            let message = match Message::from_value(raw) {
                Ok(message) => message,
                Err(reason) => return Err(walk.stop(End::Message(reason))),
            };
            let index = walk.messages;
            walk.messages += 1;
            walk.hand_over(Part::Message { index, message })?;
        }
        Ok(())
    }
}
