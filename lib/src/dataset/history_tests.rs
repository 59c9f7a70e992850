//! The causal rule.

use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::dataset::read_tasks;

fn id(text: &str) -> InstanceId {
    InstanceId::parse(text).unwrap()
}

fn numbers(history: &History) -> Vec<u64> {
    history.entries().iter().map(Entry::number).collect()
}

fn by_number(store: &HistoryStore, target: &str) -> History {
    History::for_target(store, &id(target), Chronology::Number, &MergeDates::default()).unwrap()
}

fn dates(rows: &[(&str, &str)]) -> MergeDates {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let lines: String = rows
        .iter()
        .map(|(id, date)| {
            json!({"instance_id": id, "base_commit": "c", "problem_statement": "p", "meta": {"merged_at": date}})
                .to_string()
                + "\n"
        })
        .collect();
    std::fs::write(&path, lines).unwrap();
    MergeDates::from_tasks(&read_tasks(&path).unwrap().tasks)
}

/// Writes runs whose only content says whose they are.
fn write_runs(root: &Path, paths: &[&str]) {
    for path in paths {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, r#"{"messages": [{"role": "user", "content": "x"}]}"#).unwrap();
    }
}

/// The rows of the dataset card's table, on disk in its layout.
#[test]
fn worked_example_of_the_card() {
    let folder = tempfile::tempdir().unwrap();
    let repo = "adamchainz__flake8-comprehensions";
    let own = format!("history/python/{repo}/{repo}-553/{repo}-553.traj.json");
    for number in [143, 179, 195, 197, 200, 205, 553] {
        write_runs(
            folder.path(),
            &[&format!("history/python/{repo}/{repo}-{number}/{repo}-{number}.traj.json")],
        );
    }
    write_runs(folder.path(), &["history/go/other__name/other__name-179/other__name-179.traj.json"]);
    for root in [folder.path().to_owned(), folder.path().join("history")] {
        let store = HistoryStore::open(&root).unwrap();
        assert_eq!(store.len(), 8);
        let history = by_number(&store, &format!("{repo}-553"));
        assert_eq!(numbers(&history), [143, 179, 195, 197, 200, 205]);
        assert_eq!(history.refused(), [Refusal { id: format!("{repo}-553"), reason: Reason::Own }]);
        let first = by_number(&store, &format!("{repo}-143"));
        assert_eq!((numbers(&first), first.refused().len()), (vec![], 7));
        assert_eq!(numbers(&by_number(&store, "other__name-180")), [179]);
    }
    let with = by_number(&HistoryStore::open(folder.path()).unwrap(), &format!("{repo}-553"));
    std::fs::remove_file(folder.path().join(own)).unwrap();
    let without = by_number(&HistoryStore::open(folder.path()).unwrap(), &format!("{repo}-553"));
    assert_eq!((with.entries(), without.refused().len()), (without.entries(), 0));
}

#[test]
fn numbers_order_as_numbers_and_repositories_without_case() {
    let store = HistoryStore::of_ids(["a__b-9", "A__B-10", "a__b-100", "a__c-1", "a__b__c-7"].map(id));
    assert_eq!(numbers(&by_number(&store, "a__b-99")), [9, 10]);
    assert_eq!(numbers(&by_number(&store, "a__b__c-8")), [7]);
    let history = by_number(&store, "a__b-99");
    assert!(
        history.contains(&id("a__b-10"))
            && !history.contains(&id("a__b-99"))
            && !history.contains(&id("a__c-1"))
    );
}

