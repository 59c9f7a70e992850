//! The built-in systems by name.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::plugged::{Mcp, McpSettings, Plugged, ProgramSettings, Site};
use super::{Bm25, Bm25Settings, MemoryError, MemorySystem, Off};
use crate::llm::Model;

/// What a system may use beside its history.
#[derive(Clone, Default)]
pub struct Resources {
    /// The model that distils records; `None`: systems that can work by rules alone do, the others refuse to open.
    pub model: Option<Arc<dyn Model>>,
    /// Where plugged-in programs run; `None`: they can be described, not started.
    pub site: Option<Site>,
}

/// The systems that [`open`] knows.
pub const SYSTEMS: [&str; 4] = ["bm25", "mcp", "off", "program"];

/// Opens a system by the name that a study file gives it, with what it may use. `settings` is the table of its settings: an object, or null
/// where there is none.
///
/// # Errors
/// For an unknown name, an unknown setting or a value that a setting cannot take; each says what is known.
pub fn open(
    name: &str,
    settings: &Value,
    resources: &Resources,
) -> Result<Box<dyn MemorySystem>, MemoryError> {
    match name {
        "off" => {
            match settings {
                Value::Null => {}
                Value::Object(map) if map.is_empty() => {}
                other => return Err(refuse("off", format!("takes no settings, got {other}"), "none")),
            }
            Ok(Box::new(Off))
        }
        "bm25" => {
            let settings: Bm25Settings = read("bm25", settings, Bm25Settings::KEYS)?;
            settings.check().map_err(|reason| refuse("bm25", reason, Bm25Settings::KEYS))?;
            Ok(Box::new(Bm25::new(settings)))
        }
        "program" => {
            let known = ProgramSettings::KEYS.join(", ");
            let settings: ProgramSettings = read_known("program", settings, &ProgramSettings::KEYS, &known)?;
            settings.check().map_err(|reason| refuse("program", reason, &known))?;
            Ok(Box::new(Plugged::new(settings, resources.site.clone())))
        }
        "mcp" => {
            let keys = [&ProgramSettings::KEYS[..], &McpSettings::KEYS].concat();
            let known = keys.join(", ");
            let settings: McpSettings = read_known("mcp", settings, &keys, &known)?;
            settings.check().map_err(|reason| refuse("mcp", reason, &known))?;
            Ok(Box::new(Mcp::new(settings, resources.site.clone())))
        }
        _ => Err(MemoryError::UnknownSystem { name: name.to_owned(), known: SYSTEMS.join(", ") }),
    }
}

fn read<T: DeserializeOwned + Default>(
    system: &str,
    settings: &Value,
    known: &str,
) -> Result<T, MemoryError> {
    match settings {
        Value::Null => Ok(T::default()),
        Value::Object(_) => {
            T::deserialize(settings).map_err(|error| refuse(system, error.to_string(), known))
        }
        other => Err(refuse(system, format!("expected a table, got {other}"), known)),
    }
}

/// Reads settings that others are part of: those know of no field that they do not have.
fn read_known<T: DeserializeOwned>(
    system: &str,
    settings: &Value,
    keys: &[&str],
    known: &str,
) -> Result<T, MemoryError> {
    let given = settings.as_object();
    let stray = given.and_then(|map| map.keys().find(|key| !keys.contains(&key.as_str())));
    if let Some(stray) = stray {
        return Err(refuse(system, format!("unknown field `{stray}`"), known));
    }
    let table = given.cloned().unwrap_or_default();
    if let other @ (Value::Array(_) | Value::String(_) | Value::Number(_) | Value::Bool(_)) = settings {
        return Err(refuse(system, format!("expected a table, got {other}"), known));
    }
    T::deserialize(Value::Object(table)).map_err(|error| refuse(system, error.to_string(), known))
}

fn refuse(system: &str, reason: String, known: &str) -> MemoryError {
    MemoryError::Settings { system: system.to_owned(), reason, known: known.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(name: &str, settings: Value) -> String {
        match open(name, &settings, &Resources::default()) {
            Ok(_) => panic!("{name} accepted {settings}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn opens_what_it_lists() {
        for name in ["bm25", "off"] {
            for settings in [Value::Null, json!({})] {
                assert_eq!(open(name, &settings, &Resources::default()).unwrap().describe().name, name);
            }
        }
        assert!(open("bm25", &json!({"min-score": 1.5, "query-terms": 10}), &Resources::default()).is_ok());
    }

    #[test]
    fn says_what_is_known() {
        insta::assert_snapshot!(message("bm52", json!({})), @r#"memory system "bm52" is unknown; known are bm25, mcp, off, program"#);
        insta::assert_snapshot!(message("off", json!({"k": 1})), @r#"settings of memory system "off": takes no settings, got {"k":1}; its settings are none"#);
        insta::assert_snapshot!(message("bm25", json!({"min-scor": 1})), @r#"settings of memory system "bm25": unknown field `min-scor`, expected one of `min-score`, `query-terms`, `issue-share`; its settings are min-score (number), query-terms (1 to 1024), issue-share (0 to 1)"#);
        insta::assert_snapshot!(message("bm25", json!({"query-terms": 0})), @r#"settings of memory system "bm25": query-terms is 0; its settings are min-score (number), query-terms (1 to 1024), issue-share (0 to 1)"#);
        insta::assert_snapshot!(message("bm25", json!([1])), @r#"settings of memory system "bm25": expected a table, got [1]; its settings are min-score (number), query-terms (1 to 1024), issue-share (0 to 1)"#);
    }
}
