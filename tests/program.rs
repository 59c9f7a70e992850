//! Other programs as the agent: a small one of the test kit's through whole studies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::study::{FEW, Study, told};

/// The bundled study with a program in the agent's place: `more` are further keys of its section.
fn study_with(targets: &[&str], delay: Duration, command: &[&str], more: &str) -> Study {
    let study = Study::new(targets, delay);
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/agents");
    let agent = format!(
        "[agent]\ncommand = {}\nmounts = [{{ host = {}, inside = \"/opt/scripted\" }}]\nexclude = [\"patch.txt\"]\n{more}",
        json!(command),
        json!(tool),
    );
    let file = study.path("study.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("[agent]\nstep-limit = 30"));
    let text = text.replace("[agent]\nstep-limit = 30", &agent).replace("jobs = 2", "jobs = 2\nretries = 0");
    std::fs::write(&file, text).unwrap();
    study
}

const SCRIPTED: [&str; 2] = ["python3", "/opt/scripted/scripted.py"];

fn trial(condition: &str, target: &str) -> PathBuf {
    Path::new("trials").join(condition).join("reader/1").join(target)
}

fn record(study: &Study, condition: &str, target: &str) -> Value {
    study.json(trial(condition, target).join("verdict.json").to_str().unwrap())
}

fn text(study: &Study, place: &Path) -> String {
    std::fs::read_to_string(study.path(place.to_str().unwrap())).unwrap()
}

#[test]
fn a_program_shows_the_planted_effects_and_its_calls_are_its_costs() {
    let logs = "logs = [\"~/.scripted/**/*.jsonl\", \"/etc/none*\"]\nstep-limit = 30";
    let study = study_with(&FEW, Duration::ZERO, &SCRIPTED, logs);
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let expected = study.json("data/expected.json");
    let mut calls = 0;
    for condition in ["off", "bm25"] {
        for target in FEW {
            let planted =
                expected.as_array().unwrap().iter().find(|plan| plan["instance_id"] == target).unwrap();
            let record = record(&study, condition, target);
            assert_eq!(json!(record["verdict"] == "resolved"), planted[condition], "{record}");
            assert_eq!((&record["exit_status"], &record["attempts"]), (&json!("Submitted"), &json!(1)));
            calls += record["solver_cost"]["calls"].as_u64().unwrap();
            let folder = trial(condition, target);
            assert!(!text(&study, &folder.join("prediction.json")).contains("patch.txt"), "{target}");
            let trajectory: Value =
                serde_json::from_str(&text(&study, &folder.join(format!("{target}.traj.json")))).unwrap();
            let messages = trajectory["messages"].as_array().unwrap();
            let answers = messages.iter().filter(|message| message["role"] == "assistant").count() as u64;
            assert_eq!(json!(answers), record["steps"]);
            assert_eq!(messages.last().unwrap()["role"], "exit");
            assert_eq!(messages[1]["extra"]["actions"][0]["command"], "git log --oneline -3 && ls");
            let own = text(&study, &folder.join("agent-log/files/root/.scripted/log.jsonl"));
            assert_eq!(own.lines().count() as u64, answers, "the program's own log");
            assert!(text(&study, &folder.join("agent-log/output.txt")).contains("call_1: "));
        }
    }
    assert_eq!(calls, study.reader.count() as u64, "every call is some trial's");
    assert_eq!(study.reader.violations(), Vec::<String>::new());
    // Memory is all that differs, and it stands at the end.
    let prompt = |condition| text(&study, &trial(condition, FEW[0]).join("agent-log/prompt.md"));
    let (off, on) = (prompt("off"), prompt("bm25"));
    let block = on.strip_prefix(&off).unwrap();
    assert!(block.starts_with("\n\n") && block.len() > 20, "{block:?}");
}

#[test]
fn a_killed_study_begins_programs_anew_and_pays_no_call_twice() {
    let undisturbed = study_with(&FEW, Duration::ZERO, &SCRIPTED, "");
    assert_eq!(undisturbed.run(&[]).status.code(), Some(0));
    let study = study_with(&FEW, Duration::from_millis(60), &SCRIPTED, "");
    for calls in [4, 13] {
        study.kill_after(calls);
    }
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let mut attempts = 0;
    for condition in ["off", "bm25"] {
        for target in FEW {
            let (one, other) = (record(&study, condition, target), record(&undisturbed, condition, target));
            for key in ["verdict", "exit_status", "steps"] {
                assert_eq!(one[key], other[key], "{condition} {target} {key}");
            }
            let calls = |record: &Value| record["solver_cost"]["calls"].as_u64().unwrap();
            assert_eq!(calls(&one), calls(&other), "{condition} {target}");
            attempts += one["attempts"].as_u64().unwrap();
        }
    }
    assert!(attempts > 6, "no run was interrupted");
    // a call under way when the process is killed cannot be known to it: two at a time, two kills
    let (paid, needed) = (study.reader.count(), undisturbed.reader.count());
    assert!((needed..=needed + 4).contains(&paid), "{paid} calls where {needed} are needed");
}

#[test]
fn a_program_that_never_asks_is_a_failed_harness_and_says_why() {
    let study =
        study_with(&FEW[..1], Duration::ZERO, &["bash", "-c", "echo 'unknown option' >&2; exit 3"], "");
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(5), "{}", told(&output));
    let record = record(&study, "off", FEW[0]);
    assert_eq!(record["verdict"], "infrastructure");
    let reason = record["reason"].as_str().unwrap();
    assert!(reason.contains("with code 3") && reason.contains("unknown option"), "{reason}");
}

