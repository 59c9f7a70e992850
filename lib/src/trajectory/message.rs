//! One message: a typed view over the raw JSON, which is kept and written back untouched.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::format::ActionPattern;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The standing instructions.
    System,
    /// The task, and in text mode the observations.
    User,
    /// The model.
    Assistant,
    /// The observation of a tool call.
    Tool,
    /// The end of the run (1.1).
    Exit,
}

/// A message of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    role: Role,
    raw: Map<String, Value>,
}

/// A command that the agent ran or meant to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// The shell command.
    pub command: String,
    /// The call that it answers; `None` in text mode.
    pub tool_call_id: Option<String>,
}

/// What a command gave back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// The untruncated output.
    pub raw_output: String,
    /// The exit code; −1 where the command did not run to its end.
    pub returncode: Option<i64>,
    /// Why it did not run to its end; empty: it did.
    pub exception_info: String,
}

/// Tokens, as the endpoint counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub prompt_tokens: u64,
    /// Prompt tokens that the endpoint's cache held.
    pub cached_tokens: u64,
    /// Completion tokens, reasoning included.
    pub completion_tokens: u64,
}

impl Usage {
    /// Reads a `usage` object of chat completions or of the Responses API.
    pub fn read(usage: &Value) -> Option<Self> {
        let count = |names: [&str; 2]| names.iter().find_map(|name| usage.get(name)?.as_u64());
        let prompt = count(["prompt_tokens", "input_tokens"]);
        let completion = count(["completion_tokens", "output_tokens"]);
        if prompt.is_none() && completion.is_none() {
            return None;
        }
        let cached = ["prompt_tokens_details", "input_tokens_details"]
            .iter()
            .find_map(|details| usage.get(details)?.get("cached_tokens")?.as_u64());
        Some(Self {
            prompt_tokens: prompt.unwrap_or_default(),
            cached_tokens: cached.unwrap_or_default(),
            completion_tokens: completion.unwrap_or_default(),
        })
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
        }
    }
}

impl Message {
    /// Takes a raw message.
    ///
    /// # Errors
    /// When it is no object or its role is unknown.
    pub fn from_value(raw: Value) -> Result<Self, String> {
        let Value::Object(raw) = raw else {
            return Err(format!("expected an object, found {}", kind(&raw)));
        };
        let role = role_of(&raw)?;
        Ok(Self { role, raw })
    }

    /// A message with a role and a text, as the agent writes system, task and user messages.
    pub fn text_message(role: Role, content: impl Into<String>) -> Self {
        let name = match role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Exit => "exit",
        };
        let raw = [("role", name.to_owned()), ("content", content.into())];
        Self {
            role,
            raw: raw.into_iter().map(|(key, value)| (key.to_owned(), Value::String(value))).collect(),
        }
    }

    /// Who speaks. Responses-API items count by what they are: a response is the model, an output is a tool.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The JSON object, untouched.
    pub fn raw(&self) -> &Map<String, Value> {
        &self.raw
    }

    /// Gives the JSON object back.
    pub fn into_raw(self) -> Map<String, Value> {
        self.raw
    }

    /// A local fact about the message, kept under `extra`.
    pub fn extra(&self, key: &str) -> Option<&Value> {
        self.raw.get("extra")?.get(key).filter(|value| !value.is_null())
    }

    /// What is said: `content`, its text parts, or a Responses-API item's text. Empty where there is none.
    pub fn text(&self) -> Cow<'_, str> {
        if let Some(content) = self.raw.get("content").filter(|c| !c.is_null()) {
            return text_of(content);
        }
        match self.raw.get("output") {
            Some(Value::Array(items)) => {
                let said =
                    items.iter().filter(|item| item.get("type").and_then(Value::as_str) == Some("message"));
                let texts: Vec<_> = said.filter_map(|item| item.get("content")).map(text_of).collect();
                Cow::Owned(texts.join("\n"))
            }
            Some(output) => text_of(output),
            None => Cow::Borrowed(""),
        }
    }

    /// The model's reasoning, where the endpoint gave it as text.
    pub fn reasoning(&self) -> Option<&str> {
        self.raw.get("reasoning_content")?.as_str()
    }

    /// The commands of this message: those that the agent recorded as run; else those of its tool calls; else the one
    /// that the pattern finds in the model's text.
    pub fn actions(&self, pattern: &ActionPattern) -> Vec<Action> {
        if let Some(Value::Array(recorded)) = self.extra("actions") {
            return recorded.iter().filter_map(recorded_action).collect();
        }
        if self.role != Role::Assistant {
            return Vec::new();
        }
        let calls = self.tool_calls();
        if !calls.is_empty() {
            return calls.iter().filter_map(|call| called_action(call)).collect();
        }
        let command = pattern.command(&self.text());
        command.map(|command| Action { command, tool_call_id: None }).into_iter().collect()
    }

    /// The model's tool calls, raw: chat completions' `tool_calls` or the Responses API's `function_call` items.
    pub fn tool_calls(&self) -> Vec<&Value> {
        let chat = self.raw.get("tool_calls").and_then(Value::as_array);
        let items = self.raw.get("output").and_then(Value::as_array);
        let is_call = |item: &&Value| item.get("type").and_then(Value::as_str) == Some("function_call");
        match (chat, items) {
            (Some(calls), _) => calls.iter().collect(),
            (None, Some(items)) => items.iter().filter(is_call).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// What a command gave back, where the run recorded it (1.1).
    pub fn observation(&self) -> Option<Observation> {
        let raw_output = self.extra("raw_output")?.as_str()?.to_owned();
        let exception_info =
            self.extra("exception_info").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Observation {
            raw_output,
            returncode: self.extra("returncode").and_then(Value::as_i64),
            exception_info,
        })
    }

    /// Whether this message tells the model that its reply could not be parsed (1.1).
    pub fn is_format_error(&self) -> bool {
        self.extra("interrupt_type").and_then(Value::as_str) == Some("FormatError")
    }

    /// The whole response of the endpoint, where it is kept: of this reply, or of the reply that this format error
    /// is about.
    pub fn response(&self) -> Option<&Value> {
        self.extra("response")
    }

    /// The tokens of this reply, where the endpoint counted them.
    pub fn usage(&self) -> Option<Usage> {
        let kept = self.response().and_then(|response| response.get("usage"));
        let usage = kept.or_else(|| self.extra("usage")).or_else(|| self.raw.get("usage"))?;
        Usage::read(usage)
    }

    /// US dollars for this reply, where recorded.
    pub fn cost(&self) -> Option<f64> {
        self.extra("cost")?.as_f64()
    }
}

