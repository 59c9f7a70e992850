//! `memtrial history`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::memtrial;

fn write_run(root: &Path, language: &str, id: &str) {
    let folder = root.join("history").join(language).join(id.rsplit_once('-').unwrap().0).join(id);
    fs::create_dir_all(&folder).unwrap();
    let run = json!({"messages": [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "fix"},
        {"role": "assistant", "content": "", "extra": {"actions": [{"command": "ls"}]}},
        {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}},
    ]});
    fs::write(folder.join(format!("{id}.traj.json")), run.to_string()).unwrap();
}

fn store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for id in ["acme__widget-9", "acme__widget-10", "acme__widget-99", "acme__widget-100"] {
        write_run(folder.path(), "python", id);
    }
    write_run(folder.path(), "go", "acme__gadget-3");
    fs::write(folder.path().join("a.resolved.json"), r#"{"acme__widget-9": true, "acme__widget-10": false}"#)
        .unwrap();
    let row = |id: &str, merged: &str| json!({"instance_id": id, "base_commit": "c", "problem_statement": "p", "meta": {"merged_at": merged}});
    let rows = [
        row("acme__widget-9", "2024-03-01T00:00:00Z"),
        row("acme__widget-10", "2024-01-01T00:00:00Z"),
        row("acme__widget-99", "2024-02-01T00:00:00Z"),
    ];
    fs::write(folder.path().join("tasks.json"), json!(rows).to_string()).unwrap();
    folder
}

#[test]
fn list_shows_what_a_target_may_learn_from() {
    let folder = store();
    let list = ["history", "list", ".", "--target", "acme__widget-99"];
    let (code, out, err) = memtrial(folder.path(), &list);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(out, @r"
    acme__widget-99 may learn from 2 of 5 stored runs (order: pull request number)
    ID               MESSAGES  CALLS  BYTES  EXIT       RESOLVED
    acme__widget-9          4      1    240  Submitted  yes
    acme__widget-10         4      1    240  Submitted  no
    refused (2):
      acme__widget-99: the target's own run
      acme__widget-100: its number is not below 99
    merge order: not known here (--tasks FILE states it)
    ");
    let (code, out, _) = memtrial(
        folder.path(),
        &[&list[..], &["--tasks", "tasks.json", "--chronology", "merged-at"]].concat(),
    );
    assert_eq!(code, 0);
    insta::assert_snapshot!(out, @r"
    acme__widget-99 may learn from 1 of 5 stored runs (order: time of merging)
    ID               MESSAGES  CALLS  BYTES  EXIT       RESOLVED
    acme__widget-10         4      1    240  Submitted  no
    refused (3):
      acme__widget-100: no merge date is known
      acme__widget-99: the target's own run
      acme__widget-9: merged 2024-03-01T00:00:00Z, not before 2024-02-01T00:00:00Z
    runs about which number order and merge order disagree: 1
      acme__widget-9: earlier by number, merged 2024-03-01T00:00:00Z (not before the target)
    ");
    let (_, out, _) = memtrial(folder.path(), &[&list[..], &["--tasks", "tasks.json", "--json"]].concat());
    let listed: Value = serde_json::from_str(&out).unwrap();
    let ids: Vec<_> =
        listed["entries"].as_array().unwrap().iter().map(|entry| &entry["instance_id"]).collect();
    assert_eq!(ids, ["acme__widget-9", "acme__widget-10"]);
    assert_eq!(listed["disagreements"][0]["id"], "acme__widget-9");
    assert_eq!(listed["refused"][0], json!({"id": "acme__widget-99", "reason": "the target's own run"}));
}

#[test]
fn convert_writes_a_document_for_each_run_and_names_what_is_none() {
    let folder = store();
    let convert = |more: &[&str]| memtrial(folder.path(), &[&["history", "convert"][..], more].concat());
    let (code, out, err) = convert(&["history", "--out", "atif"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, "5 runs with 15 steps written to atif\n");
    let one = "python/acme__widget/acme__widget-9/acme__widget-9";
    let text = fs::read(folder.path().join(format!("atif/{one}.atif.json"))).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(document["schema_version"], "ATIF-v1.8");
    assert_eq!(document["steps"][2]["tool_calls"][0]["arguments"], json!({"command": "ls"}));
    assert_eq!(document["extra"]["mini"]["exit"]["extra"]["submission"], "diff");

    fs::write(folder.path().join(format!("history/{one}.traj.json")), "{").unwrap();
    let (code, out, err) = convert(&["history", "--out", "again"]);
    assert_eq!((code, out.as_str()), (3, "4 runs with 12 steps written to again\n"));
    assert!(err.contains("acme__widget-9.traj.json:1:1: no valid JSON"), "{err}");
    let (code, _, err) = convert(&["tasks.json", "--out", "again"]);
    assert!(code == 3 && err.contains("tasks.json: a list, where an object"), "{err}");
}

fn session(name: &str, started: &str, file: &str) -> String {
    let line = |kind: &str, uuid: &str, message: Value| {
        json!({"type": kind, "uuid": uuid, "sessionId": name, "timestamp": started, "cwd": "/w", "message": message}).to_string()
    };
    [
        line("user", "1", json!({"role": "user", "content": "Mend it"})),
        line("assistant", "2", json!({"role": "assistant", "id": "m", "content": [
            {"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": file}}]})),
        line("user", "3", json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]})),
        String::new(),
    ]
    .join("\n")
}

