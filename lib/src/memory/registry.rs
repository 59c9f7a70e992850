//! The built-in systems by name.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Bm25, Bm25Settings, MemoryError, MemorySystem, Off};
use crate::llm::{Embedder, Model};

/// What a system may use beside its history.
#[derive(Clone, Default)]
pub struct Resources {
    /// The model that distils records; `None`: systems that can work by rules alone do, the others refuse to open.
    pub model: Option<Arc<dyn Model>>,
    /// What turns texts into vectors; `None`: systems search by words alone.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// The systems that [`open`] knows.
pub const SYSTEMS: [&str; 2] = ["bm25", "off"];

/// Opens a system by the name that a study file gives it, with what it may use. `settings` is the table of its settings: an object, or null
/// where there is none.
///
/// # Errors
/// For an unknown name, an unknown setting or a value that a setting cannot take; each says what is known.
pub fn open(
    name: &str,
    settings: &Value,
    _resources: &Resources,
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
        for name in SYSTEMS {
            for settings in [Value::Null, json!({})] {
                assert_eq!(open(name, &settings, &Resources::default()).unwrap().describe().name, name);
            }
        }
        assert!(open("bm25", &json!({"min-score": 1.5, "query-terms": 10}), &Resources::default()).is_ok());
    }

    #[test]
    fn says_what_is_known() {
        insta::assert_snapshot!(message("bm52", json!({})), @r#"memory system "bm52" is unknown; known are bm25, off"#);
        insta::assert_snapshot!(message("off", json!({"k": 1})), @r#"settings of memory system "off": takes no settings, got {"k":1}; its settings are none"#);
        insta::assert_snapshot!(message("bm25", json!({"min-scor": 1})), @r#"settings of memory system "bm25": unknown field `min-scor`, expected one of `min-score`, `query-terms`, `issue-share`; its settings are min-score (number), query-terms (1 to 1024), issue-share (0 to 1)"#);
        insta::assert_snapshot!(message("bm25", json!({"query-terms": 0})), @r#"settings of memory system "bm25": query-terms is 0; its settings are min-score (number), query-terms (1 to 1024), issue-share (0 to 1)"#);
        insta::assert_snapshot!(message("bm25", json!([1])), @r#"settings of memory system "bm25": expected a table, got [1]; its settings are min-score (number), query-terms (1 to 1024), issue-share (0 to 1)"#);
    }
}