impl Serialize for Message {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

fn role_of(raw: &Map<String, Value>) -> Result<Role, String> {
    let text = |key: &str| raw.get(key).and_then(Value::as_str);
    match (text("role"), text("object"), text("type")) {
        (Some("system"), ..) => Ok(Role::System),
        (Some("user"), ..) => Ok(Role::User),
        (Some("assistant"), ..) | (None, Some("response"), _) => Ok(Role::Assistant),
        (Some("tool"), ..) | (None, _, Some("function_call_output")) => Ok(Role::Tool),
        (Some("exit"), ..) => Ok(Role::Exit),
        (Some(other), ..) => {
            Err(format!("unknown role {other:?}; expected system, user, assistant, tool or exit"))
        }
        (None, ..) => Err("has no `role` and is no item of the Responses API".to_owned()),
    }
}

fn recorded_action(action: &Value) -> Option<Action> {
    let command = action.get("command")?.as_str()?.to_owned();
    Some(Action {
        command,
        tool_call_id: action.get("tool_call_id").and_then(Value::as_str).map(str::to_owned),
    })
}

fn called_action(call: &Value) -> Option<Action> {
    let function = call.get("function").unwrap_or(call);
    let arguments: Value = match function.get("arguments")? {
        Value::String(text) => serde_json::from_str(text).ok()?,
        object => object.clone(),
    };
    let id = call.get("call_id").or_else(|| call.get("id")).and_then(Value::as_str);
    Some(Action {
        command: arguments.get("command")?.as_str()?.to_owned(),
        tool_call_id: id.map(str::to_owned),
    })
}

/// A text, or the text parts of a list of parts, joined.
fn text_of(content: &Value) -> Cow<'_, str> {
    match content {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            Cow::Owned(texts.join("\n"))
        }
        _ => Cow::Borrowed(""),
    }
}

/// What a JSON value is, for messages.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(raw: Value) -> Message {
        Message::from_value(raw).unwrap()
    }

    fn commands(message: &Message) -> Vec<String> {
        let pattern = ActionPattern::of(None).unwrap();
        message.actions(&pattern).into_iter().map(|action| action.command).collect()
    }

    #[test]
    fn reads_tool_calls_recorded_or_not() {
        let call = json!({"id": "c1", "type": "function",
                          "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}});
        let recorded = message(json!({"role": "assistant", "content": null, "tool_calls": [call],
            "extra": {"actions": [{"command": "ls -l", "tool_call_id": "c1"}]}}));
        assert_eq!((recorded.text().as_ref(), commands(&recorded)), ("", vec!["ls -l".to_owned()]));
        let bare = message(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
        let pattern = ActionPattern::of(None).unwrap();
        assert_eq!(
            bare.actions(&pattern),
            [Action { command: "ls".into(), tool_call_id: Some("c1".into()) }]
        );
    }

    #[test]
    fn reads_text_actions_of_the_model_only() {
        let text = "Go.\n```bash\nmake\n```";
        assert_eq!(commands(&message(json!({"role": "assistant", "content": text}))), ["make"]);
        assert!(commands(&message(json!({"role": "user", "content": text}))).is_empty());
    }

    #[test]
    fn reads_the_responses_api() {
        let reply = message(json!({"object": "response", "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
            {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{\"command\": \"echo hi\"}"}],
            "usage": {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}}}));
        assert_eq!((reply.role(), reply.text().as_ref()), (Role::Assistant, "Hello."));
        assert_eq!(commands(&reply), ["echo hi"]);
        let usage = Usage { prompt_tokens: 10, cached_tokens: 4, completion_tokens: 5 };
        assert_eq!(reply.usage(), Some(usage));
        let output = message(json!({"type": "function_call_output", "call_id": "c1", "output": "hi\n",
            "extra": {"raw_output": "hi\n", "returncode": 0, "exception_info": ""}}));
        assert_eq!((output.role(), output.text().as_ref()), (Role::Tool, "hi\n"));
        let observation = output.observation().unwrap();
        assert_eq!((observation.raw_output.as_str(), observation.returncode), ("hi\n", Some(0)));
    }

    #[test]
    fn refuses_unknown_roles() {
        for (raw, words) in [
            (json!({"role": "narrator"}), "unknown role \"narrator\""),
            (json!({"content": "x"}), "no `role`"),
            (json!("x"), "expected an object, found a text"),
        ] {
            assert!(Message::from_value(raw).unwrap_err().contains(words));
        }
    }
}
