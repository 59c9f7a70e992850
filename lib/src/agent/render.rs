//! What the templates of a configuration make of a run.

use serde_json::{Map, Value, json};

use super::config::Dialect;
use super::event::Observation;
use super::machine::{State, StepError};
use super::parse::Malformed;
use super::template;
use super::text;
use crate::llm::Reply;

impl State {
    /// What templates see, later ones over earlier ones.
    pub(super) fn variables(&self) -> Map<String, Value> {
        let config = &self.setup.config;
        let mut variables = config.agent.clone();
        super::yaml::merge(&mut variables, &config.environment);
        if let Ok(Value::Object(uname)) = serde_json::to_value(&self.setup.uname) {
            variables.extend(uname);
        }
        super::yaml::merge(&mut variables, &config.model);
        variables.insert("n_model_calls".into(), json!(self.calls));
        variables.insert("model_cost".into(), json!(self.usd));
        variables.insert("elapsed_seconds".into(), json!(self.now.elapsed.max(0.0) as u64));
        variables.insert("task".into(), json!(self.setup.task));
        variables
    }

    pub(super) fn observation_text(
        &self,
        command: &Value,
        observation: &Observation,
    ) -> Result<String, StepError> {
        let config = &self.setup.config;
        let mut variables = self.variables();
        let timed_out = observation.exception.as_ref().is_some_and(|e| e.class == "TimeoutExpired");
        if let (Some(template), true) = (&config.templates.timeout, timed_out) {
            let reply = self.log.last().unwrap_or(&Value::Null);
            let action = json!({"action": command, "content": reply["content"], "extra": reply["extra"]});
            variables.insert("action".into(), action);
            variables.insert("output".into(), json!(observation.output));
            return Ok(template::render("agent.timeout_template", template, &variables)?);
        }
        let template = &config.templates.observation;
        let mut output = json!({
            "output": text::universal(&observation.output),
            "returncode": observation.returncode,
        });
        let name = match config.dialect {
            Dialect::V1 => {
                // Later releases of 1.x know it; earlier ones print the whole of `output` without it.
                if template.contains("output.action") {
                    output["action"] = command.clone();
                }
                "agent.action_observation_template"
            }
            Dialect::V2 => {
                output["exception_info"] = json!(observation.exception_info());
                if let Some(exception) = &observation.exception {
                    output["extra"] = json!({"exception_type": exception.class, "exception": exception.text});
                }
                "model.observation_template"
            }
        };
        variables.insert("output".into(), output);
        Ok(template::render(name, template, &variables)?)
    }

    pub(super) fn format_error_text(
        &self,
        malformed: &Malformed,
        reply: &Reply,
    ) -> Result<String, StepError> {
        let config = &self.setup.config;
        let found = malformed.found.as_deref().unwrap_or_default();
        let template = &config.templates.format_error;
        if config.dialect == Dialect::V1 {
            let mut variables = self.variables();
            variables.insert("actions".into(), json!(found));
            return Ok(template::render("agent.format_error_template", template, &variables)?);
        }
        let found: Vec<&str> = found.iter().map(|action| text::strip(action)).collect();
        let mut variables = Map::from_iter([
            ("error".to_owned(), json!(malformed.error)),
            ("actions".to_owned(), json!(found)),
            ("finish_reason".to_owned(), json!(reply.finish_reason)),
        ]);
        if let Some(has_tool_calls) = malformed.has_tool_calls {
            variables.insert("has_tool_calls".into(), json!(has_tool_calls));
        }
        Ok(template::render("model.format_error_template", template, &variables)?)
    }
}

/// What the model reads above a submission that the sandbox cut.
pub(super) fn too_long(elided: u64) -> String {
    format!(
        "Nothing was submitted: the output is too long, {elided} bytes of it were not kept. Leave generated and \
         binary files out of the patch and submit again.\n"
    )
}
