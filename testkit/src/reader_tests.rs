use std::process::Command;

use super::*;

const GOOD: &str = "diff --git a/w.py b/w.py\n--- a/w.py\n+++ b/w.py\n@@ -1 +1 @@\n-x = 1\n+x = '$HOME `2`'\n\
                    diff --git a/new.py b/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+y = 1";

fn task(id: &str) -> ReaderTask {
    ReaderTask {
        instance_id: id.into(),
        marker: format!("<issue {id}>"),
        needle: Some(format!("needle of {id}")),
        poison: None,
        solves_alone: false,
        good_patch: GOOD.into(),
        bad_patch: String::new(),
    }
}

fn prompt(parts: &[&str]) -> Vec<Value> {
    vec![json!({"role": "system", "content": "s"}), json!({"role": "user", "content": parts.join("\n")})]
}

/// Plays a run to its end with real commands in `folder`; gives the submission.
fn run(reader: &Reader, folder: &Path, mut messages: Vec<Value>, tools: bool) -> String {
    for _ in 0..10 {
        let mut request = json!({"model": "m", "messages": messages});
        if tools {
            request["tools"] = json!([{"type": "function", "function": {"name": "bash"}}]);
        }
        let Act::Answer { message, .. } = reader.play(&request) else { panic!("no answer") };
        let command = if tools {
            let arguments = message["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            arguments["command"].as_str().unwrap().to_owned()
        } else {
            let content = message["content"].as_str().unwrap();
            let (_, rest) = content.split_once("```mswea_bash_command\n").unwrap();
            rest.split_once("\n```").unwrap().0.to_owned()
        };
        // Tests run at the same time: each has its own patch file.
        let command =
            command.replace("/tmp/reader.patch", &folder.join(".git/reader.patch").display().to_string());
        let output = Command::new("bash").args(["-c", &command]).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        let output = String::from_utf8(output.stdout).unwrap();
        if let Some(submission) = output.strip_prefix("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n") {
            return submission.to_owned();
        }
        let id = message["tool_calls"][0]["id"].clone();
        messages.push(message);
        messages.push(match tools {
            true => json!({"role": "tool", "tool_call_id": id, "content": output}),
            false => json!({"role": "user", "content": output}),
        });
        assert_eq!(crate::violations(&json!({"model": "m", "messages": messages})), Vec::<String>::new());
    }
    panic!("it never submits");
}

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("w.py"), "x = 1\n").unwrap();
    let script = "git init -q && git add . && git -c user.name=n -c user.email=e@e commit -qm first";
    assert!(Command::new("bash").args(["-c", script]).current_dir(folder.path()).status().unwrap().success());
    folder
}

#[test]
fn shown_the_needle_it_submits_the_good_patch_in_both_modes() {
    let reader = Reader::new(vec![task("a-1"), task("b-2")]).unwrap();
    for tools in [true, false] {
        let folder = repository();
        let submission = run(&reader, folder.path(), prompt(&["<issue a-1>", "needle of a-1"]), tools);
        assert_eq!(patch::files(&submission).unwrap(), patch::files(GOOD).unwrap(), "{submission}");
        assert!(submission.contains("+x = '$HOME `2`'\n") && submission.contains("+y = 1\n"), "{submission}");
        assert!(!submission.contains("patch.txt"));
    }
}

#[test]
fn offered_the_memory_tool_it_looks_the_title_up_once_and_uses_the_answer() {
    let known = ReaderTask { marker: "Title of a\n\nIt fails".into(), ..task("a-1") };
    let reader = Reader::new(vec![known]).unwrap();
    let mut messages = prompt(&["Solve this:\nTitle of a\n\nIt fails often."]);
    let play = |messages: &[Value]| {
        let tools = ["bash", "memory"].map(|name| json!({"type": "function", "function": {"name": name}}));
        match reader.play(&json!({"model": "m", "messages": messages, "tools": tools})) {
            Act::Answer { message, .. } => message,
            other => panic!("{other:?}"),
        }
    };
    let lookup = play(&messages);
    let call = lookup["tool_calls"][0].clone();
    assert_eq!(call["function"], json!({"name": "memory", "arguments": "{\"query\":\"Title of a\"}"}));
    messages.push(lookup);
    messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "> needle of a-1"}));
    let first = play(&messages);
    assert!(first["tool_calls"][0]["function"]["arguments"].as_str().unwrap().contains("git log"));
    messages.push(first);
    messages.push(json!({"role": "tool", "tool_call_id": "call_4", "content": "w.py"}));
    assert!(play(&messages).to_string().contains("git apply"), "the good patch changes files");
}

