use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::super::fakes::{FolderSandbox, ScriptedModel, calling, reply};
use super::super::{Asking, Layer, Recall, SENTINEL, exit};
use super::*;
use crate::context::Full;
use crate::task::{InstanceId, Recipe};

const YAML: &str = "
agent: {system_template: 'You fix.', instance_template: 'Fix: {{task}} in {{cwd}}'}
environment: {timeout: 10, env: {GREETING: 'hé', SHADOWED: yaml}}
model: {format_error_template: '{{error}}'}
";

/// A clock that moves a second at each reading.
#[derive(Default)]
struct Ticking(Mutex<f64>);

impl Clock for Ticking {
    fn unix(&self) -> f64 {
        let mut now = self.0.lock().unwrap();
        *now += 1.0;
        1_000.0 + *now
    }
}

/// A clock that stands still.
pub(super) struct Still;

impl Clock for Still {
    fn unix(&self) -> f64 {
        1_000.0
    }
}

pub(super) struct World {
    config: Config,
    pub(super) task: SolverView,
    place: Place,
    policy: Full,
    memory: Option<String>,
    output: OutputLimit,
    pub(super) format: TrajectoryFormat,
    pub(super) folder: tempfile::TempDir,
}

impl World {
    pub(super) fn new(more: &str) -> Self {
        let layers = [Layer::from_yaml("a", YAML).unwrap(), Layer::from_yaml("b", more).unwrap()];
        Self {
            config: Config::from_layers(&layers).unwrap().config,
            task: SolverView {
                instance_id: InstanceId::parse("acme__widget-7").unwrap(),
                repo: "acme/widget".into(),
                base_commit: "0".repeat(40),
                problem_statement: "it".into(),
                language: None,
                image_name: None,
                version: None,
                recipe: Recipe::default(),
            },
            place: Place {
                workdir: "/testbed".into(),
                env: BTreeMap::from([("SHADOWED".into(), "place".into())]),
            },
            policy: Full::default(),
            memory: None,
            output: OutputLimit::default(),
            format: TrajectoryFormat::Mini,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) async fn run(
        &self,
        model: &dyn Model,
        sandbox: &mut FolderSandbox,
        clock: &dyn Clock,
    ) -> Result<Finished, AgentError> {
        self.drive(None, model, sandbox, clock).await
    }

    pub(super) async fn run_with(
        &self,
        recall: Option<OnDemand<'_>>,
        model: &dyn Model,
        sandbox: &mut FolderSandbox,
    ) -> Result<Finished, AgentError> {
        self.drive(recall, model, sandbox, &Still).await
    }

    pub(super) async fn asking(
        &self,
        memory: &dyn Recall,
        asking: Asking,
        model: &dyn Model,
        sandbox: &mut FolderSandbox,
    ) -> Result<Finished, AgentError> {
        self.run_with(Some(OnDemand { asking, memory, start: None }), model, sandbox).await
    }

    async fn drive(
        &self,
        recall: Option<OnDemand<'_>>,
        model: &dyn Model,
        sandbox: &mut FolderSandbox,
        clock: &dyn Clock,
    ) -> Result<Finished, AgentError> {
        drive(Run {
            task: &self.task,
            config: &self.config,
            model,
            params: &Map::from_iter([("temperature".to_owned(), json!(0))]),
            seed: Some(1),
            sandbox,
            place: &self.place,
            uname: Uname::default(),
            output: self.output,
            memory: self.memory.as_deref(),
            recall,
            policy: &self.policy,
            folder: self.folder.path(),
            format: self.format,
            clock,
            facts: Map::from_iter([("condition".to_owned(), json!("off"))]),
        })
        .await
    }

    pub(super) fn trajectory(&self) -> Value {
        let text = std::fs::read(self.folder.path().join("acme__widget-7.traj.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

/// A repository with one commit.
pub(super) async fn repository() -> FolderSandbox {
    let mut sandbox = FolderSandbox::new().unwrap();
    let command = "git init -q . && echo 'x = 1' > w.py && git add -A && \
                   git -c user.name=a -c user.email=a@b commit -qm one";
    let output = sandbox.exec(&Exec::bash(command, "/")).await.unwrap();
    assert!(output.success(), "{}", output.text());
    sandbox.executed.clear();
    sandbox
}

pub(super) fn script(turns: &[Value]) -> ScriptedModel {
    ScriptedModel::new(turns.iter().map(|message| Ok(reply(message.clone(), "stop", Some(0.01)))))
}

fn submit() -> Value {
    calling(&[&format!("echo {SENTINEL} && cat patch.txt")])
}

/// A run with everything in it: several calls a turn, a format error, failing commands, unicode, a signal.
fn whole_run() -> Vec<Value> {
    vec![
        calling(&["cat w.py", "echo \"$GREETING $SHADOWED\""]),
        json!({"role": "assistant", "content": "no call"}),
        calling(&["sed -i s/1/2/ w.py && printf 'new' > 'a file'", "false", "kill -9 $$"]),
        calling(&["git diff -- w.py > patch.txt"]),
        submit(),
    ]
}

#[tokio::test]
async fn a_run_leaves_its_log_and_a_trajectory() {
    let world = World::new("");
    let model = script(&whole_run());
    let finished = world.run(&model, &mut repository().await, &Ticking::default()).await.unwrap();
    assert_eq!((finished.exit_status.as_str(), finished.calls, finished.commands), ("Submitted", 5, 7));
    assert!(
        finished.submission.starts_with("diff --git a/w.py b/w.py\n")
            && finished.submission.ends_with("+x = 2\n")
    );
    assert_eq!((finished.cost.calls, finished.replayed), (5, 0));

    let trajectory = world.trajectory();
    let info = &trajectory["info"];
    assert_eq!(
        (&info["exit_status"], &info["submission"]),
        (&json!("Submitted"), &json!(finished.submission))
    );
    assert_eq!(info["model_stats"]["api_calls"], 5);
    assert_eq!(info["config"]["environment"]["cwd"], "/testbed");
    assert_eq!(info["config"]["model"]["model_kwargs"], json!({"temperature": 0}));
    assert_eq!(
        (&info["config"]["memtrial"]["condition"], &info["config"]["memtrial"]["memory_tokens"]),
        (&json!("off"), &json!(0))
    );
    let messages = trajectory["messages"].as_array().unwrap();
    assert_eq!(messages[1]["content"], "Fix: it in /testbed");
    let outputs: Vec<_> = messages.iter().filter_map(|m| m.pointer("/extra/raw_output")).collect();
    assert_eq!(
        outputs,
        [&json!("x = 1\n"), &json!("hé place\n"), &json!(""), &json!(""), &json!(""), &json!("")]
    );
    let codes: Vec<_> = messages.iter().filter_map(|m| m.pointer("/extra/returncode")).collect();
    assert_eq!(codes, [0, 0, 0, 1, 137, 0]);

    let lines = std::fs::read_to_string(world.folder.path().join("messages.jsonl")).unwrap();
    let written: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(&written, messages);
    let requests = model.requests.lock().unwrap();
    assert!(requests.iter().all(|request| request.tools.len() == 1 && request.seed == Some(1)));
    assert!(
        requests.iter().flat_map(|request| &request.messages).all(|message| message.get("extra").is_none())
    );
}

#[tokio::test]
async fn a_run_interrupted_anywhere_ends_as_if_it_had_not_been() {
    let mut undisturbed = World::new("");
    undisturbed.memory = Some("- remember".into());
    let (turns, events) = (whole_run(), 12);
    let whole = undisturbed.run(&script(&turns), &mut repository().await, &Still).await.unwrap();

    // Two `exec`s a command: the command and the hash of the repository. Losing either leaves the same record.
    let stops =
        (1..=turns.len()).map(|call| (call, None)).chain((1..=14).step_by(2).map(|exec| (0, Some(exec))));
    for (call, exec) in stops {
        let mut world = World::new("");
        world.memory = undisturbed.memory.clone();
        let (model, mut sandbox) = (script(&turns), repository().await);
        model.fails_at.store(call, Ordering::Relaxed);
        sandbox.lost_at = exec;
        let error = world.run(&model, &mut sandbox, &Still).await.unwrap_err();
        let status = world.trajectory()["info"]["exit_status"].clone();
        match error {
            AgentError::Model(_) => assert_eq!(status, "APIConnectionError"),
            AgentError::Sandbox(_) => assert_eq!(status, "SandboxError"),
            other => panic!("{other}"),
        }
        let resumed = world.run(&script(&turns), &mut repository().await, &Still).await.unwrap();
        assert_eq!(Finished { trajectory: whole.trajectory.clone(), replayed: 0, ..resumed.clone() }, whole);
        assert_eq!(world.trajectory(), undisturbed.trajectory(), "stopped at call {call}, exec {exec:?}");
        assert!(resumed.replayed < events + 2);
    }
}

/// A clock that stands still at some time.
struct At(f64);

impl Clock for At {
    fn unix(&self) -> f64 {
        self.0
    }
}

#[tokio::test]
async fn a_clock_set_back_between_two_processes_takes_no_time_away() {
    let (world, turns) = (World::new(""), whole_run());
    let (model, clock) = (script(&turns), Ticking::default());
    model.fails_at.store(3, Ordering::Relaxed);
    world.run(&model, &mut repository().await, &clock).await.unwrap_err();
    let spent = world.trajectory()["info"]["config"]["memtrial"]["elapsed_seconds"].as_f64().unwrap();
    assert!(spent > 0.0);
    let resumed = world.run(&script(&turns), &mut repository().await, &At(10.0)).await.unwrap();
    assert_eq!((resumed.exit_status.as_str(), resumed.seconds), ("Submitted", spent));
}

/// One script for several processes.
struct Shared(std::sync::Arc<ScriptedModel>);

#[async_trait::async_trait]
impl Model for Shared {
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        self.0.complete(request).await
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

#[tokio::test]
async fn an_interrupted_run_pays_for_no_call_twice() {
    let turns = whole_run();
    let undisturbed = World::new("");
    undisturbed.run(&script(&turns), &mut repository().await, &Still).await.unwrap();

    let world = World::new("");
    let endpoint = std::sync::Arc::new(script(&turns));
    let journaled = || {
        crate::llm::Journaled::open(&world.folder.path().join("calls.jsonl"), Shared(endpoint.clone()))
            .unwrap()
    };
    for exec in (2..14).step_by(3) {
        let mut sandbox = repository().await;
        sandbox.lost_at = Some(exec);
        let error = world.run(&journaled(), &mut sandbox, &Still).await.unwrap_err();
        assert!(matches!(error, AgentError::Sandbox(_)), "{error}");
    }
    world.run(&journaled(), &mut repository().await, &Still).await.unwrap();
    assert_eq!(world.trajectory(), undisturbed.trajectory());
    assert_eq!(endpoint.requests.lock().unwrap().len(), turns.len());

    // Another memory block is another request: the call journal says so before anything is paid.
    let mut other = World::new("");
    other.memory = Some("- another block".into());
    std::fs::copy(world.folder.path().join("calls.jsonl"), other.folder.path().join("calls.jsonl")).unwrap();
    let calls =
        crate::llm::Journaled::open(&other.folder.path().join("calls.jsonl"), Shared(endpoint)).unwrap();
    let error = other.run(&calls, &mut repository().await, &Still).await.unwrap_err();
    assert!(matches!(error, AgentError::Diverged { what: "model call", event: 1, .. }), "{error}");
}

#[tokio::test]
async fn a_killed_process_costs_nothing_that_was_written() {
    let turns = whole_run();
    let undisturbed = World::new("");
    undisturbed.run(&script(&turns), &mut repository().await, &Still).await.unwrap();
    let read = |name: &str| std::fs::read(undisturbed.folder.path().join(name)).unwrap();
    let (events, messages) = (read("events.jsonl"), read("messages.jsonl"));
    // Any prefix of the events, cut in the middle of a line, with no message or a torn one after it.
    for cut in (0..events.len()).step_by(events.len() / 9) {
        let world = World::new("");
        std::fs::write(world.folder.path().join("events.jsonl"), &events[..cut]).unwrap();
        let torn = if cut > events.len() / 2 { messages.len() / 7 } else { 0 };
        std::fs::write(world.folder.path().join("messages.jsonl"), &messages[..torn]).unwrap();
        world.run(&script(&turns), &mut repository().await, &Still).await.unwrap();
        assert_eq!(world.trajectory(), undisturbed.trajectory(), "cut at byte {cut}");
        let read = |name: &str| std::fs::read(world.folder.path().join(name)).unwrap();
        assert_eq!((read("events.jsonl"), read("messages.jsonl")), (events.clone(), messages.clone()));
    }
}

#[tokio::test]
async fn recorded_moments_are_kept_and_pauses_do_not_count() {
    let world = World::new("");
    let turns = [calling(&["true"]), calling(&["true"]), submit()];
    let model = script(&turns);
    model.fails_at.store(3, Ordering::Relaxed);
    let mut first = repository().await;
    world.run(&model, &mut first, &Ticking::default()).await.unwrap_err();
    let before = world.trajectory()["messages"].as_array().unwrap()[..6].to_vec();
    let clock = Ticking(Mutex::new(50_000.0));
    let mut sandbox = repository().await;
    sandbox.put("patch.txt", b"", 0o644).await.unwrap();
    // The patch file was not there when the record was made: another state of the repository.
    let error = world.run(&script(&turns), &mut sandbox, &clock).await.unwrap_err();
    assert!(matches!(error, AgentError::Diverged { what: "repository", event: 3, .. }), "{error}");
    let turns = [calling(&["true"]), calling(&["true"]), calling(&["echo > patch.txt"]), submit()];
    let finished = world.run(&script(&turns), &mut repository().await, &clock).await.unwrap();
    assert_eq!(world.trajectory()["messages"].as_array().unwrap()[..6], before);
    assert!(finished.seconds < 100.0, "{}", finished.seconds);
    assert_eq!(finished.replayed, 5);
}

#[tokio::test]
async fn a_resumed_run_that_does_otherwise_is_given_up() {
    let end = || calling(&[&format!("echo {SENTINEL}")]);
    for (turn, differs) in [
        ("echo $RANDOM$RANDOM > noise", Some("repository")),
        ("test -e marker", Some("return code")),
        // What a command prints may differ: the model has read the record.
        ("cat marker || true; date +%N", None),
    ] {
        let world = World::new("");
        let turns = [calling(&[turn]), end()];
        let model = script(&turns);
        model.fails_at.store(2, Ordering::Relaxed);
        world.run(&model, &mut repository().await, &Still).await.unwrap_err();
        let mut second = repository().await;
        // Outside what git sees, but not outside what a command sees.
        second.put(".git/info/exclude", b"marker\n", 0o644).await.unwrap();
        second.put("marker", b"", 0o644).await.unwrap();
        match world.run(&script(&turns), &mut second, &Still).await {
            Err(AgentError::Diverged { what, event, .. }) => {
                assert_eq!((Some(what), event), (differs, 3), "{turn}");
            }
            Ok(finished) => assert_eq!((differs, finished.replayed), (None, 3), "{turn}"),
            Err(other) => panic!("{turn}: {other}"),
        }
    }
    // Another answer to the same call.
    let world = World::new("");
    let model = script(&[calling(&["true"]), submit()]);
    model.fails_at.store(2, Ordering::Relaxed);
    world.run(&model, &mut repository().await, &Still).await.unwrap_err();
    let outcome = world.run(&script(&[calling(&["false"])]), &mut repository().await, &Still).await;
    assert!(
        matches!(outcome, Err(AgentError::Diverged { what: "model reply", event: 2, .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_folder_is_not_shared_between_runs() {
    let mut world = World::new("");
    world.run(&script(&[submit()]), &mut repository().await, &Still).await.unwrap_err();
    world.memory = Some("- another block".into());
    let error = world.run(&script(&[submit()]), &mut repository().await, &Still).await.unwrap_err();
    assert!(matches!(error, AgentError::Journal(JournalError::OtherRun { .. })), "{error}");
}

#[tokio::test]
async fn commands_that_run_out_of_time_are_told_so() {
    let world = World::new("environment: {timeout: 1}\nagent: {step_limit: 1}");
    let turns = [calling(&["echo é; sleep 30", "echo after"])];
    let finished = world.run(&script(&turns), &mut repository().await, &Still).await.unwrap();
    assert_eq!(finished.exit_status, exit::LIMITS_EXCEEDED);
    let messages = &world.trajectory()["messages"];
    assert_eq!(
        messages[3]["content"],
        "<exception>An error occurred while executing the command: Command 'echo é; sleep 30' timed out after 1 \
         seconds</exception>\n<returncode>-1</returncode>\n<output>\né\n</output>"
    );
    assert_eq!(messages[4]["extra"]["raw_output"], "after\n");
}

#[tokio::test]
async fn long_output_is_cut_for_the_model_and_kept_in_the_log() {
    let world = World { config: Config::load::<&str>(&[]).unwrap().config, ..World::new("") };
    let print = |count: usize| format!("for i in $(seq {count}); do printf é; done");
    let turns = [calling(&[&print(9_999), &print(10_000), &print(10_007)])];
    let error = world.run(&script(&turns), &mut repository().await, &Still).await.unwrap_err();
    assert!(matches!(error, AgentError::Model(LlmError::Exhausted { number: 2 })), "{error}");
    let messages = &world.trajectory()["messages"];
    let content = |index: usize| messages[index]["content"].as_str().unwrap().to_owned();
    assert_eq!(content(3), format!("<returncode>0</returncode>\n<output>\n{}</output>", "é".repeat(9_999)));
    assert!(content(4).contains("\n0 characters elided\n"));
    assert!(content(5).ends_with(&format!(
        "</warning><output_head>\n{0}\n</output_head>\n<elided_chars>\n7 characters elided\n</elided_chars>\n\
         <output_tail>\n{0}\n</output_tail>",
        "é".repeat(5_000)
    )));
    assert_eq!(messages[5]["extra"]["raw_output"].as_str().unwrap().chars().count(), 10_007);
}

#[tokio::test]
async fn a_submission_that_the_sandbox_cut_is_none_and_the_run_goes_on() {
    let world = World { output: OutputLimit { head: 60, tail: 20 }, ..World::new("") };
    let patch = |lines: u32| calling(&[&format!("echo {SENTINEL} && yes +line | head -n {lines}")]);
    let script = script(&[patch(200), patch(1)]);
    let finished = world.run(&script, &mut repository().await, &Still).await.unwrap();
    assert_eq!(
        (finished.exit_status.as_str(), finished.submission.as_str(), finished.calls),
        (super::super::exit::SUBMITTED, "+line\n", 2)
    );
    let messages = &world.trajectory()["messages"];
    let told = messages[3]["content"].as_str().unwrap();
    assert!(told.contains("Nothing was submitted: the output is too long, 1158 bytes of it"), "{told}");
}

#[tokio::test]
async fn model_failures_have_the_names_of_their_classes() {
    let endpoint = || "http://e".to_owned();
    let refused = |status| LlmError::Refused { endpoint: endpoint(), status, reason: "no".into() };
    let unreachable =
        |status| LlmError::Unreachable { endpoint: endpoint(), reason: "down".into(), attempts: 3, status };
    for (error, expected) in [
        (refused(401), "AuthenticationError"),
        (refused(403), "PermissionDeniedError"),
        (refused(404), "NotFoundError"),
        (refused(400), "BadRequestError"),
        (refused(503), "InternalServerError"),
        (unreachable(None), "APIConnectionError"),
        (unreachable(Some(429)), "RateLimitError"),
        (unreachable(Some(503)), "InternalServerError"),
    ] {
        let world = World::new("");
        let model = ScriptedModel::new([Err(error)]);
        assert!(matches!(
            world.run(&model, &mut repository().await, &Still).await,
            Err(AgentError::Model(_))
        ));
        assert_eq!(world.trajectory()["info"]["exit_status"], expected);
        assert_eq!(world.trajectory()["info"]["model_stats"]["api_calls"], 1);
    }
    let world = World::new("");
    let model = ScriptedModel::new([Err(LlmError::ContextWindowExceeded { reason: "9 > 8".into() })]);
    let finished = world.run(&model, &mut repository().await, &Still).await.unwrap();
    assert_eq!(finished.exit_status, exit::CONTEXT_WINDOW_EXCEEDED);
}

#[tokio::test]
async fn the_start_up_command_prepares_every_sandbox() {
    let world = World::new("run: {env_startup_command: 'echo {{instance_id}} > patch.txt'}");
    let finished = world.run(&script(&[submit()]), &mut repository().await, &Still).await.unwrap();
    assert_eq!((finished.submission.as_str(), finished.commands), ("acme__widget-7\n", 1));
    let world = World::new("run: {env_startup_command: 'echo no; exit 3'}");
    let error = world.run(&script(&[submit()]), &mut repository().await, &Still).await.unwrap_err();
    assert_eq!(error.to_string(), "run.env_startup_command ended with code 3: no\n");
    assert_eq!(world.trajectory()["info"]["exit_status"], "RuntimeError");
    let world = World::new("run: {env_startup_command: 'echo {{patch}}'}");
    let error = world.run(&script(&[submit()]), &mut repository().await, &Still).await.unwrap_err();
    assert!(matches!(error, AgentError::Template(_)), "{error}");
}

#[tokio::test]
async fn the_hash_of_a_repository_sees_changes_and_nothing_else() {
    let place = Place::default();
    let mut sandbox = repository().await;
    let mut state = async |command: &str| {
        let output = sandbox.exec(&Exec::bash(command, "/")).await.unwrap();
        assert!(output.success(), "{}", output.text());
        tree::state(&mut sandbox, &place, "/").await.unwrap().unwrap()
    };
    let clean = state("true").await;
    assert_eq!(state("touch w.py; mkdir -p __pycache__; date +%N > __pycache__/w.pyc").await, clean);
    let mut seen = vec![clean];
    for command in [
        "echo 'x = 3' > w.py",
        "chmod +x w.py",
        "printf a > \"$(printf 'n\\no é')\"",
        "ln -s /dev/zero endless",
        "git add -A",
        "rm w.py",
        "git -c user.name=a -c user.email=a@b commit -qam two",
    ] {
        let now = state(command).await;
        assert_eq!(seen.contains(&now), command == "git add -A", "{command}");
        seen.push(now);
    }
    let objects = "git count-objects -v | grep -c '^garbage: 0' && test -z \"$(git status --porcelain)\"";
    state(objects).await;
    let mut plain = FolderSandbox::new().unwrap();
    assert_eq!(tree::state(&mut plain, &place, "/").await.unwrap(), None);
}