#[test]
fn limits_are_the_programs_own() {
    let study = study_with(&FEW[..1], Duration::ZERO, &SCRIPTED, "step-limit = 3");
    assert_eq!(study.run(&[]).status.code(), Some(0));
    let capped = record(&study, "off", FEW[0]);
    assert_eq!(
        (&capped["verdict"], &capped["exit_status"]),
        (&json!("agent-limit"), &json!("LimitsExceeded"))
    );
    assert_eq!((&capped["steps"], &capped["solver_cost"]["calls"]), (&json!(3), &json!(3)));
    let folder = trial("off", FEW[0]).join("agent-log");
    assert!(text(&study, &folder.join("run.json")).contains("may make 3 calls"));
    assert!(text(&study, &folder.join("output.txt")).contains("cap reached"));

    let slow = "python3 /opt/scripted/scripted.py \"$1\"; sleep 600";
    let study = study_with(&FEW[..1], Duration::ZERO, &["bash", "-c", slow, "x"], "time-limit = 8");
    assert_eq!(study.run(&[]).status.code(), Some(0));
    let late = record(&study, "off", FEW[0]);
    assert_eq!((&late["verdict"], &late["exit_status"]), (&json!("agent-limit"), &json!("TimeExceeded")));
    assert!(!text(&study, &trial("off", FEW[0]).join("agent-log/unsubmitted.diff")).is_empty());
}

#[test]
fn a_program_in_a_container_shows_the_same() {
    let Ok(image) = std::env::var("MEMTRIAL_DOCKER_IMAGE") else { return };
    // The prompt goes by a file here and on standard input in the other condition's words: each way is used once.
    let by_file = ["python3", "/opt/scripted/scripted.py", "@{{ prompt_file }}"];
    let study = study_with(
        &FEW[..1],
        Duration::ZERO,
        &by_file,
        "prompt-by = \"file\"\ninstall = \"mkdir -p ~/.scripted && touch ~/.scripted/installed\"\nlogs = [\"~/.scripted/*\"]",
    );
    let file = study.path("study.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text
        .replace("\"namespaces\"", "\"docker\"")
        .replace("base = \"host\"", &format!("base = \"image:{image}\""));
    std::fs::write(&file, text).unwrap();
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    for (condition, solved) in [("off", false), ("bm25", true)] {
        assert_eq!(record(&study, condition, FEW[0])["verdict"] == "resolved", solved);
        let kept = trial(condition, FEW[0]).join("agent-log/files/root/.scripted");
        assert!(study.path(kept.join("installed").to_str().unwrap()).is_file());
    }
}
