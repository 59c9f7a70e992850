//! Runs over several tasks, each in folders that play sandboxes.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::grade::fixture::{Folder, GOLD, task};
use crate::grade::predictions::Prediction;
use crate::grade::reports::InstanceReport;

/// Rooms whose n-th (from 0) is what a closure says.
struct Fake<F> {
    started: AtomicU32,
    label: &'static str,
    each: F,
}

fn rooms() -> Fake<impl Fn(u32) -> Result<Folder, RoomError>> {
    fake(|_| Ok(Folder::new()))
}

fn fake<F: Fn(u32) -> Result<Folder, RoomError>>(each: F) -> Fake<F> {
    Fake { started: AtomicU32::new(0), label: "fake", each }
}

impl<F> Fake<F> {
    fn started(&self) -> u32 {
        self.started.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl<F: Fn(u32) -> Result<Folder, RoomError> + Send + Sync> Rooms for Fake<F> {
    async fn room(&self, _task: &SolverView) -> Result<(Box<dyn Sandbox>, Place), RoomError> {
        let folder = (self.each)(self.started.fetch_add(1, Ordering::SeqCst))?;
        let place = folder.place();
        Ok((Box::new(folder), place))
    }

    fn label(&self) -> String {
        self.label.to_owned()
    }
}

fn tasks(count: u32) -> Vec<Task> {
    (1..=count)
        .map(|number| {
            let mut task = task();
            task.solver.instance_id = InstanceId::parse(&format!("acme__widget-{number}")).unwrap();
            task
        })
        .collect()
}

fn predictions(patches: &[(&str, Option<&str>)]) -> Source {
    let by_id = patches.iter().map(|(id, patch)| {
        let prediction = Prediction {
            model_name_or_path: "m".into(),
            instance_id: (*id).into(),
            model_patch: patch.map(str::to_owned),
        };
        ((*id).to_owned(), prediction)
    });
    Source::Predictions(Predictions { by_id: by_id.collect(), warnings: Vec::new() })
}

fn plan() -> Plan {
    Plan { jobs: 2, retry_pause: Duration::ZERO, ..Plan::default() }
}

async fn run(
    out: &Path,
    rooms: &dyn Rooms,
    source: &Source,
    plan: &Plan,
    tasks: &[Task],
) -> Result<(Finished, Vec<Event>), RunError> {
    let out = OutDir::open(out)?;
    let events = Mutex::new(Vec::new());
    let (_keep, cancel) = watch::channel(false);
    let run = GradeRun { out: &out, rooms, source, plan };
    let finished = run.run(tasks, &|event| events.lock().unwrap().push(event), &cancel).await?;
    Ok((finished, events.into_inner().unwrap()))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn gold_is_graded_once_and_reused_until_something_changes() {
    let out = tempfile::tempdir().unwrap();
    let rooms = rooms();
    let (first, _) = run(out.path(), &rooms, &Source::Gold, &plan(), &tasks(3)).await.unwrap();
    assert_eq!(first.report.resolved_instances, 3);
    assert_eq!(
        names(&out.path().join("acme__widget-1")),
        ["patch.diff", "report.json", "test_output.txt", "verdict.json"]
    );
    let written = fs_err::read(out.path().join("report.json")).unwrap();

    let (second, events) = run(out.path(), &rooms, &Source::Gold, &plan(), &tasks(3)).await.unwrap();
    assert_eq!(rooms.started(), 3);
    assert_eq!(second.report, first.report);
    assert!(events.iter().all(|event| matches!(event, Event::Finished { reused: true, .. })));
    assert_eq!(fs_err::read(out.path().join("report.json")).unwrap(), written);

    // A verdict that was cut short, and one of other inputs, are reached anew.
    fs_err::write(out.path().join("acme__widget-1/verdict.json"), b"{\"instance_id\":").unwrap();
    let mut changed = tasks(3);
    changed[1].evaluator.pass_to_pass.clear();
    run(out.path(), &rooms, &Source::Gold, &plan(), &changed).await.unwrap();
    assert_eq!(rooms.started(), 5);
    let other = Fake { label: "another back end", ..fake(|_| Ok(Folder::new())) };
    run(out.path(), &other, &Source::Gold, &plan(), &changed).await.unwrap();
    assert_eq!(other.started(), 3);
}

#[tokio::test]
async fn predictions_are_told_apart_and_never_replaced_by_gold() {
    let out = tempfile::tempdir().unwrap();
    let rooms = rooms();
    let source = predictions(&[
        ("acme__widget-1", Some(GOLD)),
        ("acme__widget-2", None),
        ("acme__widget-3", Some("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")),
        ("other__repo-1", Some(GOLD)),
    ]);
    let (found, _) = run(out.path(), &rooms, &source, &plan(), &tasks(4)).await.unwrap();
    let classes: Vec<_> = found.verdicts.values().map(|one| one.class).collect();
    use VerdictClass::{EmptyPatch, NoPrediction, PatchNotApplied, Resolved};
    assert_eq!(classes, [Resolved, EmptyPatch, PatchNotApplied, NoPrediction]);
    assert_eq!(found.unknown, BTreeSet::from(["other__repo-1".to_owned()]));
    assert_eq!((found.report.submitted_instances, found.report.incomplete_ids.len()), (4, 1));
    assert_eq!(rooms.started(), 2, "no sandbox where nothing is to run");
    let report: BTreeMap<String, InstanceReport> =
        serde_json::from_slice(&fs_err::read(out.path().join("acme__widget-1/report.json")).unwrap())
            .unwrap();
    assert!(report["acme__widget-1"].resolved);
    assert_eq!(fs_err::read_to_string(out.path().join("acme__widget-1/patch.diff")).unwrap(), GOLD);
}

#[tokio::test]
async fn an_empty_patch_is_run_where_that_is_asked_for_and_resolves_nothing() {
    let out = tempfile::tempdir().unwrap();
    let rooms = rooms();
    let (found, _) = run(out.path(), &rooms, &Source::Empty, &plan(), &tasks(1)).await.unwrap();
    assert_eq!(found.report.unresolved_instances, 1);
    assert_eq!(rooms.started(), 1);
}

#[tokio::test]
async fn a_failed_harness_is_tried_again_and_never_reused() {
    let fails = |_| RoomError { class: VerdictClass::Infrastructure, reason: "the disk is gone".into() };
    let out = tempfile::tempdir().unwrap();
    let twice = fake(move |n| if n < 2 { Err(fails(n)) } else { Ok(Folder::new()) });
    let (found, events) = run(out.path(), &twice, &Source::Gold, &plan(), &tasks(1)).await.unwrap();
    assert_eq!(found.report.resolved_instances, 1);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Retrying { .. })).count(), 2);
    let recorded = fs_err::read(out.path().join("acme__widget-1/verdict.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Recorded>(&recorded).unwrap().attempts, 3);

    let out = tempfile::tempdir().unwrap();
    let always = fake(move |n| Err(fails(n)));
    let (found, _) = run(out.path(), &always, &Source::Gold, &plan(), &tasks(1)).await.unwrap();
    assert_eq!(found.report.infra_failure_ids.len(), 1);
    assert_eq!(always.started(), 3);
    run(out.path(), &always, &Source::Gold, &plan(), &tasks(1)).await.unwrap();
    assert_eq!(always.started(), 6);
}

#[tokio::test]
async fn repeats_show_flaky_tests_and_the_worst_decides() {
    let out = tempfile::tempdir().unwrap();
    // The second sandbox has lost a line that the old test needs.
    let flaky = fake(|n| {
        let folder = Folder::new();
        if n == 1 {
            folder.write("src.txt", b"eins\ntwo\nthree\n");
            folder.git(&["commit", "-q", "-a", "-m", "flake"]);
        }
        Ok(folder)
    });
    let plan = Plan { repeat: 3, jobs: 1, ..plan() };
    let patch = "diff --git a/src.txt b/src.txt\n--- a/src.txt\n+++ b/src.txt\n@@ -2,2 +2,2 @@\n-two\n+two fixed\n three\n";
    let source = predictions(&[("acme__widget-1", Some(patch))]);
    let (found, _) = run(out.path(), &flaky, &source, &plan, &tasks(1)).await.unwrap();
    let one = found.verdicts.values().next().unwrap();
    assert_eq!((one.class, one.consistent), (VerdictClass::Unresolved, false));
    insta::assert_snapshot!(fs_err::read_to_string(out.path().join("stability.json")).unwrap(), @r#"
    {
      "acme__widget-1": {
        "class": "unresolved",
        "reason": "0 of 1 FAIL_TO_PASS and 1 of 1 PASS_TO_PASS did not pass: tests/old.t::ok (FAILED)",
        "classes": [
          "resolved",
          "unresolved",
          "resolved"
        ],
        "consistent": false,
        "flaky_tests": {
          "tests/old.t::ok": [
            "PASSED",
            "FAILED",
            "PASSED"
          ]
        }
      }
    }
    "#);
    let folder = out.path().join("acme__widget-1");
    assert_eq!(
        names(&folder),
        ["patch.diff", "repeat-1", "repeat-2", "repeat-3", "report.json", "test_output.txt", "verdict.json"]
    );
    assert_eq!(
        fs_err::read(folder.join("verdict.json")).unwrap(),
        fs_err::read(folder.join("repeat-2/verdict.json")).unwrap()
    );
}

#[tokio::test]
async fn a_cancelled_run_finishes_what_is_in_flight_and_tells_the_rest() {
    let out = tempfile::tempdir().unwrap();
    let dir = OutDir::open(out.path()).unwrap();
    let (stop, cancel) = watch::channel(false);
    let rooms = rooms();
    let plan = Plan { jobs: 1, ..plan() };
    let run = GradeRun { out: &dir, rooms: &rooms, source: &Source::Gold, plan: &plan };
    let on_event = |event| {
        if matches!(event, Event::Started { .. }) {
            stop.send_replace(true);
        }
    };
    let found = run.run(&tasks(3), &on_event, &cancel).await.unwrap();
    assert!(found.interrupted);
    assert_eq!((found.report.resolved_instances, found.report.incomplete_ids.len()), (1, 2));
    assert!(out.path().join("report.json").exists());
}

#[tokio::test]
async fn two_rows_with_one_id_and_a_folder_in_use_are_refused() {
    let out = tempfile::tempdir().unwrap();
    let twice = [tasks(1), tasks(1)].concat();
    let error = run(out.path(), &rooms(), &Source::Gold, &plan(), &twice).await.unwrap_err();
    assert!(matches!(error, RunError::TwoRows(_)), "{error}");
    let _held = OutDir::open(out.path()).unwrap();
    let error = run(out.path(), &rooms(), &Source::Gold, &plan(), &tasks(1)).await.unwrap_err();
    assert!(matches!(error, RunError::Out(OutError::Locked { .. })), "{error}");
}

#[tokio::test]
async fn nothing_to_do_still_leaves_a_report() {
    let out = tempfile::tempdir().unwrap();
    let (found, _) = run(out.path(), &rooms(), &Source::Gold, &plan(), &[]).await.unwrap();
    assert_eq!(found.report.total_instances, 0);
    assert!(out.path().join("report.json").exists());
}
