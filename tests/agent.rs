//! `memtrial agent`: the configuration is read and its faults are named before anything starts.

use assert_cmd::Command;

fn agent(more: &[&str]) -> (i32, String) {
    let output = Command::cargo_bin("memtrial")
        .unwrap()
        .args([
            "agent",
            "run",
            "--tasks",
            "t.jsonl",
            "--id",
            "acme__widget-7",
            "--solver",
            "replay:runs",
            "--out",
            "o",
        ])
        .args(more)
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_configuration_without_templates_is_bad_input() {
    let (code, message) = agent(&["-c", "agent.step_limit=5"]);
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("agent.system_template is missing"), "{message}");
}

#[test]
fn a_malformed_override_is_a_usage_error() {
    let (code, message) = agent(&["-c", "agent..x=5"]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("empty key"), "{message}");
}

#[test]
fn keys_without_effect_are_warned_about() {
    let (_, message) = agent(&["-c", "memtrial", "-c", "agent.max_iterations=50"]);
    assert!(message.contains("warning: agent configuration: unknown key agent.max_iterations"), "{message}");
}

#[test]
fn memory_needs_a_history() {
    let (code, message) = agent(&["--memory", "bm25"]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("--history"), "{message}");
}
