//! Predictions: read in every container that SWE-bench accepts, written as `preds.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::files::{OutError, write_json};

/// One prediction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// Who made it.
    pub model_name_or_path: String,
    /// For which task. Need not be a task that is known.
    pub instance_id: String,
    /// The patch; `None`: there is none.
    pub model_patch: Option<String>,
}

/// The predictions of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Predictions {
    /// By `instance_id`; of several for one task, the last.
    pub by_id: BTreeMap<String, Prediction>,
    /// What a reader should know: duplicates, missing keys that could be made up for.
    pub warnings: Vec<String>,
}

/// Why predictions could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PredictionsError {
    /// The file cannot be read.
    #[error("predictions {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no JSON.
    #[error("predictions {path}, line {line}, column {column}: {reason}; {hint}")]
    Json {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the JSON reader says.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// An entry is not what it must be.
    #[error("predictions {path}, {entry}, field {field}: {reason}")]
    Field {
        /// The file.
        path: PathBuf,
        /// Which entry: a line, a position or a key.
        entry: String,
        /// The field.
        field: &'static str,
        /// What is wrong and what is expected.
        reason: String,
    },
}

impl Predictions {
    /// Reads a `.jsonl` file (one prediction a line), or a `.json` file: a list, or an object from
    /// `instance_id` to prediction. SWE-rebench V2's `patch` is taken for `model_patch`.
    ///
    /// # Errors
    /// With file and line or field.
    pub fn read(path: &Path) -> Result<Self, PredictionsError> {
        let text = fs_err::read_to_string(path)
            .map_err(|source| PredictionsError::Read { path: path.to_owned(), source })?;
        let mut predictions = Self::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            for (line, at) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
                let value = serde_json::from_str(line).map_err(|error| json_error(path, at - 1, &error))?;
                predictions.add(path, format!("line {at}"), None, value)?;
            }
            return Ok(predictions);
        }
        match serde_json::from_str(text).map_err(|error| json_error(path, 0, &error))? {
            Value::Array(entries) => {
                for (value, at) in entries.into_iter().zip(1..) {
                    predictions.add(path, format!("entry {at}"), None, value)?;
                }
            }
            Value::Object(entries) => {
                for (id, value) in entries {
                    predictions.add(path, format!("key {id:?}"), Some(id), value)?;
                }
            }
            _ => {
                let reason = "expected a list of predictions, or an object from instance_id to prediction";
                return Err(field_error(path, "the whole file", "(top)", reason.to_owned()));
            }
        }
        Ok(predictions)
    }

    fn add(
        &mut self,
        path: &Path,
        entry: String,
        key: Option<String>,
        value: Value,
    ) -> Result<(), PredictionsError> {
        let Value::Object(fields) = value else {
            return Err(field_error(
                path,
                &entry,
                "(entry)",
                format!("expected an object, got {}", kind(&value)),
            ));
        };
        let id = match (text(path, &entry, &fields, "instance_id")?, key) {
            (Some(id), Some(key)) if id != key => {
                let reason = format!("{id:?} differs from the key that it stands under");
                return Err(field_error(path, &entry, "instance_id", reason));
            }
            (Some(id), _) | (None, Some(id)) if !id.trim().is_empty() => id,
            _ => return Err(field_error(path, &entry, "instance_id", "missing or empty".to_owned())),
        };
        let patch_key = if fields.contains_key("model_patch") { "model_patch" } else { "patch" };
        if !fields.contains_key(patch_key) {
            let reason = "missing; write null where there is no patch".to_owned();
            return Err(field_error(path, &entry, "model_patch", reason));
        }
        let model_patch = text(path, &entry, &fields, patch_key)?;
        let model = text(path, &entry, &fields, "model_name_or_path")?;
        if model.is_none() {
            self.warnings
                .push(format!("{}, {entry}: no model_name_or_path; taken as \"unknown\"", path.display()));
        }
        let model_name_or_path = model.unwrap_or_else(|| "unknown".to_owned());
        let prediction = Prediction { model_name_or_path, instance_id: id.clone(), model_patch };
        if self.by_id.insert(id.clone(), prediction).is_some() {
            let path = path.display();
            self.warnings.push(format!("{path}, {entry}: a second prediction for {id}; the last one counts"));
        }
        Ok(())
    }

    /// Writes `preds.json`: an object from `instance_id` to prediction, sorted.
    ///
    /// # Errors
    /// When the file cannot be written; what stood there before stays.
    pub fn write(&self, path: &Path) -> Result<(), OutError> {
        write_json(path, &self.by_id)
    }
}