#[test]
fn merge_order_differs_from_number_order() {
    let store = HistoryStore::of_ids(["p__t-498", "p__t-507", "p__t-511", "p__t-520", "p__t-521"].map(id));
    let dates = dates(&[
        ("p__t-498", "2026-05-09T00:00:00Z"),
        ("p__t-507", "2026-05-01T12:00:00+02:00"),
        ("p__t-511", "2026-05-03T00:00:00Z"),
        ("p__t-520", "2026-05-09T02:00:00+02:00"),
    ]);
    let merged = |target| History::for_target(&store, &id(target), Chronology::MergedAt, &dates);
    let history = merged("p__t-511").unwrap();
    assert_eq!(numbers(&history), [507]);
    let reasons: Vec<String> = history.refused().iter().map(|r| format!("{}: {}", r.id, r.reason)).collect();
    insta::assert_snapshot!(reasons.join("\n"), @r"
    p__t-521: no merge date is known
    p__t-511: the target's own run
    p__t-498: merged 2026-05-09T00:00:00Z, not before 2026-05-03T00:00:00Z
    p__t-520: merged 2026-05-09T02:00:00+02:00, not before 2026-05-03T00:00:00Z
    ");
    assert_eq!(numbers(&merged("p__t-498").unwrap()), [507, 511], "520 merged in the same second");
    assert!(merged("p__t-521").unwrap_err().to_string().contains("no merge date is known"));

    let history = History::for_target(&store, &id("p__t-511"), Chronology::Number, &dates).unwrap();
    assert_eq!(numbers(&history), [498, 507]);
    let [disagreement] = history.disagreements() else { panic!("{:?}", history.disagreements()) };
    assert_eq!(disagreement.id, id("p__t-498"));
    assert!(disagreement.earlier_by_number && !disagreement.earlier_by_merge);
}

#[test]
fn misplaced_runs_are_named() {
    for (paths, words) in [
        (&["a__b-1/a__b-2.traj.json"][..], "the folder is called \"a__b-1\", the file says \"a__b-2\""),
        (&["python/x__y/a__b-1/a__b-1.traj.json"], "the folder is called \"x__y\", the file says \"a__b\""),
        (&["a__b-1.traj.json", "a__b-1/a__b-1.traj.json"], "two trajectories of a__b-1"),
        (&["a__b-1.traj.json", "A__B-1/A__B-1.traj.json"], "two trajectories"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write_runs(folder.path(), paths);
        let error = HistoryStore::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(
        HistoryStore::open(Path::new("/does/not/exist")).unwrap_err().to_string().contains("/does/not/exist")
    );
}

#[test]
fn plain_folders_outcomes_and_nameless_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("runs");
    write_runs(
        &root,
        &["a__b-1.traj.json", "a__b-2/a__b-2.traj.json", "last_run.traj.json", ".tmp-1.traj.json"],
    );
    std::fs::write(folder.path().join("runs.resolved.json"), r#"{"a__b-1": true, "a__b-2": false}"#).unwrap();
    let store = HistoryStore::open(&root).unwrap();
    let history = by_number(&store, "a__b-3");
    let outcomes: Vec<_> = history.entries().iter().map(Entry::resolved).collect();
    assert_eq!(outcomes, [Some(true), Some(false)]);
    assert_eq!(store.nameless(), ["last_run"]);
    let entry = &history.entries()[0];
    assert_eq!(entry.summary(&Limits::default()).unwrap().messages, 1);
    assert_eq!(entry.read().unwrap().messages().len(), 1);
    assert_eq!(entry.sha256().unwrap().len(), 64);
    std::fs::write(root.join("x.resolved.json"), r#"{"a__b-1": "yes"}"#).unwrap();
    assert!(
        HistoryStore::open(&root).unwrap_err().to_string().contains("x.resolved.json: \"a__b-1\" is \"yes\"")
    );
}

/// A file named as an earlier run that says it is the target's own is refused.
#[test]
fn a_run_under_a_false_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a__b-1.traj.json");
    std::fs::write(&path, r#"{"instance_id": "a__b-5", "messages": []}"#).unwrap();
    let history = by_number(&HistoryStore::open(folder.path()).unwrap(), "a__b-5");
    let error = history.entries()[0].summary(&Limits::default()).unwrap_err().to_string();
    assert!(error.contains("says that it is the run of \"a__b-5\""), "{error}");
    assert_eq!(history.entries()[0].read().unwrap_err().to_string(), error);
}

/// Many threads read; each summary stands where its run does, also those that fail.
#[test]
fn summaries_stand_in_the_order_of_the_runs() {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..40 {
        let issue = if number % 7 == 0 { "{".to_owned() } else { issue_of(number) };
        std::fs::write(folder.path().join(format!("a__b-{number}.traj.json")), issue).unwrap();
    }
    let history = by_number(&HistoryStore::open(folder.path()).unwrap(), "a__b-40");
    let summaries = history.summaries(&Limits::default());
    assert_eq!(summaries.len(), 39);
    for (entry, summary) in history.entries().iter().zip(summaries) {
        match summary {
            Ok(summary) => assert_eq!(summary.issue, Some(format!("issue {}", entry.number()))),
            Err(error) => {
                assert_eq!(entry.number() % 7, 0);
                assert!(error.to_string().contains(&entry.path().display().to_string()));
            }
        }
    }
}

fn issue_of(number: u64) -> String {
    json!({"messages": [{"role": "user", "content": format!("issue {number}")}]}).to_string()
}

fn any_id() -> impl Strategy<Value = InstanceId> {
    let owner = prop_oneof![Just("a"), Just("A"), Just("b")];
    let name = prop_oneof![Just("x"), Just("X"), Just("x__y")];
    (owner, name, 0u64..30).prop_map(|(owner, name, number)| id(&format!("{owner}__{name}-{number}")))
}

proptest! {
    #[test]
    fn nothing_own_later_or_foreign_gets_in(
        ids in proptest::collection::vec(any_id(), 0..40),
        target in any_id(),
        merges in proptest::collection::vec((any_id(), 0i64..20), 0..40),
        chronology in prop_oneof![Just(Chronology::Number), Just(Chronology::MergedAt)],
    ) {
        let dates = MergeDates(merges.iter().map(|(id, date)| (key(id), (*date, date.to_string()))).collect());
        let store = HistoryStore::of_ids(ids.iter().cloned());
        let Ok(history) = History::for_target(&store, &target, chronology, &dates) else {
            prop_assert!(chronology == Chronology::MergedAt && dates.get(&target).is_none());
            return Ok(());
        };
        let earlier = |id: &InstanceId| match chronology {
            Chronology::Number => id.number() < target.number(),
            Chronology::MergedAt => dates.get(id).is_some_and(|(date, _)| *date < dates.get(&target).unwrap().0),
        };
        // Exactly the eligible ones are in, in order.
        for id in store.ids() {
            let eligible = id.same_repo(&target) && id.number() != target.number() && earlier(id);
            prop_assert_eq!(history.contains(id), eligible, "{} for {}", id, target);
        }
        let order = |entry: &Entry| match chronology {
            Chronology::Number => (entry.number() as i64, 0),
            Chronology::MergedAt => (dates.get(entry.id()).unwrap().0, entry.number()),
        };
        prop_assert!(history.entries().is_sorted_by_key(order));
        // Whatever is not in is refused, once, if it is the same repository's.
        let same_repo = store.ids().filter(|id| id.same_repo(&target)).count();
        prop_assert_eq!(history.entries().len() + history.refused().len(), same_repo);
        // The target's own run on disk changes nothing.
        let with = HistoryStore::of_ids(ids.iter().cloned().chain([target.clone()]));
        let without = HistoryStore::of_ids(ids.into_iter().filter(|id| key(id) != key(&target)));
        for other in [with, without] {
            let other = History::for_target(&other, &target, chronology, &dates).unwrap();
            let ids = |h: &History| h.entries().iter().map(|e| key(e.id())).collect::<Vec<_>>();
            prop_assert_eq!(ids(&other), ids(&history));
            prop_assert_eq!(other.disagreements().len(), history.disagreements().len());
        }
    }
}

#[test]
fn real_runs_are_summarised() {
    let Ok(data) = std::env::var("MEMTRIAL_DATA") else { return };
    let folder = Path::new(&data).join("trajectories/swebench-verified_gemini3pro_mini-1.15");
    let store = HistoryStore::open(&folder).unwrap();
    let repos: std::collections::BTreeSet<&str> = store.ids().map(InstanceId::repo_key).collect();
    let (mut runs, mut resolved, mut patches, mut issues, mut cut) = (0, 0, 0, 0, Vec::new());
    for repo in repos {
        let history = by_number(&store, &format!("{repo}-{}", u64::MAX));
        for entry in history.entries() {
            let summary = entry.summary(&Limits::default()).unwrap();
            assert_eq!(summary.exit_status.as_deref(), Some("Submitted"), "{}", entry.id());
            assert!(summary.usage.is_some(), "{}", entry.id());
            cut.extend(summary.submission_cut.then(|| entry.id().clone()));
            runs += 1;
            resolved += usize::from(entry.resolved() == Some(true));
            patches += usize::from(summary.submission.is_some());
            issues += usize::from(summary.issue.is_some_and(|issue| !issue.contains("pr_description>")));
        }
    }
    assert_eq!((runs, resolved, patches, issues), (416, 316, 416, 416));
    assert_eq!(cut, [id("django__django-15629")], "a submission of 151,582 characters");
}
