//! Real programs under the host: how they are run, what they can reach, and what becomes of their faults.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memtrial_testkit::{Act, FakeServer};
use serde_json::{Value, json};

use super::wire::{Answer, Done, Greeting, Hello, Ingest, Prepare, Retrieve};
use super::*;
use crate::llm::gateway::{Caps, Gateway, Settings};
use crate::llm::{Endpoint, Limiter, Price, Secret};
use crate::memory::host::{Experiences, Host, Injection, Outcome, Setup};
use crate::memory::{
    BlockTemplate, Budget, Experience, MemoryError, Query, Resources, Target, conformance, open,
};
use crate::sandbox::{Backend, Limits, Local, Namespaces};
use crate::task::InstanceId;

fn id(number: u64) -> InstanceId {
    InstanceId::parse(&format!("acme__widget-{number}")).unwrap()
}

struct Runs(Vec<Experience>);

impl Experiences for Runs {
    fn digest(&self, id: &InstanceId) -> Result<(String, Option<bool>), String> {
        self.read(id, true).map(|run| (run.issue, run.outcome))
    }

    fn target(&self) -> &InstanceId {
        static TARGET: std::sync::OnceLock<InstanceId> = std::sync::OnceLock::new();
        TARGET.get_or_init(|| id(12))
    }

    fn eligible(&self) -> Vec<InstanceId> {
        self.0.iter().map(|run| run.instance_id.clone()).collect()
    }

    fn read(&self, id: &InstanceId, _with_events: bool) -> Result<Experience, String> {
        self.0.iter().find(|run| run.instance_id == *id).cloned().ok_or_else(|| "gone".into())
    }
}

fn runs() -> Runs {
    let run = |number, issue: &str| Experience {
        instance_id: id(number),
        issue: issue.into(),
        patch: Some("--- a/x\n+++ b/x\n".into()),
        exit_status: Some("Submitted".into()),
        outcome: Some(true),
        events: Vec::new(),
    };
    Runs(vec![
        run(3, "the loader forgets variables"),
        run(5, "retry loses the reader"),
        run(8, "month thirteen"),
    ])
}

/// A folder with a program in it, and a place to run it.
struct Bench {
    folder: tempfile::TempDir,
    site: Site,
}

impl Bench {
    fn on(backend: impl FnOnce(PathBuf) -> Arc<dyn Backend>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let site = Site {
            backend: backend(folder.path().join("cache")),
            state: folder.path().join("state"),
            limits: Limits { memory: 512 << 20, disk: 64 << 20, ..Limits::default() },
            calls: None,
        };
        Self { folder, site }
    }

    /// Without isolation: quick.
    fn local() -> Self {
        Self::on(|cache| Arc::new(Local::new(cache)))
    }

    fn sandboxed() -> Self {
        Self::on(|cache| Arc::new(Namespaces::new(cache)))
    }

    /// With a gateway before this model.
    fn asking(mut self, server: &FakeServer) -> Self {
        let endpoint = Endpoint {
            min_wait: std::time::Duration::from_millis(1),
            max_wait: std::time::Duration::from_millis(20),
            max_attempts: 2,
            send_seed: false,
            price: Some(Price { input: 1.0, cached_input: None, cache_write: None, output: 2.0 }),
            ..Endpoint::new(server.url(), "fake-model").with_key(Secret::new("sk-canary"))
        };
        let gateway = Gateway::new(endpoint, &Limiter::default(), Settings::default()).unwrap();
        let journals = Some(self.folder.path().join("calls"));
        self.site.calls = Some(Calls { gateway, journals, caps: Caps::default() });
        self
    }

    fn settings(&self, interpreter: &str, name: &str, text: &str, arguments: &[&str]) -> ProgramSettings {
        let path = self.folder.path().join(name);
        fs_err::write(&path, text).unwrap();
        let mut command = vec![interpreter.to_owned(), path.display().to_string()];
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        ProgramSettings { retrieve_seconds: 3, reply_mib: 1, ..ProgramSettings::new(command) }
    }

    fn faulty(&self, arguments: &[&str]) -> ProgramSettings {
        self.settings("python3", "faulty.py", include_str!("programs/faulty.py"), arguments)
    }

    fn model(&self) -> ProgramSettings {
        self.settings("python3", "model.py", include_str!("programs/model.py"), &[])
    }

    async fn host(&self, settings: &ProgramSettings) -> Result<Host, MemoryError> {
        let system = Plugged::new(settings.clone(), Some(self.site.clone()));
        self.host_of(Box::new(system)).await
    }

