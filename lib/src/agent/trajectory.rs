//! The trajectory of a run in mini-swe-agent's format 1.1.

use serde_json::{Map, Value, json};

use super::machine::State;
use crate::task::InstanceId;

/// The version of mini-swe-agent whose format and rules are followed.
pub(super) const MINI_VERSION: &str = "2.4.6";

/// The whole trajectory file. `facts` goes under `info.config.memtrial`: what the format has no place for.
pub fn trajectory_value(state: &State, id: &InstanceId, facts: &Map<String, Value>) -> Value {
    let config = &state.setup().config;
    let last = state.log().last().and_then(|message| message.get("extra"));
    let of_last = |key: &str| last.and_then(|extra| extra.get(key)).cloned();
    let mut info = json!({
        "model_stats": {"instance_cost": state.usd(), "api_calls": state.calls()},
        "config": {
            "agent": config.agent,
            "agent_type": "memtrial.agent",
            "model": config.model,
            "model_type": "memtrial.llm",
            "environment": config.environment,
            "environment_type": "memtrial.sandbox",
            "memtrial": facts,
        },
        "mini_version": MINI_VERSION,
        "exit_status": of_last("exit_status").unwrap_or_else(|| json!("")),
        "submission": of_last("submission").unwrap_or_else(|| json!("")),
    });
    if let Some(info) = info.as_object_mut() {
        for key in ["traceback", "exception_str"] {
            if let Some(value) = of_last(key) {
                info.insert(key.into(), value);
            }
        }
    }
    json!({
        "info": info,
        "messages": state.log(),
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": id,
    })
}
