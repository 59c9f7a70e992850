//! A file's JSON, as one document or line by line, at bounded memory.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::run::BadLine;
use crate::trajectory::json::{Counts, Lenient, passes};
use crate::trajectory::skim::Keep;
use crate::trajectory::stream::parse_error;
use crate::trajectory::{Limits, TrajectoryError};

/// Files and lines up to this size are parsed in one piece, which is several times quicker.
const IN_ONE_PIECE: u64 = 4 << 20;

/// A file that can be read several times.
pub(super) struct Source<'p> {
    pub path: &'p Path,
    pub limits: Limits,
    /// All of a small file.
    text: Option<Vec<u8>>,
    bytes: u64,
}

impl<'p> Source<'p> {
    pub fn open(path: &'p Path, limits: &Limits) -> Result<Self, TrajectoryError> {
        let mut source = Self { path, limits: *limits, text: None, bytes: 0 };
        let mut file = File::open(path).map_err(|cause| source.unreadable(cause))?;
        let meta = file.metadata().map_err(|cause| source.unreadable(cause))?;
        source.bytes = meta.len();
        if source.bytes <= IN_ONE_PIECE {
            let mut text = Vec::with_capacity(source.bytes as usize + 1);
            file.read_to_end(&mut text).map_err(|cause| source.unreadable(cause))?;
            source.text = Some(text);
        }
        Ok(source)
    }

    pub fn unreadable(&self, cause: std::io::Error) -> TrajectoryError {
        TrajectoryError::Read { path: self.path.to_owned(), cause }
    }

    pub fn format_error(&self, reason: impl Into<String>) -> TrajectoryError {
        TrajectoryError::Format { path: self.path.to_owned(), reason: reason.into() }
    }

    /// Refuses a file that is larger than a run may be.
    pub fn check_size(&self) -> Result<(), TrajectoryError> {
        if self.bytes <= self.limits.file_bytes {
            return Ok(());
        }
        let (path, limit) = (self.path.to_owned(), self.limits.file_bytes);
        Err(TrajectoryError::TooLarge { path, bytes: self.bytes, limit })
    }

    /// The first bytes.
    pub fn first_bytes(&self) -> Result<Vec<u8>, TrajectoryError> {
        let mut first = Vec::new();
        self.reader()?.take(8).read_to_end(&mut first).map_err(|cause| self.unreadable(cause))?;
        Ok(first)
    }

