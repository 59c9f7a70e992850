//! Laws of reading and writing whole trajectories.

use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::trajectory::{Limits, Part, Role, stream, summarize};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |v| v.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            any_map(inner).prop_map(Value::Object),
        ]
    })
}

fn any_map(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec((any::<String>(), value), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

fn any_message() -> impl Strategy<Value = Value> {
    let role = prop_oneof![Just("system"), Just("user"), Just("assistant"), Just("tool"), Just("exit")];
    (any_map(any_json()), role, any_json(), any_json()).prop_map(|(mut raw, role, content, extra)| {
        raw.insert("content".into(), content);
        raw.insert("role".into(), role.into());
        raw.insert("extra".into(), extra);
        Value::Object(raw)
    })
}

fn any_run() -> impl Strategy<Value = Value> {
    let messages = proptest::collection::vec(any_message(), 0..4);
    (any_map(any_json()), messages, any_json(), any::<bool>()).prop_map(|(mut top, messages, info, named)| {
        top.shift_remove("trajectory_format");
        top.insert("info".into(), info);
        top.insert("messages".into(), messages.into());
        if named {
            top.insert("trajectory_format".into(), "mini-swe-agent-1.1".into());
        }
        top.insert("instance_id".into(), "a__b-1".into());
        Value::Object(top)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn reading_then_writing_is_the_identity(run in any_run(), indent in prop_oneof![Just(None), Just(Some(2))],
                                            ascii: bool, newline: bool) {
        let spelling = Spelling { indent, ascii, newline };
        let bytes = to_bytes(&run, spelling).unwrap();
        let read = Trajectory::from_bytes(&bytes, Path::new("t")).unwrap();
        prop_assert_eq!(read.to_bytes().unwrap(), bytes);
    }

    #[test]
    fn streaming_hands_over_what_the_whole_holds(run in any_run()) {
        let bytes = serde_json::to_vec(&run).unwrap();
        let whole = Trajectory::from_bytes(&bytes, Path::new("t")).unwrap();
        let (mut messages, mut fields) = (Vec::new(), Map::new());
        let report = stream(bytes.as_slice(), Path::new("t"), &Limits::default(), &mut |part| {
            match part {
                Part::Field { key, value } => drop(fields.insert(key.to_owned(), value.clone())),
                Part::Message { message, .. } => messages.push(message),
            }
            ControlFlow::Continue(())
        }).unwrap();
        prop_assert_eq!(report.format, Some(whole.format()));
        prop_assert_eq!(messages.as_slice(), whole.messages());
        prop_assert_eq!(fields.get("info"), whole.info());
        prop_assert_eq!(fields.len() + 1, run.as_object().unwrap().len());
    }
}

fn stream_error(text: &[u8]) -> String {
    stream(text, Path::new("x.traj.json"), &Limits::default(), &mut |_| ControlFlow::Continue(()))
        .unwrap_err()
        .to_string()
}

#[test]
fn bad_files_get_named_errors() {
    let good = r#"{"messages": [{"role": "user", "content": "x"}]}"#;
    for (text, words) in [
        (&b""[..], "the file is empty"),
        (&good.as_bytes()[..good.len() - 5], "x.traj.json:1:"),
        (b"{\"messages\": [{\"role\": \"user\", \"content\": \"\xff\"}]}", "invalid unicode"),
        (br#"{"messages": [{"role": "user"}, {"role": "bard"}]}"#, "message 2: unknown role \"bard\""),
        (br#"{"messages": 3}"#, "expected a list"),
        (br#"{"info": {}}"#, "`messages` is missing"),
        (br#"[{"role": "user"}]"#, "list"),
        (br#"{"messages": [], "trajectory_format": "x"}"#, "trajectory_format is \"x\""),
        (br#"{"messages": []} trailing"#, "trailing characters"),
    ] {
        let streamed = stream_error(text);
        assert!(streamed.contains(words), "streamed: {streamed}");
        let whole = Trajectory::from_bytes(text, Path::new("x.traj.json")).unwrap_err().to_string();
        assert!(whole.starts_with("x.traj.json"), "whole: {whole}");
    }
    assert!(stream_error(br#"{"messages": [], "messages": []}"#).contains("twice"));
}

#[test]
fn the_caller_may_stop() {
    let text = br#"{"messages": [{"role": "user", "content": "x"}, {"role": "bard"}]}"#;
    let report =
        stream(&text[..], Path::new("t"), &Limits::default(), &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!((report.format, report.messages), (None, 1));
}

#[test]
fn a_lone_surrogate_does_not_lose_the_run() {
    let text = br#"{"messages": [{"role": "user", "content": "x \ud83d y"}]}"#;
    let run = Trajectory::from_bytes(text, Path::new("t")).unwrap();
    assert_eq!((run.messages()[0].text().as_ref(), run.repaired()), ("x \u{fffd} y", 1));
}

#[test]
fn a_new_run_is_written_in_one_step_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a__b-1.traj.json");
    let mut info = Map::new();
    info.insert("exit_status".into(), "".into());
    let messages = vec![Message::text_message(Role::System, "S"), Message::text_message(Role::User, "é")];
    let mut run = Trajectory::new_v1_1(info, messages, "a__b-1");
    run.write(&path).unwrap();
    run.set_info("exit_status", json!("Submitted"));
    run.push(
        Message::from_value(json!({"role": "exit", "content": "p", "extra": {"submission": "p"}})).unwrap(),
    );
    run.write(&path).unwrap();
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["a__b-1.traj.json"]);
    let read = Trajectory::read(&path).unwrap();
    assert_eq!((read.format(), read.messages().len()), (Format::Mini1_1, 3));
    assert_eq!(read.to_bytes().unwrap(), run.to_bytes().unwrap());
    let summary = summarize(&path, &Limits::default()).unwrap();
    assert_eq!(summary.submission.as_deref(), Some("p"));
    insta::assert_snapshot!(String::from_utf8(run.to_bytes().unwrap()).unwrap(), @r#"
    {
      "info": {
        "exit_status": "Submitted"
      },
      "messages": [
        {
          "role": "system",
          "content": "S"
        },
        {
          "role": "user",
          "content": "\u00e9"
        },
        {
          "role": "exit",
          "content": "p",
          "extra": {
            "submission": "p"
          }
        }
      ],
      "trajectory_format": "mini-swe-agent-1.1",
      "instance_id": "a__b-1"
    }
    "#);
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/a.traj.json");
    let run = Trajectory::new_v1_1(Map::new(), Vec::new(), "a__b-1");
    assert!(run.write(&path).unwrap_err().to_string().contains("missing/a.traj.json: cannot be written"));
}

/// Memory does not grow with the file: a run of 24 MB whose texts are cut while it is read.
#[test]
fn long_texts_are_cut_while_streaming() {
    let long = "x".repeat(3 << 20);
    let message = json!({"role": "tool", "content": "short", "extra": {"raw_output": long}}).to_string();
    let text = format!("{{\"messages\": [{}]}}", vec![message; 8].join(", "));
    let limits = Limits { text_chars: 1000, ..Limits::default() };
    let mut longest = 0;
    let report = stream(text.as_bytes(), Path::new("t"), &limits, &mut |part| {
        if let Part::Message { message, .. } = part {
            longest = longest.max(message.observation().unwrap().raw_output.len());
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!((report.messages, report.counts.cut_texts), (8, 8));
    assert_eq!(report.counts.cut_chars, 8 * ((3 << 20) - 1000));
    assert!(longest < 1100, "{longest}");
    let small = Limits { file_bytes: 10, ..Limits::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a__b-1.traj.json");
    std::fs::write(&path, &text).unwrap();
    assert!(summarize(&path, &small).unwrap_err().to_string().contains("more than the limit of 10"));
}

#[test]
fn real_files_are_rewritten_byte_for_byte() {
    let Ok(data) = std::env::var("MEMTRIAL_DATA") else { return };
    let root = Path::new(&data).join("trajectories");
    let (mut files, mut equal) = (0, 0);
    let mut folders =
        vec![root.join("scripted_mini-2.4.6"), root.join("swebench-verified_gemini3pro_mini-1.15")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".traj.json") {
                let bytes = std::fs::read(&path).unwrap();
                files += 1;
                equal +=
                    usize::from(Trajectory::from_bytes(&bytes, &path).unwrap().to_bytes().unwrap() == bytes);
            }
        }
    }
    assert_eq!((files, equal), (509, 509));
}
