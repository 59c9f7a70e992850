//! The shell tools of other agents: named as each likes, the command given as each likes.

use serde_json::{Value, json};

use crate::act::Act;

/// A tool that runs a command, and is not our own `bash`.
pub(crate) struct Shell<'a> {
    name: &'a str,
    /// The argument that holds the command, and whether it is a list of words.
    argument: (&'static str, bool),
}

/// The first such tool of a request; `None` where there is none, or where `bash` itself is offered.
pub(crate) fn of(request: &Value) -> Option<Shell<'_>> {
    let tools = request["tools"].as_array()?;
    if tools.iter().any(|tool| tool["function"]["name"] == "bash") {
        return None;
    }
    tools.iter().find_map(|tool| {
        let function = &tool["function"];
        let argument = ["command", "cmd"].into_iter().find_map(|key| {
            let kind = function["parameters"]["properties"][key]["type"].as_str()?;
            Some((key, kind == "array"))
        })?;
        Some(Shell { name: function["name"].as_str()?, argument })
    })
}

impl Shell<'_> {
    /// An answer that calls it once.
    pub(crate) fn call(&self, text: &str, command: &str, messages: usize) -> Act {
        let (key, words) = self.argument;
        let command = if words { json!(["bash", "-lc", command]) } else { json!(command) };
        let call = json!({"id": format!("call_{messages}"), "type": "function",
            "function": {"name": self.name, "arguments": json!({ key: command }).to_string()}});
        Act::message(json!({"role": "assistant", "content": text, "tool_calls": [call]}), "tool_calls")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str, properties: &Value) -> Value {
        json!({"tools": [
            {"type": "function", "function": {"name": "Read", "parameters": {"properties": {"path": {"type": "string"}}}}},
            {"type": "function", "function": {"name": name, "parameters": {"properties": properties}}},
        ]})
    }

    #[test]
    fn each_agents_shell_is_called_as_it_wants() {
        let arguments = |name, properties: Value| {
            let request = request(name, &properties);
            let Some(shell) = of(&request) else { return String::new() };
            match shell.call("t", "ls", 3) {
                Act::Answer { message, .. } => message["tool_calls"][0]["function"].to_string(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            arguments("Bash", json!({"command": {"type": "string"}})),
            r#"{"name":"Bash","arguments":"{\"command\":\"ls\"}"}"#
        );
        assert!(
            arguments("shell", json!({"command": {"type": "array"}}))
                .contains(r#"[\"bash\",\"-lc\",\"ls\"]"#)
        );
        assert!(arguments("exec_command", json!({"cmd": {"type": "string"}})).contains("cmd"));
        assert_eq!(arguments("bash", json!({"command": {"type": "string"}})), "");
    }
}