    async fn host_of(&self, system: Box<dyn crate::memory::MemorySystem>) -> Result<Host, MemoryError> {
        Host::build_from(system, &runs(), setup(), None).await
    }

    /// The error that a program's fault ends in.
    async fn error(&self, settings: &ProgramSettings) -> String {
        let mut host = match self.host(settings).await {
            Ok(host) => host,
            Err(error) => return error.to_string(),
        };
        host.retrieve(&question()).await.unwrap_err().to_string()
    }
}

fn setup() -> Setup {
    Setup {
        condition: "plugged".into(),
        seed: 1,
        budget: Budget { records: 2, tokens: 512 },
        template: BlockTemplate::default(),
    }
}

fn question() -> Query {
    Query::at_start(Target {
        instance_id: id(12),
        repo: "acme/widget".into(),
        problem_statement: "why is the reader lost after a retry".into(),
        language: None,
    })
}

fn injected(outcome: Outcome) -> Injection {
    match outcome {
        Outcome::Injected(injection) => injection,
        other => panic!("{other:?}"),
    }
}

fn processes(with: &str) -> usize {
    let lines = fs_err::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path().join("cmdline");
        let text = std::fs::read(path).ok()?;
        String::from_utf8_lossy(&text).contains(with).then_some(())
    });
    lines.count()
}

