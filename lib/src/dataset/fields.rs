//! Takes typed values out of a row; every refusal names the column.

use serde_json::{Map, Value};

use super::columns::names;
use super::error::RowError;
use crate::trajectory::{json, kind};

/// The columns of a row that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Fields {
    pub columns: Map<String, Value>,
    place: RowError,
}

impl Fields {
    /// `place` is the template of this row's errors: file and row.
    pub fn new(columns: Map<String, Value>, mut place: RowError) -> Self {
        place.instance_id = columns.get("instance_id").and_then(Value::as_str).map(str::to_owned);
        Self { columns, place }
    }

    /// The error of a column (or of the row).
    pub fn error(
        &self,
        field: impl Into<Option<String>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Box<RowError> {
        let mut error = self.place.clone();
        (error.field, error.message, error.hint) = (field.into(), message.into(), hint.into());
        Box::new(error)
    }

    /// The column by any of its names, with the name it has here. Null is as good as missing.
    pub fn take(&mut self, name: &'static str) -> Option<(&'static str, Value)> {
        let found = names(name).find(|name| self.columns.get(*name).is_some_and(|value| !value.is_null()))?;
        Some((found, self.columns.shift_remove(found)?))
    }

    /// A text.
    pub fn text(&mut self, name: &'static str) -> Result<Option<String>, Box<RowError>> {
        match self.take(name) {
            None => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text)),
            Some((found, other)) => Err(self.wrong(found, &other, "a text")),
        }
    }

    /// A text, where an empty one is as good as none; a bare number (`4.3`) becomes text.
    pub fn name(&mut self, name: &'static str) -> Result<Option<String>, Box<RowError>> {
        match self.take(name) {
            Some((_, Value::Number(number))) => Ok(Some(number.to_string())),
            Some((_, Value::String(text))) => Ok((!text.is_empty()).then_some(text)),
            Some((found, other)) => Err(self.wrong(found, &other, "a text")),
            None => Ok(None),
        }
    }

    /// A text that must be there.
    pub fn required(&mut self, name: &'static str) -> Result<String, Box<RowError>> {
        self.text(name)?.ok_or_else(|| {
            self.error(
                name.to_owned(),
                "is missing",
                "every row needs it; see the data set's card for its column names",
            )
        })
    }

    /// A list of texts: a list, or a JSON or Python text that holds one.
    pub fn list(&mut self, name: &'static str) -> Result<Vec<String>, Box<RowError>> {
        let Some((found, value)) = self.take(name) else { return Ok(Vec::new()) };
        let items = match value {
            Value::Array(items) => items,
            Value::String(text) if text.trim().is_empty() => Vec::new(),
            Value::String(text) => list_in_text(&text).ok_or_else(|| {
                let start: String = text.chars().take(40).collect();
                self.error(
                    found.to_owned(),
                    format!("the text {start:?} is no list"),
                    "expected a list of texts, or a JSON text that holds one",
                )
            })?,
            other => return Err(self.wrong(found, &other, "a list of texts")),
        };
        let text = |(index, item): (usize, Value)| match item {
            Value::String(text) => Ok(text),
            other => Err(self.wrong(&format!("{found}[{index}]"), &other, "a text")),
        };
        items.into_iter().enumerate().map(text).collect()
    }

    /// An object, or a JSON text that holds one.
    pub fn object(&mut self, name: &'static str) -> Result<Option<Map<String, Value>>, Box<RowError>> {
        let Some((found, value)) = self.take(name) else { return Ok(None) };
        self.as_object(found, value).map(Some)
    }

    /// The same for a value that was taken already.
    pub fn as_object(&self, found: &str, value: Value) -> Result<Map<String, Value>, Box<RowError>> {
        let value = match &value {
            Value::String(text) if text.trim().is_empty() => return Ok(Map::new()),
            Value::String(text) => match json::parse(text.as_bytes()) {
                Ok((parsed, _)) => parsed,
                Err(error) => {
                    let message = format!("the text is no valid JSON: {error}");
                    return Err(self.error(
                        found.to_owned(),
                        message,
                        "expected an object, or a JSON text that holds one",
                    ));
                }
            },
            _ => value,
        };
        match value {
            Value::Object(object) => Ok(object),
            other => Err(self.wrong(found, &other, "an object")),
        }
    }

    /// Shell commands: null, one text, or a list of texts (also as a JSON text).
    pub fn commands(&self, name: &str, value: Value) -> Result<Vec<String>, Box<RowError>> {
        let items = match value {
            Value::Null => return Ok(Vec::new()),
            Value::String(text) if text.trim().is_empty() => return Ok(Vec::new()),
            Value::String(text) => match json::parse(text.as_bytes()) {
                // `[ -f x ] && y` is a command and no JSON.
                Ok((Value::Array(items), _)) => items,
                _ => return Ok(vec![text]),
            },
            Value::Array(items) => items,
            other => return Err(self.wrong(name, &other, "a command or a list of commands")),
        };
        let command = |(index, item): (usize, Value)| match item {
            Value::String(text) => Some(Ok(text)),
            Value::Null => None,
            other => Some(Err(self.wrong(&format!("{name}[{index}]"), &other, "a text"))),
        };
        items.into_iter().enumerate().filter_map(command).collect()
    }

    /// The refusal of a value of the wrong sort.
    pub fn wrong(&self, field: &str, found: &Value, expected: &str) -> Box<RowError> {
        let message = format!("expected {expected}, found {}", kind(found));
        self.error(field.to_owned(), message, "correct the row, or leave the column out if it is optional")
    }
}

