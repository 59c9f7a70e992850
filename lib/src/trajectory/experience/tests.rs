//! The formats in small, and every real file where `MEMTRIAL_DATA` points to some.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::trajectory::{Limits, TrajectoryError, Usage};

/// What stands in fields that hold a task's answer.
const CANARY: &str = "CANARY-of-the-answer";

#[derive(Debug, Default)]
struct Read {
    heads: Vec<RunHead>,
    events: Vec<Event>,
    costs: Vec<RunCost>,
}

fn read_path(path: &Path) -> Result<(Read, RunsReport), TrajectoryError> {
    let mut read = Read::default();
    let report = read_runs(path, &Limits::default(), &mut |part| {
        match part {
            RunPart::Head(head) => read.heads.push(head.clone()),
            RunPart::Event(event) => read.events.push(event),
            RunPart::End(cost) => read.costs.push(cost),
        }
        ControlFlow::Continue(())
    })?;
    Ok((read, report))
}

fn read_as(name: &str, text: &[u8]) -> Result<(Read, RunsReport), TrajectoryError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs_err::write(&path, text).unwrap();
    read_path(&path)
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn issue(text: &str) -> Event {
    Event::Issue { text: text.into() }
}

fn thought(text: &str) -> Event {
    Event::Thought { text: text.into() }
}

fn command(text: &str, edits: &[&str]) -> Event {
    Event::Command { text: text.into(), edits: edits.iter().map(|&path| path.into()).collect(), tests: false }
}

fn seen(text: &str, exit_code: Option<i64>) -> Event {
    Event::Observation { text: text.into(), exit_code }
}

fn patch() -> Event {
    Event::Submission { patch: "diff\n".into() }
}

fn ended(status: Option<&str>) -> Event {
    Event::Ended { status: status.map(str::to_owned), resolved: None }
}

fn swe_agent() -> Value {
    json!({
        "environment": "main",
        "trajectory": [
            {"action": "create /repo/w.py\n", "observation": "[File: w.py]", "response": "Make it.", "thought": "Make it.",
             "state": "{\"open_file\": \"/repo/w.py\", \"working_dir\": \"/repo\"}", "query": [{"content": CANARY}]},
            {"action": "edit 1:1\nx = 2\nend_of_edit", "observation": "ok", "response": "r", "thought": "",
             "state": {"open_file": "/repo/w.py", "working_dir": "/repo/sub"}},
            {"action": "sed -i s/1/2/ v.py", "observation": "", "response": "r", "thought": "", "state": {}},
            {"action": "submit", "observation": "diff", "response": "r", "thought": "", "state": {}},
        ],
        "history": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "a demonstration", "is_demo": true},
            {"role": "user", "content": "We're currently solving the following issue.\nISSUE:\nx is 1\n\nINSTRUCTIONS:\nGo."},
        ],
        "info": {"exit_status": "submitted (exit_cost)", "submission": "diff\n",
                 "model_stats": {"tokens_sent": 10, "tokens_received": 2}},
    })
}

#[test]
fn reads_swe_agent() {
    let (read, report) = read_as("acme__widget-7.traj", swe_agent().to_string().as_bytes()).unwrap();
    assert_eq!((report.format, report.runs, report.events), (RunFormat::SweAgent, 1, read.events.len()));
    assert_eq!(read.heads[0].instance_id.as_deref(), Some("acme__widget-7"));
    assert_eq!(read.heads[0].repo.as_deref(), Some("acme/widget"));
    assert_eq!(
        read.events,
        [
            issue("x is 1"),
            thought("Make it."),
            command("create /repo/w.py", &["/repo/w.py"]),
            seen("[File: w.py]", None),
            command("edit 1:1\nx = 2\nend_of_edit", &["w.py"]),
            seen("ok", None),
            command("sed -i s/1/2/ v.py", &["sub/v.py"]),
            seen("", None),
            command("submit", &[]),
            seen("diff", None),
            patch(),
            ended(Some("submitted (exit_cost)")),
        ]
    );
    let usage = Usage { prompt_tokens: 10, cached_tokens: 0, completion_tokens: 2 };
    assert_eq!(read.costs, [RunCost { steps: 4, usage: Some(usage) }]);
    let demo = json!({"history": [{"role": "user", "content": "fix"},
        {"role": "assistant", "content": "c", "thought": "t", "action": "ls"}, {"role": "user", "content": "a.py"}]});
    let (read, _) = read_as("d.traj", demo.to_string().as_bytes()).unwrap();
    assert_eq!(
        read.events,
        [issue("fix"), thought("t"), command("ls", &[]), seen("a.py", None), ended(None)]
    );
}

