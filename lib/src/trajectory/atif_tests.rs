use serde_json::json;

use super::*;

fn converted(run: &Value) -> Value {
    let mut out = Vec::new();
    let bytes = serde_json::to_vec(run).unwrap();
    let steps = write_atif(bytes.as_slice(), Path::new("runs/acme__widget-7.traj.json"), &mut out).unwrap();
    let document: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(document["final_metrics"]["total_steps"], steps);
    document
}

/// The messages of the run, put together again from the document alone.
fn restored(document: &Value) -> Vec<Value> {
    fn message(rest: &Value, words: &Value) -> Value {
        let mut message = rest.clone();
        let key = if message["type"] == "function_call_output" { "output" } else { "content" };
        if message["object"] != "response" && message.get(key).is_none() {
            message[key] = words.clone();
        }
        message
    }
    let mut messages = Vec::new();
    for step in document["steps"].as_array().unwrap() {
        if let Some(rest) = step.pointer("/extra/mini") {
            messages.push(message(rest, &step["message"]));
        }
        for result in step["observation"]["results"].as_array().into_iter().flatten() {
            messages.push(message(&result["extra"]["mini"], &result["content"]));
        }
    }
    messages.extend(document.pointer("/extra/mini/exit").cloned());
    messages
}

fn call(id: &str, command: &str) -> Value {
    let arguments = json!({ "command": command }).to_string();
    json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}})
}

fn chat() -> Value {
    let usage = json!({"prompt_tokens": 900, "completion_tokens": 41, "prompt_tokens_details": {"cached_tokens": 512}});
    json!({
        "info": {"mini_version": "2.4.6", "exit_status": "Submitted", "submission": "p",
            "model_stats": {"instance_cost": 0.75, "api_calls": 2}, "config": {"model": {"model_name": "m"}}},
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "T"},
            {"role": "assistant", "content": null, "tool_calls": [call("a", "ls"), call("b", "pwd")], "extra": {
                "actions": [{"command": "ls", "tool_call_id": "a"}, {"command": "pwd", "tool_call_id": "b"}],
                "response": {"model": "m-1", "usage": usage}, "cost": 0.25, "timestamp": 1784700001.25}},
            {"role": "tool", "tool_call_id": "b", "content": "B", "extra": {"raw_output": "B", "returncode": 0}},
            {"role": "tool", "tool_call_id": "a", "content": "A", "extra": {"raw_output": "A", "returncode": 1}},
            {"role": "user", "content": "No call.", "extra": {"interrupt_type": "FormatError", "cost": 0.5,
                "response": {"choices": [{"message": {"role": "assistant", "content": "Hm."}}], "usage": usage}}},
            {"role": "user", "content": "Stop that.", "extra": {"interrupt_type": "UserInterruption"}},
            {"role": "exit", "content": "p", "extra": {"exit_status": "Submitted", "submission": "p"}},
        ],
        "trajectory_format": "mini-swe-agent-1.1", "instance_id": "acme__widget-7",
    })
}

#[test]
fn turns_results_and_format_errors_are_steps() {
    let run = chat();
    let document = converted(&run);
    assert_eq!(document["schema_version"], ATIF_VERSION);
    assert_eq!(document["session_id"], "acme__widget-7");
    assert_eq!(document["agent"], json!({"name": "mini-swe-agent", "version": "2.4.6", "model_name": "m"}));
    let steps = document["steps"].as_array().unwrap();
    let brief: Vec<_> =
        steps.iter().map(|step| (step["step_id"].as_u64(), step["source"].as_str())).collect();
    let sources = ["system", "user", "agent", "agent", "user"];
    assert_eq!(brief, (1..).map(Some).zip(sources.map(Some)).collect::<Vec<_>>());
    assert_eq!(steps[2]["timestamp"], "2026-07-22T06:00:01.250000Z");
    assert_eq!(
        steps[2]["tool_calls"][1],
        json!({"tool_call_id": "b", "function_name": "bash",
        "arguments": {"command": "pwd"}})
    );
    assert_eq!(steps[2]["observation"]["results"][0]["source_call_id"], "b");
    assert_eq!(
        steps[2]["metrics"],
        json!({"prompt_tokens": 900, "completion_tokens": 41, "cached_tokens": 512,
        "cost_usd": 0.25})
    );
    assert_eq!(steps[2]["model_name"], "m-1");
    assert_eq!((&steps[3]["message"], steps[3].get("tool_calls")), (&json!("Hm."), None));
    assert_eq!(steps[3]["observation"]["results"][0]["content"], "No call.");
    assert_eq!(steps[3]["observation"]["results"][0].get("source_call_id"), None);
    assert_eq!(
        document["final_metrics"],
        json!({"total_prompt_tokens": 1800, "total_completion_tokens": 82,
        "total_cached_tokens": 1024, "total_cost_usd": 0.75, "total_steps": 5})
    );
    assert_eq!(restored(&document), *run["messages"].as_array().unwrap());
    assert_eq!(document["extra"]["mini"]["info"], run["info"]);
}

