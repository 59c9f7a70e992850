//! Reading summary reports, and comparing two.

use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::report::Finding;

/// Writes a report and reads it.
fn read(report: &Value) -> Result<Run, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    fs::write(&path, report.to_string()).unwrap();
    read_run(&path)
}

/// The error, with the folder's name left out.
fn error(report: &Value) -> String {
    let text = read(report).unwrap_err().to_string();
    text[text.find("report.json").unwrap()..].to_owned()
}

fn ids(prefix: &str, range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| format!("{prefix}-{n}")).collect()
}

/// A version 5 report of `n` tasks of which these are resolved.
fn report(n: u32, resolved: &[u32]) -> Value {
    let (yes, no): (Vec<u32>, Vec<u32>) = (0..n).partition(|i| resolved.contains(i));
    let name = |i: &u32| format!("o{}__r-{i}", i % 4);
    json!({
        "total_instances": n, "submitted_instances": n, "completed_instances": n,
        "resolved_ids": yes.iter().map(name).collect::<Vec<_>>(),
        "unresolved_ids": no.iter().map(name).collect::<Vec<_>>(),
        "error_ids": [], "empty_patch_ids": [], "incomplete_ids": [], "infra_failure_ids": [],
        "schema_version": 2,
    })
}

#[test]
fn the_published_example_reads() {
    let run = read(&json!({
        "total_instances": 3, "submitted_instances": 2, "completed_instances": 1, "resolved_instances": 1,
        "unresolved_instances": 0, "infra_failure_instances": 0, "ambiguous_failure_instances": 1,
        "empty_patch_instances": 0, "error_instances": 1, "completed_ids": ["o__r-1"],
        "incomplete_ids": ["o__r-3"], "empty_patch_ids": [], "submitted_ids": ["o__r-1", "o__r-2"],
        "resolved_ids": ["o__r-1"], "unresolved_ids": [], "infra_failure_ids": [],
        "ambiguous_failure_ids": ["o__r-2"], "failure_reasons": {"o__r-2": "tests_timed_out"},
        "error_ids": ["o__r-2"], "schema_version": 2, "unstopped_instances": 0, "unstopped_containers": [],
        "unremoved_images": [],
    }))
    .unwrap();
    let outcomes: Vec<(&str, Outcome)> = run.outcomes.iter().map(|(id, o)| (id.as_str(), *o)).collect();
    assert_eq!(
        outcomes,
        [("o__r-1", Outcome::Resolved), ("o__r-2", Outcome::Error), ("o__r-3", Outcome::NoPrediction)]
    );
}

#[test]
fn version_4_reads_and_infrastructure_wins_over_other_failures() {
    let run = read(&json!({
        "completed_ids": ["a__b-1", "a__b-5"], "incomplete_ids": [], "empty_patch_ids": ["a__b-2"],
        "submitted_ids": ["a__b-1", "a__b-2", "a__b-3", "a__b-4", "a__b-5", "a__b-6"], "resolved_ids": ["a__b-1"],
        "unresolved_ids": ["a__b-4"], "error_ids": ["a__b-3", "a__b-5"], "infra_failure_ids": ["a__b-4"],
        "excluded_ids": ["a__b-5"], "unstopped_containers": [], "schema_version": 2,
    }))
    .unwrap();
    use Outcome::*;
    let outcomes: Vec<Outcome> = run.outcomes.into_values().collect();
    assert_eq!(outcomes, [Resolved, EmptyPatch, Error, Infrastructure, Excluded, Error]);
}

