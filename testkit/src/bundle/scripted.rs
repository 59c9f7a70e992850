//! A run that a script chose and no model: its commands really run, and it says so.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::git::Repo;

const SYSTEM: &str =
    "You are a helpful assistant that can interact with a computer shell to solve programming tasks.";
const TEMPLATE: &str = "<pr_description>\nConsider the following PR description:\n{{task}}\n</pr_description>\n\nChange \
     the sources of the repository so that the issue is solved. Submit the change as a git patch.";
const OBSERVATION: &str =
    "<returncode>{{output.returncode}}</returncode>\n<output>\n{{output.output}}</output>";
const SUBMIT: &str = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt";

/// The trajectory (mini-swe-agent 1.1, tool calls) of a run that looks round, applies `patch` and submits it, starting
/// at the current commit. The repository is as before afterwards.
pub(super) fn trajectory(id: &str, issue: &str, patch: &str, date: &str, repo: &Repo) -> Result<Value> {
    let files: Vec<&str> = patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
    let shown = files.join(" ");
    let steps = [
        ("THOUGHT: I look at the latest changes.", "git log --oneline -3".to_owned()),
        ("THOUGHT: I read what the issue is about.", format!("cat {shown}")),
        (
            "THOUGHT: I make the change.",
            format!("git apply - <<'PATCH_END'\n{patch}PATCH_END\ngit diff --stat"),
        ),
        ("THOUGHT: I write the patch file.", format!("git diff -- {shown} > patch.txt && cat patch.txt")),
    ];
    let mut messages = vec![
        json!({"role": "system", "content": SYSTEM}),
        json!({"role": "user", "content": TEMPLATE.replace("{{task}}", issue)}),
    ];
    let mut submission = String::new();
    for (number, (thought, command)) in steps.iter().enumerate() {
        let (status, output) = repo.shell(command)?;
        ensure!(status == 0, "the script's command failed with {status}: {command}\n{output}");
        let call = format!("call_{}", number + 1);
        messages.push(assistant(thought, command, &call));
        messages.push(json!({
            "role": "tool",
            "content": format!("<returncode>{status}</returncode>\n<output>\n{output}</output>"),
            "tool_call_id": call,
            "extra": {"raw_output": output, "returncode": status, "exception_info": ""},
        }));
        submission = output;
    }
    repo.reset()?;
    messages.push(assistant("THOUGHT: I submit it.", SUBMIT, &format!("call_{}", steps.len() + 1)));
    let ending = json!({"exit_status": "Submitted", "submission": submission});
    messages.push(json!({"role": "exit", "content": submission, "extra": ending}));
    Ok(json!({
        "info": {
            "model_stats": {"instance_cost": 0.0, "api_calls": steps.len() + 1},
            "config": {
                "agent": {"system_template": SYSTEM, "instance_template": TEMPLATE, "step_limit": 0, "cost_limit": 0.0},
                "agent_type": "scripted",
                "model": {"model_name": "scripted/no-llm", "observation_template": OBSERVATION},
                "model_type": "scripted",
                "environment": {"cwd": "/testbed", "env": {}, "timeout": 60},
                "environment_type": "scripted",
            },
            "exit_status": "Submitted",
            "submission": submission,
        },
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": id,
        "note": format!("A script chose the commands, no model did; written for memtrial's demonstration, {}.", &date[..10]),
    }))
}

fn assistant(thought: &str, command: &str, call: &str) -> Value {
    let arguments = json!({"command": command}).to_string();
    json!({
        "role": "assistant",
        "content": thought,
        "tool_calls": [{"id": call, "type": "function", "function": {"name": "bash", "arguments": arguments}}],
        "extra": {"actions": [{"command": command, "tool_call_id": call}], "cost": 0.0},
    })
}
