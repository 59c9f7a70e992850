//! The keys of mini-swe-agent's configuration: defaults, and what is worth a warning.

use serde_json::{Map, Value, json};

use super::config::Dialect;

/// 1.x's default `action_regex`.
pub(super) const V1_ACTION_REGEX: &str = r"```bash\s*\n(.*?)\n```";

/// 2.x's default `observation_template` of every model class.
const OBSERVATION: &str = "{% if output.exception_info %}<exception>{{output.exception_info}}</exception>\n{% endif %}\
                           <returncode>{{output.returncode}}</returncode>\n<output>\n{{output.output}}</output>";

pub(super) fn agent_defaults(dialect: Dialect) -> Value {
    match dialect {
        Dialect::V1 => json!({
            "action_observation_template": "Observation: {{output}}",
            "step_limit": 0,
            "cost_limit": 3.0,
        }),
        Dialect::V2 => json!({
            "step_limit": 0,
            "cost_limit": 3.0,
            "wall_time_limit_seconds": 0,
            "max_consecutive_format_errors": 3,
            "output_path": null,
        }),
    }
}

/// The defaults of the docker class, but for the interpreter: a login shell would reset the `PATH` of the task's
/// place.
pub(super) fn environment_defaults() -> Value {
    json!({
        "cwd": "",
        "env": {},
        "forward_env": [],
        "timeout": 30,
        "interpreter": ["bash", "-c"],
    })
}

pub(super) fn model_defaults(dialect: Dialect, text_mode: bool) -> Value {
    let mut defaults = json!({
        "model_name": "",
        "model_kwargs": {},
        "litellm_model_registry": null,
        "set_cache_control": null,
        "cost_tracking": "default",
    });
    let Some(more) = defaults.as_object_mut().filter(|_| dialect == Dialect::V2) else { return defaults };
    more.insert("format_error_template".into(), json!("{{ error }}"));
    more.insert("observation_template".into(), json!(OBSERVATION));
    more.insert("multimodal_regex".into(), json!(""));
    if text_mode {
        more.insert("action_regex".into(), json!(r"```mswea_bash_command\s*\n(.*?)\n```"));
        more.insert(
            "format_error_template".into(),
            json!("Exactly one command in a fenced block is needed, {{actions|length}} were found."),
        );
    }
    defaults
}

/// Whether a model class takes commands from text.
pub(super) fn is_text_class(class: &str) -> bool {
    class.to_ascii_lowercase().contains("textbased")
}

/// Whether a model class asks through the Responses API.
pub(super) fn is_responses_class(class: &str) -> bool {
    let class = class.to_ascii_lowercase();
    class.ends_with("_response") || class.ends_with("responsemodel") || class.ends_with("responseapimodel")
}

/// Whether an `agent` section was written for 1.x: it holds templates that 2.x keeps in the `model` section.
pub(super) fn is_v1(agent: &Map<String, Value>) -> bool {
    AGENT_V1.iter().any(|key| *key != "action_regex" && agent.contains_key(*key))
}

const TOP: &[&str] = &["agent", "environment", "model", "run"];
const AGENT: &[&str] = &[
    "agent_class",
    "system_template",
    "instance_template",
    "step_limit",
    "cost_limit",
    "wall_time_limit_seconds",
    "max_consecutive_format_errors",
    "output_path",
    "mode",
    "whitelist_actions",
    "confirm_exit",
];
const AGENT_V1: &[&str] =
    &["action_observation_template", "format_error_template", "timeout_template", "action_regex"];
const ENVIRONMENT: &[&str] = &[
    "environment_class",
    "image",
    "cwd",
    "env",
    "forward_env",
    "timeout",
    "executable",
    "run_args",
    "container_timeout",
    "pull_timeout",
    "interpreter",
    "sandbox_build_retries",
    "global_args",
    "exec_args",
    "wrapper_args",
    "startup_timeout",
    "runtime_timeout",
    "deployment_timeout",
    "install_pipx",
    "modal_sandbox_kwargs",
    "deployment_extra_kwargs",
    "contree_config",
    "image_tag",
    "cwd_auto_create",
    "import_username",
    "import_password",
];
const MODEL: &[&str] = &[
    "model_class",
    "model_name",
    "model_kwargs",
    "litellm_model_registry",
    "set_cache_control",
    "cost_tracking",
    "format_error_template",
    "observation_template",
    "multimodal_regex",
    "action_regex",
    "provider",
    "litellm_model_name_override",
    "outputs",
    "cost_per_call",
];
const CLASSES: &[&str] = &[
    "litellm",
    "litellm_textbased",
    "litellm_response",
    "openrouter",
    "openrouter_textbased",
    "openrouter_response",
    "portkey",
    "portkey_response",
    "requesty",
    "anthropic",
    "deterministic",
];

/// What is odd about a merged document, a line each, in a fixed order.
pub(super) fn warnings(
    document: &Map<String, Value>,
    dialect: Dialect,
    text_mode: bool,
    class: Option<&str>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut unknown = |prefix: &str, section: Option<&Value>, known: &[&[&str]]| {
        for key in section.and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            if !known.iter().any(|known| known.contains(&key.as_str())) {
                lines.push(format!("unknown key {prefix}{key}: it has no effect"));
            }
        }
    };
    let whole = Value::Object(document.clone());
    let v1: &[&str] = if dialect == Dialect::V1 { AGENT_V1 } else { &[] };
    unknown("", Some(&whole), &[TOP]);
    unknown("agent.", document.get("agent"), &[AGENT, v1]);
    unknown("environment.", document.get("environment"), &[ENVIRONMENT]);
    unknown("model.", document.get("model"), &[MODEL]);
    unknown("run.", document.get("run"), &[&["env_startup_command"]]);

    let set = |path: &str| whole.pointer(path).is_some_and(|value| !matches!(value, Value::Null));
    let filled = |path: &str| match whole.pointer(path) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        _ => false,
    };
    if filled("/environment/forward_env") {
        lines.push("environment.forward_env has no effect: sandboxes get no variables of the host".into());
    }
    if filled("/environment/run_args") {
        lines.push("environment.run_args has no effect: limits and network are the study's".into());
    }
    if filled("/model/multimodal_regex") {
        lines.push("model.multimodal_regex has no effect: observations stay text".into());
    }
    if set("/model/action_regex") && !text_mode {
        lines.push("model.action_regex has no effect: the model class uses tool calls".into());
    }
    match class {
        Some(class) if !CLASSES.contains(&class) && !class.contains('.') => {
            let mode = if text_mode { "text" } else { "tool" };
            lines.push(format!("unknown model.model_class {class}: taken for one with {mode} calls"));
        }
        _ => {}
    }
    lines
}