#[test]
fn bad_reports_get_named_errors() {
    let mut broken = report(3, &[0]);
    broken["unresolved_ids"] = json!("o__r-1");
    insta::assert_snapshot!(error(&broken), @r#"report.json: key "unresolved_ids": is no list of instance ids; grade the run again, or mend the file"#);
    broken["unresolved_ids"] = json!(["o1__r-1", 7]);
    insta::assert_snapshot!(error(&broken), @r#"report.json: key "unresolved_ids": item 1 is no instance id: 7; grade the run again, or mend the file"#);
    broken["unresolved_ids"] = json!(["o0__r-0"]);
    insta::assert_snapshot!(error(&broken), @r#"report.json: key "unresolved_ids": lists o0__r-0, which another list has as resolved; grade the run again, or mend the file"#);
    broken["schema_version"] = json!(1);
    insta::assert_snapshot!(error(&broken), @r#"report.json: key "schema_version": is 1, not 2; expected a summary report with schema_version 2, as `memtrial grade` and SWE-bench 4 and 5 write it"#);
    insta::assert_snapshot!(error(&json!({"resolved": ["a__b-1"]})), @r#"report.json: key "resolved_ids": is missing; expected a summary report with schema_version 2, as `memtrial grade` and SWE-bench 4 and 5 write it"#);
    insta::assert_snapshot!(error(&json!([1, 2])), @r#"report.json: key "(top level)": is no object; expected a summary report with schema_version 2, as `memtrial grade` and SWE-bench 4 and 5 write it"#);

    let folder = tempfile::tempdir().unwrap();
    let missing = read_run(folder.path()).unwrap_err();
    assert!(
        matches!(missing, ReadError::NoReport { .. }) && missing.to_string().contains("--out"),
        "{missing}"
    );
    fs::write(folder.path().join("report.json"), "{\"resolved_ids\": [\n\"a__b").unwrap();
    let torn = read_run(folder.path()).unwrap_err();
    assert!(matches!(torn, ReadError::Json { line: 2, .. }), "{torn}");
    let absent = read_run(&folder.path().join("nowhere.json")).unwrap_err();
    assert!(absent.to_string().contains("nowhere.json"), "{absent}");
}

/// The cells (40, 12, 7, 52) of the published vectors.
fn vector() -> Comparison {
    let a: Vec<u32> = (0..52).collect();
    let b: Vec<u32> = (0..40).chain(52..59).collect();
    compare(&read(&report(111, &a)).unwrap(), &read(&report(111, &b)).unwrap(), SEED)
}

#[test]
fn a_minus_b_gives_the_published_vector() {
    let single = vector().paired.single.unwrap();
    let t = single.table;
    assert_eq!((t.both, t.only_a, t.only_b, t.neither), (40, 12, 7, 52));
    assert_eq!((single.mcnemar_exact, single.mcnemar_mid_p), (11773.0 / 32768.0, 34495.0 / 131072.0));
    assert!((single.newcombe.low + 0.032845).abs() < 1e-6 && (single.newcombe.high - 0.121722).abs() < 1e-6);
    assert!(!vector().worse());
}

#[test]
fn codings_decide_what_is_compared() {
    let mut a = report(12, &[0, 1, 2]);
    a["unresolved_ids"] = json!(["o3__r-3", "o0__r-4"]);
    a["infra_failure_ids"] = json!(["o1__r-5"]);
    a["error_ids"] = json!(["o1__r-5", "o2__r-6"]);
    a["incomplete_ids"] = json!(["o3__r-7", "o0__r-8"]);
    a["excluded_ids"] = json!(["o1__r-9"]);
    let mut b = report(10, &[0, 5, 6, 9]);
    b["unresolved_ids"] = json!(["o1__r-1", "o2__r-2", "o3__r-3", "o0__r-4", "o0__r-8", "x__y-1"]);
    b["incomplete_ids"] = json!(["o3__r-7"]);
    let both = compare(&read(&a).unwrap(), &read(&b).unwrap(), SEED);
    assert_eq!((both.common, both.paired.targets, both.paired.missing_pairs), (8, 7, 1));
    assert_eq!(both.only_in_b, ["x__y-1"]);
    assert_eq!(both.attempted_by_neither, ["o3__r-7"]);
    assert_eq!(both.excluded, ["o1__r-9"]);
    let sensitivity = both.sensitivity.unwrap();
    assert_eq!(sensitivity.ids, ["o0__r-8", "o2__r-6"]);
    assert_eq!(sensitivity.targets, 5);
    // Without the doubtful failures A gains two targets of five; with them it also loses one of seven.
    assert_eq!(sensitivity.delta, Some(0.4));
    assert_eq!(both.paired.gains.iter().map(|f| f.id.as_str()).collect::<Vec<_>>(), ["o1__r-1", "o2__r-2"]);
    assert_eq!(both.paired.harms.iter().map(|f| f.id.as_str()).collect::<Vec<_>>(), ["o2__r-6"]);
}

#[test]
fn swapping_the_runs_mirrors_the_comparison() {
    let (a, b) = (read(&report(60, &[1, 2, 3, 4, 5, 6, 7, 8])).unwrap(), read(&report(60, &[8, 9])).unwrap());
    let (there, back) = (compare(&a, &b, 1).paired, compare(&b, &a, 1).paired);
    assert_eq!(there.delta.unwrap().interval.mirrored(), back.delta.unwrap().interval);
    assert_eq!(there.gains.len(), back.harms.len());
    assert_eq!(there.sign_flip, back.sign_flip);
}

#[test]
fn a_run_against_itself_shows_nothing() {
    let run = read(&report(30, &[1, 2, 3])).unwrap();
    let same = compare(&run, &run, SEED);
    assert_eq!(same.paired.finding, Finding::NotShown);
    assert!(!same.worse());
    insta::assert_snapshot!(same.conclusion, @r"no effect could be shown, +0.0 pp [-11.0, +11.0], p = 1.000, over 30 targets: 0 gains, 0 harms. An effect smaller than 20.0 pp could not have been seen (80 % power).");
}

#[test]
fn worse_means_that_the_whole_interval_lies_below_zero() {
    let (few, many): (Vec<u32>, Vec<u32>) = ((0..5).collect(), (0..25).collect());
    let (few, many) = (read(&report(60, &few)).unwrap(), read(&report(60, &many)).unwrap());
    assert!(compare(&few, &many, SEED).worse() && !compare(&many, &few, SEED).worse());
}

#[test]
fn repositories_of_all_id_forms() {
    let of = |id: &str| repository(id);
    assert_eq!(of("scikit-learn__scikit-learn-25570"), "scikit-learn__scikit-learn");
    assert_eq!(of("Instance_NodeBB__NodeBB-04998908ba-vnan"), "instance_nodebb__nodebb");
    assert_eq!(of("plain"), "plain");
}

#[test]
fn the_whole_text_of_a_comparison() {
    let mut comparison = vector();
    comparison.a.path = "runs/bm25/report.json".to_owned();
    comparison.b.path = "runs/off/report.json".to_owned();
    comparison.only_in_b = ids("x__y", 1..13);
    insta::assert_snapshot!(comparison.text(), @r"
    A against B; differences are A - B, in percentage points
    A  runs/bm25/report.json: 111 tasks (resolved 52, unresolved 59)
    B  runs/off/report.json: 111 tasks (resolved 47, unresolved 64)

    CONCLUSION
    no effect could be shown, +4.5 pp [-3.3, +12.2], p = 0.359, over 111 targets: 12 gains, 7 harms. An
    effect smaller than 11.0 pp could not have been seen (80 % power).

    PAIRED
                    B resolved  B not resolved  all
    A resolved              40              12   52
    A not resolved           7              52   59
    all                     47              64  111

    TESTS AND INTERVALS
    quantity                         value
    resolved by A, by B              46.8 %, 42.3 %
    difference                       +4.5
    Newcombe 95 %                    [-3.3, +12.2]
    bootstrap 95 %                   [-3.6, +12.6]
    McNemar exact p                  0.359
    McNemar mid-p                    0.263
    smallest effect at 80 % power    11.0
    4 repositories as clusters 95 %  [+1.5, +7.5]
    equivalence, bootstrap 90 %      [-1.8, +10.8], not inside ±3.0

    FLIPS
    gains  o0__r-40, o0__r-44, o0__r-48, o1__r-41, o1__r-45, o1__r-49, o2__r-42, o2__r-46, o2__r-50,
           o3__r-43, o3__r-47, o3__r-51
    harms  o0__r-52, o0__r-56, o1__r-53, o1__r-57, o2__r-54, o2__r-58, o3__r-55

    NOT COMPARED
    - 12 tasks listed by B only: x__y-1, x__y-2, x__y-3, x__y-4, x__y-5, x__y-6, x__y-7, x__y-8, x__y-9,
      x__y-10 and 2 more
    ");
    let page = comparison.html();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("runs/bm25/report.json"));
    let again: Comparison = serde_json::from_value(serde_json::to_value(&comparison).unwrap()).unwrap();
    assert_eq!(again, comparison);
}