fn openhands() -> Vec<Value> {
    let action = |id: &str, reply: &str, tool: &str, action: Value| {
        json!({"kind": "ActionEvent", "source": "agent",
        "thought": [{"type": "text", "text": "Look."}], "action": action, "tool_name": tool, "tool_call_id": id,
        "tool_call": {"id": id, "name": tool, "arguments": action.to_string()}, "llm_response_id": reply})
    };
    let answer =
        |id: &str, seen: Value| json!({"kind": "ObservationEvent", "tool_call_id": id, "observation": seen});
    vec![
        json!({"instance_id": "acme__widget-7", "test_result": {"git_patch": "diff\n"}, "instruction": "frame",
        "instance": {"patch": CANARY, "test_patch": CANARY}, "metadata": {"llm": {"model": "m"}}, "error": null,
        "history": [
            {"kind": "MessageEvent", "timestamp": "2026-06-25T10:00:00", "source": "user",
             "llm_message": {"role": "user", "content": [{"type": "text", "text": "<issue_description>\nFix\n</issue_description>"}]}},
            action("a", "r1", "terminal", json!({"kind": "TerminalAction", "command": "ls > l"})),
            action("b", "r1", "file_editor", json!({"kind": "FileEditorAction", "command": "create", "path": "/workspace/acme__widget__1/w.py"})),
            answer("b", json!({"content": [{"type": "text", "text": "made"}]})),
            answer("a", json!({"content": [{"type": "text", "text": "x"}], "exit_code": 1})),
            action("c", "r2", "finish", json!({"kind": "FinishAction", "message": "done"})),
        ]}),
        json!({"instance_id": "acme__widget-8", "test_result": {"git_patch": ""}, "instance": {"patch": CANARY},
        "report": {"resolved": false, "canary": CANARY}, "history": [
            [{"source": "user", "action": "message", "args": {"content": "Fix"}}, {"observation": "null"}],
            {"id": 4, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "Look."}},
            {"cause": 4, "observation": "run", "content": "x", "extras": {"metadata": {"exit_code": 0}}},
            {"id": 6, "source": "agent", "action": "edit", "args": {"command": "str_replace", "path": "/testbed/w.py"}},
            {"cause": 6, "observation": "edit", "content": "ok"},
        ]}),
    ]
}

#[test]
fn reads_openhands() {
    let (read, report) = read_as("output.jsonl", lines(&openhands()).as_bytes()).unwrap();
    assert_eq!((report.format, report.runs, report.bad_lines), (RunFormat::OpenHands, 2, 0));
    assert_eq!(read.heads[0].model.as_deref(), Some("m"));
    assert_eq!((read.heads[1].line, read.heads[1].instance_id.as_deref()), (Some(2), Some("acme__widget-8")));
    let create = r#"file_editor {"kind":"FileEditorAction","command":"create","path":"/workspace/acme__widget__1/w.py"}"#;
    assert_eq!(
        read.events[..11],
        [
            issue("Fix"),
            thought("Look."),
            command("ls > l", &["l"]),
            thought("Look."),
            command(create, &["w.py"]),
            seen("x", Some(1)),
            seen("made", None),
            thought("Look."),
            command(r#"finish {"kind":"FinishAction","message":"done"}"#, &[]),
            patch(),
            ended(Some("finished")),
        ]
    );
    assert_eq!(
        read.events[11..],
        [
            issue("Fix"),
            thought("Look."),
            command("ls", &[]),
            seen("x", Some(0)),
            command(r#"edit {"command":"str_replace","path":"/testbed/w.py"}"#, &["w.py"]),
            seen("ok", None),
            Event::Ended { status: None, resolved: Some(false) },
        ]
    );
}

fn nemo_gym() -> Vec<Value> {
    vec![
        json!({"responses_create_params": {"input": [], "metadata": {"instance_id": "acme__widget-7", "problem_statement": "Fix",
                "golden_patch": CANARY, "instance_dict": CANARY}},
            "response": {"created_at": 0, "model": "m", "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look."}]},
                {"type": "function_call", "call_id": "c", "name": "Edit", "arguments": "{\"file_path\": \"/testbed/w.py\"}"},
                {"type": "function_call_output", "call_id": "c", "output": "{\"output\": \"ok\", \"exit_code\": 0}"}]},
            "resolved": true, "model_patch": "diff\n", "patch": CANARY, "instance_config": {"problem_info": {"golden_patch": CANARY}}}),
        json!({"responses_create_params": {"input": "Fix"}, "response": {"output": []}, "model_patch": CANARY}),
    ]
}

