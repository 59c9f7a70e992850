//! What a reply asks for: commands, or nothing valid.

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::event::Exception;
use super::pyjson;
use super::text::strip;
use crate::llm::Api;

/// One thing that a reply asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Action {
    /// A command.
    Command {
        /// A string, or whatever the model put in its place.
        command: Value,
        /// The call that its observation answers; absent in text mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<Value>,
    },
    /// A call of the memory tool.
    Memory {
        /// What to look for.
        query: String,
        /// The call that is to be answered.
        tool_call_id: Value,
    },
}

impl Action {
    /// The call that is to be answered; `None` in text mode.
    pub(super) fn tool_call_id(&self) -> Option<&Value> {
        match self {
            Self::Command { tool_call_id, .. } => tool_call_id.as_ref(),
            Self::Memory { tool_call_id, .. } => Some(tool_call_id),
        }
    }

    /// The command, where it is one.
    pub(super) fn command(&self) -> Option<&Value> {
        match self {
            Self::Command { command, .. } => Some(command),
            Self::Memory { .. } => None,
        }
    }
}

/// Why a reply holds no valid command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Malformed {
    /// For the template and the model.
    pub error: String,
    /// Tool mode: whether there was a call at all.
    pub has_tool_calls: Option<bool>,
    /// Text mode: what the pattern found, blanks at its ends kept.
    pub found: Option<Vec<String>>,
}

/// The tool that a model in tool mode is given, as the interface wants it written.
pub fn bash_tool(api: Api) -> Value {
    let function = json!({
        "name": "bash",
        "description": "Execute a bash command",
        "parameters": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The bash command to execute"}
            },
            "required": ["command"]
        }
    });
    tool(function, api)
}

/// A function as a tool of the interface.
pub(super) fn tool(mut function: Value, api: Api) -> Value {
    match api {
        Api::Chat => json!({"type": "function", "function": function}),
        Api::Responses => {
            function["type"] = json!("function");
            function
        }
    }
}

/// A tool call, whichever interface it came through.
struct Call<'a> {
    function: &'a Value,
    id: &'a Value,
}

fn calls(message: &Value, api: Api) -> Vec<Call<'_>> {
    let list = |key: &str| message.get(key).and_then(Value::as_array).into_iter().flatten();
    match api {
        Api::Chat => {
            list("tool_calls").map(|call| Call { function: &call["function"], id: &call["id"] }).collect()
        }
        Api::Responses => list("output")
            .filter(|item| item["type"] == "function_call")
            .map(|item| Call {
                function: item,
                id: [&item["call_id"], &item["id"]]
                    .into_iter()
                    .find(|id| !id.is_null())
                    .unwrap_or(&Value::Null),
            })
            .collect(),
    }
}

/// Reads the tool calls of a message; `memory`: whether its tool was offered. One invalid call spoils the turn.
pub(super) fn tool_calls(message: &Value, api: Api, memory: bool) -> Result<Vec<Action>, Malformed> {
    let malformed =
        |error: String, calls: bool| Malformed { error, has_tool_calls: Some(calls), found: None };
    let calls = calls(message, api);
    if calls.is_empty() {
        let error =
            "No tool calls found in the response. Every response MUST include at least one tool call.";
        return Err(malformed(error.into(), false));
    }
    calls.iter().map(|call| tool_call(call, memory).map_err(|error| malformed(error, true))).collect()
}

fn tool_call(call: &Call<'_>, memory: bool) -> Result<Action, String> {
    let mut error = String::new();
    let arguments = match call.function.get("arguments") {
        Some(Value::String(text)) => parsed(text).unwrap_or_else(|complaint| {
            error = format!("Error parsing tool call arguments: {complaint}.");
            json!({})
        }),
        // Some servers send the arguments as an object.
        Some(arguments @ Value::Object(_)) => arguments.clone(),
        _ => {
            error =
                "Error parsing tool call arguments: the JSON object must be str, bytes or bytearray, not \
                     NoneType."
                    .into();
            json!({})
        }
    };
    match call.function.get("name").and_then(Value::as_str) {
        Some("bash") => {}
        Some("memory") if memory => return memory_call(call, &arguments, error),
        name => error.push_str(&format!("Unknown tool '{}'.", name.unwrap_or("None"))),
    }
    match arguments.get("command") {
        Some(command) if error.is_empty() => {
            Ok(Action::Command { command: command.clone(), tool_call_id: Some(call.id.clone()) })
        }
        Some(_) => Err(strip(&error).to_owned()),
        None => {
            error.push_str("Missing 'command' argument in bash tool call.");
            Err(strip(&error).to_owned())
        }
    }
}

fn memory_call(call: &Call<'_>, arguments: &Value, mut error: String) -> Result<Action, String> {
    match arguments.get("query").and_then(Value::as_str).map(strip) {
        Some(query) if error.is_empty() && !query.is_empty() => {
            return Ok(Action::Memory { query: query.to_owned(), tool_call_id: call.id.clone() });
        }
        _ => error.push_str("Missing 'query' argument in memory tool call: it must be a text."),
    }
    Err(error)
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|ours| pyjson::complaint(text).unwrap_or_else(|| ours.to_string()))
}

