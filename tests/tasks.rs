//! `memtrial task`.

use std::fs;

use serde_json::{Value, json};

use super::memtrial;

fn row(id: &str) -> Value {
    json!({
        "instance_id": id, "repo": "acme/widget", "language": "Python", "problem_statement": "Title\nBody",
        "base_commit": "0123456789012345678901234567890123456789", "hints_text": "SECRET HINT",
        "patch": "--- a/w.py\n+++ b/w.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n",
        "test_patch": "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n",
        "FAIL_TO_PASS": ["t.py::test_a"], "PASS_TO_PASS": "[\"t.py::test_b\", \"t.py::test_c\"]",
        "install_config": {"install": ["pip install -e ."], "test_cmd": "pytest -rA", "log_parser": "parse_log_pytest"},
    })
}

#[test]
fn list_is_a_table() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("t.jsonl"),
        format!("{}\n{}\n", row("acme__widget-7"), row("acme__widget-12")),
    )
    .unwrap();
    let (code, out, err) = memtrial(folder.path(), &["task", "list", "t.jsonl"]);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(out, @r"
    ID               REPO         LANGUAGE  PARSER            F2P  P2P
    acme__widget-7   acme/widget  python    parse_log_pytest    1    2
    acme__widget-12  acme/widget  python    parse_log_pytest    1    2
    ");
    let (code, out, _) = memtrial(folder.path(), &["task", "list", "t.jsonl", "--json"]);
    assert_eq!(code, 0);
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        listed[1],
        json!({"instance_id": "acme__widget-12", "repo": "acme/widget", "language": "python",
        "log_parser": "parse_log_pytest", "fail_to_pass": 1, "pass_to_pass": 2})
    );
}

#[test]
fn show_hides_what_the_solver_may_not_see() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.json"), row("acme__widget-7").to_string()).unwrap();
    let (code, out, _) = memtrial(folder.path(), &["task", "show", "t.json", "--id", "acme__widget-7"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(out, @r"
    == solver
    instance_id: acme__widget-7
    repo: acme/widget
    base_commit: 0123456789012345678901234567890123456789
    problem_statement:
        Title
        Body
    language: python
    recipe.install:
      - pip install -e .
    recipe.test_cmd:
      - pytest -rA
    recipe.log_parser: parse_log_pytest
    recipe.tests_as_arguments: false
    ");
    let reveal = ["task", "show", "t.json", "--reveal", "hidden", "--reveal", "evaluator"];
    let (_, out, _) = memtrial(folder.path(), &reveal);
    assert!(out.contains("== hidden: nothing may read this at run time\nhints_text: SECRET HINT\n"), "{out}");
    assert!(
        out.contains("== evaluator: only the grading step may read this\npatch:\n    --- a/w.py\n"),
        "{out}"
    );
    let (_, out, _) = memtrial(folder.path(), &["task", "show", "t.json", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown[0].as_object().unwrap().keys().collect::<Vec<_>>(), ["solver"]);
    let (code, _, err) = memtrial(folder.path(), &["task", "show", "t.json", "--id", "acme__widget-8"]);
    assert_eq!(
        (code, err.as_str()),
        (3, "error: no task acme__widget-8 in t.json; `memtrial task list` shows what is there\n")
    );
    let (code, _, err) = memtrial(folder.path(), &["task", "show", "t.json", "--id", "widget"]);
    assert!(code == 2 && err.contains("expected owner__name-NUMBER"), "{err}");
}

#[test]
fn check_names_file_row_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let mut no_tests = row("acme__widget-8");
    no_tests["FAIL_TO_PASS"] = json!([]);
    let mut no_number = row("acme__widget");
    no_number["repo"] = Value::Null;
    let mut no_parser = row("acme__widget-9");
    no_parser["install_config"] = json!({"test_cmd": "make test"});
    let mut no_id = row("x");
    no_id.as_object_mut().unwrap().remove("instance_id");
    let rows = [row("acme__widget-7"), no_tests, no_number, no_parser.clone(), no_id, row("acme__widget-7")];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(folder.path().join("t.jsonl"), text + "{\"instance_id\": \"acme__wid").unwrap();
    fs::write(folder.path().join("warned.jsonl"), no_parser.to_string()).unwrap();
    let (code, out, _) = memtrial(folder.path(), &["task", "check", "t.jsonl"]);
    insta::assert_snapshot!(out, @r#"
    error: t.jsonl:2: field FAIL_TO_PASS: is missing or empty; no test would decide the task; run the tests before and after the gold patch to find them [acme__widget-8]
    error: t.jsonl:3: field instance_id: instance id "acme__widget" has no `-NUMBER` at its end; expected owner__name-NUMBER, for example acme__widget-7; without the pull request's number the task has no place in the causal order: give the row such an id [acme__widget]
    warning: t.jsonl:4: field log_parser: no log parser is named; add install_config.log_parser, for example parse_log_pytest [acme__widget-9]
    error: t.jsonl:5: field instance_id: is missing; every row needs it; see the data set's card for its column names
    error: t.jsonl:6: field instance_id: acme__widget-7 occurs before, at t.jsonl:1; keep one of the rows [acme__widget-7]
    error: t.jsonl:7: no valid JSON at column 26: EOF while parsing a string; one complete JSON object is expected on each line; if the file was cut, get it again
    t.jsonl: 7 rows, 2 good, 5 errors, 1 warning
    "#);
    assert_eq!(code, 3);
    let (code, out, _) = memtrial(folder.path(), &["task", "check", "warned.jsonl", "--json"]);
    assert_eq!(code, 0, "warnings alone are no failure");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        report["files"][0],
        json!({"file": "warned.jsonl", "rows": 1, "good": 1, "errors": 0, "warnings": 1})
    );
    let problem = &report["problems"][0];
    assert_eq!(
        (&problem["kind"], &problem["row"], &problem["field"]),
        (&json!("no-log-parser"), &json!(1), &json!("log_parser"))
    );
}

#[test]
fn files_that_are_none_exit_with_3() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("empty.jsonl"), "").unwrap();
    fs::write(folder.path().join("cut.json"), "[{\"instance_id\": ").unwrap();
    fs::write(folder.path().join("wrong.jsonl.gz"), b"\x1f\x8b\x08\x00garbage").unwrap();
    fs::create_dir(folder.path().join("dir")).unwrap();
    let mut lines = String::new();
    for file in ["empty.jsonl", "cut.json", "wrong.jsonl.gz", "dir", "none.parquet"] {
        let (code, out, err) = memtrial(folder.path(), &["task", "list", file]);
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        lines += &err;
    }
    insta::assert_snapshot!(lines, @r"
    error: empty.jsonl: the file is empty; expected rows as JSON, JSONL (plain, gzip or zstd) or parquet
    error: cut.json:1:17: no valid JSON: EOF while parsing a value; if the file was cut, get it again
    error: wrong.jsonl.gz: cannot be read: incomplete deflate stream
    error: dir: is a folder; name the .json, .jsonl or .parquet file in it
    error: none.parquet: cannot be read: No such file or directory (os error 2)
    ");
}
