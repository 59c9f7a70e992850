//! Reading and checking task files.

use std::io::Write;

use serde_json::{Value, json};

use super::*;
use crate::dataset::{CheckReport, check};

fn v1_row() -> Value {
    json!({
        "instance_id": "Acme__widget-7", "repo": "Acme/widget", "version": 4.3,
        "base_commit": "0123456789012345678901234567890123456789",
        "problem_statement": "Title\r\nBody\u{202f}", "hints_text": "a hint", "created_at": "2020-12-30T03:14:33Z",
        "patch": "--- a/w.py\n+++ b/w.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n", "test_patch": "",
        "FAIL_TO_PASS": "[\"t.py::test_a\"]", "PASS_TO_PASS": "[]", "docker_image": "swerebench/x", "license_name": "MIT",
        "meta": "{\"merged_at\": \"2021-01-01\", \"is_lite\": true}",
        "install_config": "{\"python\": \"3.9\", \"packages\": \"requirements.txt\", \"reqs_path\": [\"r.txt\"], \
            \"pip_packages\": [\"pytest\"], \"pre_install\": null, \"install\": \"pip install -e .\", \
            \"env_vars\": {\"A\": 1}, \"no_use_env\": true, \"test_cmd\": \"pytest -rA\", \
            \"log_parser\": \"parse_log_pytest\"}",
    })
}

fn v2_row() -> Value {
    json!({
        "instance_id": "acme__gadget-8", "repo": "Acme/gadget", "language": "Go", "interface": "new()",
        "base_commit": "0123456789012345678901234567890123456789", "problem_statement": "p",
        "created_at": 1_609_298_073_000_i64, "patch": "", "test_patch": "", "FAIL_TO_PASS": ["a b"], "PASS_TO_PASS": [],
        "image_name": null, "license": "MIT", "pr_description": "the fix",
        "install_config": {"base_image_name": "go 1.22", "docker_specs": null, "install": ["a", "b"],
            "test_cmd": ["go test -v ./..."], "log_parser": "parse_log_gotest", "env": {"B": "2"}},
    })
}

fn pro_row() -> Value {
    json!({
        "instance_id": "acme__gizmo-9", "repo": "acme/gizmo", "repo_language": "js", "dockerhub_tag": "acme.gizmo-9",
        "base_commit": "0123456789012345678901234567890123456789", "problem_statement": "p",
        "fail_to_pass": "['t | it works', \"it's\"]", "pass_to_pass": "[]", "requirements": "must", "interface": "i",
    })
}

fn live_row() -> Value {
    json!({
        "instance_id": "acme__thing-10", "repo": "acme/thing", "language": "C++", "pull_number": 10,
        "base_commit": "0123456789012345678901234567890123456789", "problem_statement": "p",
        "docker_image": "repolaunch/dev:x", "test_cmds": ["make test"], "print_cmds": ["cat log"],
        "rebuild_cmds": ["make"], "log_parser": "pytest", "FAIL_TO_PASS": ["x"], "all_hints_text": "h",
    })
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

#[test]
fn every_container_gives_the_same_tasks() {
    let folder = Folder::new();
    let rows = [v1_row(), v2_row(), pro_row(), live_row()];
    let text = lines(&rows);
    let by_id: serde_json::Map<_, _> =
        rows.iter().map(|row| (row["instance_id"].as_str().unwrap().to_owned(), row.clone())).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let zstd = zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
    let expected = read_tasks(&folder.file("plain.jsonl", &text)).unwrap().tasks;
    assert_eq!(expected.len(), 4);
    for (name, bytes) in [
        ("list.json", serde_json::to_vec_pretty(&rows).unwrap()),
        ("one-line-list.json", serde_json::to_vec(&rows).unwrap()),
        ("by-id.json", serde_json::to_vec_pretty(&by_id).unwrap()),
        ("by-id-one-line.json", serde_json::to_vec(&by_id).unwrap()),
        ("lines-named.json", text.clone().into_bytes()),
        ("bom.jsonl", format!("\u{feff}{text}").into_bytes()),
        ("bom.json", format!("\u{feff}{}", json!(rows)).into_bytes()),
        ("blank.jsonl", format!("\n\n{}\n", text.replace('\n', "\r\n")).into_bytes()),
        ("t.jsonl.gz", gzip.finish().unwrap()),
        ("no-ending", zstd),
    ] {
        let file = read_tasks(&folder.file(name, bytes)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(file.tasks, expected, "{name}");
    }
    let single =
        read_tasks(&folder.file("single.json", serde_json::to_vec_pretty(&rows[0]).unwrap())).unwrap();
    assert_eq!(single.tasks[..], expected[..1]);
    let path = folder.0.path().join("t.parquet");
    crate::dataset::parquet::tests::write(&path, parquet::basic::Compression::SNAPPY);
    let error = read_tasks(&path).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "t.parquet:1: field base_commit: is missing; every row needs it; see the data set's card \
                             for its column names"
        ),
        "{error}"
    );
}

