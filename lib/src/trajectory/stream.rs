//! The parts of a trajectory one by one, at bounded memory.

use std::fmt;
use std::io::{BufRead, Read};
use std::ops::ControlFlow;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::error::TrajectoryError;
use super::format::Format;
use super::json::{Counts, Lenient, TextCap, passes};
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

/// What a walk through a trajectory gives its parts to.
pub(super) trait Taker {
    /// Takes a top-level field other than `messages`.
    fn field(&mut self, key: &str, value: &Value) -> ControlFlow<()>;

    /// Takes the next message of the list; `None`: there is none left.
    ///
    /// # Errors
    /// When the JSON is malformed.
    fn message<'de, A: SeqAccess<'de>>(
        &mut self,
        index: usize,
        list: &mut A,
    ) -> Result<Option<Taken>, A::Error>;
}

/// What came of a message.
pub(super) enum Taken {
    /// It was taken, or the caller wants no more.
    Said(ControlFlow<()>),
    /// It is no message, for this reason.
    Bad(String),
}

/// Hands whole messages to a callback.
struct Callback<'c>(&'c mut dyn FnMut(Part<'_>) -> ControlFlow<()>);

impl Taker for Callback<'_> {
    fn field(&mut self, key: &str, value: &Value) -> ControlFlow<()> {
        (self.0)(Part::Field { key, value })
    }

    fn message<'de, A: SeqAccess<'de>>(
        &mut self,
        index: usize,
        list: &mut A,
    ) -> Result<Option<Taken>, A::Error> {
        let Some(raw) = list.next_element::<Value>()? else { return Ok(None) };
        Ok(Some(match Message::from_value(raw) {
            Ok(message) => Taken::Said((self.0)(Part::Message { index, message })),
            Err(reason) => Taken::Bad(reason),
        }))
    }
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
    walk_file(path, limits, &mut Callback(on))
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
    walk_reader(reader, name, limits, &mut Callback(on))
}

/// Files up to this size are read in one piece: parsing that is several times quicker.
const IN_ONE_PIECE: u64 = 4 << 20;

pub(super) fn walk_file(
    path: &Path,
    limits: &Limits,
    taker: &mut impl Taker,
) -> Result<StreamReport, TrajectoryError> {
    let read_error = |cause| TrajectoryError::Read { path: path.to_owned(), cause };
    let mut file = std::fs::File::open(path).map_err(read_error)?;
    let bytes = file.metadata().map_err(read_error)?.len();
    if bytes > limits.file_bytes {
        return Err(TrajectoryError::TooLarge { path: path.to_owned(), bytes, limit: limits.file_bytes });
    }
    if bytes > IN_ONE_PIECE {
        return walk_reader(std::io::BufReader::with_capacity(1 << 16, file), path, limits, taker);
    }
    let mut text = Vec::with_capacity(bytes as usize + 1);
    file.read_to_end(&mut text).map_err(read_error)?;
    walk_bytes(&text, path, limits, taker)
}

/// Parses a text in memory, without a copy where nothing in it has to be repaired or cut.
pub(super) fn walk_bytes(
    text: &[u8],
    name: &Path,
    limits: &Limits,
    taker: &mut impl Taker,
) -> Result<StreamReport, TrajectoryError> {
    if !passes(text, limits.cap()) {
        return walk_reader(text, name, limits, taker);
    }
    let counts = Counts { bytes: text.len() as u64, ..Counts::default() };
    walk(&mut serde_json::Deserializer::from_slice(text), || counts, name, limits, taker)
}

fn walk_reader(
    reader: impl BufRead,
    name: &Path,
    limits: &Limits,
    taker: &mut impl Taker,
) -> Result<StreamReport, TrajectoryError> {
    let mut filter = Lenient::new(reader, Some(limits.cap()));
    let counts = filter.counts();
    walk(&mut serde_json::Deserializer::from_reader(&mut filter), || counts.get(), name, limits, taker)
}

fn walk<'de, R: serde_json::de::Read<'de>>(
    parser: &mut serde_json::Deserializer<R>,
    counts: impl Fn() -> Counts,
    name: &Path,
    limits: &Limits,
    taker: &mut impl Taker,
) -> Result<StreamReport, TrajectoryError> {
    let mut walk = Walk { taker, messages: 0, top: Map::new(), end: None };
    let parsed = (&mut walk).deserialize(&mut *parser).and_then(|()| parser.end());
    let Walk { messages, top, end, .. } = walk;
    let counts = counts();
    match (end, parsed) {
        (Some(End::Stopped), _) => {
            return Ok(StreamReport { format: None, messages, counts, limits: *limits });
        }
        (Some(End::Message(reason)), _) => {
            return Err(TrajectoryError::Message { path: name.to_owned(), number: messages + 1, reason });
        }
        (Some(End::Format(reason)), _) => {
            return Err(TrajectoryError::Format { path: name.to_owned(), reason });
        }
        (None, Err(error)) => return Err(parse_error(error, name, counts)),
        (None, Ok(())) => {}
    }
    let format =
        Format::detect(&top).map_err(|reason| TrajectoryError::Format { path: name.to_owned(), reason })?;
    Ok(StreamReport { format: Some(format), messages, counts, limits: *limits })
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

struct Walk<'t, T> {
    taker: &'t mut T,
    messages: usize,
    /// The top-level keys with small values only: what tells the format.
    top: Map<String, Value>,
    end: Option<End>,
}

impl<T> Walk<'_, T> {
    fn stop<E: serde::de::Error>(&mut self, end: End) -> E {
        self.end = Some(end);
        E::custom("stopped")
    }

    fn go_on<E: serde::de::Error>(&mut self, said: ControlFlow<()>) -> Result<(), E> {
        match said {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(self.stop(End::Stopped)),
        }
    }
}

impl<'de, T: Taker> DeserializeSeed<'de> for &mut Walk<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Taker> Visitor<'de> for &mut Walk<'_, T> {
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
            let said = self.taker.field(&key, &value);
            self.go_on(said)?;
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

struct Messages<'w, 't, T>(&'w mut Walk<'t, T>);

impl<'de, T: Taker> DeserializeSeed<'de> for Messages<'_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Taker> Visitor<'de> for Messages<'_, '_, T> {
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
        while let Some(taken) = walk.taker.message(walk.messages, &mut list)? {
            match taken {
                Taken::Bad(reason) => return Err(walk.stop(End::Message(reason))),
                Taken::Said(said) => {
                    walk.messages += 1;
                    walk.go_on(said)?;
                }
            }
        }
        Ok(())
    }
}
