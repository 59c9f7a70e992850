//! From runs and queries to a server's tools, and from its answers back.

use minijinja::Environment;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::query;
use crate::memory::plugged::ProgramSettings;

/// Settings of the system `mcp`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct McpSettings {
    /// How the server is started and bounded.
    #[serde(flatten)]
    pub program: ProgramSettings,
    /// The tool that takes in a run.
    pub write: Call,
    /// The tool that searches.
    pub read: Read,
    /// A tool that empties the namespace; without it every build starts on an empty state folder, which is enough for servers
    /// that keep their state there.
    #[serde(default)]
    pub reset: Option<Call>,
    /// Tokens of a run's text at most.
    #[serde(default = "write_tokens")]
    pub write_tokens: u64,
    /// Seconds to wait until the last run written is found; 0: writes are there when they return.
    #[serde(default)]
    pub settle_seconds: u64,
}

fn write_tokens() -> u64 {
    2048
}

/// A tool and its arguments, in whose texts `{{ … }}` stands for a variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// The search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Read {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Where in the answer the array of items lies: keys and numbers with points between; empty: the answer itself.
    #[serde(default)]
    pub items: String,
    /// Where in an item the id lies that was written.
    pub id: String,
    /// Where its text lies; without it the text that was written.
    #[serde(default)]
    pub text: Option<String>,
    /// Where its score lies, where it has one.
    #[serde(default)]
    pub score: Option<String>,
    /// What is asked: the `whole` text, or this many of its words, each by itself.
    #[serde(default)]
    pub query: Asked,
}

/// How a query is put.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asked {
    /// As it is.
    #[default]
    Whole,
    /// Different words that tell something, one call each.
    Words(usize),
}

/// An item that was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hit {
    pub id: String,
    pub text: Option<String>,
    pub score: Option<f64>,
}

impl McpSettings {
    /// The keys besides those of the program.
    pub const KEYS: [&'static str; 5] = ["write", "read", "reset", "write-tokens", "settle-seconds"];

    /// Whether a server can be used so.
    ///
    /// # Errors
    /// The key, its value and what it may be.
    pub fn check(&self) -> Result<(), String> {
        self.program.check()?;
        if !(16..=1 << 20).contains(&self.write_tokens) {
            return Err(format!("write-tokens is {}: it is 16 to {}", self.write_tokens, 1 << 20));
        }
        if let Asked::Words(words @ (0 | 65..)) = self.read.query {
            return Err(format!("read.query.words is {words}: it is 1 to 64"));
        }
        let calls = [
            ("write", Some(&self.write.arguments)),
            ("read", Some(&self.read.arguments)),
            ("reset", self.reset.as_ref().map(|call| &call.arguments)),
        ];
        for (key, arguments) in calls.into_iter().filter_map(|(key, call)| Some((key, call?))) {
            each_text(&Value::Object(arguments.clone()), &mut |text| {
                Environment::new().template_from_str(text).map(drop)
            })
            .map_err(|error| format!("{key}.arguments: {error}"))?;
        }
        Ok(())
    }

    pub(super) fn tools(&self) -> impl Iterator<Item = &str> {
        let reset = self.reset.as_ref().map(|call| call.tool.as_str());
        [self.write.tool.as_str(), self.read.tool.as_str()].into_iter().chain(reset)
    }
}

impl Call {
    /// The arguments with every variable in its place.
    pub(super) fn arguments(&self, variables: &Value) -> Result<Value, String> {
        let filled = fill(&Value::Object(self.arguments.clone()), variables);
        filled.map_err(|error| format!("arguments of tool {:?}: {error}", self.tool))
    }
}

impl Read {
    /// The call.
    pub(super) fn call(&self) -> Call {
        Call { tool: self.tool.clone(), arguments: self.arguments.clone() }
    }

    /// What is asked in place of a text.
    pub(super) fn queries(&self, text: &str) -> Vec<String> {
        match self.query {
            Asked::Whole => vec![text.to_owned()],
            Asked::Words(most) => query::words(text, most),
        }
    }