#[test]
fn rows_are_taken_apart_by_visibility() {
    let folder = Folder::new();
    let file =
        read_tasks(&folder.file("t.jsonl", lines(&[v1_row(), v2_row(), pro_row(), live_row()]))).unwrap();
    let [v1, v2, pro, live] = &file.tasks[..] else { panic!() };
    assert_eq!(v1.solver.problem_statement, "Title\r\nBody\u{202f}");
    assert_eq!(
        (v1.solver.version.as_deref(), v1.solver.image_name.as_deref()),
        (Some("4.3"), Some("swerebench/x"))
    );
    let recipe = &v1.solver.recipe;
    assert_eq!(
        (recipe.python.as_deref(), recipe.packages.as_deref()),
        (Some("3.9"), Some("requirements.txt"))
    );
    assert_eq!(
        (&recipe.install[..], &recipe.test_cmd[..]),
        (&["pip install -e .".to_owned()][..], &["pytest -rA".to_owned()][..])
    );
    assert!(recipe.tests_as_arguments && recipe.pre_install.is_empty());
    assert_eq!(recipe.env["A"], "1");
    assert_eq!(recipe.other.keys().collect::<Vec<_>>(), ["no_use_env"]);
    assert_eq!(v1.evaluator.fail_to_pass, ["t.py::test_a"]);
    assert_eq!(v1.hidden.hints_text.as_deref(), Some("a hint"));
    assert_eq!(v1.hidden.merged_at.as_deref(), Some("2021-01-01"));
    assert_eq!(v1.hidden.other.keys().collect::<Vec<_>>(), ["license_name", "meta"]);
    assert_eq!((v2.solver.language.as_deref(), v2.hidden.interface.as_deref()), (Some("go"), Some("new()")));
    assert!(!v2.solver.recipe.tests_as_arguments && v2.solver.recipe.other.is_empty());
    assert_eq!(v2.solver.recipe.install, ["a", "b"]);
    assert_eq!(pro.solver.image_name.as_deref(), Some("jefzda/sweap-images:acme.gizmo-9"));
    assert_eq!(pro.evaluator.fail_to_pass, ["t | it works", "it's"]);
    assert_eq!(pro.hidden.other["requirements"], "must");
    assert_eq!(live.solver.recipe.test_cmd, ["make test", "cat log"]);
    assert_eq!(
        (&live.solver.recipe.build[..], live.solver.language.as_deref()),
        (&["make".to_owned()][..], Some("c++"))
    );
    assert_eq!(live.hidden.hints_text.as_deref(), Some("h"));
}

/// Nothing of a hidden or an evaluator column reaches the solver's view, whatever the row holds.
#[test]
fn the_solver_sees_no_canary() {
    let folder = Folder::new();
    for mut row in [v1_row(), v2_row(), pro_row(), live_row()] {
        let solver: Vec<&str> = crate::dataset::COLUMNS
            .iter()
            .filter(|column| column.visibility == crate::dataset::Visibility::Solver)
            .flat_map(|column| std::iter::once(column.name).chain(column.also.iter().copied()))
            .collect();
        for (key, value) in row.as_object_mut().unwrap() {
            if !solver.contains(&key.as_str()) {
                *value = match key.to_lowercase().as_str() {
                    "fail_to_pass" | "pass_to_pass" => json!(["CANARY"]),
                    "meta" => json!({"merged_at": "CANARY"}),
                    _ => "CANARY".into(),
                };
            }
        }
        row["something_new"] = "CANARY".into();
        let task = read_tasks(&folder.file("t.jsonl", lines(&[row]))).unwrap().tasks.remove(0);
        assert!(!serde_json::to_string(&task.solver).unwrap().contains("CANARY"));
        assert!(serde_json::to_string(&task.hidden).unwrap().contains("CANARY"));
    }
}

fn with(mut row: Value, key: &str, value: Value) -> Value {
    row[key] = value;
    row
}

