//! The raw rows of a file, one by one.

use std::fmt;
use std::io::{BufRead, Cursor, Read};
use std::ops::ControlFlow;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::error::{DatasetError, RowError};
use super::parquet;
use super::source::{self, Source};
use crate::trajectory::json::{self, Lenient};

/// A row before it is understood.
pub(super) struct RawRow {
    /// The line of a JSONL file, else the place in the file; from 1.
    pub row: u64,
    /// Its columns.
    pub columns: Result<Map<String, Value>, Box<RowError>>,
    /// Lone surrogates that became U+FFFD.
    pub repaired: u64,
}

/// Whoever takes the rows; it may stop early.
pub(super) type OnRow<'c> = dyn FnMut(RawRow) -> ControlFlow<()> + 'c;

/// Hands over every row of a file; a bad line of a JSONL file does not stop the reading of the others.
pub(super) fn for_each(path: &Path, on: &mut OnRow<'_>) -> Result<(), DatasetError> {
    let mut rows = 0;
    let mut counting = |row: RawRow| {
        rows += 1;
        on(row)
    };
    let result = match source::open(path)? {
        Source::Parquet(file) => parquet::for_each(path, file, &mut counting),
        Source::Text(reader) => Text { path, on: &mut counting }.read(reader),
    };
    match result {
        Ok(_) if rows == 0 => Err(DatasetError::Empty { path: path.to_owned() }),
        Ok(_) => Ok(()),
        Err(mut error) => {
            if let DatasetError::Read { rows: r, .. }
            | DatasetError::Json { rows: r, .. }
            | DatasetError::Parquet { rows: r, .. } = &mut error
            {
                *r = rows;
            }
            Err(error)
        }
    }
}

struct Text<'p, 'c> {
    path: &'p Path,
    on: &'p mut OnRow<'c>,
}

impl Text<'_, '_> {
    fn read(&mut self, mut reader: Box<dyn BufRead>) -> Result<ControlFlow<()>, DatasetError> {
        // The first line that is not blank tells a list, one document over many lines, and JSONL apart.
        let (mut first, mut skipped) = (Vec::new(), 0);
        while first.trim_ascii().is_empty() {
            first.clear();
            skipped += 1;
            if self.read_line(&mut reader, &mut first)? == 0 {
                return Ok(ControlFlow::Continue(()));
            }
        }
        let start = first.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&first).trim_ascii_start();
        let is_list = start.starts_with(b"[");
        let by_line = !is_list && (names_lines(self.path) || json::parse(&first).is_ok());
        if by_line {
            return self.lines(reader, first, skipped);
        }
        let whole = Cursor::new(first).chain(reader);
        if is_list { self.list(whole) } else { self.document(whole) }
    }

    fn read_line(&self, reader: &mut dyn BufRead, line: &mut Vec<u8>) -> Result<usize, DatasetError> {
        reader.read_until(b'\n', line).map_err(|cause| DatasetError::Read {
            path: self.path.to_owned(),
            rows: 0,
            cause,
        })
    }

    fn lines(
        &mut self,
        mut reader: Box<dyn BufRead>,
        mut line: Vec<u8>,
        mut number: u64,
    ) -> Result<ControlFlow<()>, DatasetError> {
        loop {
            if !line.trim_ascii().is_empty() {
                let flow = match json::parse(&line) {
                    Ok((value, counts)) => self.hand_over(number, value, counts.repaired),
                    Err(error) => {
                        let reason = error.to_string();
                        let reason = reason.split(" at line ").next().unwrap_or_default();
                        let message = format!("no valid JSON at column {}: {reason}", error.column());
                        let hint = "one complete JSON object is expected on each line; if the file was cut, get it again";
                        self.refuse(number, message, hint)
                    }
                };
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            line.clear();
            number += 1;
            if self.read_line(&mut reader, &mut line)? == 0 {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    fn list(&mut self, reader: impl BufRead) -> Result<ControlFlow<()>, DatasetError> {
        let mut filter = Lenient::new(reader, None);
        let counts = filter.counts();
        let mut parser = serde_json::Deserializer::from_reader(&mut filter);
        let (mut row, mut repaired, mut flow) = (0, 0, ControlFlow::Continue(()));
        let mut take = |value| {
            row += 1;
            // The filter runs ahead of the parser by one piece: a repair may be reported one row early.
            let now = counts.get().repaired;
            flow = self.hand_over(row, value, now - repaired);
            repaired = now;
            flow
        };
        let parsed = Elements(&mut take).deserialize(&mut parser).and_then(|()| parser.end());
        match parsed {
            Err(error) if flow.is_continue() => Err(self.json_error(&error)),
            _ => Ok(flow),
        }
    }

    fn document(&mut self, reader: impl BufRead) -> Result<ControlFlow<()>, DatasetError> {
        let mut filter = Lenient::new(reader, None);
        let counts = filter.counts();
        let value = serde_json::from_reader(&mut filter).map_err(|error| self.json_error(&error))?;
        Ok(self.hand_over(1, value, counts.get().repaired))
    }

    fn json_error(&self, error: &serde_json::Error) -> DatasetError {
        let path = self.path.to_owned();
        if error.is_io() {
            let cause = std::io::Error::other(error.to_string());
            return DatasetError::Read { path, rows: 0, cause };
        }
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
        DatasetError::Json { path, line: error.line(), column: error.column(), rows: 0, reason }
    }

    /// Hands over a row, or the rows of an object of id → row.
    fn hand_over(&mut self, row: u64, value: Value, repaired: u64) -> ControlFlow<()> {
        let Value::Object(columns) = value else {
            let message = format!("expected an object, found {}", crate::trajectory::kind(&value));
            return self.refuse(row, message, "a row is an object of column → value");
        };
        let keyed = !columns.contains_key("instance_id")
            && !columns.is_empty()
            && columns.values().all(Value::is_object);
        if !keyed {
            return (self.on)(RawRow { row, columns: Ok(columns), repaired });
        }
        for (index, (key, value)) in columns.into_iter().enumerate() {
            let Value::Object(mut columns) = value else { continue };
            let row = index as u64 + 1;
            let stated = columns.entry("instance_id").or_insert_with(|| Value::String(key.clone())).clone();
            let flow = if stated.as_str() == Some(key.as_str()) {
                (self.on)(RawRow {
                    row,
                    columns: Ok(columns),
                    repaired: if index == 0 { repaired } else { 0 },
                })
            } else {
                self.refuse(
                    row,
                    format!("the row is filed under {key:?} and says that it is {stated}"),
                    "make both the same",
                )
            };
            if flow.is_break() {
                return flow;
            }
        }
        ControlFlow::Continue(())
    }

    fn refuse(&mut self, row: u64, message: String, hint: &str) -> ControlFlow<()> {
        let error = RowError {
            file: self.path.to_owned(),
            row,
            instance_id: None,
            field: None,
            message,
            hint: hint.to_owned(),
        };
        (self.on)(RawRow { row, columns: Err(Box::new(error)), repaired: 0 })
    }
}

/// Whether the file's name promises one row a line.
fn names_lines(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name =
        [".gz", ".gzip", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.ends_with(".jsonl") || name.ends_with(".ndjson")
}

/// Hands over the elements of a list one by one.
struct Elements<'c>(&'c mut dyn FnMut(Value) -> ControlFlow<()>);

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element()? {
            if (self.0)(value).is_break() {
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}