fn text(
    path: &Path,
    entry: &str,
    fields: &Map<String, Value>,
    field: &'static str,
) -> Result<Option<String>, PredictionsError> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            Err(field_error(path, entry, field, format!("expected text or null, got {}", kind(other))))
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn field_error(path: &Path, entry: &str, field: &'static str, reason: String) -> PredictionsError {
    PredictionsError::Field { path: path.to_owned(), entry: entry.to_owned(), field, reason }
}

fn json_error(path: &Path, lines_before: usize, error: &serde_json::Error) -> PredictionsError {
    let line = lines_before + error.line();
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default().to_owned();
    let hint = if error.is_eof() {
        "the file ends too early: was it cut while it was written?"
    } else {
        "expected a .json list or object, or a .jsonl file with one prediction a line"
    };
    PredictionsError::Json { path: path.to_owned(), line, column: error.column(), reason, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Predictions, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs_err::write(&path, text).unwrap();
        Predictions::read(&path)
            .map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
    }

    #[test]
    fn reads_all_three_containers() {
        let one = r#"{"instance_id":"a__b-1","model_name_or_path":"m","model_patch":"+x\n"}"#;
        let none = r#"{"instance_id":"a__b-2","model_name_or_path":"m","model_patch":null}"#;
        let list = read("p.json", &format!("[{one},{none}]")).unwrap();
        assert_eq!(list.by_id["a__b-1"].model_patch.as_deref(), Some("+x\n"));
        assert_eq!(list.by_id["a__b-2"].model_patch, None);
        assert_eq!(read("p.json", &format!("{{\"a__b-1\":{one},\"a__b-2\":{none}}}")).unwrap(), list);
        assert_eq!(read("p.jsonl", &format!("\u{feff}{one}\n\n{none}\n")).unwrap(), list);
        let v2 = read("p.json", r#"[{"instance_id":"a__b-1","patch":"+x\n"}]"#).unwrap();
        assert_eq!((v2.by_id.len(), v2.warnings.len()), (1, 1));
    }

    #[test]
    fn the_last_of_two_counts_with_a_warning() {
        let line = |patch: &str| {
            format!(r#"{{"instance_id":"a__b-1","model_name_or_path":"m","model_patch":"{patch}"}}"#)
        };
        let found = read("p.jsonl", &format!("{}\n{}\n", line("1"), line("2"))).unwrap();
        assert_eq!(found.by_id["a__b-1"].model_patch.as_deref(), Some("2"));
        assert!(found.warnings[0].contains("line 2: a second prediction for a__b-1"), "{:?}", found.warnings);
    }

    #[test]
    fn errors_name_file_line_and_field() {
        let error = |name, text| read(name, text).unwrap_err();
        insta::assert_snapshot!(error("p.json", "[\n{\"instance_id\":"), @"predictions p.json, line 2, column 15: EOF while parsing a value; the file ends too early: was it cut while it was written?");
        insta::assert_snapshot!(error("p.jsonl", "{\"instance_id\":\"a\",\"model_patch\":1}\n"), @"predictions p.jsonl, line 1, field model_patch: expected text or null, got a number");
        insta::assert_snapshot!(error("p.json", "[{\"model_patch\":null}]"), @"predictions p.json, entry 1, field instance_id: missing or empty");
        insta::assert_snapshot!(error("p.json", "{\"a__b-1\":{\"instance_id\":\"a__b-2\"}}"), @r#"predictions p.json, key "a__b-1", field instance_id: "a__b-2" differs from the key that it stands under"#);
        insta::assert_snapshot!(error("p.json", "[{\"instance_id\":\"a__b-2\"}]"), @"predictions p.json, entry 1, field model_patch: missing; write null where there is no patch");
        insta::assert_snapshot!(error("p.json", "3"), @"predictions p.json, the whole file, field (top): expected a list of predictions, or an object from instance_id to prediction");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("preds.json");
        let before =
            read("p.json", r#"[{"instance_id":"a__b-1","model_name_or_path":"m","model_patch":"+x\r\n"}]"#)
                .unwrap();
        before.write(&path).unwrap();
        assert_eq!(Predictions::read(&path).unwrap(), before);
    }
}
