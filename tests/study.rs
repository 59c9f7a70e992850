//! `memtrial study` over the bundled study: the planted effects, resume after a kill, what it refuses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use memtrial_testkit::{FakeServer, Player, Reader, Slow, bundle, check};
use serde_json::{Value, json};

/// A study's folder with the bundled data and a reader for it.
pub struct Study {
    folder: tempfile::TempDir,
    pub reader: FakeServer,
}

impl Study {
    /// The bundled study on some of its targets (none named: all), its reader answering after `delay`.
    pub fn new(targets: &[&str], delay: Duration) -> Self {
        Self::played(targets, |player| Slow { player, delay })
    }

    /// The bundled study on some of its targets, played by what `play` makes of the reader.
    pub fn played<P: Player>(targets: &[&str], play: impl FnOnce(Reader) -> P) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/bundled");
        bundle::run(&bundle::Args { out: folder.path().join("data"), source: source.clone() }).unwrap();
        let mut study = std::fs::read_to_string(source.join("study.toml")).unwrap();
        if !targets.is_empty() {
            study = study.replace("replicates = 1", &format!("replicates = 1\ntargets = {}", json!(targets)));
        }
        std::fs::write(folder.path().join("study.toml"), study).unwrap();
        let player = Reader::from_file(&folder.path().join("data/reader.jsonl")).unwrap();
        let reader = FakeServer::start(play(player)).unwrap();
        Self { folder, reader }
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub fn command(&self, verb: &str, more: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("memtrial"));
        command.args(["study", verb]).arg(self.path("study.toml")).args(more);
        if verb == "run" {
            // environments are built once for all tests
            command.arg("--cache").arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        }
        command
    }

    pub fn run(&self, more: &[&str]) -> Output {
        let endpoint = format!("reader={}", self.reader.url());
        self.command("run", &[&["--endpoint", &endpoint], more].concat()).output().unwrap()
    }

    pub fn start(&self, more: &[&str]) -> Child {
        let endpoint = format!("reader={}", self.reader.url());
        let mut command = self.command("run", &[&["--endpoint", &endpoint], more].concat());
        command.stderr(std::process::Stdio::null()).spawn().unwrap()
    }

    /// Runs it, and kills it when its reader has been asked so often in all.
    pub fn kill_after(&self, calls: usize) {
        let mut child = self.start(&[]);
        let began = Instant::now();
        while self.reader.count() < calls && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_secs(120), "the study does not get on");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// The records of both conditions, what is measured in seconds left out.
    pub fn records(&self, targets: &[&str]) -> BTreeMap<(&'static str, String), Value> {
        let mut records = BTreeMap::new();
        for condition in ["off", "bm25"] {
            for target in targets {
                let mut record = self.json(&format!("trials/{condition}/reader/1/{target}/verdict.json"));
                without_seconds(&mut record);
                records.insert((condition, (*target).to_owned()), record);
            }
        }
        records
    }

    /// How many answered calls the study's journals hold, each once though a later attempt may have taken it up.
    pub fn journalled(&self) -> usize {
        let (mut calls, mut folders) = (0, vec![self.path("trials")]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let text = || std::fs::read_to_string(&path).unwrap_or_default();
                match path.file_name().unwrap().to_str().unwrap() {
                    name if path.is_dir() && !name.starts_with('.') => folders.push(path),
                    "calls.jsonl" => calls += text().matches('\n').count() as i64,
                    "taken-up.json" => {
                        calls -= serde_json::from_str::<Value>(&text()).unwrap()["calls"].as_i64().unwrap();
                    }
                    _ => {}
                }
            }
        }
        usize::try_from(calls).unwrap()
    }

    pub fn json(&self, below: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(below)).unwrap()).unwrap()
    }
}

/// Takes out of a report or record what is measured in seconds.
pub fn without_seconds(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !key.contains("seconds"));
            map.values_mut().for_each(without_seconds);
        }
        Value::Array(items) => items.iter_mut().for_each(without_seconds),
        _ => {}
    }
}

