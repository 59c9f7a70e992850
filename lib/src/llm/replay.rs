//! A recorded run in place of a model: it says again what the model said then.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::Value;

use super::{Api, Cost, LlmError, Model, Reply, Request, anthropic, responses};
use crate::task::InstanceId;
use crate::trajectory::{Trajectory, recorded_replies};

/// Where a folder of recorded runs holds a task's: `<id>/<id>.traj.json` or `<id>.traj.json`.
pub fn recorded_run(folder: &Path, id: &InstanceId) -> Option<PathBuf> {
    let file = format!("{id}.traj.json");
    [folder.join(id.as_str()).join(&file), folder.join(file)].into_iter().find(|path| path.is_file())
}

/// Answers with recorded assistant messages, in order, whatever it is asked.
#[derive(Debug)]
pub struct Replay {
    name: String,
    turns: Vec<(Value, Value)>,
    next: AtomicUsize,
}

impl Replay {
    /// A run to replay: the assistant messages as recorded, and the whole responses where they were kept (by the same
    /// index; missing ones are null). The name is the recorded model's.
    pub fn new(name: impl Into<String>, messages: Vec<Value>, responses: Vec<Value>) -> Self {
        let responses = responses.into_iter().chain(std::iter::repeat(Value::Null));
        Self {
            name: name.into(),
            turns: messages.into_iter().zip(responses).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// The run that a trajectory file records; `name` is what predictions carry.
    ///
    /// # Errors
    /// When the file cannot be read or is no trajectory.
    pub fn read(name: &str, path: &Path) -> Result<Self, LlmError> {
        let unusable = |reason: String| LlmError::Recording { path: path.display().to_string(), reason };
        let run = Trajectory::read(path).map_err(|error| unusable(error.to_string()))?;
        let replies = recorded_replies(&run).map_err(|error| unusable(error.to_string()))?;
        let turns = replies
            .into_iter()
            .map(|reply| (Value::Object(reply.message), reply.response.unwrap_or(Value::Null)));
        let (messages, responses) = turns.unzip();
        Ok(Self::new(name, messages, responses))
    }

    /// The same run from its n-th answer on (0: the first), for one that is resumed in the middle.
    #[must_use]
    pub fn from_answer(self, n: usize) -> Self {
        Self { next: AtomicUsize::new(n), ..self }
    }
}

#[async_trait]
impl Model for Replay {
    /// The next recorded answer, in the form of the interface that is asked. It costs nothing: what the recorded run
    /// used stays in the response.
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let (message, response) =
            self.turns.get(n).cloned().ok_or(LlmError::Exhausted { number: n as u64 + 1 })?;
        let of_messages = || response["stop_reason"].as_str().map(anthropic::finish_reason);
        let recorded =
            response["choices"][0]["finish_reason"].as_str().or_else(of_messages).map(str::to_owned);
        let (message, finish_reason) = match request.api {
            Api::Chat => (responses::to_chat(message), recorded),
            Api::Responses => {
                let message = responses::from_chat(message);
                let ending = responses::ending(&message).ok().flatten();
                (message, ending)
            }
        };
        Ok(Reply { message, finish_reason, response, cost: Cost { calls: 1, ..Cost::ZERO } })
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request() -> Request {
        Request { api: Api::Chat, messages: vec![], tools: vec![], params: Default::default(), seed: None }
    }

    #[tokio::test]
    async fn answers_in_order_and_free_until_none_is_left() {
        let response = json!({"choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": 9}});
        let messages = vec![json!({"role": "assistant", "content": "a", "odd": 1}), json!({"content": "b"})];
        let model = Replay::new("recorded", messages.clone(), vec![response.clone()]);
        let first = model.complete(&request()).await.unwrap();
        assert_eq!((&first.message, &first.response), (&messages[0], &response));
        assert_eq!(first.finish_reason.as_deref(), Some("stop"));
        assert_eq!(first.cost, Cost { calls: 1, ..Cost::ZERO });
        let second = model.complete(&request()).await.unwrap();
        assert_eq!(
            (&second.message, &second.response, second.finish_reason),
            (&messages[1], &Value::Null, None)
        );
        let error = model.complete(&request()).await.unwrap_err();
        assert_eq!(error.to_string(), "the recorded trajectory holds no answer number 3");
        assert_eq!(model.name(), "recorded");
    }

    #[tokio::test]
    async fn says_how_an_anthropic_answer_ended() {
        let model = Replay::new("m", vec![json!("a")], vec![json!({"stop_reason": "tool_use"})]);
        assert_eq!(model.complete(&request()).await.unwrap().finish_reason.as_deref(), Some("tool_calls"));
    }

    #[tokio::test]
    async fn starts_where_a_resumed_run_stands() {
        let model = Replay::new("m", vec![json!("a"), json!("b")], vec![]).from_answer(1);
        assert_eq!(model.complete(&request()).await.unwrap().message, "b");
    }
}