#[tokio::test]
async fn a_program_passes_every_check_with_and_without_isolation() {
    for bench in [Bench::local(), Bench::sandboxed()] {
        let settings = ProgramSettings { deterministic: true, ..bench.faulty(&["none"]) };
        assert_eq!(check::program(&settings, &bench.site, true).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_it_prints_besides_is_passed_over_and_its_life_is_noted() {
    let bench = Bench::local();
    let mut host = bench.host(&bench.faulty(&["noisy"])).await.unwrap();
    let found = host.retrieve(&question()).await.unwrap();
    assert_eq!(found.store.records, 3);
    let injection = injected(found.outcome);
    assert_eq!(injection.sources, [id(3), id(5)]);
    let folder = bench.folder.path().join("snapshot");
    host.snapshot(&folder).await.unwrap();
    let note: Value =
        serde_json::from_str(&fs_err::read_to_string(folder.join("program.json")).unwrap()).unwrap();
    assert_eq!((&note["restarts"], &note["isolated"]), (&json!(0), &json!(false)));
    assert!(note["skipped_lines"].as_u64().unwrap() >= 14, "{note}");
    assert_eq!(note["self_reported"]["calls"], 1, "what it says of itself is kept, and is no cost");
    assert_eq!(found.retrieve.calls, 0);
    let runs = fs_err::read_to_string(folder.join("state/runs")).unwrap();
    assert_eq!(runs.lines().count(), 3);
    host.cleanup().await.unwrap();
    assert_eq!(fs_err::read_dir(bench.folder.path().join("state")).unwrap().count(), 0, "the state goes");
}

#[tokio::test]
async fn every_fault_is_an_error_with_a_name() {
    let bench = Bench::local();
    let quick = |fault: &str| ProgramSettings { restarts: 1, ..bench.faulty(&[fault]) };
    for (fault, words) in [
        ("slow", vec!["retrieve failed", "no answer within 3 s"]),
        ("huge", vec!["retrieve failed", "a line of more than 1048576 bytes"]),
        (
            "crash",
            vec!["ended by itself, also after it was started again 1 times", "about to fail", "code 7"],
        ),
        ("crash-ingest", vec!["ingest failed", "ended by itself", "signal 9"]),
        ("truncated", vec!["retrieve failed", "ended by itself"]),
        ("writes", vec!["changed after it was frozen"]),
        ("wrong-source", vec!["causality", "acme__widget-99"]),
        ("no-source", vec!["unusable delivery", "\"somewhere\" is no run's id"]),
        ("no-reason", vec!["unusable delivery", "abstains without a reason"]),
        ("over", vec!["tokens where the budget allows 512"]),
        ("empty", vec!["unusable delivery", "it is empty"]),
        ("wrong-id", vec!["ingest failed", "it answered request 10 instead of 3"]),
        ("no-result", vec!["neither result nor error"]),
        ("other", vec!["it speaks \"memtrial-memory/2\""]),
        ("needs-outcome", vec!["uses-outcome = true"]),
        ("refuses", vec!["prepare failed: no disk (JSON-RPC error -32000)"]),
    ] {
        let error = bench.error(&quick(fault)).await;
        for words in words {
            assert!(error.contains(words), "{fault}: {error}");
        }
    }
    let missing = ProgramSettings::new(vec!["/nowhere/program".into()]);
    let error = bench.error(&ProgramSettings { restarts: 0, ..missing }).await;
    assert!(error.contains("prepare failed") && error.contains("command not found"), "{error}");
    let old = ProgramSettings { version: Some("0.9".into()), ..bench.faulty(&[]) };
    assert!(bench.error(&old).await.contains("the settings say version 0.9, the program says 1.0"));
}

#[tokio::test]
async fn a_program_that_ended_is_told_all_again() {
    let bench = Bench::local();
    let marker = bench.folder.path().join("crashed").display().to_string();
    let mut host = bench.host(&bench.faulty(&["crash-once", &marker])).await.unwrap();
    let found = host.retrieve(&question()).await.unwrap();
    assert_eq!(injected(found.outcome).sources, [id(3), id(5)]);
    let folder = bench.folder.path().join("snapshot");
    host.snapshot(&folder).await.unwrap();
    assert_eq!(fs_err::read_to_string(folder.join("state/runs")).unwrap().lines().count(), 3);
    let note = fs_err::read_to_string(folder.join("program.json")).unwrap();
    assert!(note.contains("\"restarts\": 1"), "{note}");
}

#[tokio::test]
async fn nothing_outlives_it() {
    for bench in [Bench::local(), Bench::sandboxed()] {
        let path = bench.folder.path().display().to_string();
        let host = bench.host(&bench.faulty(&["lingers"])).await.unwrap();
        assert!(processes(&path) > 0);
        host.cleanup().await.unwrap();
        assert_eq!(processes(&path), 0);
        // Dropped in the middle it is ended as well, a moment later.
        drop(bench.host(&bench.faulty(&["none"])).await.unwrap());
        let began = std::time::Instant::now();
        while processes(&path) > 0 {
            assert!(began.elapsed().as_secs() < 20);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_sandboxed_program_reaches_its_state_and_nothing_else() {
    let bench = Bench::sandboxed();
    let secret = bench.folder.path().join("secret");
    fs_err::write(&secret, "s").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let arguments = [&*secret.display().to_string(), &port];
    let text = include_str!("programs/shell.sh");
    // Named in the command it would be shown: the path goes in pieces.
    let mut settings = bench.settings("bash", "shell.sh", text, &[]);
    settings.command = vec![
        "bash".into(),
        "-c".into(),
        format!(
            "set -- '{}' '{}'; . '{}'",
            arguments[0],
            arguments[1],
            bench.folder.path().join("shell.sh").display()
        ),
    ];
    settings.mounts = vec![bench.folder.path().join("shell.sh")];
    let mut host = bench.host(&settings).await.unwrap();
    let found = injected(host.retrieve(&question()).await.unwrap().outcome);
    let text = &found.records[0].text;
    assert!(text.starts_with("write pid-") || text.starts_with("pid-"), "it reached {text}");
    assert_eq!(fs_err::read_to_string(&secret).unwrap(), "s");
}

fn noting() -> impl Fn(&Value) -> Act {
    |request: &Value| {
        let text = request["messages"][0]["content"].as_str().unwrap_or_default();
        Act::say(json!({"note": format!("noted: {text}")}).to_string())
    }
}

#[tokio::test]
async fn its_model_calls_are_the_gateways_counts_build_and_retrieval_apart() {
    for bench in [Bench::local(), Bench::sandboxed()] {
        let server = FakeServer::start(noting()).unwrap();
        let bench = bench.asking(&server);
        let mut host = bench.host(&bench.model()).await.unwrap();
        let found = host.retrieve(&question()).await.unwrap();
        assert_eq!((found.build.calls, found.retrieve.calls), (3, 1));
        assert!(found.build.prompt_tokens > 0 && found.build.list_usd.unwrap() > 0.0);
        assert!(injected(found.outcome).block.contains("noted: the loader forgets variables"));
        host.cleanup().await.unwrap();
        let requests = server.requests();
        assert!(requests.iter().all(|request| request.headers["authorization"] == "Bearer sk-canary"));
        // The same build again, as after a kill: its calls are answered from the journal, and counted as before.
        let again = bench.host(&bench.model()).await.unwrap();
        assert_eq!(again.build_cost().calls, 4, "what the journal holds is spent");
        assert_eq!(server.count(), 4);
    }
}

#[tokio::test]
async fn bad_replies_of_the_model_are_named_or_noted() {
    let bench = Bench::local();
    for (what, act, words) in [
        ("prose", Act::say("I cannot do that"), "JSONDecodeError in the model's reply: I cannot do that"),
        ("cut", Act::say("{\"note\": \"half"), "in the model's reply: {\"note\": \"half"),
        ("hostile", Act::say("[[[[[[\"note\"]]]]]]"), "TypeError in the model's reply"),
    ] {
        let server = FakeServer::start(move |_: &Value| act.clone()).unwrap();
        let bench = Bench::local().asking(&server);
        let mut host = bench.host(&bench.model()).await.unwrap();
        host.retrieve(&question()).await.unwrap();
        let folder = bench.folder.path().join("snapshot");
        host.snapshot(&folder).await.unwrap();
        let note: Value =
            serde_json::from_str(&fs_err::read_to_string(folder.join("program.json")).unwrap()).unwrap();
        let degraded = note["degraded"].as_array().unwrap();
        assert_eq!(degraded.len(), 3, "{what}");
        assert!(degraded[0].as_str().unwrap().contains(words), "{what}: {}", degraded[0]);
    }
    for (what, act) in [
        ("no JSON", Act::Bytes(b"<html>".to_vec())),
        ("broken off", Act::CloseMidBody(b"{\"choices\": [".to_vec())),
        ("refused", Act::status(401, "bad key")),
        ("down", Act::status(503, "overloaded")),
    ] {
        let server = FakeServer::start(move |_: &Value| act.clone()).unwrap();
        let bench = Bench::local().asking(&server);
        let error = bench.error(&bench.model()).await;
        assert!(
            error.contains("ingest failed") && error.contains("its last failed model call"),
            "{what}: {error}"
        );
    }
    let error = bench.error(&bench.model()).await;
    assert!(error.contains("it needs a model, and none is configured"), "{error}");
}

fn mcp(bench: &Bench, fault: &str, query: Value) -> Value {
    let path = bench.folder.path().join("mcp.py");
    fs_err::write(&path, include_str!("programs/mcp.py")).unwrap();
    json!({
        "command": ["python3", path, fault], "env": {"NOTES": "{{ state }}/notes.jsonl"}, "deterministic": true,
        "retrieve-seconds": 5,
        "write": {"tool": "add", "arguments": {"key": "{{ id }}", "body": "{{ text }}"}},
        "read": {"tool": "find", "arguments": {"q": "{{ query }}", "limit": "{{ k }}"}, "items": "hits", "id": "key",
            "text": "body", "query": query},
    })
}

fn opened(bench: &Bench, settings: &Value) -> Box<dyn crate::memory::MemorySystem> {
    let resources = Resources { site: Some(bench.site.clone()), ..Resources::default() };
    open("mcp", settings, &resources).unwrap()
}

#[tokio::test]
async fn an_mcp_server_is_a_memory_system() {
    for (bench, fault) in [(Bench::local(), "none"), (Bench::sandboxed(), "structured")] {
        let settings = mcp(&bench, fault, json!({"words": 5}));
        let failures = conformance::check(&|| Ok(opened(&bench, &settings)), true).await;
        assert_eq!(failures, Vec::<String>::new());
        let mut host = bench.host_of(opened(&bench, &settings)).await.unwrap();
        let found = host.retrieve(&question()).await.unwrap();
        // "reader", "lost", "after", "retry": only the fifth run holds any of them.
        assert_eq!(injected(found.outcome).sources, [id(5)]);
        assert_eq!(found.store.records, 3);
        host.cleanup().await.unwrap();
    }
    let bench = Bench::local();
    let whole = mcp(&bench, "none", json!("whole"));
    let mut host = bench.host_of(opened(&bench, &whole)).await.unwrap();
    let found = host.retrieve(&question()).await.unwrap().outcome;
    assert_eq!(found, Outcome::Abstained { reason: "the server found nothing".into() });
}

#[tokio::test]
async fn an_mcp_servers_faults_have_names() {
    let bench = Bench::local();
    for (fault, words) in [
        ("fails", "tool \"add\" failed: quota exceeded"),
        ("foreign", "\"uuid-1\" is no run's id"),
        ("prose", "no array at \"hits\" (read.items) in its answer: \"I found some notes for you\""),
    ] {
        let settings = mcp(&bench, fault, json!({"words": 5}));
        let error = match bench.host_of(opened(&bench, &settings)).await {
            Ok(mut host) => host.retrieve(&question()).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains(words), "{fault}: {error}");
    }
    let mut settings = mcp(&bench, "none", json!("whole"));
    settings["write"]["tool"] = json!("store");
    let Err(error) = bench.host_of(opened(&bench, &settings)).await else {
        panic!("a tool that is not there")
    };
    assert!(error.to_string().contains("the server has no tool \"store\"; it has add, find"), "{error}");
    settings["settle-seconds"] = json!(1);
    settings["write"]["tool"] = json!("add");
    settings["read"]["arguments"]["q"] = json!("never there");
    let Err(error) = bench.host_of(opened(&bench, &settings)).await else { panic!("never found") };
    assert!(error.to_string().contains("flush failed: acme__widget-8 is not found"), "{error}");
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let message = |name: &str, settings: Value| match open(name, &settings, &Resources::default()) {
        Ok(_) => panic!("{settings} was accepted"),
        Err(error) => error.to_string(),
    };
    for (name, settings, words) in [
        ("program", Value::Null, "missing field `command`"),
        ("program", json!({"command": []}), "command is empty"),
        ("program", json!({"command": ["x"], "comand": 1}), "unknown field `comand`"),
        ("program", json!({"command": ["x"], "ingest-seconds": 0}), "ingest-seconds is 0: it is 1 to 86400"),
        ("program", json!({"command": ["x"], "mounts": ["a"]}), "mounts: a is not absolute"),
        ("program", json!({"command": ["x"], "not-store": ["../a"]}), "no path below the state folder"),
        ("program", json!(["x"]), "expected a table"),
        ("mcp", json!({"command": ["x"]}), "missing field `write`"),
        (
            "mcp",
            json!({"command": ["x"], "write": {"tool": "w", "arguments": {"a": "{{ id"}},
                "read": {"tool": "r", "id": "id"}}),
            "write.arguments",
        ),
        (
            "mcp",
            json!({"command": ["x"], "write": {"tool": "w"}, "read": {"tool": "r", "id": "id", "itmes": "x"}}),
            "itmes",
        ),
        (
            "mcp",
            json!({"command": ["x"], "write": {"tool": "w"}, "read": {"tool": "r", "id": "id", "query": {"words": 0}}}),
            "read.query.words is 0",
        ),
    ] {
        let error = message(name, settings);
        assert!(error.contains(words), "{error}");
    }
    let about = open("program", &json!({"command": ["x"], "reads-events": true}), &Resources::default());
    assert!(about.unwrap().describe().reads_events);
}

/// The examples of the protocol's page are what is really written and read.
#[test]
fn the_documented_examples_are_what_is_spoken() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/memory-protocol.schema.json");
    let schema: Value = serde_json::from_str(&fs_err::read_to_string(path).unwrap()).unwrap();
    let examples = schema["examples"].as_array().unwrap();
    let mut methods = Vec::new();
    for example in examples {
        let method = example["request"]["method"].as_str().unwrap();
        let params = example["request"]["params"].clone();
        let written: Value = match method {
            "hello" => json!(serde_json::from_value::<Hello>(params.clone()).unwrap()),
            "prepare" => json!(serde_json::from_value::<Prepare>(params.clone()).unwrap()),
            "ingest" => json!(serde_json::from_value::<Ingest>(params.clone()).unwrap()),
            "retrieve" => json!(serde_json::from_value::<Retrieve>(params.clone()).unwrap()),
            "feedback" => json!(serde_json::from_value::<super::wire::Feed>(params.clone()).unwrap()),
            _ => json!({}),
        };
        assert_eq!(written, params, "{method}");
        let result = example["response"]["result"].clone();
        match method {
            _ if result.is_null() => assert!(example["response"]["error"]["code"].is_i64(), "{method}"),
            "hello" => drop(serde_json::from_value::<Greeting>(result).unwrap()),
            "retrieve" => {
                drop(serde_json::from_value::<Answer>(result).unwrap().retrieval().unwrap());
            }
            _ => drop(serde_json::from_value::<Done>(result).unwrap()),
        }
        methods.push(method);
    }
    for method in
        ["hello", "prepare", "ingest", "flush", "freeze", "retrieve", "feedback", "snapshot", "cleanup"]
    {
        assert!(methods.contains(&method), "no example of {method}");
    }
}
