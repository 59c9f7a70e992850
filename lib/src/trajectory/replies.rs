//! What the model answered in a recorded run, for a solver that replays it.

use serde_json::{Map, Value, json};

use super::message::{Action, Message, Role, Usage};
use super::whole::Trajectory;
use super::{ActionPattern, TrajectoryError};

/// One recorded answer of the model, in the order of the calls.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedReply {
    /// The assistant message as the endpoint gave it (chat completions), or the response object (Responses API);
    /// without the local `extra`.
    pub message: Map<String, Value>,
    /// The whole response, where it was kept.
    pub response: Option<Value>,
    /// The commands that this answer led to, in order. Empty for an answer that could not be parsed.
    pub actions: Vec<Action>,
    /// Whether the agent could not parse this answer.
    pub format_error: bool,
    /// The tokens of the answer, where the endpoint counted them.
    pub usage: Option<Usage>,
    /// US dollars of the answer, where recorded.
    pub cost: Option<f64>,
}

/// The model's answers in order. An answer that could not be parsed is kept in 1.1 only inside the format error about
/// it, and is recovered from there; in 1.x it stands in the messages.
///
/// # Errors
/// When the run's `action_regex` cannot be used.
pub fn recorded_replies(run: &Trajectory) -> Result<Vec<RecordedReply>, TrajectoryError> {
    let pattern = run.action_pattern()?;
    let replies = run.messages().iter().filter_map(|message| match message.role() {
        Role::Assistant => Some(from_assistant(message, &pattern)),
        _ if message.is_format_error() => from_format_error(message),
        _ => None,
    });
    Ok(replies.collect())
}

fn from_assistant(message: &Message, pattern: &ActionPattern) -> RecordedReply {
    let actions = message.actions(pattern);
    let mut raw = message.raw().clone();
    raw.shift_remove("extra");
    raw.shift_remove("timestamp");
    RecordedReply {
        message: raw,
        response: message.response().cloned(),
        format_error: actions.is_empty(),
        actions,
        usage: message.usage(),
        cost: message.cost(),
    }
}

fn from_format_error(message: &Message) -> Option<RecordedReply> {
    let response = message.response()?;
    let chat = response.get("choices").and_then(|choices| choices.get(0)?.get("message"));
    let text = message.extra("model_response").map(|text| json!({"role": "assistant", "content": text}));
    let is_response = response.get("object").and_then(Value::as_str) == Some("response");
    let reply = chat.cloned().or_else(|| is_response.then(|| response.clone())).or(text);
    let Some(Value::Object(raw)) = reply else { return None };
    Some(RecordedReply {
        message: raw,
        response: Some(response.clone()),
        actions: Vec::new(),
        format_error: true,
        usage: message.usage(),
        cost: message.cost(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(value: &Value) -> Trajectory {
        Trajectory::from_bytes(&serde_json::to_vec(value).unwrap(), "t".as_ref()).unwrap()
    }

    #[test]
    fn recovers_answers_from_format_errors() {
        let run = run(&json!({"trajectory_format": "mini-swe-agent-1.1", "info": {}, "messages": [
            {"role": "system", "content": "S"}, {"role": "user", "content": "T"},
            {"role": "assistant", "content": "a", "extra": {"actions": [{"command": "ls"}], "cost": 0.5}},
            {"role": "user", "content": "bad", "extra": {"interrupt_type": "FormatError", "cost": 0.25,
                "response": {"choices": [{"message": {"role": "assistant", "content": "oops"}}]}}},
            {"role": "user", "content": "bad", "extra": {"interrupt_type": "FormatError", "response": {"choices": []}}},
            {"role": "exit", "content": ""}]}));
        let replies = recorded_replies(&run).unwrap();
        let brief: Vec<_> =
            replies.iter().map(|r| (r.message["content"].clone(), r.format_error, r.cost)).collect();
        assert_eq!(brief, [(json!("a"), false, Some(0.5)), (json!("oops"), true, Some(0.25))]);
        assert!(!replies[0].message.contains_key("extra"));
        assert_eq!(replies[0].actions[0].command, "ls");
    }

    #[test]
    fn version_1_keeps_faulty_answers_among_the_messages() {
        let run = run(&json!({"trajectory_format": "mini-swe-agent-1", "info": {}, "messages": [
            {"role": "user", "content": "T", "timestamp": 1.0},
            {"role": "assistant", "content": "```bash\nls\n```", "timestamp": 2.0, "extra": {"response": {"id": "r"}}},
            {"role": "user", "content": "out"}, {"role": "assistant", "content": "no command"}]}));
        let replies = recorded_replies(&run).unwrap();
        assert_eq!(replies.iter().map(|r| r.format_error).collect::<Vec<_>>(), [false, true]);
        assert_eq!(
            Value::Object(replies[0].message.clone()),
            json!({"role": "assistant", "content": "```bash\nls\n```"})
        );
        assert_eq!(replies[0].response, Some(json!({"id": "r"})));
    }
}
