//! Memory over whole studies: the bundled one, and real histories with planted needles.
//!
//! The reader model solves a task exactly when it is shown the task's needle, so what memory delivers decides what a
//! study must find. These tests compute that from the delivered blocks alone; no agent and no tests run.

#![expect(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memtrial::dataset::{Chronology, History, HistoryStore, MergeDates, read_tasks};
use memtrial::memory::host::{Host, Outcome, Setup};
use memtrial::memory::{BlockTemplate, Budget, Query, Resources, Target, open};
use memtrial::task::InstanceId;
use memtrial_testkit::{bundle, plant};
use serde_json::Value;

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn solves(reader: &Value, prompt: &str) -> bool {
    let shown = |name: &str| reader[name].as_str().is_some_and(|line| prompt.contains(line));
    shown("needle") || (reader["solves_alone"] == true && !shown("poison"))
}

/// Which targets the reader would solve under a system, and the block that each was given.
fn verdicts(study: &Path, system: &str) -> Vec<(String, bool, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = HistoryStore::open(&study.join("history")).unwrap();
    let tasks = read_tasks(&study.join("tasks.jsonl")).unwrap();
    let readers = lines(&study.join("reader.jsonl"));
    let mut found = Vec::new();
    for reader in &readers {
        let id = InstanceId::parse(reader["instance_id"].as_str().unwrap()).unwrap();
        let task = &tasks.get(&id).unwrap().solver;
        let setup = Setup {
            condition: system.into(),
            seed: 1,
            budget: Budget::default(),
            template: BlockTemplate::default(),
        };
        let query = Query::at_start(Target::from(task));
        let history = History::for_target(&store, &id, Chronology::Number, &MergeDates::default()).unwrap();
        let outcome = runtime.block_on(async {
            let mut host =
                Host::build(open(system, &Value::Null, &Resources::default()).unwrap(), &history, setup)
                    .await
                    .unwrap();
            host.retrieve(&query).await.unwrap().outcome
        });
        let block = match outcome {
            Outcome::Injected(injection) => injection.block,
            Outcome::Abstained { .. } => String::new(),
        };
        let prompt = format!("{}\n{block}", task.problem_statement);
        let known = readers.iter().filter(|other| prompt.contains(other["marker"].as_str().unwrap()));
        let known: Vec<_> = known.map(|other| &other["instance_id"]).collect();
        assert_eq!(
            known,
            [&reader["instance_id"]],
            "the reader must know the task from its prompt:\n{prompt}"
        );
        found.push((id.to_string(), solves(reader, &prompt), block));
    }
    found
}

/// Asserts that a study comes out as planted; returns how many gain and how many are harmed.
fn comes_out_as_planted(study: &Path) -> (usize, usize) {
    let expected: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(study.join("expected.json")).unwrap()).unwrap();
    for system in ["off", "bm25"] {
        for (id, solved, block) in verdicts(study, system) {
            let wanted = expected.iter().find(|one| one["instance_id"] == id.as_str()).unwrap();
            assert_eq!(wanted[system], solved, "{id} under {system}, given:\n{block}");
            let must_deliver = wanted["effect"] != "none";
            assert!(system == "off" || !must_deliver || !block.is_empty(), "{id} was given nothing");
        }
    }
    let count = |effect: &str| expected.iter().filter(|one| one["effect"] == effect).count();
    (count("gain"), count("harm"))
}

#[test]
fn the_bundled_study_comes_out_as_planted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("study");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/bundled");
    bundle::run(&bundle::Args { out: out.clone(), source }).unwrap();
    assert_eq!(comes_out_as_planted(&out), (4, 2));
    let blocks = verdicts(&out, "bm25");
    let delivered = blocks.iter().filter(|(_, _, block)| !block.is_empty()).count();
    assert_eq!((delivered, blocks.len()), (14, 15), "all but the first of a repository are given a record");
}

/// Extended: real issues and histories, where `MEMTRIAL_DATA` names them.
#[test]
fn real_histories_come_out_as_planted() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA").map(PathBuf::from) else { return };
    for plan in ["gains=3,harms=2,own=1,later=1,none=1", "gains=6,harms=4,own=2,later=2,none=2"] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("study");
        plant::run(&plant::Args {
            tasks: data.join("tasks/verified-here.jsonl"),
            history: data.join("trajectories/scripted_mini-2.4.6/history"),
            out: out.clone(),
            plan: plan.parse().unwrap(),
            ids: Vec::new(),
        })
        .unwrap();
        let (gains, harms) = comes_out_as_planted(&out);
        assert!(plan.starts_with(&format!("gains={gains},harms={harms},")));
    }
}

/// Extended: the latest task of each repository that real runs exist of learns from all earlier ones.
#[test]
fn real_runs_are_taken_in_and_delivered_within_the_budget() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA").map(PathBuf::from) else { return };
    let store =
        HistoryStore::open(&data.join("trajectories/swebench-verified_gemini3pro_mini-1.15")).unwrap();
    let tasks = read_tasks(&data.join("tasks/swebench-lite.jsonl")).unwrap();
    let mut latest = BTreeMap::new();
    for task in &tasks.tasks {
        let best = latest.entry(task.id().repo_key().to_owned()).or_insert(task);
        if best.id().number() < task.id().number() {
            *best = task;
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut delivered = 0;
    for task in latest.values() {
        let history =
            History::for_target(&store, task.id(), Chronology::Number, &MergeDates::default()).unwrap();
        let budget = Budget { records: 3, tokens: 2048 };
        let setup = Setup { condition: "bm25".into(), seed: 1, budget, template: BlockTemplate::default() };
        let found = runtime.block_on(async {
            let system = open("bm25", &Value::Null, &Resources::default()).unwrap();
            let mut host = Host::build(system, &history, setup).await.unwrap();
            host.retrieve(&Query::at_start(Target::from(&task.solver))).await.unwrap()
        });
        assert_eq!(found.eligible, history.entries().len());
        match found.outcome {
            Outcome::Injected(injection) => {
                delivered += 1;
                assert_eq!(injection.records.len(), found.eligible.min(3), "{}", task.id());
                assert!(injection.sources.iter().all(|source| history.contains(source)));
            }
            Outcome::Abstained { reason } => {
                assert_eq!((found.eligible, reason.as_str()), (0, "the history is empty"))
            }
        }
    }
    assert!(delivered > 5, "{delivered} repositories were served");
}