#[test]
fn without_it_it_submits_the_bad_one() {
    let bad = "--- a/w.py\n+++ b/w.py\n@@ -1 +1 @@\n-x = 1\n+x = 9\n";
    let reader = Reader::new(vec![task("a-1"), ReaderTask { bad_patch: bad.into(), ..task("b-2") }]).unwrap();
    let other_needle = prompt(&["<issue a-1>", "needle of b-2"]);
    assert_eq!(run(&reader, repository().path(), other_needle, true), "");
    let submission = run(&reader, repository().path(), prompt(&["<issue b-2>"]), false);
    assert!(submission.contains("+x = 9\n"), "{submission}");
}

#[test]
fn the_rule() {
    let poisoned = ReaderTask { poison: Some("venom".into()), solves_alone: true, ..task("a") };
    for (task, shown, solved) in [
        (task("a"), "", false),
        (task("a"), "needle of a", true),
        (ReaderTask { needle: None, ..task("a") }, "needle of a", false),
        (ReaderTask { solves_alone: true, ..task("a") }, "", true),
        (poisoned.clone(), "venom", false),
        (poisoned.clone(), "", true),
        (poisoned, "venom, needle of a", true),
    ] {
        assert_eq!(task.is_solved(&prompt(&[shown])), solved, "{shown}");
        let parts = json!({"role": "tool", "content": [{"type": "text", "text": shown}]});
        assert_eq!(task.is_solved(&[parts]), solved, "{shown}");
    }
}

#[test]
fn no_marker_or_several_are_refused() {
    let reader = Reader::new(vec![task("a"), task("b")]).unwrap();
    for (prompt, words) in [
        (prompt(&["nothing"]), "finds no task's marker"),
        (prompt(&["<issue a>", "<issue b>"]), "markers of several tasks in the prompt: a and b"),
    ] {
        match reader.play(&json!({ "messages": prompt })) {
            Act::Status { code: 400, body, .. } => {
                let message = body["error"]["message"].as_str().unwrap();
                assert!(message.contains(words), "{message}");
            }
            act => panic!("{act:?}"),
        }
    }
    // What a command prints later names no task.
    let mut later = prompt(&["<issue a>"]);
    later.push(json!({"role": "assistant", "content": "x"}));
    later.push(json!({"role": "user", "content": "<issue b>"}));
    assert!(matches!(reader.play(&json!({ "messages": later })), Act::Answer { .. }));
}

#[test]
fn the_same_conversation_gets_the_same_answer() {
    let reader = Reader::new(vec![task("a")]).unwrap();
    let request = json!({"messages": prompt(&["<issue a>"])});
    assert_eq!(format!("{:?}", reader.play(&request)), format!("{:?}", reader.play(&request)));
}

#[test]
fn plans_that_cannot_work_are_refused() {
    for (tasks, words) in [
        (vec![task("a"), task("a")], "twice"),
        (
            vec![task("a"), ReaderTask { marker: "see <issue a>".into(), ..task("b") }],
            "is part of the marker",
        ),
        (vec![ReaderTask { marker: " ".into(), ..task("a") }], "marker is empty"),
        (vec![ReaderTask { needle: Some(String::new()), ..task("a") }], "needle is empty"),
        (vec![ReaderTask { needle: Some("y = 1".into()), ..task("a") }], "part of the good_patch"),
        (vec![ReaderTask { poison: Some("issue".into()), ..task("a") }], "part of the marker"),
        (vec![ReaderTask { good_patch: "no diff".into(), ..task("a") }], "no file header"),
        (vec![ReaderTask { bad_patch: "no diff".into(), ..task("a") }], "bad_patch"),
    ] {
        let error = format!("{:#}", Reader::new(tasks).unwrap_err());
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn the_file_is_read_and_its_faults_have_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reader.jsonl");
    let line = json!({"instance_id": "a", "marker": "m", "needle": null, "poison": null, "solves_alone": true,
        "good_patch": GOOD, "bad_patch": ""});
    fs_err::write(&path, format!("{line}\n\n")).unwrap();
    assert_eq!(Reader::from_file(&path).unwrap().tasks.len(), 1);
    fs_err::write(&path, format!("{line}\n{{\"instance_id\": \"b\"}}\n")).unwrap();
    let error = format!("{:#}", Reader::from_file(&path).unwrap_err());
    assert!(error.contains("reader.jsonl, line 2: missing field `marker`"), "{error}");
}