/// The list that a text holds: JSON, or Python's spelling of a list of texts (`['a', "b"]`), as SWE-bench Pro has it.
fn list_in_text(text: &str) -> Option<Vec<Value>> {
    match json::parse(text.as_bytes()) {
        Ok((Value::Array(items), _)) => Some(items),
        _ => python_list(text.trim()),
    }
}

fn python_list(text: &str) -> Option<Vec<Value>> {
    let mut rest = text.strip_prefix('[')?.strip_suffix(']')?.trim();
    let mut items = Vec::new();
    while !rest.is_empty() {
        let (item, after) = python_text(rest)?;
        items.push(Value::String(item));
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None if rest.is_empty() => {}
            None => return None,
        }
    }
    Some(items)
}

/// A quoted Python text at the start, and what follows it.
fn python_text(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        if char == quote {
            return Some((out, &text[at + 1..]));
        }
        if char != '\\' {
            out.push(char);
            continue;
        }
        let code = |chars: &mut dyn Iterator<Item = (usize, char)>, digits: usize| {
            let hex: String = chars.take(digits).map(|(_, c)| c).collect();
            let value = u32::from_str_radix(&hex, 16).ok().filter(|_| hex.len() == digits)?;
            Some(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER))
        };
        match chars.next()?.1 {
            'x' => out.push(code(&mut chars, 2)?),
            'u' => out.push(code(&mut chars, 4)?),
            'U' => out.push(code(&mut chars, 8)?),
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            plain @ ('\\' | '\'' | '"') => out.push(plain),
            other => out.extend(['\\', other]),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lists_in_texts() {
        for (text, expected) in [
            (r#"["a", "b\n"]"#, Some(vec!["a", "b\n"])),
            (r#"['a', "it's", 'x\'y']"#, Some(vec!["a", "it's", "x'y"])),
            (r"['\u00e9\n', '\d',]", Some(vec!["é\n", "\\d"])),
            ("[]", Some(vec![])),
            ("test_a", None),
            ("['a' 'b']", None),
            ("['a", None),
            (r"['\u00']", None),
        ] {
            let expected = expected.map(|items| items.into_iter().map(Value::from).collect::<Vec<_>>());
            assert_eq!(list_in_text(text), expected, "{text}");
        }
    }
}