/// Finds the one command in a message's text.
pub(super) fn text_action(message: &Value, pattern: &Regex) -> Result<Vec<Action>, Malformed> {
    let text = content_text(message);
    let found: Vec<String> = pattern
        .captures_iter(&text)
        .map(|captures| {
            let whole = captures.get(1).or_else(|| captures.get(0).filter(|_| captures.len() == 1));
            whole.map_or("", |group| group.as_str()).to_owned()
        })
        .collect();
    match &found[..] {
        [command] => Ok(vec![Action::Command { command: json!(strip(command)), tool_call_id: None }]),
        _ => Err(Malformed {
            error: format!("Expected exactly 1 action, found {}.", found.len()),
            has_tool_calls: None,
            found: Some(found),
        }),
    }
}

/// The text of a message: its content, or the text parts of it; of a response the texts of its messages.
pub(super) fn content_text(message: &Value) -> String {
    if let Some(items) = message.get("output").and_then(Value::as_array) {
        let said = items.iter().filter(|item| item["type"] == "message").map(content_text);
        return said.collect::<Vec<_>>().join("\n\n");
    }
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}

/// Why something cannot be run as a command: the exception that Python raises; `None` for a command.
pub(super) fn not_a_command(command: &Value) -> Option<Exception> {
    let kind = match command {
        Value::String(text) if text.contains('\0') => {
            return Some(Exception { class: "ValueError".into(), text: "embedded null byte".into() });
        }
        Value::String(_) => return None,
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    };
    let text = format!("expected str, bytes or os.PathLike object, not {kind}");
    Some(Exception { class: "TypeError".into(), text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> Value {
        json!({"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}})
    }

    fn error(calls: Value) -> String {
        tool_calls(&json!({"role": "assistant", "tool_calls": calls}), Api::Chat, false).unwrap_err().error
    }

    #[test]
    fn faults_are_named_in_mini_swe_agents_words() {
        assert_eq!(
            error(json!(null)),
            "No tool calls found in the response. Every response MUST include at least one tool call."
        );
        assert_eq!(
            error(json!([call("bash", "ls")])),
            "Error parsing tool call arguments: Expecting value: line 1 column 1 (char 0).\
             Missing 'command' argument in bash tool call."
        );
        assert_eq!(error(json!([call("python", "{\"command\": \"ls\"}")])), "Unknown tool 'python'.");
        assert_eq!(error(json!([call("bash", "[1]")])), "Missing 'command' argument in bash tool call.");
        assert_eq!(
            error(json!([call("bash", "{\"command\": \"ls\"}"), call("sh", "{}")])),
            "Unknown tool 'sh'.Missing 'command' argument in bash tool call."
        );
        assert!(error(json!([{}])).contains("Unknown tool 'None'."));
    }

    #[test]
    fn calls_of_the_responses_api_are_items_beside_others() {
        let item = |more: Value| {
            let mut item =
                json!({"type": "function_call", "name": "bash", "arguments": "{\"command\": \"ls\"}"});
            item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            item
        };
        let message = json!({"object": "response", "output": [
            {"type": "reasoning", "id": "r"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look."}]},
            item(json!({"call_id": "c", "id": "fc"})), item(json!({"id": "fc2"}))]});
        let ids = tool_calls(&message, Api::Responses, false).unwrap();
        let ids: Vec<_> = ids.iter().map(Action::tool_call_id).collect();
        assert_eq!(ids, [Some(&json!("c")), Some(&json!("fc2"))]);
        assert_eq!(content_text(&message), "Look.");
        let wrong = json!({"output": [item(json!({"name": "sh"}))]});
        assert_eq!(tool_calls(&wrong, Api::Responses, false).unwrap_err().error, "Unknown tool 'sh'.");
    }

    #[test]
    fn the_text_must_hold_one_command() {
        let pattern = Regex::new("(?s)```x\\s*\\n(.*?)\\n```").unwrap();
        let actions = |text: &str| text_action(&json!({"role": "assistant", "content": text}), &pattern);
        assert_eq!(actions("a\n```x\n ls\n\n-la \n```\n").unwrap()[0].command(), Some(&json!("ls\n\n-la")));
        let two = actions("```x\nls\n```\n```x\npwd\n```").unwrap_err();
        assert_eq!(
            (two.error.as_str(), two.found.unwrap().len()),
            ("Expected exactly 1 action, found 2.", 2)
        );
        assert_eq!(
            text_action(&json!({"content": null}), &pattern).unwrap_err().error,
            "Expected exactly 1 action, found 0."
        );
    }

    #[test]
    fn what_is_no_string_is_no_command() {
        let action =
            &tool_calls(&json!({"tool_calls": [call("bash", "{\"command\": 5}")]}), Api::Chat, false)
                .unwrap()[0];
        assert_eq!(
            not_a_command(action.command().unwrap()).unwrap().text,
            "expected str, bytes or os.PathLike object, not int"
        );
    }

    #[test]
    fn the_memory_tool_exists_where_it_is_offered_and_wants_a_query() {
        let message = |arguments: &str| json!({"tool_calls": [call("memory", arguments)]});
        let read = |arguments, offered| tool_calls(&message(arguments), Api::Chat, offered);
        let query = "{\"query\": \" flaky widget \"}";
        let wanted = Action::Memory { query: "flaky widget".into(), tool_call_id: json!("c1") };
        assert_eq!(read(query, true).unwrap(), [wanted]);
        assert!(read(query, false).unwrap_err().error.starts_with("Unknown tool 'memory'."));
        for arguments in ["{}", "{\"query\": 5}", "{\"query\": \"  \"}", "{"] {
            assert!(read(arguments, true).unwrap_err().error.contains("Missing 'query'"), "{arguments}");
        }
    }
}