    fn reader(&self) -> Result<Box<dyn BufRead + '_>, TrajectoryError> {
        Ok(match &self.text {
            Some(text) => Box::new(text.as_slice()),
            None => {
                let file = File::open(self.path).map_err(|cause| self.unreadable(cause))?;
                Box::new(BufReader::with_capacity(1 << 16, file))
            }
        })
    }

    /// Parses the file's first JSON value; where `to_end` is set, nothing may follow it.
    pub fn parse<T, S>(&self, seed: S, to_end: bool) -> Result<(T, Counts), TrajectoryError>
    where
        S: for<'de> DeserializeSeed<'de, Value = T>,
    {
        let failed = |error, counts| parse_error(error, self.path, counts);
        if let Some(text) = self.text.as_deref().filter(|text| passes(text, self.limits.cap())) {
            let counts = Counts { bytes: text.len() as u64, ..Counts::default() };
            let mut parser = serde_json::Deserializer::from_slice(text);
            return seed
                .deserialize(&mut parser)
                .and_then(|value| if to_end { parser.end() } else { Ok(()) }.map(|()| (value, counts)))
                .map_err(|error| failed(error, counts));
        }
        let mut filter = Lenient::new(self.reader()?, Some(self.limits.cap()));
        let counts = filter.counts();
        let mut parser = serde_json::Deserializer::from_reader(&mut filter);
        let value = seed
            .deserialize(&mut parser)
            .and_then(|value| if to_end { parser.end() } else { Ok(()) }.map(|()| value))
            .map_err(|error| failed(error, counts.get()))?;
        Ok((value, counts.get()))
    }

    /// Whether the first line is a JSON value by itself, or too long to be looked at.
    pub fn is_lines(&self) -> Result<bool, TrajectoryError> {
        let mut line = Vec::new();
        let mut reader = self.reader()?.take(IN_ONE_PIECE);
        reader.read_until(b'\n', &mut line).map_err(|cause| self.unreadable(cause))?;
        Ok(line.len() as u64 == IN_ONE_PIECE || serde_json::from_slice::<IgnoredAny>(&line).is_ok())
    }

    /// Hands over the lines' objects with their numbers; what a line holds beside what `keep` names is not looked at.
    pub fn lines(
        &self,
        keep: &Keep,
        on: &mut dyn FnMut(usize, Map<String, Value>) -> ControlFlow<()>,
    ) -> Result<Lines, TrajectoryError> {
        let mut reader = self.reader()?;
        let mut lines = Lines::default();
        let mut number = 0;
        let mut start = Vec::new();
        loop {
            start.clear();
            number += 1;
            (&mut reader)
                .take(IN_ONE_PIECE)
                .read_until(b'\n', &mut start)
                .map_err(|cause| self.unreadable(cause))?;
            if start.is_empty() {
                return Ok(lines);
            }
            let parsed = if start.ends_with(b"\n") || (start.len() as u64) < IN_ONE_PIECE {
                lines.counts.bytes += start.len() as u64;
                let text = start.trim_ascii();
                if text.is_empty() {
                    continue;
                }
                self.line(text, keep, &mut lines.counts)
            } else {
                let rest = Line { reader: &mut reader, left: self.limits.file_bytes, ended: false };
                self.long_line(&start, rest, keep, &mut lines.counts)?
            };
            match parsed {
                Ok(Value::Object(object)) => {
                    lines.good += 1;
                    if on(number, object).is_break() {
                        lines.stopped = true;
                        return Ok(lines);
                    }
                }
                Ok(other) => lines
                    .bad(number, format!("{}, where an object is expected", crate::trajectory::kind(&other))),
                Err(reason) => lines.bad(number, reason),
            }
        }
    }

    fn line(&self, text: &[u8], keep: &Keep, counts: &mut Counts) -> Result<Value, String> {
        let parse = |text: &[u8]| {
            let mut parser = serde_json::Deserializer::from_slice(text);
            let value = keep.deserialize(&mut parser)?;
            parser.end().map(|()| value)
        };
        if passes(text, self.limits.cap()) && std::str::from_utf8(text).is_ok() {
            return parse(text).map_err(|error| error.to_string());
        }
        let lossy = String::from_utf8_lossy(text);
        let mut filter = Lenient::new(lossy.as_bytes(), Some(self.limits.cap()));
        let made = filter.counts();
        let mut clean = Vec::with_capacity(text.len());
        filter.read_to_end(&mut clean).map_err(|error| error.to_string())?;
        add(counts, made.get());
        parse(&clean).map_err(|error| error.to_string())
    }

    /// A line that is cut before it is held; its rest is skipped where it cannot be read.
    fn long_line(
        &self,
        start: &[u8],
        mut rest: Line<'_>,
        keep: &Keep,
        counts: &mut Counts,
    ) -> Result<Result<Value, String>, TrajectoryError> {
        let mut filter = Lenient::new(BufReader::new(start.chain(&mut rest)), Some(self.limits.cap()));
        let made = filter.counts();
        let parsed = {
            let mut parser = serde_json::Deserializer::from_reader(&mut filter);
            keep.deserialize(&mut parser).and_then(|value| parser.end().map(|()| value))
        };
        drop(filter);
        counts.bytes += made.get().bytes;
        add(counts, made.get());
        let left = rest.left;
        rest.left = u64::MAX;
        std::io::copy(&mut rest, &mut std::io::sink()).map_err(|cause| self.unreadable(cause))?;
        Ok(parsed.map_err(|error| match left {
            0 => format!("longer than the limit of {} bytes", self.limits.file_bytes),
            _ => error.to_string(),
        }))
    }
}

/// What was read of a file's lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub good: usize,
    pub bad_lines: usize,
    pub bad: Vec<BadLine>,
    pub counts: Counts,
    pub stopped: bool,
}

/// So many bad lines are named.
const NAMED: usize = 20;

impl Lines {
    fn bad(&mut self, line: usize, reason: String) {
        self.bad_lines += 1;
        if self.bad.len() < NAMED {
            self.bad.push(BadLine { line, reason });
        }
    }
}

