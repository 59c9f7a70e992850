//! Items of the Responses API, as Codex and NeMo Gym log them.

use serde_json::Value;

use super::mini::unframed;
use super::teller::{Teller, arguments_of, text_of};

/// Tells an item of the model or the answer of a tool; false: it is something else.
pub(super) fn item(item: &Value, teller: &mut Teller) -> bool {
    let text = |key: &str| item[key].as_str();
    match text("type").unwrap_or_default() {
        "reasoning" => {
            let parts = [text_of(&item["summary"]), text_of(&item["content"])];
            // some endpoints give the same text in both places
            let again = parts[0].trim() == parts[1].trim();
            teller.thought(&[&parts[0], if again { "" } else { &parts[1] }]);
        }
        "message" if text("role") == Some("assistant") => teller.thought(&[&text_of(&item["content"])]),
        "function_call" => {
            let arguments = arguments_of(item.get("arguments"));
            teller.call(id(item), text("name").unwrap_or("tool"), &arguments, None);
        }
        "custom_tool_call" => {
            let input = item.get("input").cloned().unwrap_or_default();
            teller.call(id(item), text("name").unwrap_or("tool"), &input, None);
        }
        "local_shell_call" => teller.call(id(item), "local_shell", &item["action"], None),
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let (text, code) = output(item.get("output").unwrap_or(&Value::Null));
            teller.observed(id(item), text, code);
        }
        _ => return false,
    }
    true
}

fn id(item: &Value) -> Option<&str> {
    item["call_id"].as_str().or_else(|| item["id"].as_str())
}

/// A tool's output without the frame around it, and the exit code that it states: a JSON object with `output`, the
/// lines before `Output:`, or mini-swe-agent's tags.
pub(super) fn output(output: &Value) -> (String, Option<i64>) {
    let text = match output {
        Value::Object(object) if object.contains_key("output") || object.contains_key("content") => {
            text_of(object.get("output").or_else(|| object.get("content")).unwrap_or(&Value::Null))
        }
        other => text_of(other),
    };
    if text.starts_with('{')
        && let Ok(Value::Object(framed)) = serde_json::from_str::<Value>(&text)
        && let Some(inner) = framed.get("output").and_then(Value::as_str)
    {
        let code = framed.get("exit_code").or_else(|| framed.get("metadata")?.get("exit_code"));
        return (inner.to_owned(), code.and_then(Value::as_i64));
    }
    if let Some((frame, inner)) = text.split_once("Output:\n").filter(|(frame, _)| frame.len() < 400) {
        let code = frame.lines().find_map(|line| {
            let stated =
                line.strip_prefix("Exit code: ").or_else(|| line.strip_prefix("Process exited with code "));
            stated?.trim().parse().ok()
        });
        if code.is_some() || frame.starts_with("Chunk ID:") || frame.starts_with("Wall time:") {
            return (inner.to_owned(), code);
        }
    }
    unframed(&text)
}
