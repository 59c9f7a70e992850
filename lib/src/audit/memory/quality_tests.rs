use std::io::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::dataset::HistoryStore;
use crate::memory::{Resources, open};
use crate::task::Task;

fn id(number: u64) -> InstanceId {
    InstanceId::parse(&format!("acme__widget-{number}")).unwrap()
}

fn patch(path: &str, heading: &str, line: &str) -> String {
    format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@ {heading}\n-old\n+{line}\n")
}

/// A target whose relevant records (by file) are marked `x` in the order of time, and what a system ranked.
fn answer(number: u64, records: &str, ranked: Option<&[u64]>) -> Answer {
    let touch = |mark: char| Touch::by(&patch(if mark == 'x' { "src/a.py" } else { "doc/b.md" }, "", "y"));
    Answer {
        target: id(number),
        reference: Reference::GoldPatch,
        gold: Touch::by(&patch("src/a.py", "", "z")),
        eligible: (1..).zip(records.chars()).map(|(n, mark)| (id(n), touch(mark))).collect(),
        ranked: ranked.map(|ranked| ranked.iter().map(|&n| id(n)).collect()),
    }
}

/// The means of recall at each k, of what is found at the last, and of MRR.
fn means(report: &QualityReport, ranking: usize) -> Vec<f64> {
    let ranking = &report.levels[0].rankings[ranking];
    let recall = ranking.at.iter().map(|at| at.recall.unwrap().mean);
    let rest = [ranking.at.last().unwrap().found.unwrap().mean, ranking.mrr.unwrap().mean];
    recall.chain(rest).map(|mean| (mean * 1e4).round() / 1e4).collect()
}

#[test]
fn rankings_are_scored_over_targets_that_have_something_to_find() {
    let answers = [
        // relevant first; third; not among the delivered; silence where there was something
        answer(10, "x--x", Some(&[1, 2, 3, 4])),
        answer(11, "--x-", Some(&[1, 2, 3])),
        answer(12, "x---", Some(&[2, 3])),
        answer(13, "---x", None),
        // nothing to find: it does not count for recall
        answer(14, "----", Some(&[1])),
        answer(15, "", None),
    ];
    let report = QualityReport::of("s", &answers, &[1, 3, 10]);
    assert_eq!((report.targets, report.levels[0].answerable), (6, 4));
    // found@10: 1 + 1 + 0 + 0 of 4
    assert_eq!(means(&report, 0), [0.25, 0.5, 0.5, 0.5, ((1.0 + 1.0 / 3.0) / 4.0f64 * 1e4).round() / 1e4]);
    // latest first: ranks 1, 2, 4, 1
    assert_eq!(
        means(&report, 1),
        [0.5, 0.75, 1.0, 1.0, (1.0 + 0.5 + 0.25 + 1.0) / 4.0].map(|m: f64| (m * 1e4).round() / 1e4)
    );
    // one of four: 1/4 and 3/4; two of four: 1/2 and 1
    assert_eq!(
        means(&report, 2)[..3],
        [(0.5 + 0.25 * 3.0) / 4.0, (1.0 + 0.75 * 3.0) / 4.0, 1.0].map(|m: f64| (m * 1e4).round() / 1e4)
    );
    let silence = report.levels[0].abstention;
    assert_eq!((silence.abstained, silence.rightly.unwrap().mean), (2, 0.5));
    assert_eq!((silence.delivered, silence.precision.unwrap().mean), (4, 0.25));
}

#[test]
fn random_order_is_the_mean_over_all_orders() {
    // every order of five records of which two are relevant
    let places: Vec<(usize, usize)> = (0..5).flat_map(|a| (0..a).map(move |b| (b, a))).collect();
    let mut sums = [0.0; 3];
    for &(a, b) in &places {
        let marks: Vec<bool> = (0..5).map(|place| place == a || place == b).collect();
        let one = Scores::ranked(&marks, 2, &[2], 3);
        sums[0] += one.at[0].0;
        sums[1] += one.at[0].1;
        sums[2] += Scores::ranked(&marks, 2, &[3], 3).reciprocal;
    }
    let n = places.len() as f64;
    let two = Scores::random(5, 2, &[2], 3);
    assert!((two.at[0].0 - sums[0] / n).abs() < 1e-12);
    assert!((two.at[0].1 - sums[1] / n).abs() < 1e-12);
    assert!((two.reciprocal - sums[2] / n).abs() < 1e-12);
    let all = Scores::random(2, 2, &[1, 10], 10);
    assert_eq!((all.at, all.reciprocal), (vec![(1.0, 0.5), (1.0, 1.0)], 1.0));
}

#[test]
fn levels_are_files_folders_and_symbols() {
    let gold = Touch::by(&patch("src/io/a.py", "class Reader:", "def close(self):"));
    for (other, expected) in [
        (patch("src/io/a.py", "class Writer:", "x"), [true, true, false]),
        (patch("src/io/b.py", "class Reader:", "x"), [false, true, false]),
        (patch("src/io/a.py", "", "def close(self, now):"), [true, true, true]),
        (patch("src/a.py", "", "x"), [false, false, false]),
        (String::new(), [false, false, false]),
    ] {
        assert_eq!(Level::ALL.map(|level| gold.shares(&Touch::by(&other), level)), expected, "{other}");
    }
}