fn add(counts: &mut Counts, more: Counts) {
    counts.repaired += more.repaired;
    counts.cut_texts += more.cut_texts;
    counts.cut_chars += more.cut_chars;
}

/// The rest of a line.
struct Line<'r> {
    reader: &'r mut (dyn BufRead + 'r),
    left: u64,
    ended: bool,
}

impl Read for Line<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.ended || self.left == 0 {
            return Ok(0);
        }
        let available = self.reader.fill_buf()?;
        let room = buffer.len().min(available.len()).min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let newline = memchr::memchr(b'\n', &available[..room]);
        let count = newline.unwrap_or(room);
        buffer[..count].copy_from_slice(&available[..count]);
        self.ended = newline.is_some() || available.is_empty();
        let used = count + usize::from(newline.is_some());
        self.reader.consume(used);
        self.left -= used as u64;
        Ok(count)
    }
}

/// What tells a format and stands at the head of a run: the top-level keys of an object with what is small of them.
pub(super) struct Top;

/// Top-level fields of which more than their kind is looked at. Lists of messages keep their first ones.
const TOP: &[(&str, Keep)] = &[
    (
        "info",
        Keep::Only(&[
            ("exit_status", Keep::All),
            ("submission", Keep::All),
            ("model_stats", Keep::All),
            (
                "config",
                Keep::Only(&[
                    ("agent", Keep::Only(&[("action_regex", Keep::All)])),
                    ("model", Keep::Only(&[("model_name", Keep::All), ("action_regex", Keep::All)])),
                    ("environment", Keep::Only(&[("cwd", Keep::All)])),
                ]),
            ),
        ]),
    ),
    ("agent", Keep::Only(&[("name", Keep::All), ("model_name", Keep::All)])),
    ("final_metrics", Keep::All),
    (
        "extra",
        Keep::Only(&[(
            "mini",
            Keep::Only(&[
                ("instance_id", Keep::All),
                ("exit", Keep::Only(&[("extra", Keep::All)])),
                (
                    "info",
                    Keep::Only(&[(
                        "config",
                        Keep::Only(&[("environment", Keep::Only(&[("cwd", Keep::All)]))]),
                    )]),
                ),
            ]),
        )]),
    ),
    ("payload", Keep::Only(&[("type", Keep::All)])),
];

/// So many messages of SWE-agent's `history` are looked at for the issue.
const FIRST_MESSAGES: usize = 6;

const HISTORY: Keep = Keep::Only(&[
    ("role", Keep::All),
    ("content", Keep::All),
    ("is_demo", Keep::All),
    ("message_type", Keep::All),
    ("kind", Keep::All),
]);

impl<'de> DeserializeSeed<'de> for Top {
    type Value = Option<Map<String, Value>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top {
    type Value = Option<Map<String, Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut top = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match TOP.iter().find(|(name, _)| *name == key) {
                Some((_, keep)) => map.next_value_seed(keep)?,
                None if key == "history" => map.next_value_seed(Kind { first: FIRST_MESSAGES })?,
                None => map.next_value_seed(Kind { first: 0 })?,
            };
            top.insert(key, value);
        }
        Ok(Some(top))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// A value of which its kind is kept: scalars as they are, lists with their first elements, objects empty.
struct Kind {
    first: usize,
}

impl<'de> DeserializeSeed<'de> for Kind {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Kind {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Object(Map::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut first = Vec::new();
        while first.len() < self.first {
            match list.next_element_seed(&HISTORY)? {
                Some(value) => first.push(value),
                None => return Ok(Value::Array(first)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(first))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        // no name, version or time is longer
        Ok(if text.len() <= 300 { text.into() } else { Value::String(String::new()) })
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// The elements of one top-level list of a document, one by one; everything else is skipped.
pub(super) struct Elements<'a> {
    /// The list's key.
    pub key: &'static str,
    /// What is kept of an element.
    pub keep: &'static Keep,
    /// Takes the next element.
    pub on: &'a mut dyn FnMut(Value) -> ControlFlow<()>,
    /// Whether the caller stopped.
    pub stopped: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.key)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == self.key {
                map.next_value_seed(List(&mut self))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct List<'e, 'a>(&'e mut Elements<'a>);

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` as a list", self.0.key)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element_seed(self.0.keep)? {
            if (self.0.on)(value).is_break() {
                *self.0.stopped = true;
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}
