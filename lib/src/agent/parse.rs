//! What a reply asks for: commands, or nothing valid.

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::pyjson;
use super::text::strip;

/// One command that a reply asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The command: a string, or whatever the model put in its place.
    pub command: Value,
    /// The call that its observation answers; absent in text mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Value>,
}

/// Why a reply holds no valid command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Malformed {
    /// For the template and the model.
    pub error: String,
    /// Tool mode: whether there was a call at all.
    pub has_tool_calls: Option<bool>,
    /// Text mode: the commands found.
    pub found: Option<Vec<String>>,
}

/// The tool that a model in tool mode is given.
pub fn bash_tool() -> Value {
    json!({
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Execute a bash command",
            "parameters": {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The bash command to execute"}
                },
                "required": ["command"]
            }
        }
    })
}

/// Reads the tool calls of a message. One invalid call spoils the turn.
pub(super) fn tool_calls(message: &Value) -> Result<Vec<Action>, Malformed> {
    let malformed =
        |error: String, calls: bool| Malformed { error, has_tool_calls: Some(calls), found: None };
    let calls = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if calls.is_empty() {
        let error =
            "No tool calls found in the response. Every response MUST include at least one tool call.";
        return Err(malformed(error.into(), false));
    }
    calls.iter().map(|call| tool_call(call).map_err(|error| malformed(error, true))).collect()
}

fn tool_call(call: &Value) -> Result<Action, String> {
    let mut error = String::new();
    let arguments = match call.pointer("/function/arguments") {
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
    match call.pointer("/function/name").and_then(Value::as_str) {
        Some("bash") => {}
        name => error.push_str(&format!("Unknown tool '{}'.", name.unwrap_or("None"))),
    }
    match arguments.get("command") {
        Some(command) if error.is_empty() => Ok(Action {
            command: command.clone(),
            tool_call_id: Some(call.get("id").cloned().unwrap_or(Value::Null)),
        }),
        Some(_) => Err(strip(&error).to_owned()),
        None => {
            error.push_str("Missing 'command' argument in bash tool call.");
            Err(strip(&error).to_owned())
        }
    }
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
            strip(whole.map_or("", |group| group.as_str())).to_owned()
        })
        .collect();
    match &found[..] {
        [command] => Ok(vec![Action { command: json!(command), tool_call_id: None }]),
        _ => Err(Malformed {
            error: format!("Expected exactly 1 action, found {}.", found.len()),
            has_tool_calls: None,
            found: Some(found),
        }),
    }
}

/// The text of a message: its content, or the text parts of it.
pub(super) fn content_text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}

/// Why a command that is no string cannot be run, in Python's words; `None` for a string.
pub(super) fn not_a_command(command: &Value) -> Option<String> {
    let kind = match command {
        Value::String(_) => return None,
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    };
    Some(format!("expected str, bytes or os.PathLike object, not {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> Value {
        json!({"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}})
    }

    fn error(calls: Value) -> String {
        tool_calls(&json!({"role": "assistant", "tool_calls": calls})).unwrap_err().error
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
    fn the_text_must_hold_one_command() {
        let pattern = Regex::new("(?s)```x\\s*\\n(.*?)\\n```").unwrap();
        let actions = |text: &str| text_action(&json!({"role": "assistant", "content": text}), &pattern);
        assert_eq!(actions("a\n```x\n ls\n\n-la \n```\n").unwrap()[0].command, json!("ls\n\n-la"));
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
        let action = &tool_calls(&json!({"tool_calls": [call("bash", "{\"command\": 5}")]})).unwrap()[0];
        assert_eq!(
            not_a_command(&action.command).unwrap(),
            "expected str, bytes or os.PathLike object, not int"
        );
    }
}
