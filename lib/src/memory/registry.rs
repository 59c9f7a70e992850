//! The built-in systems by name, with what can be set.

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::bank::Ranking;
use super::distil::Asker;
use super::plugged::Site;
use super::systems::{
    bm25, fixcard, frozen, fs_grep, irrelevant, mcp, off, placebo, playbook, program, reasoning_bank,
    repo_notes, transcript, workflow,
};
use super::{LearnsFrom, MemoryError, MemorySystem};
use crate::llm::{Embedded, Embedder, LlmError, Model, Reply, Request};

/// What a system may use beside its history.
#[derive(Clone, Default)]
pub struct Resources {
    /// The model that distils records; `None`: systems that can work by rules alone do, the others refuse to open.
    pub model: Option<Arc<dyn Model>>,
    /// What embeds records and queries; `None`: systems find by words alone.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Where plugged-in programs run; `None`: they can be described, not started.
    pub site: Option<Site>,
}

/// The name of a model or embedder that is not at hand: enough to read what it helped to learn, and refused when it is asked.
pub(super) struct NameOnly(pub String);

#[async_trait]
impl Model for NameOnly {
    async fn complete(&self, _request: &Request) -> Result<Reply, LlmError> {
        Err(LlmError::Setup {
            endpoint: self.0.clone(),
            reason: "the model is not given; name it to learn more".into(),
        })
    }

    fn name(&self) -> &str {
        &self.0
    }
}

#[async_trait]
impl Embedder for NameOnly {
    async fn embed(&self, _texts: &[String]) -> Result<Embedded, LlmError> {
        let reason = "the index was built with this embedder, which is not given: name it to search".into();
        Err(LlmError::Setup { endpoint: self.0.clone(), reason })
    }

    fn name(&self) -> &str {
        &self.0
    }
}

/// Whether a system asks a model while it learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// It never does.
    Nothing,
    /// It does where one is given, and works by rules where none is.
    MayAskModel,
    /// It does, and cannot be opened without one.
    AsksModel,
}

/// A key of a system's table of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The key.
    pub name: &'static str,
    /// What it takes.
    pub value: &'static str,
    /// What holds where it is left out.
    pub default: &'static str,
    /// What it does.
    pub what: &'static str,
}

/// Opens a system with its table of settings; the error says what is wrong with them.
type Opener = fn(&Value, &Resources) -> Result<Box<dyn MemorySystem>, String>;

/// A built-in system as people read about it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct About {
    /// Its name in study files.
    pub name: &'static str,
    /// What it keeps and delivers.
    pub summary: &'static str,
    /// Whether it asks a model.
    pub needs: Needs,
    /// Which runs its deliveries derive from.
    pub learns_from: LearnsFrom,
    /// Its settings.
    pub settings: &'static [Setting],
    /// Settings that it shares with others: of ranking and abstaining, or of programs.
    pub shared: &'static [Setting],
    /// Where the method comes from; empty: memtrial's own.
    pub paper: &'static str,
    /// What differs from there.
    pub deviations: &'static [&'static str],
    #[serde(skip)]
    pub(super) open: Opener,
}

/// The settings of [`Ranking`].
pub(super) const RANKED: &[Setting] = &[
    Setting {
        name: "gate",
        value: "true or false",
        default: "true",
        what: "whether it may abstain for want of relevance",
    },
    Setting {
        name: "min-coverage",
        value: "0 to 1",
        default: "0",
        what: "abstain where the best record holds less of the query's weight",
    },
    Setting {
        name: "min-score",
        value: "a number",
        default: "none",
        what: "abstain where the best BM25 score is lower",
    },
    Setting {
        name: "query-terms",
        value: "1 to 1024",
        default: "256",
        what: "distinct words of the query that are searched for",
    },
    Setting {
        name: "head-share",
        value: "0 to 1",
        default: "0.4",
        what: "the share of its room that a record's first part may take",
    },
    Setting {
        name: "dense-weight",
        value: "0 to 100",
        default: "1",
        what: "how much the rank by meaning counts beside that by words, with an embedder",
    },
];

const TABLE: [&About; 14] = [
    &bm25::ABOUT,
    &fixcard::ABOUT,
    &frozen::ABOUT,
    &fs_grep::ABOUT,
    &irrelevant::ABOUT,
    &mcp::ABOUT,
    &off::ABOUT,
    &placebo::ABOUT,
    &playbook::ABOUT,
    &program::ABOUT,
    &reasoning_bank::ABOUT,
    &repo_notes::ABOUT,
    &transcript::ABOUT,
    &workflow::ABOUT,
];

/// The built-in systems, by name.
pub const SYSTEMS: &[&About] = &TABLE;

/// What a system is.
///
/// # Errors
/// For a name that no system has; says which there are.
pub fn describe(name: &str) -> Result<&'static About, MemoryError> {
    TABLE.into_iter().find(|about| about.name == name).ok_or_else(|| MemoryError::UnknownSystem {
        name: name.to_owned(),
        known: TABLE.map(|about| about.name).join(", "),
    })
}