pub fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_bundled_study_shows_exactly_the_planted_effects() {
    let study = Study::new(&[], Duration::ZERO);
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let (expected, report) = (study.path("data/expected.json"), study.path("report/report.json"));
    let shown = check::run(&check::Args { expected, report }).unwrap();
    assert_eq!(shown, "as planted: 4 gains, 2 harms, 9 targets unmoved");
    assert_eq!(study.reader.violations(), Vec::<String>::new());
    let page = std::fs::read_to_string(study.path("report/report.html")).unwrap();
    assert!(page.contains("planted demonstration"), "the note is missing");
    let predictions = study.json("preds/bm25.reader.1.json");
    assert_eq!(predictions.as_object().unwrap().len(), 15);
}

pub const FEW: [&str; 3] = ["quillon__tabletalk-11", "quillon__tabletalk-21", "ostler__spanwise-9"];

#[test]
fn a_killed_study_is_taken_up_and_nothing_is_paid_twice() {
    let undisturbed = Study::new(&FEW, Duration::ZERO);
    let output = undisturbed.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));

    let study = Study::new(&FEW, Duration::from_millis(60));
    for calls in [3, 11, 22] {
        study.kill_after(calls);
    }
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));

    assert_eq!(study.records(&FEW), undisturbed.records(&FEW));
    assert_eq!(
        study.json("report/report.json")["targets"],
        undisturbed.json("report/report.json")["targets"]
    );
    // a call under way when the process is killed cannot be known to it: two at a time, three kills
    let (paid, needed) = (study.reader.count(), undisturbed.reader.count());
    assert!((needed..=needed + 6).contains(&paid), "{paid} calls where {needed} are needed");
    assert_eq!(study.reader.violations(), Vec::<String>::new());
}

