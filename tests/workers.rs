//! Several processes on one study: no trial is run twice, a killed one's are taken up, a suspended one's taken over.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::study::{FEW, Study, told, without_seconds};

/// Waits for something, for two minutes at most.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}: the study does not get on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// How often each event of the workers' journals happened, by event, condition and target.
fn events(study: &Study) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for journal in std::fs::read_dir(study.path("journal")).unwrap() {
        for line in std::fs::read_to_string(journal.unwrap().path()).unwrap().lines() {
            let what = serde_json::from_str::<Value>(line).unwrap()["what"].clone();
            let key = if what["record"].is_object() { &what["record"] } else { &what };
            let trial = format!("{} {}", key["condition"], key["instance_id"]);
            *counts.entry((what["event"].as_str().unwrap().to_owned(), trial)).or_default() += 1;
        }
    }
    counts
}

fn of<'a>(events: &'a BTreeMap<(String, String), usize>, name: &str) -> Vec<&'a usize> {
    events.iter().filter(|((event, _), _)| event == name).map(|(_, count)| count).collect()
}

fn report(study: &Study) -> Value {
    let mut report = study.json("report/report.json");
    without_seconds(&mut report);
    report
}

#[test]
fn several_workers_run_each_trial_once() {
    let alone = Study::new(&FEW, Duration::ZERO);
    let output = alone.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    for workers in [2, 5] {
        let study = Study::new(&FEW, Duration::from_millis(30));
        let mut children: Vec<Child> = (0..workers).map(|_| study.start(&["--jobs", "1"])).collect();
        for child in &mut children {
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
        assert_eq!(study.reader.count(), alone.reader.count(), "{workers} workers");
        assert_eq!(study.records(&FEW), alone.records(&FEW), "{workers} workers");
        assert_eq!(report(&study), report(&alone), "{workers} workers");
        let preds = |study: &Study| ["off", "bm25"].map(|c| study.json(&format!("preds/{c}.reader.1.json")));
        assert_eq!(preds(&study), preds(&alone));
        let events = events(&study);
        for name in ["started", "finished"] {
            assert_eq!(of(&events, name), vec![&1; 6], "{name} of {workers} workers: {events:?}");
        }
        assert_eq!(study.reader.violations(), Vec::<String>::new());
    }
}

#[test]
fn a_killed_workers_trial_is_taken_up_by_another_at_once() {
    let study = Study::new(&FEW, Duration::from_millis(300));
    // a lease that outlasts the test: the process is seen to have ended
    let options = ["--jobs", "1", "--lease", "3600", "--worker"];
    let mut killed = study.start(&[&options[..], &["killed"]].concat());
    until("the first worker", || study.journalled() > 1);
    let mut other = study.start(&[&options[..], &["other"]].concat());
    until("the second worker", || study.path("claims/workers/other").exists() && study.journalled() > 4);

    let status = study.command("status", &["--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let names: Vec<_> =
        status["workers"].as_array().unwrap().iter().map(|w| &w["worker"]["worker"]).collect();
    assert_eq!(names, ["killed", "other"], "{status}");
    let twice = study.run(&["--worker", "other"]);
    assert_eq!(twice.status.code(), Some(3), "{}", told(&twice));
    assert!(told(&twice).contains("\"other\" is at work already"), "{}", told(&twice));

    killed.kill().unwrap();
    killed.wait().unwrap();
    let lost = study.reader.count() - study.journalled();
    assert!(lost <= 2, "one call a worker may be under way, not {lost}");
    assert_eq!(other.wait().unwrap().code(), Some(0));
    // the other worker's call was not lost: it has been journalled since
    let unanswered = study.reader.count() - study.journalled();
    assert!(unanswered <= 1, "{unanswered} calls were paid for nothing");
    let records = study.records(&FEW);
    assert!(records.values().all(|record| record["attempts"] == 1), "{records:?}");
    assert!(of(&events(&study), "started").iter().filter(|count| ***count == 2).count() <= 1);
}

#[test]
fn a_suspended_workers_trial_is_taken_over_and_has_one_record() {
    let study = Study::new(&FEW[..2], Duration::from_millis(400));
    let mut suspended = study.start(&["--jobs", "1", "--lease", "2", "--worker", "suspended"]);
    until("the first worker", || study.journalled() > 1);
    signal(&suspended, "-STOP");
    let output = study.run(&["--jobs", "1", "--lease", "2", "--worker", "other"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("taking over"), "{}", told(&output));
    let verdicts = || {
        let trials = FEW[..2]
            .iter()
            .flat_map(|id| ["off", "bm25"].map(|c| format!("trials/{c}/reader/1/{id}/verdict.json")));
        trials.map(|path| std::fs::read(study.path(&path)).unwrap()).collect::<Vec<_>>()
    };
    let (before, paid) = (verdicts(), study.reader.count());
    signal(&suspended, "-CONT");
    assert_eq!(suspended.wait().unwrap().code(), Some(0));
    assert_eq!(verdicts(), before, "a record was written twice");
    assert_eq!(study.reader.count(), paid, "the suspended worker asked on");

    let events = events(&study);
    assert_eq!((of(&events, "taken-over"), of(&events, "lost")), (vec![&1], vec![&1]), "{events:?}");
    assert_eq!(of(&events, "finished"), vec![&1; 4], "{events:?}");
    let records = study.records(&FEW[..2]);
    let over: Vec<_> = records.values().filter(|record| record["attempts"] == 2).collect();
    assert_eq!(over.len(), 1, "{records:?}");
    assert!(records.values().all(|record| record["verdict"] != "infrastructure"), "{records:?}");
    // every call is in some journal: the taken-over worker's last one too, and the report has its cost
    let output = study.command("report", &["--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let spent = &report["spent"];
    assert_eq!(spent["solver"]["calls"], study.journalled(), "{spent}");
    assert!(study.reader.count() - study.journalled() <= 1);
    assert!(spent["abandoned"]["calls"].as_u64().unwrap() <= 1, "{spent}");
}

#[test]
fn a_worker_that_does_not_wait_leaves_the_report_to_the_last() {
    let study = Study::new(&FEW[..1], Duration::from_millis(500));
    let mut first = study.start(&["--worker", "first"]);
    until("the first worker", || study.reader.count() >= 2);
    let output = study.run(&["--no-wait", "--worker", "second"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(
        told(&output).contains("0 of 2 trials finished, 0 missing; other workers are at 2 more"),
        "{}",
        told(&output)
    );
    assert!(!study.path("report").exists());
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert!(study.path("report/report.json").exists());
    let output = study.run(&["--worker", "a/b"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("worker \"a/b\": expected"), "{}", told(&output));
}