#[test]
fn logs_of_other_agents_become_a_history() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("logs")).unwrap();
    fs::write(folder.path().join("logs/b.jsonl"), session("early", "2026-01-01T00:00:00Z", "/w/a.rs"))
        .unwrap();
    fs::write(folder.path().join("logs/a.jsonl"), session("late", "2026-02-01T00:00:00Z", "/w/b.rs"))
        .unwrap();
    let convert = |more: &[&str]| {
        let all = [&["history", "convert", "logs", "--to", "mini", "--out", "h"][..], more].concat();
        memtrial(folder.path(), &all)
    };
    let (code, _, err) = convert(&[]);
    assert!(code == 3 && err.contains("a.jsonl: the run states no task: name it with --ids"), "{err}");
    let (code, out, err) = convert(&["--repo", "acme/widget"]);
    assert_eq!((code, out.as_str()), (0, "2 runs with 8 events written to h\n"));
    assert!(
        err.starts_with("acme__widget-1: session early of logs/b.jsonl, begun 2026-01-01T00:00:00Z\n"),
        "{err}"
    );

    let (code, out, _) = memtrial(folder.path(), &["history", "list", "h", "--target", "acme__widget-2"]);
    assert!(code == 0 && out.contains("may learn from 1 of 2 stored runs"), "{out}");
    let (_, out, _) = memtrial(folder.path(), &["history", "show", "h", "--id", "acme__widget-1"]);
    assert!(
        out.contains("edits: a.rs") && !out.contains("b.rs") && out.contains("observation:\n    ok"),
        "{out}"
    );
    let show = ["history", "show", "logs", "--id", "late", "--events", "command", "--json"];
    let (_, out, _) = memtrial(folder.path(), &show);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["events"][0]["edits"], json!(["b.rs"]));

    fs::write(folder.path().join("logs/other.jsonl"), "{\"a\": 1}\n").unwrap();
    let (code, out, _) = memtrial(folder.path(), &["history", "stats", "logs", "--json"]);
    let stats: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 0);
    assert_eq!(stats["repositories"]["-"]["formats"], json!({"claude-code": 2}));
    assert_eq!((&stats["repositories"]["-"]["edits"], &stats["files"]), (&json!(2), &json!(3)));
    assert!(
        stats["unreadable"][0]["reason"].as_str().unwrap().starts_with("the keys `a` are of no run"),
        "{stats}"
    );

    fs::write(folder.path().join("ids.json"), r#"{"late": "acme__widget-7", "b.jsonl": "acme__widget-8"}"#)
        .unwrap();
    let (code, ..) = memtrial(
        folder.path(),
        &[
            "history",
            "convert",
            "logs/a.jsonl",
            "logs/b.jsonl",
            "--to",
            "mini",
            "--out",
            "i",
            "--ids",
            "ids.json",
        ],
    );
    assert!(code == 0 && folder.path().join("i/acme__widget-7/acme__widget-7.traj.json").exists());
}

#[test]
fn an_empty_history_is_legal() {
    let folder = store();
    for (target, words) in [
        ("acme__widget-9", "may learn from 0 of 5 stored runs"),
        ("other__repo-1", "no stored run is of the repository other__repo"),
    ] {
        let (code, out, _) = memtrial(folder.path(), &["history", "list", "history", "--target", target]);
        assert!(code == 0 && out.contains(words), "{out}");
    }
}

#[test]
fn bad_histories_are_named() {
    let folder = store();
    let list = ["history", "list", ".", "--target", "acme__widget-99"];
    let undated = ["history", "list", ".", "--target", "acme__widget-100", "--chronology", "merged-at"];
    let (code, _, err) = memtrial(folder.path(), &undated);
    assert!(code == 3 && err.contains("no merge date is known"), "{err}");
    let cut = folder.path().join("history/python/acme__widget/acme__widget-9/acme__widget-9.traj.json");
    fs::write(&cut, "{\"messages\": [").unwrap();
    let (code, out, err) = memtrial(folder.path(), &list);
    assert_eq!(code, 3);
    assert!(out.contains("unreadable") && out.contains("acme__widget-10"), "{out}");
    assert!(err.contains("acme__widget-9.traj.json:1:14: no valid JSON"), "{err}");
    fs::rename(&cut, cut.with_file_name("acme__widget-8.traj.json")).unwrap();
    let (code, _, err) = memtrial(folder.path(), &list);
    assert_eq!(code, 3);
    assert!(
        err.contains("the folder is called \"acme__widget-9\", the file says \"acme__widget-8\""),
        "{err}"
    );
}

/// A run whose single text takes 40 MB is listed by a process that may not allocate 24.
#[test]
fn a_huge_run_costs_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        json!({"messages": [{"role": "tool", "content": "", "extra": {"raw_output": "x".repeat(40 << 20)}}]});
    fs::write(folder.path().join("acme__widget-1.traj.json"), run.to_string()).unwrap();
    let binary = assert_cmd::cargo::cargo_bin!("memtrial");
    let script =
        format!("ulimit -d 24576; exec '{}' history list . --target acme__widget-2", binary.display());
    let output =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("acme__widget-1"), "{text}");
}
