//! Layers of configuration: YAML files and `a.b.c=value` overrides, merged left to right.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::config::ConfigError;

/// One `-c` argument, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// How the user named it.
    pub spec: String,
    /// Its content.
    pub value: Map<String, Value>,
}

impl Layer {
    /// Reads a `-c` argument: with a `=` it is an override `a.b.c=value` (the value is JSON, or else a string);
    /// otherwise a YAML file, its suffix forced to `.yaml`; `memtrial` is the embedded default.
    ///
    /// # Errors
    /// When an override has an empty key, or the file is missing or not a YAML mapping.
    pub fn from_spec(spec: &str) -> Result<Self, ConfigError> {
        match spec.split_once('=') {
            Some((key, value)) => Self::from_override(spec, key, value),
            None => Self::from_file(spec),
        }
    }

    fn from_override(spec: &str, key: &str, value: &str) -> Result<Self, ConfigError> {
        let keys: Vec<&str> = key.split('.').collect();
        if keys.contains(&"") {
            return Err(ConfigError::EmptyKey { spec: spec.to_owned() });
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        let nested = keys
            .into_iter()
            .rev()
            .fold(value, |inner, key| Value::Object(Map::from_iter([(key.to_owned(), inner)])));
        match nested {
            Value::Object(value) => Ok(Self { spec: spec.to_owned(), value }),
            _ => Err(ConfigError::EmptyKey { spec: spec.to_owned() }),
        }
    }

    fn from_file(spec: &str) -> Result<Self, ConfigError> {
        let mut path = PathBuf::from(spec);
        if path.extension().is_none_or(|suffix| suffix != "yaml") {
            path.set_extension("yaml");
        }
        match fs_err::read_to_string(&path) {
            Ok(text) => Self::from_yaml(&path.display().to_string(), &text),
            Err(_) if path == Path::new("memtrial.yaml") => Self::builtin(),
            Err(source) => Err(ConfigError::Unreadable { path, source }),
        }
    }

    /// The embedded default.
    ///
    /// # Errors
    /// None in practice: a test reads it.
    pub fn builtin() -> Result<Self, ConfigError> {
        Self::from_yaml("memtrial.yaml", include_str!("default.yaml"))
    }

    /// Reads the text of a YAML document. `spec` is the name that errors and warnings use.
    ///
    /// # Errors
    /// When it is not YAML, or not a mapping.
    pub fn from_yaml(spec: &str, text: &str) -> Result<Self, ConfigError> {
        let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
        let value: Value = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| ConfigError::Yaml { path: spec.to_owned(), reason: error.to_string() })?;
        match value {
            Value::Object(value) => Ok(Self { spec: spec.to_owned(), value }),
            Value::Null => Ok(Self { spec: spec.to_owned(), value: Map::new() }),
            _ => Err(ConfigError::NotAMapping { path: spec.to_owned() }),
        }
    }
}

/// Merges `over` into `base`: objects recursively, anything else replaced.
pub(super) fn merge(base: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}
