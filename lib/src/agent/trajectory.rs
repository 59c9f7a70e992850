//! The trajectory of a run in mini-swe-agent's formats: 1.1, and 1 for a configuration of 1.x.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::config::Dialect;
use super::machine::State;
use crate::task::InstanceId;

/// Which files tell of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrajectoryFormat {
    /// mini-swe-agent's trajectory: `<id>.traj.json`.
    #[default]
    Mini,
    /// The trajectory, and beside it the same run as an ATIF document: `<id>.atif.json`.
    Both,
}

/// The versions of mini-swe-agent whose formats and rules are followed.
pub(super) const MINI_VERSION: &str = "2.4.6";
const MINI_VERSION_V1: &str = "1.15.0";

/// The whole trajectory file. `facts` goes under `info.config.memtrial`: what the format has no place for.
pub fn trajectory_value(state: &State, id: &InstanceId, facts: &Map<String, Value>) -> Value {
    match state.setup().config.dialect {
        Dialect::V1 => version_1(state, id, facts),
        Dialect::V2 => version_1_1(state, id, facts),
    }
}

fn config(state: &State, facts: &Map<String, Value>) -> Value {
    let config = &state.setup().config;
    json!({
        "agent": config.agent,
        "agent_type": "memtrial.agent",
        "model": config.model,
        "model_type": "memtrial.llm",
        "environment": config.environment,
        "environment_type": "memtrial.sandbox",
        "memtrial": facts,
    })
}

fn stats(state: &State) -> Value {
    json!({"instance_cost": state.usd(), "api_calls": state.calls()})
}

fn version_1_1(state: &State, id: &InstanceId, facts: &Map<String, Value>) -> Value {
    let (exit_status, submission) = state.finished().unwrap_or_default();
    let mut info = json!({
        "model_stats": stats(state),
        "config": config(state, facts),
        "mini_version": MINI_VERSION,
        "exit_status": exit_status,
        "submission": submission,
    });
    if let Some(exception) = state.exception() {
        info["traceback"] = json!(format!("{}: {}", exception.class, exception.text));
        info["exception_str"] = json!(exception.text);
    }
    json!({
        "info": info,
        "messages": state.log(),
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": id,
    })
}

/// In format 1 the text of an exception takes the place of the submission.
fn version_1(state: &State, id: &InstanceId, facts: &Map<String, Value>) -> Value {
    let (exit_status, submission) = state.finished().unwrap_or_default();
    let exception = state.exception();
    let mut info = json!({
        "exit_status": exit_status,
        "submission": exception.map_or(submission, |exception| &exception.text),
        "model_stats": stats(state),
        "mini_version": MINI_VERSION_V1,
        "config": config(state, facts),
    });
    if let Some(exception) = exception {
        info["traceback"] = json!(format!("{}: {}", exception.class, exception.text));
    }
    json!({
        "info": info,
        "messages": state.log(),
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": id,
    })
}