#[test]
fn bad_rows_name_file_row_and_field() {
    let folder = Folder::new();
    let cut = v1_row().to_string();
    let rows = [
        lines(&[v2_row(), v2_row()]),
        lines(&[with(v1_row(), "instance_id", "acme__widget-abc".into())]),
        lines(&[with(v1_row(), "instance_id", Value::Null)]),
        lines(&[with(v1_row(), "FAIL_TO_PASS", "test_a".into())]),
        lines(&[with(v1_row(), "PASS_TO_PASS", json!(["a", 1]))]),
        lines(&[with(v1_row(), "install_config", "{\"a\"".into())]),
        lines(&[with(v1_row(), "install_config", json!({"install": {"a": 1}}))]),
        lines(&[with(v1_row(), "problem_statement", json!(7))]),
        format!("{}\n[1]\n", v2_row()),
        cut[..cut.len() / 2].to_owned(),
    ];
    let errors: Vec<String> = rows
        .iter()
        .map(|text| {
            let error = read_tasks(&folder.file("t.jsonl", text)).unwrap_err().to_string();
            error.rsplit_once('/').unwrap().1.to_owned()
        })
        .collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
    t.jsonl:2: field instance_id: acme__gadget-8 occurs before, at row 1; keep one of the rows
    t.jsonl:1: field instance_id: instance id "acme__widget-abc" has no `-NUMBER` at its end; expected owner__name-NUMBER, for example acme__widget-7; without the pull request's number the task has no place in the causal order: give the row such an id
    t.jsonl:1: field instance_id: is missing; every row needs it; see the data set's card for its column names
    t.jsonl:1: field FAIL_TO_PASS: the text "test_a" is no list; expected a list of texts, or a JSON text that holds one
    t.jsonl:1: field PASS_TO_PASS[1]: expected a text, found a number; correct the row, or leave the column out if it is optional
    t.jsonl:1: field install_config: the text is no valid JSON: EOF while parsing an object at line 1 column 4; expected an object, or a JSON text that holds one
    t.jsonl:1: field install_config.install: expected a command or a list of commands, found an object; correct the row, or leave the column out if it is optional
    t.jsonl:1: field problem_statement: expected a text, found a number; correct the row, or leave the column out if it is optional
    t.jsonl:2: expected an object, found a list; a row is an object of column → value
    t.jsonl:1: no valid JSON at column 389: EOF while parsing a string; one complete JSON object is expected on each line; if the file was cut, get it again
    "#);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let good = lines(&[v1_row(), v2_row()]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(good.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let list = json!([v1_row(), v2_row()]).to_string();
    for (name, bytes, words) in [
        ("empty.json", Vec::new(), "the file is empty"),
        ("blank.jsonl", b"\n \n".to_vec(), "the file is empty"),
        ("no-rows.json", b"[]".to_vec(), "the file is empty"),
        ("cut.jsonl.gz", gzip[..gzip.len() / 2].to_vec(), "cut.jsonl.gz: cannot be read"),
        ("wrong.jsonl.gz", b"\x1f\x8bnot gzip at all".to_vec(), "wrong.jsonl.gz: cannot be read"),
        ("cut.json", list.as_bytes()[..list.len() - 9].to_vec(), "no valid JSON after 1 row"),
        ("text.json", b"hello".to_vec(), "text.json:1:1: no valid JSON"),
        ("t.parquet", b"PAR1 and nothing".to_vec(), "t.parquet: parquet: "),
        ("utf8.jsonl", b"{\"instance_id\": \"\xff\"}\n".to_vec(), "utf8.jsonl:1: no valid JSON at column"),
    ] {
        let error = read_tasks(&folder.file(name, bytes)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(read_tasks(folder.0.path()).unwrap_err().to_string().contains("is a folder"));
    assert!(
        read_tasks(&folder.0.path().join("none.json"))
            .unwrap_err()
            .to_string()
            .contains("none.json: cannot be read")
    );
}

#[test]
fn one_bad_row_does_not_stop_the_others() {
    let folder = Folder::new();
    let text = format!("{}\n{{\"instance_id\": \"x\"\n{}\n{}\n", v1_row(), v1_row(), v2_row());
    let file = read_tasks_leniently(&folder.file("t.jsonl", text)).unwrap();
    assert_eq!((file.tasks.len(), file.errors.len()), (2, 2));
    assert_eq!(file.errors.iter().map(|error| error.row).collect::<Vec<_>>(), [2, 3]);
    assert!(file.get(&InstanceId::parse("acme__gadget-8").unwrap()).is_some());
}

#[test]
fn a_lone_surrogate_is_mended_and_reported() {
    let folder = Folder::new();
    let text = lines(&[v2_row()]).replace("the fix", r"the \ud800 fix");
    for (name, text) in [("t.jsonl", text.clone()), ("t.json", format!("[{text}]"))] {
        let file = read_tasks(&folder.file(name, text)).unwrap();
        assert_eq!(file.tasks[0].hidden.pr_description.as_deref(), Some("the \u{fffd} fix"));
        assert_eq!((file.warnings.len(), file.warnings[0].kind), (1, "lone-surrogate"));
    }
}

fn kinds(report: &CheckReport) -> Vec<&'static str> {
    report.problems.iter().map(|problem| problem.kind).collect()
}

#[test]
fn check_finds_what_is_wrong() {
    let folder = Folder::new();
    let good = with(v1_row(), "test_patch", v1_row()["patch"].clone());
    let report = check(&[folder.file("good.jsonl", lines(std::slice::from_ref(&good)))]);
    assert!(report.is_good() && report.problems.is_empty(), "{:?}", report.problems);
    for (column, value, kind, is_error) in [
        ("FAIL_TO_PASS", json!([]), "no-deciding-test", true),
        ("base_commit", json!("0123abc"), "bad-base-commit", true),
        ("problem_statement", json!(" \n"), "blank-problem", true),
        ("instance_id", json!("acme__widget"), "unreadable-row", true),
        ("PASS_TO_PASS", json!(["t.py::test_a"]), "test-in-both-lists", false),
        ("PASS_TO_PASS", json!(["t.py::test_b[x"]), "truncated-test-name", false),
        ("PASS_TO_PASS", json!(["b", "b"]), "repeated-test-name", false),
        ("patch", json!("nonsense\n"), "unparsable-patch", false),
        ("patch", json!("--- a/w\n+++ b/w\n@@ -1,9 +1 @@\n-x\n"), "unparsable-patch", false),
        ("patch", json!(""), "empty-patch", false),
        ("test_patch", json!("--- a/w\n+++ b/w\n@@ -1 +1 @@\n-x\n+y"), "patch-without-newline", false),
        ("created_at", json!("soon"), "bad-date", false),
        ("meta", json!({"merged_at": "soon"}), "bad-date", false),
        ("repo", json!("other/name"), "repo-mismatch", false),
        ("repo", Value::Null, "repo-missing", false),
        (
            "install_config",
            json!({"test_cmd": "x", "log_parser": "def f(log):\n  return {}"}),
            "parser-is-code",
            false,
        ),
        ("install_config", json!({"log_parser": "parse_log_pytest"}), "no-test-command", false),
        ("install_config", json!({"test_cmd": "x"}), "no-log-parser", false),
    ] {
        let report = check(&[folder.file("t.jsonl", lines(&[with(good.clone(), column, value)]))]);
        assert_eq!(kinds(&report), [kind], "{column}");
        assert_eq!(report.is_good(), !is_error, "{kind}");
        let at = &report.problems[0].at;
        assert_eq!((at.row, at.field.is_some() || kind == "unreadable-row"), (1, true));
    }
}

#[test]
fn check_counts_files_and_sees_ids_across_them() {
    let folder = Folder::new();
    let one = folder.file("one.jsonl", lines(&[v1_row(), v2_row()]));
    let mut text = lines(&[live_row(), v2_row()]).into_bytes();
    text.extend(b"{\"cut\": ");
    let two = folder.file("two.jsonl", text);
    let report = check(&[one, two, folder.0.path().join("none.jsonl")]);
    let counts: Vec<_> = report.files.iter().map(|f| (f.rows, f.good, f.errors)).collect();
    assert_eq!(counts, [(2, 2, 0), (3, 1, 2), (0, 0, 1)]);
    let errors: Vec<_> = report.problems.iter().filter(|p| p.severity == Severity::Error).collect();
    assert_eq!(
        (errors[0].kind, errors[1].kind, errors[2].kind),
        ("duplicate-id", "unreadable-row", "unreadable-file")
    );
    assert!(errors[0].at.message.ends_with("one.jsonl:2"), "{}", errors[0].at.message);
}

#[test]
fn real_files_are_read_whole() {
    let Ok(data) = std::env::var("MEMTRIAL_DATA") else { return };
    let root = Path::new(&data).join("tasks");
    for (name, rows) in [
        ("verified-here.jsonl", 40),
        ("swebench-lite.jsonl", 267),
        ("swebench-live-multi.jsonl.gz", 1181),
        ("swe-rebench-v2/sample.json", 1),
    ] {
        assert_eq!(read_tasks(&root.join(name)).unwrap().tasks.len(), rows, "{name}");
    }
}
