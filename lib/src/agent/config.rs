//! mini-swe-agent's configuration, read unchanged.
//!
//! | taken from the YAML | what the study or the sandbox decides instead |
//! |---|---|
//! | all templates, `step_limit`, `cost_limit`, `wall_time_limit_seconds`, `max_consecutive_format_errors` | token and context limits |
//! | `environment`: `env`, `timeout`, `interpreter`, `cwd` | `cwd` and variables of the task's [`Place`](crate::sandbox::Place) win; image, back end and limits are the sandbox's |
//! | `model`: `model_class` (tool or text mode, chat completions or Responses API), `action_regex`, both model templates | name, parameters, endpoint, price and retries are the solver's |
//! | `run.env_startup_command` | |
//!
//! Every key of the sections stays visible to templates and in the trajectory. Keys that mini-swe-agent does not
//! know either, and keys that have no effect here, are warned about, never refused.

use std::collections::BTreeMap;
use std::path::PathBuf;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::keys;
use super::template::{self, TemplateError};
use super::yaml::{Layer, merge};
use crate::llm::Api;

/// How the model calls for a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// By calls of the tool `bash`.
    Tools,
    /// By exactly one match of this pattern in its text (the dot matches line breaks).
    Text {
        /// Its first group, or all of it, is the command.
        action_regex: String,
    },
}

/// Which major version of mini-swe-agent the configuration was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// 1.x: commands stand in the text of a reply, the model's templates stand in the `agent` section and see all
    /// variables, and the run is written in trajectory format 1.
    V1,
    /// 2.x.
    V2,
}

/// The texts that the agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Templates {
    /// The first message.
    pub system: String,
    /// The second message: the task.
    pub instance: String,
    /// What a command's result looks like.
    pub observation: String,
    /// What answers a reply that holds no valid command.
    pub format_error: String,
    /// 1.x: what answers a command that ran out of time, in place of an observation.
    pub timeout: Option<String>,
}

/// When a run ends by itself. 0: never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Model calls.
    pub steps: u64,
    /// US dollars. Calls of unknown price count as free, so that a missing price never ends a run; limit tokens then.
    pub cost_usd: f64,
    /// Wall-clock seconds of the run, resumed parts included.
    pub wall_seconds: u64,
    /// Replies in a row without a valid command.
    pub format_errors: u64,
    /// Prompt and completion tokens of all calls together (not in mini-swe-agent).
    pub tokens: u64,
}

/// The fixed agent's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Tool calls or text.
    pub mode: Mode,
    /// The interface that the model is asked through.
    pub api: Api,
    /// Written for which version.
    pub dialect: Dialect,
    /// What it says.
    pub templates: Templates,
    /// When it stops.
    pub limits: RunLimits,
    /// Seconds that a command may take.
    pub command_timeout: u64,
    /// What a command is appended to, for example `["bash", "-c"]`.
    pub interpreter: Vec<String>,
    /// Environment variables of every command.
    pub env: BTreeMap<String, String>,
    /// Where commands run, where the task's place names no folder.
    pub cwd: Option<String>,
    /// A template of a command that prepares the sandbox before the first call; it sees the row's visible columns.
    pub startup_command: Option<String>,
    /// The `agent` section after defaults.
    pub agent: Map<String, Value>,
    /// The `environment` section after defaults.
    pub environment: Map<String, Value>,
    /// The `model` section after defaults.
    pub model: Map<String, Value>,
}

/// A configuration and what is odd about its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Keys without effect, a line each.
    pub warnings: Vec<String>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error(
        "agent configuration {path}: {source}; name a YAML file, an override `a.b.c=value`, or `memtrial` for the built-in one"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is no YAML.
    #[error("agent configuration {path} is not valid YAML: {reason}")]
    Yaml {
        /// The file.
        path: String,
        /// What and where.
        reason: String,
    },
    /// A file or a section is no mapping.
    #[error(
        "agent configuration: {path} must be a mapping with keys such as `agent`, `environment` and `model`"
    )]
    NotAMapping {
        /// The file or the section.
        path: String,
    },
    /// An override has an empty key.
    #[error("agent configuration override {spec:?} has an empty key; write it as agent.step_limit=50")]
    EmptyKey {
        /// The override.
        spec: String,
    },
    /// A required key is missing.
    #[error(
        "agent configuration: {key} is missing; an override alone has no templates: give `-c memtrial` or a file before it"
    )]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A value has the wrong type.
    #[error("agent configuration: {key} must be {expected}, not {found}")]
    Type {
        /// The key.
        key: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// `action_regex` cannot be used.
    #[error("agent configuration: model.action_regex {pattern:?}: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        reason: String,
    },
    /// A template has a syntax error.
    #[error("agent configuration: {0}")]
    Template(#[from] TemplateError),
}

