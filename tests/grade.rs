//! `memtrial grade`: what it refuses before it starts any sandbox.

use std::fs;

use assert_cmd::Command;
use tempfile::TempDir;

const ROW: &str = r#"{"instance_id":"acme__widget-7","repo":"acme/widget","base_commit":"0123456789012345678901234567890123456789","patch":"","test_patch":"","problem_statement":"p","FAIL_TO_PASS":["t"],"PASS_TO_PASS":[],"install_config":{"test_cmd":"pytest -rA","log_parser":"parse_log_pytest"}}"#;

struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tasks.jsonl"), format!("{ROW}\n")).unwrap();
        Self { folder }
    }

    /// Runs the verb in the folder; returns the exit code and what it told.
    fn grade(&self, arguments: &[&str]) -> (i32, String) {
        let output = Command::cargo_bin("memtrial")
            .unwrap()
            .args(["grade", "--tasks", "tasks.jsonl", "--out", "out"])
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn one_source_is_required_and_no_more() {
    let case = Case::new();
    assert_eq!(case.grade(&[]).0, 2);
    let (code, told) = case.grade(&["--gold", "--empty"]);
    assert_eq!(code, 2);
    assert!(told.contains("--gold") && told.contains("--empty"), "{told}");
    assert_eq!(case.grade(&["--gold", "--repeat", "0"]).0, 2);
    assert_eq!(case.grade(&["--gold", "--id", "nonsense"]).0, 2);
}

#[test]
fn bad_input_is_named_and_nothing_is_written() {
    let case = Case::new();
    fs::write(case.folder.path().join("preds.json"), "[{\"instance_id\":").unwrap();
    let (code, told) = case.grade(&["--predictions", "preds.json"]);
    assert_eq!(code, 3, "{told}");
    assert!(told.contains("preds.json, line 1, column 16"), "{told}");

    let (code, told) = case.grade(&["--gold", "--id", "acme__widget-8"]);
    assert_eq!(code, 3, "{told}");
    assert!(told.contains("tasks.jsonl holds no task acme__widget-8"), "{told}");

    fs::write(case.folder.path().join("tasks.jsonl"), ROW.replace("\"instance_id\":\"acme__widget-7\",", ""))
        .unwrap();
    let (code, told) = case.grade(&["--gold"]);
    assert_eq!(code, 3, "{told}");
    assert!(told.contains("tasks.jsonl") && told.contains("instance_id"), "{told}");
    assert!(!case.folder.path().join("out").exists());
}
