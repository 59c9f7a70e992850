use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use proptest::prelude::*;

use super::*;
use crate::dataset::{Chronology, HistoryStore, MergeDates};
use crate::memory::{Description, MemorySystem, Resources, Target, conformance, open};

fn opened(name: &str) -> Box<dyn MemorySystem> {
    open(name, &serde_json::Value::Null, &Resources::default()).unwrap()
}

fn off() -> Box<dyn MemorySystem> {
    opened("off")
}

fn bm25() -> Box<dyn MemorySystem> {
    opened("bm25")
}

fn id(text: &str) -> InstanceId {
    InstanceId::parse(text).unwrap()
}

/// A folder of runs with the causal rule applied for one target, as a history has it.
struct Disk {
    target: InstanceId,
    runs: Vec<Experience>,
}

impl Experiences for Disk {
    fn target(&self) -> &InstanceId {
        &self.target
    }

    fn eligible(&self) -> Vec<InstanceId> {
        let mut ids: Vec<_> = self.runs.iter().map(|run| run.instance_id.clone()).collect();
        ids.retain(|id| id.same_repo(&self.target) && id.number() < self.target.number());
        ids.sort_by_key(InstanceId::number);
        ids
    }

    fn read(&self, id: &InstanceId, _with_events: bool) -> Result<Experience, String> {
        self.runs.iter().find(|run| run.instance_id == *id).cloned().ok_or_else(|| "gone".into())
    }

    fn digest(&self, id: &InstanceId) -> Result<(String, Option<bool>), String> {
        self.read(id, true).map(|run| (run.issue, run.outcome))
    }
}

/// A history that offers what it is told to.
struct Claims(InstanceId, Vec<InstanceId>, Vec<Experience>);

impl Experiences for Claims {
    fn target(&self) -> &InstanceId {
        &self.0
    }

    fn eligible(&self) -> Vec<InstanceId> {
        self.1.clone()
    }

    fn read(&self, _id: &InstanceId, _with_events: bool) -> Result<Experience, String> {
        self.2.first().cloned().ok_or_else(|| "x.traj.json: no such file".into())
    }

    fn digest(&self, id: &InstanceId) -> Result<(String, Option<bool>), String> {
        self.read(id, true).map(|run| (run.issue, run.outcome))
    }
}

fn run(number: u64, issue: &str) -> Experience {
    Experience {
        instance_id: id(&format!("acme__widget-{number}")),
        issue: issue.into(),
        patch: None,
        exit_status: Some("LimitsExceeded".into()),
        outcome: Some(true),
        events: vec![crate::trajectory::Event::Issue { text: issue.into() }],
    }
}

fn setup(budget: Budget) -> Setup {
    Setup { condition: "c".into(), seed: 0, budget, template: BlockTemplate::default() }
}

fn query(text: &str) -> Query {
    Query::at_start(Target {
        instance_id: id("acme__widget-7"),
        repo: "acme/widget".into(),
        problem_statement: text.into(),
        language: None,
    })
}

#[test]
fn a_study_may_build_and_ask_on_any_thread() {
    fn sendable<T: Send>(_: T) {}
    let disk = Disk { target: id("acme__widget-3"), runs: Vec::new() };
    sendable(async {
        let mut host = Host::build_from(off(), &disk, setup(Budget::default()), None).await?;
        host.retrieve(&query("a")).await
    });
}

/// A system that answers with what it is told to, and shows what it was given.
#[derive(Default)]
struct Scripted {
    answer: Option<Retrieval>,
    writes_on_read: bool,
    writes: u64,
    seen: Option<&'static Mutex<Vec<Experience>>>,
}

#[async_trait]
impl MemorySystem for Scripted {
    fn describe(&self) -> Description {
        Description { name: "scripted".into(), ingests: true, ..Description::built_in("scripted") }
    }

    async fn prepare(&mut self, _scope: &Scope) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    async fn ingest(&mut self, experience: &Experience) -> Result<Costed<()>, MemoryError> {
        if let Some(seen) = self.seen {
            seen.lock().unwrap().push(experience.clone());
        }
        let cost = Cost { calls: 1, prompt_tokens: 10, seconds: 1e9, list_usd: None, ..Cost::ZERO };
        Ok(Costed { value: (), cost })
    }

    async fn flush(&mut self) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }

    async fn freeze(&mut self) -> Result<Costed<Store>, MemoryError> {
        self.store().map(Costed::free)
    }

    fn store(&self) -> Result<Store, MemoryError> {
        Ok(Store { digest: self.writes.to_string(), records: 0, bytes: 0, unusable: 0 })
    }

    async fn retrieve(&mut self, _query: &Query, _budget: Budget) -> Result<Costed<Retrieval>, MemoryError> {
        self.writes += u64::from(self.writes_on_read);
        match self.answer.clone() {
            Some(answer) => Ok(Costed::free(answer)),
            None => Err(MemoryError::System {
                system: "scripted".into(),
                call: "retrieve",
                reason: "down".into(),
            }),
        }
    }

    async fn snapshot(&mut self, folder: &Path) -> Result<Costed<()>, MemoryError> {
        fs_err::write(folder.join("notes.md"), "a note\n").unwrap();
        Ok(Costed::free(()))
    }

    async fn cleanup(&mut self) -> Result<Costed<()>, MemoryError> {
        Ok(Costed::free(()))
    }
}