impl Config {
    /// Reads `-c` arguments, later ones over earlier ones; none: the embedded default.
    ///
    /// # Errors
    /// When a file cannot be read, a required key is missing, or a value or template is malformed.
    pub fn load<S: AsRef<str>>(specs: &[S]) -> Result<Loaded, ConfigError> {
        let layers = match specs {
            [] => vec![Layer::builtin()?],
            specs => specs.iter().map(|spec| Layer::from_spec(spec.as_ref())).collect::<Result<_, _>>()?,
        };
        Self::from_layers(&layers)
    }

    /// Sets the limit of model calls (0: none), for the machine and for templates.
    pub fn set_step_limit(&mut self, steps: u64) {
        self.limits.steps = steps;
        self.agent.insert("step_limit".into(), steps.into());
    }

    /// Merges layers and checks the result.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn from_layers(layers: &[Layer]) -> Result<Loaded, ConfigError> {
        let mut document = Map::new();
        for layer in layers {
            merge(&mut document, &layer.value);
        }
        let agent = section(&document, "agent")?;
        let environment = section(&document, "environment")?;
        let model = section(&document, "model")?;
        let run = section(&document, "run")?;
        let dialect = match keys::is_v1(&agent) {
            true => Dialect::V1,
            false => Dialect::V2,
        };
        let class = optional_string(&model, "model", "model_class")?;
        let api = match class.as_deref().is_some_and(keys::is_responses_class) {
            true => Api::Responses,
            false => Api::Chat,
        };
        let text_mode = dialect == Dialect::V1 || class.as_deref().is_some_and(keys::is_text_class);
        let warnings = keys::warnings(&document, dialect, text_mode, class.as_deref());
        let (agent, environment, model) = (
            with_defaults(agent, keys::agent_defaults(dialect)),
            with_defaults(environment, keys::environment_defaults()),
            with_defaults(model, keys::model_defaults(dialect, text_mode)),
        );
        let config = Self {
            mode: mode(text_mode, dialect, &agent, &model)?,
            api,
            dialect,
            templates: templates(dialect, &agent, &model)?,
            limits: RunLimits {
                steps: integer(&agent, "agent", "step_limit")?,
                cost_usd: number(&agent, "agent", "cost_limit")?,
                wall_seconds: optional_integer(&agent, "agent", "wall_time_limit_seconds")?,
                format_errors: optional_integer(&agent, "agent", "max_consecutive_format_errors")?,
                tokens: 0,
            },
            command_timeout: integer(&environment, "environment", "timeout")?,
            interpreter: strings(&environment, "environment", "interpreter")?,
            env: variables(&environment)?,
            cwd: optional_string(&environment, "environment", "cwd")?.filter(|cwd| !cwd.is_empty()),
            startup_command: optional_string(&run, "run", "env_startup_command")?,
            agent,
            environment,
            model,
        };
        if config.command_timeout == 0 {
            return Err(wrong("environment.timeout", "at least 1", &json!(0)));
        }
        if config.interpreter.is_empty() {
            return Err(wrong("environment.interpreter", "a list of at least one string", &json!([])));
        }
        Ok(Loaded { config, warnings })
    }

    /// The compiled `action_regex` of text mode.
    pub(super) fn pattern(pattern: &str) -> Result<Regex, ConfigError> {
        let fail = |reason: String| ConfigError::Pattern { pattern: pattern.to_owned(), reason };
        let regex = RegexBuilder::new(pattern)
            .dot_matches_new_line(true)
            .build()
            .map_err(|error| fail(error.to_string()))?;
        match regex.captures_len() {
            1 | 2 => Ok(regex),
            groups => Err(fail(format!("it has {} groups; at most one may capture the command", groups - 1))),
        }
    }
}

fn mode(
    text: bool,
    dialect: Dialect,
    agent: &Map<String, Value>,
    model: &Map<String, Value>,
) -> Result<Mode, ConfigError> {
    if !text {
        return Ok(Mode::Tools);
    }
    let action_regex = match dialect {
        Dialect::V1 => optional_string(agent, "agent", "action_regex")?
            .unwrap_or_else(|| keys::V1_ACTION_REGEX.to_owned()),
        Dialect::V2 => required(model, "model.action_regex", "action_regex")?,
    };
    Config::pattern(&action_regex)?;
    Ok(Mode::Text { action_regex })
}

