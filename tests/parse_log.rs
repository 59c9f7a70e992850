//! `memtrial parse-log`: reading, listing, detecting, describing and learning.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

use std::fs;

use assert_cmd::Command;
use serde_json::{Value, json};

use super::memtrial;

const PYTEST: &str = "============================= test session starts ==============================\n\
    collected 2 items\n\n=========================== short test summary info ============================\n\
    PASSED t.py::test_a\nFAILED t.py::test_b - assert 1 == 2\n========== 1 failed, 1 passed in 0.01s ==========\n";

const OWN: &str = "suite one\n  [good] first case (3 ms)\n  [bad] second case (12 ms)\nsuite two\n  [good] first case (1 ms)\n";

const DESCRIPTION: &str = r#"
name = "own"
joiner = " / "
[status]
good = "passed"
bad = "failed"
[[context]]
pattern = '^(?<indent>)(?<name>suite .*)$'
[[line]]
pattern = '^(?<indent> +)\[(?<status>good|bad)\] (?<name>.+?) \(\d+ ms\)$'
"#;

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn reads_a_file_and_standard_input() {
    let folder = folder(&[("a.log", PYTEST.as_bytes())]);
    let expected = json!({"t.py::test_a": "PASSED", "t.py::test_b": "FAILED"});
    let (code, out, err) = memtrial(folder.path(), &["parse-log", "parse_log_pytest", "a.log"]);
    assert_eq!((code, value(&out), err.as_str()), (0, expected.clone(), ""));
    let piped = Command::cargo_bin("memtrial")
        .unwrap()
        .args(["parse-log", "swe-rebench-2:parse_log_pytest"])
        .write_stdin(PYTEST)
        .assert()
        .code(0);
    assert_eq!(value(&String::from_utf8_lossy(&piped.get_output().stdout)), expected);
    let (_, full, _) = memtrial(folder.path(), &["parse-log", "parse_log_pytest", "a.log", "--full"]);
    assert_eq!(value(&full)["observations"][0]["line"], 5);
}

#[test]
fn says_what_is_wrong() {
    let bad = [PYTEST.split_once("PASSED").unwrap().0.as_bytes(), b"PASSED t.py::test_\xff\n"].concat();
    let folder = folder(&[("a.log", bad.as_slice()), ("raise.log", b"PASSED\tfoo\n")]);
    let (code, _, err) = memtrial(folder.path(), &["parse-log", "parse_log_pytes", "a.log"]);
    assert_eq!(code, 3);
    assert!(err.contains("did you mean parse_log_pytest"), "{err}");
    let (code, _, err) =
        memtrial(folder.path(), &["parse-log", "parse_log_pytest_v2", "raise.log", "--rules", "upstream"]);
    assert_eq!(code, 3);
    assert!(err.contains("IndexError"), "{err}");
    let (code, out, err) = memtrial(folder.path(), &["parse-log", "parse_log_pytest", "a.log"]);
    assert_eq!((code, value(&out)), (0, json!({"t.py::test_\u{fffd}": "PASSED"})));
    assert!(err.contains("not all UTF-8"), "{err}");
}

#[test]
fn lists_and_detects() {
    let folder = folder(&[("a.log", PYTEST.as_bytes()), ("none.log", b"hello\n")]);
    let (code, out, _) = memtrial(folder.path(), &["parse-log", "--list", "--json"]);
    let list = value(&out);
    let row = list.as_array().unwrap().iter().find(|row| row["name"] == "parse_log_gotest").unwrap().clone();
    assert_eq!((code, &row["origin"], &row["language"]), (0, &json!("swe-rebench-2"), &json!("Go")));
    let (code, out, _) = memtrial(folder.path(), &["parse-log", "--detect", "a.log", "--json"]);
    let found = value(&out);
    assert_eq!((code, &found["candidates"][0]["name"]), (0, &json!("parse_log_pytest")));
    assert_eq!(found["candidates"][0]["results"], 2);
    let (code, out, _) = memtrial(folder.path(), &["parse-log", "--detect", "none.log"]);
    assert_eq!((code, out.as_str()), (1, "no parser reads a result from this log\n"));
}

#[test]
fn reads_by_a_description() {
    let bad = DESCRIPTION.replace("(?<name>.+?)", ".+?");
    let folder = folder(&[
        ("own.log", OWN.as_bytes()),
        ("own.toml", DESCRIPTION.as_bytes()),
        ("bad.toml", bad.as_bytes()),
    ]);
    let (code, out, _) = memtrial(folder.path(), &["parse-log", "./own.toml", "own.log"]);
    let expected = json!({
        "suite one / first case": "PASSED", "suite one / second case": "FAILED", "suite two / first case": "PASSED",
    });
    assert_eq!((code, value(&out)), (0, expected));
    let (code, _, err) = memtrial(folder.path(), &["parse-log", "bad.toml", "own.log"]);
    assert_eq!(code, 3);
    assert!(err.contains("bad.toml: line[1].pattern: it has no group for the test's name"), "{err}");
}

#[test]
fn learns_a_description() {
    let outcomes = json!({
        "suite one / first case": "PASSED", "suite one / second case": "FAILED", "suite two / first case": "PASSED",
    })
    .to_string();
    let other = "suite six\n  [bad] a new case (7 ms)\n  [good] another (200 ms)\n";
    let log = OWN.replace("good", "passed").replace("bad", "failed");
    let other = other.replace("good", "passed").replace("bad", "failed");
    let files =
        [("own.log", log.as_bytes()), ("own.json", outcomes.as_bytes()), ("other.log", other.as_bytes())];
    let folder = folder(&files);
    let (code, _, err) =
        memtrial(folder.path(), &["parse-log", "--learn", "own.log=own.json", "-o", "new.toml"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("3 of 3 tests read right, 0 results wrong"), "{err}");
    let (code, out, _) = memtrial(folder.path(), &["parse-log", "new.toml", "other.log"]);
    assert_eq!(
        (code, value(&out)),
        (0, json!({"suite six / a new case": "FAILED", "suite six / another": "PASSED"}))
    );
}