#[test]
fn a_study_is_run_with_the_same_inputs() {
    let study = Study::new(&FEW[..1], Duration::ZERO);
    assert_eq!(study.run(&[]).status.code(), Some(0));

    let status = study.command("status", &["--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let waiting: u64 =
        status["arms"].as_array().unwrap().iter().map(|a| a["trials"]["waiting"].as_u64().unwrap()).sum();
    assert_eq!(waiting, 0, "{status}");

    let file = study.path("study.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("tokens = 1024", "tokens = 512")).unwrap();
    let report = std::fs::read(study.path("report/report.json")).unwrap();
    for changed in [study.run(&[]), study.command("report", &[]).output().unwrap()] {
        assert_eq!(changed.status.code(), Some(3), "{}", told(&changed));
        assert!(told(&changed).contains("begun with other inputs: the study file"), "{}", told(&changed));
    }
    assert_eq!(std::fs::read(study.path("report/report.json")).unwrap(), report);
    let elsewhere = study.path("elsewhere");
    let none = study.command("report", &["--out", elsewhere.to_str().unwrap()]).output().unwrap();
    assert_eq!(none.status.code(), Some(3), "{}", told(&none));
    assert!(
        told(&none).contains("holds no study that has been begun") && !elsewhere.exists(),
        "{}",
        told(&none)
    );
}

#[test]
fn a_failed_endpoint_is_missing_and_tried_again() {
    let study = Study::new(&FEW[..1], Duration::ZERO);
    let nobody = ["--endpoint", "reader=http://127.0.0.1:9/v1"];
    let output = study.command("run", &nobody).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", told(&output));
    assert!(told(&output).contains("asking again in"), "{}", told(&output));
    let record = study.json("trials/off/reader/1/quillon__tabletalk-11/verdict.json");
    assert_eq!(record["verdict"], "infrastructure");
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let record = study.json("trials/bm25/reader/1/quillon__tabletalk-11/verdict.json");
    assert_eq!(record["verdict"], "resolved", "{record}");
}

#[test]
fn a_wrong_study_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.toml");
    let study = |verb: &str| {
        let output = Command::new(assert_cmd::cargo::cargo_bin!("memtrial"))
            .args(["study", verb])
            .arg(&file)
            .output()
            .unwrap();
        (output.status.code(), told(&output))
    };
    assert_eq!(study("init").0, Some(0));
    let (code, message) = study("init");
    assert_eq!(code, Some(3), "an existing file is kept: {message}");
    let template = std::fs::read_to_string(&file).unwrap();
    for (from, to, word) in [
        ("replicates = 1", "replicates = 0", "replicates: at least 1"),
        ("baseline = \"off\"", "baseline = \"none\"", "\"none\" is no condition; there are: cards, off"),
        ("tasks = [\"tasks.jsonl\"]", "tasks = []", "name at least one task file"),
        ("[budget]", "[bugdet]", "unknown field `bugdet`"),
        ("base = \"host\"", "base = \"hots\"", "expected host, rootfs:FOLDER, image:NAME, published"),
        ("replicates = 1", "replicates = 4294967295", "is more than 1000"),
        ("name = \"my-study\"", "name = \"\"", "give the study a name"),
        ("http://127.0.0.1:8000/v1", "not a url", "solvers.main:"),
        ("[sandbox]", "[sandbox]\nenv = { \"A=B\" = \"x\" }", "is no name of a variable"),
        ("[sandbox]", "[sandbox]\nlimits = { cpus = 0.0 }", "sandbox.limits: "),
        ("timeout = 1800", "timeout = 0", "grade.timeout: at least 1"),
        ("tokens = 1024", "tokens = 1024\nmatch = \"none\"", "match: \"none\" is no condition"),
        (
            "tokens = 1024",
            "tokens = 1024\nmatch = \"off\"\ninject = \"phases\"",
            "match: only what is injected at the start",
        ),
    ] {
        std::fs::write(&file, template.replace(from, to)).unwrap();
        let (code, message) = study("run");
        assert_eq!(code, Some(3), "{to}: {message}");
        assert!(message.contains(word), "{to}: {message}");
    }
}

#[test]
fn a_recorded_run_without_a_submission_is_the_agents_limit() {
    let study = Study::new(&FEW[..1], Duration::ZERO);
    let call = json!({"id": "c1", "type": "function",
        "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}});
    let run = json!({"trajectory_format": "mini-swe-agent-1.1", "info": {"exit_status": "LimitsExceeded"}, "messages": [
        {"role": "system", "content": "s"}, {"role": "user", "content": "u"},
        {"role": "assistant", "content": "Look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "src"},
        {"role": "exit", "content": "", "extra": {"exit_status": "LimitsExceeded", "submission": ""}}]});
    std::fs::create_dir(study.path("runs")).unwrap();
    std::fs::write(study.path(&format!("runs/{}.traj.json", FEW[0])), run.to_string()).unwrap();
    let file = study.path("study.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let (head, tail) = text.split_once("[solvers.reader]").unwrap();
    let (_, tail) = tail.split_once("[agent]").unwrap();
    let replay = "[solvers.recorded]\nkind = \"replay\"\ntrajectories = \"runs\"\n\n[agent]";
    std::fs::write(&file, format!("{head}{replay}{tail}")).unwrap();
    let output = study.command("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let record = study.json(&format!("trials/off/recorded/1/{}/verdict.json", FEW[0]));
    assert_eq!((&record["verdict"], &record["steps"]), (&json!("agent-limit"), &json!(1)), "{record}");
}

/// The bundled study on a few targets, its condition `bm25` changed.
fn injecting(targets: &[&str], how: &str) -> Study {
    let study = Study::new(targets, Duration::ZERO);
    let file = study.path("study.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("tokens = 1024", &format!("tokens = 1024\n{how}"))).unwrap();
    study
}

#[test]
fn a_reader_with_the_memory_tool_asks_and_uses_the_answer() {
    let study = injecting(&FEW, "inject = \"tool\"");
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let at_start = Study::new(&FEW, Duration::ZERO);
    assert_eq!(at_start.run(&[]).status.code(), Some(0));
    for target in FEW {
        let place = format!("trials/bm25/reader/1/{target}");
        let (memory, record) =
            (study.json(&format!("{place}/memory.json")), study.json(&format!("{place}/verdict.json")));
        let during = memory["during"].as_array().unwrap();
        assert_eq!((during.len(), &during[0]["phase"], &during[0]["step"]), (1, &json!("tool"), &json!(1)));
        assert_eq!(record["memory"]["tool"]["asked"], 1, "{record}");
        assert_eq!(record["memory"]["injected_tokens"], 0);
        assert_eq!(record["memory"]["sources"], during[0]["sources"]);
        assert_eq!(record["verdict"], at_start.json(&format!("{place}/verdict.json"))["verdict"], "{target}");
        let off = study.json(&format!("trials/off/reader/1/{target}/verdict.json"));
        assert_eq!(off["memory"].get("tool"), None, "the baseline has no tool");
        assert!(study.path(&format!("memory/bm25/{}", target.replace("-", "/"))).join("store").is_dir());
    }
    let report = std::fs::read_to_string(study.path("report/report.txt")).unwrap();
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("memory tool: asked 3 times"), "{report}");
    let lock = study.json("study.lock.json");
    assert!(lock["conditions"]["bm25"]["difference"].as_str().unwrap().contains("\"name\":\"memory\""));
    assert_eq!(lock["conditions"]["bm25"]["inject"], "tool");
    assert_eq!(study.reader.violations(), Vec::<String>::new());
}

#[test]
fn phases_are_asked_and_killed_trials_ask_nothing_twice() {
    let undisturbed = injecting(&FEW, "inject = [\"tool\", \"phases\"]");
    assert_eq!(undisturbed.run(&[]).status.code(), Some(0));
    let study = injecting(&FEW, "inject = [\"tool\", \"phases\"]");
    for calls in [4, 12, 20] {
        study.kill_after(calls);
    }
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(study.records(&FEW), undisturbed.records(&FEW));
    let mut asked = std::collections::BTreeSet::new();
    for target in FEW {
        let mut accounts = [&study, &undisturbed]
            .map(|study| study.json(&format!("trials/bm25/reader/1/{target}/memory.json")));
        accounts.iter_mut().for_each(without_seconds);
        assert_eq!(accounts[0], accounts[1], "{target}");
        let during = accounts[0]["during"].as_array().unwrap();
        asked.extend(during.iter().map(|one| one["phase"].as_str().unwrap().to_owned()));
    }
    assert!(asked.contains("tool") && asked.contains("before-submission"), "{asked:?}");
    assert_eq!(study.reader.violations(), Vec::<String>::new());
}

#[test]
fn ways_of_injecting_that_cannot_be_are_named() {
    for (how, word) in [
        ("inject = \"sometimes\"", "expected \"start\", \"tool\" or \"phases\""),
        ("tool-calls = 3", "conditions.bm25.tool-calls: it is for inject"),
        ("inject = \"tool\"\n[agent]\ncommand = [\"t\"]", "conditions.bm25.inject: with agent.command"),
        (
            "inject = \"tool\"\n[agent]\nconfig = [\"memtrial\", \"model.model_class=litellm_textbased\"]",
            "conditions.bm25.inject: the memory tool needs an agent that calls tools",
        ),
    ] {
        let study = Study::new(&FEW[..1], Duration::ZERO);
        let file = study.path("study.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let (agent, rest) = text.split_once("[agent]").unwrap();
        let agent = match how.split_once("[agent]") {
            Some((how, more)) => {
                agent.replace("tokens = 1024", &format!("tokens = 1024\n{how}")) + "[agent]" + more
            }
            None => agent.replace("tokens = 1024", &format!("tokens = 1024\n{how}")) + "[agent]",
        };
        std::fs::write(&file, format!("{agent}\n{rest}")).unwrap();
        let output = study.run(&[]);
        assert_eq!(output.status.code(), Some(3), "{how}: {}", told(&output));
        assert!(told(&output).contains(word), "{how}: {}", told(&output));
    }
}