#[test]
fn reads_nemo_gym() {
    let (read, report) = read_as("rollouts.jsonl", lines(&nemo_gym()).as_bytes()).unwrap();
    assert_eq!((report.format, report.runs), (RunFormat::NemoGym, 2));
    let expected = [
        issue("Fix"),
        thought("Look."),
        command(r#"Edit {"file_path":"/testbed/w.py"}"#, &["w.py"]),
        seen("ok", Some(0)),
        patch(),
        Event::Ended { status: None, resolved: Some(true) },
        issue("Fix"),
        ended(None),
    ];
    assert_eq!(read.events, expected);
    let one = serde_json::to_string_pretty(&nemo_gym()[0]).unwrap();
    let (read, _) = read_as("one.json", one.as_bytes()).unwrap();
    assert_eq!(read.events, expected[..6]);
}

#[test]
fn answers_are_never_read() {
    for (name, text) in [
        ("output.jsonl", lines(&openhands())),
        ("rollouts.jsonl", lines(&nemo_gym())),
        ("acme__widget-7.traj", swe_agent().to_string()),
    ] {
        let (read, _) = read_as(name, text.as_bytes()).unwrap();
        assert!(text.contains(CANARY) && !format!("{read:?}").contains(CANARY), "{name}: {read:?}");
    }
}

#[test]
fn reads_atif() {
    let document = json!({"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "S"},
        {"step_id": 2, "source": "user", "message": "Fix"},
        {"step_id": 3, "source": "agent", "message": "Look.", "reasoning_content": "Hm.",
         "tool_calls": [{"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "ls > l"}}],
         "observation": {"results": [{"source_call_id": "c", "content": [{"type": "text", "text": "x"}]}]},
         "metrics": {"prompt_tokens": 9, "completion_tokens": 1}},
    ]});
    let (read, _) = read_as("acme__widget-7.atif.json", document.to_string().as_bytes()).unwrap();
    assert_eq!(read.heads[0].instance_id.as_deref(), Some("acme__widget-7"));
    assert_eq!(
        read.events,
        [issue("Fix"), thought("Hm.\nLook."), command("ls > l", &["l"]), seen("x", None), ended(None)]
    );
    assert_eq!(read.costs[0].usage.map(|usage| usage.prompt_tokens), Some(9));
}

fn claude_code() -> Vec<Value> {
    let line = |kind: &str, uuid: &str, more: Value| {
        let mut line = json!({"type": kind, "uuid": uuid, "sessionId": "s1", "cwd": "/home/me/widget", "timestamp": "2026-07-22T10:00:00.000Z"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let says = |uuid: &str, id: &str, side: bool, block: Value| {
        line(
            "assistant",
            uuid,
            json!({"isSidechain": side, "message": {"id": id, "role": "assistant", "model": "claude",
            "content": [block], "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 1}}}),
        )
    };
    let result = |uuid: &str, id: &str, text: &str, side: bool| {
        line(
            "user",
            uuid,
            json!({"isSidechain": side, "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": text.starts_with("Exit")}]}}),
        )
    };
    let used = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    vec![
        json!({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}),
        line("user", "u0", json!({"isMeta": true, "message": {"role": "user", "content": "injected"}})),
        line(
            "user",
            "u1",
            json!({"message": {"role": "user", "content": "<command-name>/clear</command-name>"}}),
        ),
        line("user", "u2", json!({"message": {"role": "user", "content": "Fix"}})),
        says("u3", "m1", false, json!({"type": "thinking", "thinking": "Hm.", "signature": ""})),
        says("u4", "m1", false, used("t1", "Bash", json!({"command": "false"}))),
        says(
            "u5",
            "m1",
            false,
            used("t2", "Write", json!({"file_path": "/home/me/widget/w.rs", "content": ""})),
        ),
        result("u6", "t2", "written", false),
        result("u7", "t1", "Exit code 1\nno", false),
        result("u7", "t1", "again", false),
        says("u8", "m2", false, used("t3", "Task", json!({"prompt": "look"}))),
        line("user", "u9", json!({"isSidechain": true, "message": {"role": "user", "content": "look"}})),
        says("u10", "m3", true, used("t4", "Bash", json!({"command": "ls"}))),
        result("u11", "t4", "w.rs", true),
        result("u12", "t3", "found", false),
        says("u13", "m4", false, json!({"type": "text", "text": "Done."})),
        line(
            "user",
            "u14",
            json!({"message": {"role": "user", "content": [{"type": "text", "text": "Thanks"}]}}),
        ),
        json!({"type": "summary", "summary": "S", "leafUuid": "u13"}),
    ]
}

#[test]
fn reads_claude_code() {
    let torn = lines(&claude_code()) + r#"{"type": "user", "uu"#;
    let (read, report) = read_as("s1.jsonl", torn.as_bytes()).unwrap();
    assert_eq!((report.format, report.runs, report.bad_lines), (RunFormat::ClaudeCode, 1, 1));
    assert_eq!(report.bad[0].line, 19);
    let head = &read.heads[0];
    assert_eq!((head.session.as_deref(), head.model.as_deref()), (Some("s1"), Some("claude")));
    assert_eq!(head.started.as_deref(), Some("2026-07-22T10:00:00.000Z"));
    assert_eq!(
        read.events,
        [
            issue("Fix"),
            thought("Hm."),
            command("false", &[]),
            command(r#"Write {"file_path":"/home/me/widget/w.rs","content":""}"#, &["w.rs"]),
            seen("no", Some(1)),
            seen("written", None),
            command("ls", &[]),
            seen("w.rs", None),
            command(r#"Task {"prompt":"look"}"#, &[]),
            seen("found", None),
            thought("Done."),
            issue("Thanks"),
            ended(None),
        ]
    );
    let usage = Usage { prompt_tokens: 32, cached_tokens: 12, completion_tokens: 4 };
    assert_eq!(read.costs, [RunCost { steps: 4, usage: Some(usage) }]);
}

fn codex() -> Vec<Value> {
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-07-22T10:00:00.000Z", "type": kind, "payload": payload});
    let said = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    vec![
        line(
            "session_meta",
            json!({"id": "t1", "timestamp": "2026-07-22T10:00:00.000Z", "cwd": "/app",
            "git": {"repository_url": "git@github.com:acme/widget.git"}}),
        ),
        line("response_item", said("<environment_context>\n<cwd>/app</cwd>")),
        line("turn_context", json!({"model": "codex"})),
        line("response_item", said("Fix")),
        line("event_msg", json!({"type": "user_message", "message": "Fix"})),
        line(
            "response_item",
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}),
        ),
        line(
            "response_item",
            json!({"type": "function_call", "call_id": "a", "name": "shell",
            "arguments": "{\"command\": [\"bash\", \"-lc\", \"ls > l\"]}"}),
        ),
        line(
            "event_msg",
            json!({"type": "token_count", "info": {"last_token_usage": {}, "total_token_usage":
            {"input_tokens": 900, "cached_input_tokens": 512, "output_tokens": 40}}}),
        ),
        line(
            "response_item",
            json!({"type": "function_call_output", "call_id": "a",
            "output": "{\"output\":\"x\",\"metadata\":{\"exit_code\":2}}"}),
        ),
        line(
            "response_item",
            json!({"type": "custom_tool_call", "call_id": "b", "name": "apply_patch",
            "input": "*** Begin Patch\n*** Update File: w.py\n*** End Patch"}),
        ),
        line(
            "response_item",
            json!({"type": "custom_tool_call_output", "call_id": "b",
            "output": "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."}),
        ),
        line("event_msg", json!({"type": "task_complete"})),
    ]
}

#[test]
fn reads_codex() {
    let (read, report) = read_as("rollout.jsonl", lines(&codex()).as_bytes()).unwrap();
    assert_eq!((report.format, report.runs), (RunFormat::Codex, 1));
    let head = &read.heads[0];
    assert_eq!((head.repo.as_deref(), head.model.as_deref()), (Some("acme/widget"), Some("codex")));
    assert_eq!(
        read.events,
        [
            issue("Fix"),
            thought("Hm."),
            command("ls > l", &["l"]),
            seen("x", Some(2)),
            command("apply_patch *** Begin Patch\n*** Update File: w.py\n*** End Patch", &["w.py"]),
            seen("Success.", Some(0)),
            ended(Some("task_complete")),
        ]
    );
    let usage = Usage { prompt_tokens: 900, cached_tokens: 512, completion_tokens: 40 };
    assert_eq!(read.costs, [RunCost { steps: 1, usage: Some(usage) }]);
}

fn mini() -> Value {
    json!({"info": {"exit_status": "Submitted", "submission": "diff\n", "config": {"model": {"model_name": "m"}}},
        "messages": [{"role": "user", "content": "Fix"},
            {"role": "assistant", "content": "Look.\n```bash\nls\n```", "extra": {"response": {"usage": {"prompt_tokens": 3}}}},
            {"role": "user", "content": "<returncode>0</returncode>\n<output>\nx\n</output>"}],
        "trajectory_format": "mini-swe-agent-1", "instance_id": "acme__widget-7"})
}

#[test]
fn reads_mini() {
    let (read, report) = read_as("run.json", mini().to_string().as_bytes()).unwrap();
    assert_eq!((report.format, report.runs), (RunFormat::Mini1, 1));
    assert_eq!(read.heads[0].repo.as_deref(), Some("acme/widget"));
    assert_eq!(
        read.events,
        [
            issue("Fix"),
            thought("Look."),
            command("ls", &[]),
            seen("x\n", Some(0)),
            patch(),
            ended(Some("Submitted"))
        ]
    );
    assert_eq!(read.costs[0].steps, 1);
}

#[test]
fn what_is_no_run_is_named() {
    for (text, words) in [
        (&b"PK\x03\x04rest"[..], "a ZIP archive"),
        (b"", "the file is empty"),
        (b"{\"messages\": [", "no valid JSON"),
        (b"{\"a\": 1, \"b\": 2}", "the keys `a`, `b` are of no run"),
        (b"{\"a__b-1\": {\"model_patch\": \"\"}}", "of no run"),
        (b"[1, 2]", "no object"),
    ] {
        let error = read_as("x.json", text).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("x.json"), "{error}");
    }
}

#[test]
fn reading_stops_where_the_caller_does() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.traj", swe_agent().to_string()),
        ("b.jsonl", lines(&openhands())),
        ("c.jsonl", lines(&claude_code())),
        ("d.json", mini().to_string()),
    ] {
        let path = folder.path().join(name);
        fs_err::write(&path, text).unwrap();
        let mut parts = 0;
        let report = read_runs(&path, &Limits::default(), &mut |_| {
            parts += 1;
            if parts == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((parts, report.unwrap().stopped), (2, true), "{name}");
    }
}

/// A line that is longer than is parsed in one piece is read with its texts cut.
#[test]
fn long_lines_are_cut_while_they_are_read() {
    let mut rows = openhands();
    rows[0]["history"][4]["observation"]["content"][0]["text"] = json!("é".repeat(3 << 20));
    let (read, report) = read_as("output.jsonl", lines(&rows).as_bytes()).unwrap();
    assert_eq!((report.runs, report.counts.cut_texts, report.bad_lines), (2, 1, 0));
    assert!(
        read.events
            .iter()
            .any(|event| matches!(event, Event::Observation { text, .. } if text.contains("characters cut")))
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_never_panics(which in 0usize..6, cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..30, r#"[\[\]{}",:a0-9\\]{0,6}"#), 1..5)) {
        let mut text = match which {
            0 => swe_agent().to_string(),
            1 => lines(&openhands()),
            2 => lines(&nemo_gym()),
            3 => lines(&claude_code()),
            4 => lines(&codex()),
            _ => mini().to_string(),
        }.into_bytes();
        for (at, length, put) in cuts {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, put.bytes());
        }
        let _ = read_as("damaged", &text);
    }
}

fn real_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            real_files(&path, into);
        } else if [".traj", ".traj.json", "rollouts.jsonl", "response.json"]
            .iter()
            .any(|end| name.ends_with(end))
            || name.contains("example_rollouts")
            || name.contains("claude-code-log/test")
        {
            into.push(path);
        }
    }
}

/// Where real runs are at hand: all of them are read, and the files of their patches are seen as edits.
#[test]
fn real_runs() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA") else { return };
    let mut files = Vec::new();
    real_files(&Path::new(&data).join("trajectories"), &mut files);
    let (mut submitted, mut missed) = (0_usize, Vec::new());
    for path in &files {
        let (read, report) = read_path(path).unwrap();
        assert!(report.runs > 0 && report.events > 0, "{}", path.display());
        let mut open = 0_i64;
        for event in &read.events {
            match event {
                Event::Command { .. } => open += 1,
                Event::Observation { .. } => open -= 1,
                _ => {}
            }
            assert!(open >= 0, "{}: an observation without a command", path.display());
        }
        if !path.to_string_lossy().contains("gemini3pro") {
            continue;
        }
        let mut edits: Vec<&str> = Vec::new();
        for event in &read.events {
            match event {
                Event::Command { edits: more, .. } => edits.extend(more.iter().map(String::as_str)),
                Event::Submission { patch } => {
                    for file in super::command::patched(patch) {
                        submitted += 1;
                        if !edits.contains(&file.as_str()) {
                            missed.push(format!("{}: {file}", path.file_name().unwrap().display()));
                        }
                    }
                }
                _ => {}
            }
        }
    }
    let share = 1.0 - missed.len() as f64 / submitted as f64;
    assert!(
        share > 0.95,
        "{share}: {} of {submitted} files are not seen as edits: {missed:#?}",
        missed.len()
    );
}