    /// What an answer holds.
    pub(super) fn hits(&self, found: &Value) -> Result<Vec<Hit>, String> {
        let shown = || super::clipped(&found.to_string(), 300);
        let items = at(found, &self.items).and_then(|items| items.as_array().cloned()).ok_or_else(|| {
            format!("there is no array at {:?} (read.items) in its answer: {}", self.items, shown())
        })?;
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let hit = |item: &Value| {
            let id = at(item, &self.id).filter(|id| id.is_string() || id.is_number()).ok_or_else(|| {
                let item = super::clipped(&item.to_string(), 300);
                format!("there is no text at {:?} (read.id) in an item: {item}", self.id)
            })?;
            Ok(Hit {
                id: text(id),
                text: self.text.as_deref().and_then(|path| at(item, path)).map(text),
                score: self
                    .score
                    .as_deref()
                    .and_then(|path| at(item, path)?.as_f64())
                    .filter(|s| s.is_finite()),
            })
        };
        items.iter().map(hit).collect()
    }
}

/// What lies at a path. A text on the way is read as JSON: some servers wrap it so.
fn at(value: &Value, path: &str) -> Option<Value> {
    let opened = |value: Value| match &value {
        Value::String(text) => serde_json::from_str(text).unwrap_or(value),
        _ => value,
    };
    if path.is_empty() {
        return Some(opened(value.clone()));
    }
    let mut here = value.clone();
    for key in path.split('.') {
        here = match opened(here) {
            Value::Object(mut map) => map.remove(key)?,
            Value::Array(items) => items.into_iter().nth(key.parse().ok()?)?,
            _ => return None,
        };
    }
    Some(here)
}

/// Fills the texts of a value. One that is a variable and nothing else keeps the variable's type.
fn fill(value: &Value, variables: &Value) -> Result<Value, minijinja::Error> {
    Ok(match value {
        Value::String(text) => filled(text, variables)?,
        Value::Array(items) => items.iter().map(|item| fill(item, variables)).collect::<Result<_, _>>()?,
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| Ok((key.clone(), fill(value, variables)?)))
            .collect::<Result<Map<_, _>, minijinja::Error>>()?
            .into(),
        other => other.clone(),
    })
}

fn filled(text: &str, variables: &Value) -> Result<Value, minijinja::Error> {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    let alone = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let alone = alone.map(str::trim).filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
    match alone {
        Some(name) if variables.get(name).is_some() => Ok(variables[name].clone()),
        _ => engine
            .render_str(text, minijinja::Value::from(minijinja::value::Serde(variables)))
            .map(Value::String),
    }
}

fn each_text(
    value: &Value,
    visit: &mut dyn FnMut(&str) -> Result<(), minijinja::Error>,
) -> Result<(), minijinja::Error> {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().try_for_each(|item| each_text(item, visit)),
        Value::Object(map) => map.values().try_for_each(|item| each_text(item, visit)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(settings: Value) -> Read {
        serde_json::from_value(settings).unwrap()
    }

    #[test]
    fn a_variable_alone_keeps_its_type_and_text_is_never_a_template() {
        let call: Call = serde_json::from_value(json!({"tool": "t", "arguments": {
            "limit": "{{ k }}", "deep": [{"name": "run {{ id }}"}], "fixed": true}}))
        .unwrap();
        let filled = call.arguments(&json!({"k": 3, "id": "{{ k }}"})).unwrap();
        assert_eq!(filled, json!({"limit": 3, "deep": [{"name": "run {{ k }}"}], "fixed": true}));
        let error = call.arguments(&json!({"k": 3})).unwrap_err();
        assert!(error.contains("\"t\"") && error.contains("undefined"), "{error}");
    }

    #[test]
    fn hits_lie_where_the_paths_say_also_inside_text() {
        let read = read(
            json!({"tool": "s", "items": "result.results", "id": "meta.0", "text": "body", "score": "s"}),
        );
        let answer =
            json!({"result": "{\"results\": [{\"meta\": [\"a__b-1\"], \"body\": \"B\", \"s\": 0.5}]}"});
        let hit = Hit { id: "a__b-1".into(), text: Some("B".into()), score: Some(0.5) };
        assert_eq!(read.hits(&answer).unwrap(), [hit]);
        assert!(read.hits(&json!({"result": {}})).unwrap_err().contains("read.items"));
        let error = read.hits(&json!({"result": {"results": [{"meta": []}]}})).unwrap_err();
        assert!(error.contains("read.id"), "{error}");
    }

    #[test]
    fn queries_are_whole_or_words() {
        let words = read(json!({"tool": "s", "id": "id", "query": {"words": 2}}));
        assert_eq!(words.queries("Migration loader fails"), ["migration", "loader"]);
        let whole = read(json!({"tool": "s", "id": "id"}));
        assert_eq!(whole.queries("Migration loader"), ["Migration loader"]);
    }
}