#[test]
fn nothing_asked_is_nothing_known() {
    let report = QualityReport::of("s", &[], &KS);
    assert_eq!(report.levels[0].rankings[0].mrr, None);
    insta::assert_snapshot!(report.text().lines().take(5).collect::<Vec<_>>().join("\n"), @r"
    s: 0 targets, reference: gold patch of 0, resolved run of 0; 0 without either left out; 0.0 s

    FILE: 0 of 0 targets have a relevant record to find
      ranking  recall@1  95 %  recall@3  recall@5  recall@10  found@10  MRR  95 %
      s               -               -         -          -         -    -
    ");
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<QualityReport>(&json).unwrap(), report);
}

/// Three runs, the last without a label; a row for a fourth task.
fn store(folder: &std::path::Path) -> (HistoryStore, BTreeMap<InstanceId, Task>) {
    for (number, issue, path) in
        [(1, "handle leak", "src/a.py"), (2, "slow start", "src/b.py"), (3, "handle gone", "src/a.py")]
    {
        let patch = patch(path, "", "fixed");
        let run = json!({"messages": [
            {"role": "user", "content": format!("<pr_description>\n{issue}\n</pr_description>")},
            {"role": "exit", "content": patch, "extra": {"exit_status": "Submitted", "submission": patch}},
        ]});
        fs_err::write(folder.join(format!("acme__widget-{number}.traj.json")), run.to_string()).unwrap();
    }
    fs_err::write(
        folder.join("x.resolved.json"),
        json!({"acme__widget-1": true, "acme__widget-2": true}).to_string(),
    )
    .unwrap();
    let row = json!({
        "instance_id": "acme__widget-9", "repo": "acme/widget", "base_commit": "0".repeat(40),
        "problem_statement": "the handle leaks", "patch": patch("src/a.py", "", "other"), "test_patch": "",
        "FAIL_TO_PASS": ["t"], "PASS_TO_PASS": [],
    });
    let rows = folder.join("rows.jsonl");
    writeln!(fs_err::File::create(&rows).unwrap(), "{row}").unwrap();
    let tasks = crate::dataset::read_tasks(&rows).unwrap().tasks;
    (HistoryStore::open(folder).unwrap(), tasks.into_iter().map(|task| (task.id().clone(), task)).collect())
}

#[tokio::test]
async fn a_system_is_asked_about_each_target_with_its_own_history() {
    let folder = tempfile::tempdir().unwrap();
    let (store, tasks) = store(folder.path());
    let open = || open("bm25", &Value::Null, &Resources::default());
    let targets = [1, 2, 3, 9].map(id);
    let ks = [1, 3];
    let asked =
        Evaluation { name: "bm25", open: &open, store: &store, tasks: &tasks, targets: &targets, ks: &ks };
    let report = evaluate(asked).await.unwrap();
    assert_eq!((report.targets, report.gold_patches, report.resolved_runs), (3, 1, 2));
    assert_eq!(report.without_reference, [id(3)], "not known to be resolved");
    // 9 has two relevant records and finds one of them first; 1 and 2 have none to find
    let file = &report.levels[0];
    assert_eq!((file.answerable, file.rankings[0].at[0].recall.unwrap().mean), (1, 1.0));
    assert_eq!(file.rankings[0].at[1].found.unwrap().mean, 1.0);
    assert_eq!((file.abstention.abstained, file.abstention.rightly.unwrap().mean), (2, 1.0));
}

/// Where `MEMTRIAL_DATA` names the folder of real data: `bm25` finds more than rankings that look at nothing.
#[tokio::test]
async fn real_runs_are_found_better_than_by_chance() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA").map(std::path::PathBuf::from) else { return };
    let store =
        HistoryStore::open(&data.join("trajectories/swebench-verified_gemini3pro_mini-1.15")).unwrap();
    let rows = crate::dataset::read_tasks(&data.join("tasks/swebench-lite.jsonl")).unwrap().tasks;
    let tasks: BTreeMap<InstanceId, Task> = rows.into_iter().map(|task| (task.id().clone(), task)).collect();
    let wanted = |id: &&InstanceId| REAL.is_empty() || REAL.contains(&id.repo_key());
    let known = tasks.keys().filter(|task| store.ids().any(|run| run.same_repo(task)));
    let targets: BTreeSet<InstanceId> = store.ids().chain(known).filter(wanted).cloned().collect();
    let targets: Vec<InstanceId> = targets.into_iter().collect();
    let open = || open("bm25", &Value::Null, &Resources::default());
    let asked =
        Evaluation { name: "bm25", open: &open, store: &store, tasks: &tasks, targets: &targets, ks: &KS };
    let report = evaluate(asked).await.unwrap();
    let mrr = |ranking: usize| report.levels[0].rankings[ranking].mrr.unwrap().mean;
    assert!(mrr(0) > mrr(1) && mrr(0) > mrr(2), "{}", report.text());
}

/// The repositories whose runs are looked at; none named: all.
const REAL: &[&str] = &["matplotlib__matplotlib"];
