//! `memtrial compare`: two graded runs on disk.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};

fn compare(folder: &Path, args: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("memtrial").unwrap().current_dir(folder).arg("compare").args(args).assert()
}

/// A folder with graded runs `good` (30 of 40 resolved) and `poor` (the first 10), and `off.json` as `poor` (a file).
fn runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, resolved: u32| {
        let name = |i: u32| format!("o{}__r-{i}", i % 3);
        let report = json!({
            "total_instances": 40, "schema_version": 2, "error_ids": [],
            "resolved_ids": (0..resolved).map(name).collect::<Vec<_>>(),
            "unresolved_ids": (resolved..40).map(name).collect::<Vec<_>>(),
        });
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, report.to_string()).unwrap();
    };
    write("good/report.json", 30);
    write("poor/report.json", 10);
    write("off.json", 10);
    folder
}

fn stdout(assert: assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[test]
fn prints_the_comparison_of_folder_and_file() {
    let folder = runs();
    insta::assert_snapshot!(stdout(compare(folder.path(), &["good", "off.json"]).code(0)), @r"
    A against B; differences are A - B, in percentage points
    A  good/report.json: 40 tasks (resolved 30, unresolved 10)
    B  off.json: 40 tasks (resolved 10, unresolved 30)

    CONCLUSION
    A solved more than B, +50.0 pp [+31.6, +63.1], p < 0.001, over 40 targets: 20 gains, 0 harms.

    PAIRED
                    B resolved  B not resolved  all
    A resolved              10              20   30
    A not resolved           0              10   10
    all                     10              30   40

    TESTS AND INTERVALS
    quantity                         value
    resolved by A, by B              75.0 %, 25.0 %
    difference                       +50.0
    Newcombe 95 %                    [+31.6, +63.1]
    bootstrap 95 %                   [+35.0, +65.0]
    McNemar exact p                  <0.001
    McNemar mid-p                    <0.001
    smallest effect at 80 % power    22.4
    3 repositories as clusters 95 %  [+33.9, +66.1]
    equivalence, bootstrap 90 %      [+37.5, +62.5], not inside ±3.0

    FLIPS
    gains  o0__r-12, o0__r-15, o0__r-18, o0__r-21, o0__r-24, o0__r-27, o1__r-10, o1__r-13, o1__r-16,
           o1__r-19, o1__r-22, o1__r-25, o1__r-28, o2__r-11, o2__r-14, o2__r-17, o2__r-20, o2__r-23,
           o2__r-26, o2__r-29
    harms  none
    ");
}

#[test]
fn json_is_data_and_repeats_to_the_byte() {
    let folder = runs();
    let first = stdout(compare(folder.path(), &["good", "poor", "--json"]).code(0));
    let value: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(
        value["paired"]["single"]["table"],
        json!({"both": 10, "only_a": 20, "only_b": 0, "neither": 10})
    );
    assert_eq!(value["paired"]["gains"].as_array().unwrap().len(), 20);
    assert_eq!(first, stdout(compare(folder.path(), &["good", "poor", "--json"]).code(0)));
}

#[test]
fn the_gate_fails_only_where_a_is_worse() {
    let folder = runs();
    compare(folder.path(), &["good", "poor", "--fail-if-worse"]).code(0);
    compare(folder.path(), &["poor", "off.json", "--fail-if-worse"]).code(0);
    let worse = compare(folder.path(), &["poor", "good", "--fail-if-worse"]).code(1);
    assert!(stderr(&worse).contains("A is worse than B"));
    compare(folder.path(), &["poor", "good"]).code(0);
}

#[test]
fn the_page_is_written_whole() {
    let folder = runs();
    compare(folder.path(), &["good", "poor", "--html", "page.html"]).code(0);
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "no partial file stays");
    // a folder is made, a file in its place is told of
    compare(folder.path(), &["good", "poor", "--html", "new/page.html"]).code(0);
    compare(folder.path(), &["good", "poor", "--html", "page.html/page.html"]).code(4);
}

#[test]
fn bad_input_is_named_and_exits_with_3() {
    let folder = runs();
    let empty = compare(folder.path(), &["good", "."]).code(3);
    assert!(stderr(&empty).contains("there is no report.json here"), "{}", stderr(&empty));
    fs::write(folder.path().join("torn.json"), "{\"resolved_ids\": [").unwrap();
    let torn = compare(folder.path(), &["torn.json", "good"]).code(3);
    assert!(stderr(&torn).contains("torn.json: line 1"), "{}", stderr(&torn));
    let other = json!({"resolved_ids": ["x__y-1"], "unresolved_ids": [], "error_ids": []});
    fs::write(folder.path().join("other.json"), other.to_string()).unwrap();
    let none = compare(folder.path(), &["good", "other.json", "--fail-if-worse"]).code(3);
    assert!(stderr(&none).contains("no task has a verdict in both runs"), "{}", stderr(&none));
    compare(folder.path(), &["good"]).code(2);
}