fn record(source: &str, text: &str) -> Record {
    Record { id: None, source: id(source), score: None, why: None, text: text.into(), tokens: 0 }
}

async fn answer(system: Scripted, budget: Budget) -> Result<Retrieved, String> {
    let disk = Disk {
        target: id("acme__widget-7"),
        runs: vec![run(1, "a"), run(5, "b"), run(7, "own"), run(9, "later")],
    };
    let built = Host::build_from(Box::new(system), &disk, setup(budget), None).await;
    let mut host = built.map_err(|error| error.to_string())?;
    host.retrieve(&query("anything")).await.map_err(|error| error.to_string())
}

async fn delivered(delivery: Delivery, budget: Budget) -> Result<Retrieved, String> {
    answer(Scripted { answer: Some(Retrieval::Delivery(delivery)), ..Scripted::default() }, budget).await
}

#[tokio::test]
async fn off_conforms() {
    assert_eq!(conformance::check(&|| Ok(off()), false).await, Vec::<String>::new());
}

#[tokio::test]
async fn rejects_sources_that_are_not_eligible() {
    for source in ["acme__widget-7", "acme__widget-9", "acme__widget-2", "other__widget-1"] {
        let of_record = Delivery { records: vec![record(source, "x")], ..Delivery::default() };
        let of_block = Delivery { block: Some("x".into()), sources: vec![id(source)], ..Delivery::default() };
        for delivery in [of_record, of_block] {
            let error = delivered(delivery, Budget::default()).await.unwrap_err();
            assert!(error.starts_with("causality: ") && error.contains(source), "{error}");
        }
    }
    let fine = Delivery { records: vec![record("acme__widget-5", "x")], ..Delivery::default() };
    assert!(delivered(fine, Budget::default()).await.is_ok());
}