fn templates(
    dialect: Dialect,
    agent: &Map<String, Value>,
    model: &Map<String, Value>,
) -> Result<Templates, ConfigError> {
    let (observation, format_error, timeout) = match dialect {
        Dialect::V1 => (
            (
                "agent.action_observation_template",
                required(agent, "agent.action_observation_template", "action_observation_template")?,
            ),
            (
                "agent.format_error_template",
                required(agent, "agent.format_error_template", "format_error_template")?,
            ),
            optional_string(agent, "agent", "timeout_template")?,
        ),
        Dialect::V2 => (
            (
                "model.observation_template",
                required(model, "model.observation_template", "observation_template")?,
            ),
            (
                "model.format_error_template",
                required(model, "model.format_error_template", "format_error_template")?,
            ),
            None,
        ),
    };
    let system = required(agent, "agent.system_template", "system_template")?;
    let instance = required(agent, "agent.instance_template", "instance_template")?;
    template::check("agent.system_template", &system)?;
    template::check("agent.instance_template", &instance)?;
    template::check(observation.0, &observation.1)?;
    template::check(format_error.0, &format_error.1)?;
    if let Some(timeout) = &timeout {
        template::check("agent.timeout_template", timeout)?;
    }
    Ok(Templates { system, instance, observation: observation.1, format_error: format_error.1, timeout })
}

fn section(document: &Map<String, Value>, name: &str) -> Result<Map<String, Value>, ConfigError> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(section)) => Ok(section.clone()),
        Some(_) => Err(ConfigError::NotAMapping { path: format!("section `{name}`") }),
    }
}

fn with_defaults(section: Map<String, Value>, defaults: Value) -> Map<String, Value> {
    let mut all = match defaults {
        Value::Object(defaults) => defaults,
        _ => Map::new(),
    };
    all.extend(section);
    all
}

fn wrong(key: &str, expected: &'static str, found: &Value) -> ConfigError {
    ConfigError::Type { key: key.to_owned(), expected, found: found.to_string() }
}

fn required(section: &Map<String, Value>, path: &'static str, key: &str) -> Result<String, ConfigError> {
    match section.get(key) {
        None | Some(Value::Null) => Err(ConfigError::Missing { key: path }),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(wrong(path, "a string", other)),
    }
}

fn optional_string(
    section: &Map<String, Value>,
    name: &str,
    key: &str,
) -> Result<Option<String>, ConfigError> {
    match section.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong(&format!("{name}.{key}"), "a string", other)),
    }
}

/// Numbers may be written as strings and whole numbers as floats, as pydantic takes them.
fn number(section: &Map<String, Value>, name: &str, key: &str) -> Result<f64, ConfigError> {
    let value = section.get(key).unwrap_or(&Value::Null);
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| wrong(&format!("{name}.{key}"), "a number that is not negative", value))
}

fn integer(section: &Map<String, Value>, name: &str, key: &str) -> Result<u64, ConfigError> {
    let float = number(section, name, key)?;
    if float.fract() != 0.0 || float > 9e15 {
        let value = section.get(key).unwrap_or(&Value::Null);
        return Err(wrong(&format!("{name}.{key}"), "a whole number", value));
    }
    Ok(float as u64)
}

/// A number that 1.x does not know: 0 where it is not there.
fn optional_integer(section: &Map<String, Value>, name: &str, key: &str) -> Result<u64, ConfigError> {
    if section.contains_key(key) { integer(section, name, key) } else { Ok(0) }
}

fn strings(section: &Map<String, Value>, name: &str, key: &str) -> Result<Vec<String>, ConfigError> {
    let value = section.get(key).unwrap_or(&Value::Null);
    serde_json::from_value(value.clone())
        .map_err(|_| wrong(&format!("{name}.{key}"), "a list of strings", value))
}

fn variables(environment: &Map<String, Value>) -> Result<BTreeMap<String, String>, ConfigError> {
    let value = environment.get("env").unwrap_or(&Value::Null);
    if value.is_null() {
        return Ok(BTreeMap::new());
    }
    serde_json::from_value(value.clone())
        .map_err(|_| wrong("environment.env", "a mapping of strings (quote numbers and `off`)", value))
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
