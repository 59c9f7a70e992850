//! `memtrial grade`: what it refuses before it starts any sandbox, and how it explains itself.

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

/// A repository whose test command prints a pytest summary in which two ids are cut to one name.
const REPOSITORY: &str = r#"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
  GIT_COMMITTER_EMAIL=a@b
git init -qb main work; cd work
cat > run.sh <<'SH'
echo '=== short test summary info ==='
echo 'FAILED t.py::t[a b] - AssertionError'
echo 'PASSED t.py::t[a c]'
echo '=== 1 failed, 1 passed in 0.10s ==='
exit 1
SH
echo one > file; git add .; git commit -qm base; git rev-parse HEAD
cd ..; git clone -q --bare work repos/acme__widget.git
"#;

#[test]
fn rules_that_differ_are_explained() {
    let case = Case::new();
    let script =
        std::process::Command::new("bash").args(["-ec", REPOSITORY]).current_dir(case.folder.path()).output();
    let base = String::from_utf8(script.unwrap().stdout).unwrap();
    let row = serde_json::json!({
        "instance_id": "acme__widget-7", "repo": "acme/widget", "base_commit": base.trim(), "problem_statement": "p",
        "patch": "diff --git a/file b/file\n--- a/file\n+++ b/file\n@@ -1 +1 @@\n-one\n+two\n", "test_patch": "",
        "FAIL_TO_PASS": ["t.py::t[a"], "PASS_TO_PASS": [],
        "install_config": {"test_cmd": "bash run.sh", "log_parser": "parse_log_pytest"},
    });
    fs::write(case.folder.path().join("tasks.jsonl"), format!("{row}\n")).unwrap();
    let output = Command::cargo_bin("memtrial")
        .unwrap()
        .args(["grade", "--tasks", "tasks.jsonl", "--out", "out", "--gold", "--explain", "--repos", "repos"])
        .args(["--cache", "cache"])
        .current_dir(case.folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(told, @r"
    acme__widget-7  gold-fails
    0 of 1 resolved, 0 unresolved, 0 empty, 1 errors, 0 without a prediction

    acme__widget-7: strict rules unresolved, upstream rules resolved
      t.py::t[a (FAIL_TO_PASS): strict AMBIGUOUS, upstream PASSED: upstream gives several tests this name, and they do not agree
        line 3: FAILED t.py::t[a b] - AssertionError
        line 4: PASSED t.py::t[a c]

    strict and upstream verdicts differ on 1 of 1 instances
    ");
    let verdict = fs::read_to_string(case.folder.path().join("out/acme__widget-7/verdict.json")).unwrap();
    let verdict: serde_json::Value = serde_json::from_str(&verdict).unwrap();
    assert_eq!(verdict["explanation"]["tests"]["t.py::t[a"]["reason"], "several-tests");
}