#[test]
fn version_1_gets_ids_for_its_commands_and_its_end_is_no_step() {
    let run = json!({
        "info": {"exit_status": "Submitted", "submission": "p", "config": {"agent": {"action_regex": "<c>(.*?)</c>"}}},
        "messages": [
            {"role": "system", "content": "S", "timestamp": 1.0},
            {"role": "user", "content": "T", "timestamp": 2.0},
            {"role": "assistant", "content": "<c>ls</c>", "timestamp": 3.0, "extra": {"response": {"usage": {
                "prompt_tokens": 5, "completion_tokens": 1}}}},
            {"role": "user", "content": "a.py"},
            {"role": "assistant", "content": "Hm."},
            {"role": "user", "content": "One command, please."},
            {"role": "assistant", "content": "<c>submit</c>"},
            {"role": "user", "content": "p"},
        ],
        "trajectory_format": "mini-swe-agent-1",
    });
    let document = converted(&run);
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 5);
    assert_eq!(
        steps[2]["tool_calls"],
        json!([{"tool_call_id": "call_3_1", "function_name": "bash",
        "arguments": {"command": "ls"}, "extra": {"from_text": true}}])
    );
    assert_eq!(steps[2]["observation"]["results"][0]["source_call_id"], "call_3_1");
    assert_eq!(steps[3]["observation"]["results"][0].get("source_call_id"), None);
    assert_eq!(steps[4].get("observation"), None);
    assert_eq!(document["session_id"], "acme__widget-7");
    assert_eq!(document["extra"]["mini"]["exit"]["content"], "p");
    assert_eq!(restored(&document), *run["messages"].as_array().unwrap());

    let mut limited = run.clone();
    limited["info"]["exit_status"] = json!("LimitsExceeded");
    limited["messages"] = json!([{"role": "user", "content": "T"}, {"role": "user", "content": ""}]);
    let document = converted(&limited);
    assert_eq!(document["steps"].as_array().unwrap().len(), 1);
    assert_eq!(restored(&document), *limited["messages"].as_array().unwrap());
    // A run that an exception ended has no last word.
    limited["info"]["exit_status"] = json!("RuntimeError");
    assert_eq!(converted(&limited)["steps"].as_array().unwrap().len(), 2);
}

#[test]
fn the_responses_api_and_images() {
    let image = "data:image/png;base64,AAAA";
    let run = json!({
        "info": {"exit_status": ""},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "T"}, {"type": "image_url", "image_url": {"url": image}}]},
            {"object": "response", "created_at": 1784700000, "model": "m", "usage": {"input_tokens": 10, "output_tokens": 5},
                "output": [
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]},
                    {"type": "message", "content": [{"type": "output_text", "text": "Look."}]},
                    {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "[1]"}],
                "extra": {"actions": [], "cost": 0.5}},
            {"type": "function_call_output", "call_id": "c", "output": "x", "extra": {"raw_output": "x"}},
            {"type": "function_call_output", "call_id": "unknown", "output": "y", "extra": {"raw_output": "y"}},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "No."}],
                "extra": {"interrupt_type": "FormatError", "response": {"object": "response", "output": []}}},
        ],
        "trajectory_format": "mini-swe-agent-1.1",
    });
    let document = converted(&run);
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(
        steps[0]["message"][1],
        json!({"type": "image", "source": {"media_type": "image/png", "path": image}})
    );
    assert_eq!((&steps[1]["message"], &steps[1]["reasoning_content"]), (&json!("Look."), &json!("so")));
    assert_eq!(steps[1]["tool_calls"][0]["arguments"], json!({"arguments": [1]}));
    assert_eq!(steps[1]["observation"]["results"][0]["source_call_id"], "c");
    assert_eq!(steps[1]["observation"]["results"][1].get("source_call_id"), None);
    assert_eq!(steps[2]["observation"]["results"][0]["content"], "No.");
    assert_eq!(restored(&document), *run["messages"].as_array().unwrap());
}

#[test]
fn a_document_has_a_step_and_a_bad_run_leaves_none() {
    let empty = converted(&json!({"info": {}, "messages": []}));
    assert_eq!(empty["steps"][0]["message"], "the run ended before its first message");
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.traj.json"), folder.path().join("a.atif.json"));
    std::fs::write(&from, r#"{"messages": [{"role": "user", "content": "T"}, {"role": "cook"}]}"#).unwrap();
    let error = convert_to_atif(&from, &to).unwrap_err().to_string();
    assert!(error.contains("message 2: unknown role"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    std::fs::write(&from, chat().to_string()).unwrap();
    assert_eq!(convert_to_atif(&from, &to).unwrap(), 5);
    assert_eq!(restored(&serde_json::from_slice(&std::fs::read(&to).unwrap()).unwrap()).len(), 8);
}

#[test]
fn days_have_dates() {
    for (days, expected) in
        [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (11_017, (2000, 3, 1)), (20_656, (2026, 7, 22))]
    {
        assert_eq!(date(days), expected);
    }
}
