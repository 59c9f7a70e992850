//! Plugged-in systems over a real history (where `MEMTRIAL_DATA` names the folder of data): the example in Python, and
//! whatever the settings files name that `MEMTRIAL_PLUGGED` lists, with colons between. What came of each is written
//! beside its file, as `.result.json`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use memtrial_testkit::{Act, FakeServer};
use serde_json::{Value, json};

use super::{Calls, Site, read_settings};
use crate::dataset::{Chronology, History, HistoryStore, MergeDates};
use crate::llm::gateway::{Caps, Gateway, Settings};
use crate::llm::{Endpoint, Limiter};
use crate::memory::host::{Host, Outcome, Setup};
use crate::memory::{BlockTemplate, Budget, Query, Resources, Target, open};
use crate::sandbox::{Limits, Namespaces};
use crate::task::InstanceId;
use crate::trajectory::Limits as Cut;

const RUNS: &str = "trajectories/swebench-verified_gemini3pro_mini-1.15";
const TARGET: &str = "django__django-12713";

/// A model that says the same to everyone, in the format that extraction prompts ask for.
fn notes() -> impl Fn(&Value) -> Act {
    |request: &Value| {
        let text =
            request["messages"].as_array().and_then(|all| all.last()?["content"].as_str().map(str::to_owned));
        let head: String = text.unwrap_or_default().chars().take(60).collect();
        let note = json!({"memory": [{"id": "0", "text": format!("noted: {head}"), "attributed_to": "user"}],
            "facts": [format!("noted: {head}")], "keywords": ["django"], "context": "a run", "tags": ["bug"],
            "should_evolve": false});
        Act::say(note.to_string())
    }
}

async fn tried(data: &Path, folder: &Path, kind: &str, settings: &Value, model: &FakeServer) -> Value {
    let store = HistoryStore::open(&data.join(RUNS)).unwrap();
    let target = InstanceId::parse(TARGET).unwrap();
    let history = History::for_target(&store, &target, Chronology::Number, &MergeDates::default()).unwrap();
    // What its own run was told is the issue; it is no part of the history.
    let own = HistoryStore::open(&data.join(RUNS)).unwrap();
    let later = InstanceId::parse("django__django-99999").unwrap();
    let all = History::for_target(&own, &later, Chronology::Number, &MergeDates::default()).unwrap();
    let entry = all.entries().iter().find(|entry| *entry.id() == target).unwrap();
    let issue = entry.summary(&Cut::default()).unwrap().issue.unwrap();
    let endpoint = Endpoint { send_seed: false, ..Endpoint::new(model.url(), "fake-model") };
    let gateway = Gateway::new(endpoint, &Limiter::default(), Settings::default()).unwrap();
    let site = Site {
        backend: Arc::new(Namespaces::new(folder.join("cache"))),
        state: folder.join("state"),
        limits: Limits::default(),
        calls: Some(Calls { gateway, journals: None, caps: Caps::default() }),
    };
    let resources = Resources { site: Some(site), ..Resources::default() };
    let system = open(kind, settings, &resources).unwrap();
    let budget = Budget { records: 5, tokens: 4096 };
    let setup = Setup { condition: "real".into(), seed: 1, budget, template: BlockTemplate::default() };
    let began = Instant::now();
    let mut host = match Host::build(system, &history, setup).await {
        Ok(host) => host,
        Err(error) => return json!({"error": error.to_string(), "seconds": began.elapsed().as_secs_f64()}),
    };
    let built = began.elapsed().as_secs_f64();
    let query = Query::at_start(Target {
        instance_id: target,
        repo: "django/django".into(),
        problem_statement: issue,
        language: Some("python".into()),
    });
    let asked = Instant::now();
    let retrieved = match host.retrieve(&query).await {
        Ok(retrieved) => retrieved,
        Err(error) => return json!({"error": error.to_string(), "built_seconds": built}),
    };
    let seconds = asked.elapsed().as_secs_f64();
    let snapshot = folder.join("snapshot");
    host.snapshot(&snapshot).await.unwrap();
    let note = fs_err::read_to_string(snapshot.join("program.json")).unwrap();
    host.cleanup().await.unwrap();
    let found = match &retrieved.outcome {
        Outcome::Injected(injection) => {
            let eligible = history.entries().iter().map(|entry| entry.id()).collect::<Vec<_>>();
            assert!(injection.sources.iter().all(|source| eligible.contains(&source)));
            let records = injection.records.iter();
            json!({"records": records.map(|r| json!([r.source, r.score, r.tokens])).collect::<Vec<_>>(),
                "injected_tokens": injection.injected_tokens})
        }
        Outcome::Abstained { reason } => json!({"abstained": reason}),
    };
    json!({"eligible": retrieved.eligible, "built_seconds": built, "retrieve_seconds": seconds, "found": found,
        "build": retrieved.build, "retrieve": retrieved.retrieve, "store": retrieved.store,
        "program": serde_json::from_str::<Value>(&note).unwrap()})
}

#[tokio::test]
async fn real_histories_go_through_plugged_in_systems() {
    let Ok(data) = std::env::var("MEMTRIAL_DATA") else { return };
    let data = PathBuf::from(data);
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../integrations/python").canonicalize().unwrap();
    let model = FakeServer::start(notes()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let words = json!({"command": ["python3", python.join("adapters/words.py")], "mounts": [python],
        "env": {"PYTHONPATH": python}});
    let found = tried(&data, folder.path(), "program", &words, &model).await;
    assert_eq!(found["found"]["records"].as_array().map(Vec::len), Some(5), "{found:#}");
    assert!(found["store"]["records"].as_u64().unwrap() > 50 && model.count() == 0, "{found:#}");
    for path in
        std::env::var("MEMTRIAL_PLUGGED").unwrap_or_default().split(':').filter(|path| !path.is_empty())
    {
        let mut settings = read_settings(&fs_err::read_to_string(path).unwrap()).unwrap();
        let kind = settings.remove("memory").and_then(|kind| kind.as_str().map(str::to_owned));
        let folder = tempfile::tempdir().unwrap();
        let kind = kind.unwrap_or_else(|| "program".into());
        let found = tried(&data, folder.path(), &kind, &Value::Object(settings), &model).await;
        fs_err::write(format!("{path}.result.json"), format!("{found:#}\n")).unwrap();
    }
}
