//! Runs where `MEMTRIAL_DATA` names the folder of real data, and passes at once where it does not.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};

use memtrial_testkit::{Reader, ReaderTask, violations};
use serde_json::{Value, json};

fn data() -> Option<PathBuf> {
    std::env::var_os("MEMTRIAL_DATA").map(PathBuf::from)
}

fn trajectories(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            trajectories(&path, found);
        } else if path.to_string_lossy().ends_with(".traj.json") {
            found.push(path);
        }
    }
}

/// What real agents sent is no violation: the checks are as strict as endpoints are, not stricter.
#[test]
fn real_conversations_break_no_rule() {
    let Some(data) = data() else { return };
    let mut files = Vec::new();
    for name in ["swebench-verified_gemini3pro_mini-1.15", "scripted_mini-2.4.6"] {
        trajectories(&data.join("trajectories").join(name), &mut files);
    }
    assert!(files.len() >= 500, "{}", files.len());
    let mut checked = 0;
    for file in files {
        let trajectory: Value = serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap();
        let mut messages = trajectory["messages"].as_array().unwrap().clone();
        // The last request is what stands before the last answer; it holds all earlier ones.
        let Some(last) = messages.iter().rposition(|message| message["role"] == "assistant") else {
            continue;
        };
        messages.truncate(last);
        for message in &mut messages {
            message.as_object_mut().unwrap().remove("extra");
        }
        let found = violations(&json!({"model": "m", "messages": messages}));
        assert!(found.is_empty(), "{}: {found:?}", file.display());
        checked += 1;
    }
    assert!(checked >= 500, "{checked}");
}

/// Every gold patch of the real tasks can be planted.
#[test]
fn the_reader_can_hand_in_real_patches() {
    let Some(data) = data() else { return };
    for (file, rows) in [("verified-here.jsonl", 40), ("swebench-lite.jsonl", 267)] {
        let text = fs_err::read_to_string(data.join("tasks").join(file)).unwrap();
        let tasks = text.lines().map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let id = row["instance_id"].as_str().unwrap().to_owned();
            ReaderTask {
                marker: format!("<{id}>"),
                instance_id: id,
                needle: Some("no patch holds this needle".into()),
                poison: None,
                solves_alone: false,
                good_patch: row["patch"].as_str().unwrap().into(),
                bad_patch: String::new(),
            }
        });
        let tasks: Vec<_> = tasks.collect();
        assert_eq!(tasks.len(), rows);
        Reader::new(tasks).unwrap();
    }
}