#[tokio::test]
async fn enforces_the_budget_and_counts_itself() {
    let records = vec![record("acme__widget-1", "four"), record("acme__widget-5", "eight ch")];
    let delivery = Delivery { records, ..Delivery::default() };
    let too_many = delivered(delivery.clone(), Budget { records: 1, tokens: 99 }).await.unwrap_err();
    assert_eq!(too_many, r#"memory system "scripted" delivered 2 records where the budget allows 1"#);
    let too_long = delivered(delivery.clone(), Budget { records: 2, tokens: 2 }).await.unwrap_err();
    assert_eq!(too_long, r#"memory system "scripted" delivered 3 tokens where the budget allows 2"#);
    let fits = delivered(delivery, Budget { records: 2, tokens: 3 }).await.unwrap();
    let Outcome::Injected(injection) = fits.outcome else { panic!("abstained") };
    assert_eq!(injection.records.iter().map(|r| r.tokens).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(injection.injected_tokens, estimate_tokens(&injection.block));
    assert_eq!(injection.sources, [id("acme__widget-1"), id("acme__widget-5")]);
    assert_eq!(fits.eligible, 2);
}

#[tokio::test]
async fn rejects_unusable_deliveries() {
    let empty = delivered(Delivery::default(), Budget::default()).await.unwrap_err();
    assert!(empty.contains("it is empty"), "{empty}");
    for path in ["../x", "/etc/passwd", "", "a/../../b"] {
        let files = vec![MemoryFile { path: path.into(), content: "x".into() }];
        let error =
            delivered(Delivery { files, ..Delivery::default() }, Budget::default()).await.unwrap_err();
        assert!(error.contains("leaves the mount point"), "{error}");
    }
    let files = vec![MemoryFile { path: "notes/a.md".into(), content: "x".into() }];
    assert!(delivered(Delivery { files, ..Delivery::default() }, Budget::default()).await.is_ok());
}

#[tokio::test]
async fn an_error_is_no_abstention_and_a_write_is_noticed() {
    let down = answer(Scripted::default(), Budget::default()).await.unwrap_err();
    assert_eq!(down, r#"memory system "scripted": retrieve failed: down"#);
    let abstain = Some(Retrieval::Abstain { reason: "quiet".into() });
    let writer = Scripted { answer: abstain.clone(), writes_on_read: true, ..Scripted::default() };
    let wrote = answer(writer, Budget::default()).await.unwrap_err();
    assert_eq!(wrote, r#"store of memory system "scripted" changed after it was frozen (0 became 1)"#);
    let quiet = answer(Scripted { answer: abstain, ..Scripted::default() }, Budget::default()).await.unwrap();
    assert_eq!(quiet.outcome, Outcome::Abstained { reason: "quiet".into() });
    assert_eq!((quiet.build.calls, quiet.build.prompt_tokens, quiet.build.list_usd), (2, 20, None));
    assert!(quiet.build.seconds < 60.0, "the host's clock counts: {}", quiet.build.seconds);
}

#[tokio::test]
async fn ingests_in_order_and_withholds_what_is_not_declared() {
    let seen: &'static Mutex<Vec<Experience>> = Box::leak(Box::default());
    let runs = vec![run(5, "b"), run(10, "later"), run(1, "a"), run(7, "own")];
    let disk = Disk { target: id("acme__widget-7"), runs };
    let system = Scripted { seen: Some(seen), ..Scripted::default() };
    Host::build_from(Box::new(system), &disk, setup(Budget::default()), None).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().map(|run| run.instance_id.number()).collect::<Vec<_>>(), [1, 5]);
    assert!(seen.iter().all(|run| run.outcome.is_none() && run.events.is_empty()));
}

#[tokio::test]
async fn refuses_a_history_that_lies() {
    let target = id("acme__widget-7");
    let one = id("acme__widget-1");
    for (claims, holds, expected) in [
        (vec![target.clone()], run(7, "x"), "the target's own run"),
        (vec![id("other__widget-1")], run(1, "x"), "of another repository"),
        (vec![one.clone(), one.clone()], run(1, "x"), "listed twice"),
        (vec![one], run(9, "x"), "it holds the run of acme__widget-9"),
    ] {
        let history = Claims(target.clone(), claims, vec![holds]);
        let built =
            Host::build_from(Box::new(Scripted::default()), &history, setup(Budget::default()), None).await;
        let error = built.err().expect("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let unreadable = Claims(target, vec![id("acme__widget-1")], Vec::new());
    let built =
        Host::build_from(Box::new(Scripted::default()), &unreadable, setup(Budget::default()), None).await;
    assert!(built.err().expect("refused").to_string().contains("x.traj.json: no such file"));
    // a system that learns from nothing costs no reading
    assert!(Host::build_from(off(), &unreadable, setup(Budget::default()), None).await.is_ok());
}

#[tokio::test]
async fn answers_only_for_its_target() {
    let disk = Disk { target: id("acme__widget-3"), runs: vec![run(1, "a")] };
    let mut host = Host::build_from(off(), &disk, setup(Budget::default()), None).await.unwrap();
    let error = host.retrieve(&query("a")).await.unwrap_err().to_string();
    assert!(error.contains("built for acme__widget-3 and asked for acme__widget-7"), "{error}");
}

#[tokio::test]
async fn a_snapshot_appears_whole_and_replaces_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("c/acme__widget/acme__widget-7");
    let disk = Disk { target: id("acme__widget-7"), runs: vec![run(1, "the reader")] };
    for system in [Box::new(Scripted::default()) as Box<dyn MemorySystem>, bm25()] {
        let mut host = Host::build_from(system, &disk, setup(Budget::default()), None).await.unwrap();
        host.snapshot(&at).await.unwrap();
    }
    let mut names: Vec<_> =
        at.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["records.jsonl", "store.json"]);
    assert_eq!(at.parent().unwrap().read_dir().unwrap().count(), 1, "no staging folder is left");
}

fn issue() -> impl Strategy<Value = String> {
    let word =
        prop::sample::select(vec!["reader", "writer", "blank", "quote", "month", "cell", "retry", "the"]);
    prop::collection::vec(word, 1..8).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Law 1: what a target is given, and the scores by which it is chosen, do not depend on its own run, later runs or
    /// runs of other repositories, whether they lie on disk or not.
    #[test]
    fn the_future_does_not_shine_through(
        earlier in prop::collection::btree_map(1u64..50, issue(), 0..6),
        later in prop::collection::btree_map(50u64..99, issue(), 0..6),
        question in issue(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = |repo: &str, runs: &BTreeMap<u64, String>| {
            for (number, issue) in runs {
                let run = serde_json::json!({"messages": [{"role": "user", "content": issue}]});
                let path = folder.path().join(format!("{repo}-{number}.traj.json"));
                fs_err::write(path, run.to_string()).unwrap();
            }
        };
        let ask = || {
            let stored = HistoryStore::open(folder.path()).unwrap();
            let target = id("acme__widget-50");
            let history =
                History::for_target(&stored, &target, Chronology::Number, &MergeDates::default()).unwrap();
            let mut query = query(&question);
            query.target.instance_id = target;
            runtime.block_on(async {
                let budget = Budget { records: 10, tokens: 2000 };
                let mut host = Host::build(bm25(), &history, setup(budget)).await.unwrap();
                let found = host.retrieve(&query).await.unwrap();
                (found.outcome, found.store, found.eligible)
            })
        };
        store("acme__widget", &earlier);
        let alone = ask();
        store("acme__widget", &later);
        store("other__widget", &later);
        store("other__widget", &earlier);
        prop_assert_eq!(alone, ask());
    }
}