/// Opens a system by the name that a study file gives it, with what it may use. `settings` is the table of its settings:
/// an object, or null where there is none.
///
/// # Errors
/// For an unknown name, an unknown setting, a value that a setting cannot take, or a model that is missing; each says
/// what is known.
pub fn open(
    name: &str,
    settings: &Value,
    resources: &Resources,
) -> Result<Box<dyn MemorySystem>, MemoryError> {
    let about = describe(name)?;
    (about.open)(settings, resources).map_err(|reason| MemoryError::Settings {
        system: about.name.to_owned(),
        reason,
        known: known(about),
    })
}

fn known(about: &About) -> String {
    let keys: Vec<String> = about
        .settings
        .iter()
        .chain(about.shared)
        .map(|key| format!("{} ({})", key.name, key.value))
        .collect();
    if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
}

/// The settings of a system that has none of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoSettings {}

/// Reads a table of settings.
pub(super) fn read<T: DeserializeOwned>(settings: &Value) -> Result<T, String> {
    T::deserialize(Value::Object(table(settings)?)).map_err(|error| error.to_string())
}

/// Reads settings that others are part of: those know of no field that they do not have.
pub(super) fn read_known<T: DeserializeOwned>(settings: &Value, keys: &[&str]) -> Result<T, String> {
    let table = table(settings)?;
    match table.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(stray) => Err(format!("unknown field `{stray}`")),
        None => T::deserialize(Value::Object(table)).map_err(|error| error.to_string()),
    }
}

/// Reads a table that holds settings of ranking among the others.
pub(super) fn read_ranked<T: DeserializeOwned>(
    settings: &Value,
    defaults: Ranking,
) -> Result<(Ranking, T), String> {
    let mut own = table(settings)?;
    let mut ranking = serde_json::to_value(defaults).map_err(|error| error.to_string())?;
    for key in Ranking::KEYS {
        if let (Some(value), Some(ranking)) = (own.shift_remove(key), ranking.as_object_mut()) {
            ranking.insert(key.to_owned(), value);
        }
    }
    let ranking: Ranking = serde_json::from_value(ranking).map_err(|error| error.to_string())?;
    ranking.check()?;
    Ok((ranking, read(&Value::Object(own))?))
}

fn table(settings: &Value) -> Result<Map<String, Value>, String> {
    match settings {
        Value::Null => Ok(Map::new()),
        Value::Object(table) => Ok(table.clone()),
        other => Err(format!("expected a table, got {other}")),
    }
}

/// The model of a system that cannot do without.
pub(super) fn needs_model(resources: &Resources) -> Result<Asker, String> {
    let model = resources.model.clone().map(Asker::new);
    model.ok_or_else(|| {
        "it asks a model while it learns, and none is given (in a study: `model = \"NAME\"` of [models])"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::tests::Scripted;

    /// What cannot be opened without settings.
    const NEEDY: [&str; 3] = ["frozen", "mcp", "program"];

    fn message(name: &str, settings: Value) -> String {
        match open(name, &settings, &Resources::default()) {
            Ok(_) => panic!("{name} accepted {settings}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn opens_what_it_lists() {
        assert!(TABLE.is_sorted_by_key(|about| about.name));
        let resources = Resources { model: Some(Scripted::new(Vec::new())), ..Resources::default() };
        for about in TABLE.into_iter().filter(|about| !NEEDY.contains(&about.name)) {
            for settings in [Value::Null, json!({})] {
                let opened = open(about.name, &settings, &resources).unwrap().describe();
                assert_eq!(
                    (opened.name.as_str(), opened.model.is_some()),
                    (about.name, about.needs != Needs::Nothing)
                );
                let without = open(about.name, &settings, &Resources::default());
                assert_eq!(without.is_err(), about.needs == Needs::AsksModel, "{}", about.name);
            }
        }
    }

    /// What is listed can be set, to its stated default.
    #[test]
    fn defaults_are_as_documented() {
        let resources = Resources { model: Some(Scripted::new(Vec::new())), ..Resources::default() };
        for about in TABLE.into_iter().filter(|about| !NEEDY.contains(&about.name)) {
            for key in about.settings.iter().chain(about.shared) {
                let value = serde_json::from_str(key.default).unwrap_or(Value::Null);
                let opened = open(about.name, &json!({key.name: value}), &resources);
                assert!(opened.is_ok(), "{} of {}: {}", key.name, about.name, opened.err().unwrap());
            }
        }
    }

    #[test]
    fn says_what_is_known() {
        assert!(message("bm52", json!({})).starts_with(
            r#"memory system "bm52" is unknown; known are bm25, fixcard, frozen, fs-grep, irrelevant, mcp, off, "#
        ));
        for (name, settings, reason) in [
            ("off", json!({"k": 1}), "unknown field `k`, there are no fields; its settings are none"),
            (
                "bm25",
                json!({"min-scor": 1}),
                "unknown field `min-scor`, there are no fields; its settings are gate (true or false), ",
            ),
            (
                "transcript",
                json!({"query-terms": 0}),
                "query-terms is 0, not 1 to 1024; its settings are chunk-tokens (16 to 65536), ",
            ),
            ("transcript", json!({"chunk-tokens": 1}), "chunk-tokens is 1, not 16 to 65536; "),
            ("bm25", json!([1]), "expected a table, got [1]; "),
            ("workflow", json!({}), "it asks a model while it learns, and none is given "),
        ] {
            let expected = format!("settings of memory system {name:?}: {reason}");
            assert!(message(name, settings.clone()).starts_with(&expected), "{}", message(name, settings));
        }
    }
}
