use std::path::PathBuf;
use std::time::Duration;

use memtrial_testkit::{Act, FakeServer};

use super::*;
use crate::llm::{Api, Client, Endpoint, Replay, Secret};

const CANARY: &str = "sk-canary-0123456789";

struct Bench {
    server: FakeServer,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let server =
            FakeServer::start(|request: &Value| Act::say(format!("to {}", request["messages"]))).unwrap();
        Self { server, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("calls.jsonl")
    }

    fn open(&self) -> Result<Journaled<Client>, LlmError> {
        let endpoint = Endpoint {
            request_timeout: Duration::from_secs(20),
            max_attempts: 1,
            ..Endpoint::new(self.server.url(), "m").with_key(Secret::new(CANARY))
        };
        Journaled::open(&self.path(), Client::new(endpoint)?)
    }
}

fn request(n: usize) -> Request {
    let messages = vec![json!({"role": "user", "content": n.to_string()})];
    Request { api: Api::Chat, messages, tools: vec![], params: Default::default(), seed: None }
}

async fn ask(model: &impl Model, calls: std::ops::Range<usize>) -> Vec<Reply> {
    let mut replies = Vec::new();
    for n in calls {
        replies.push(model.complete(&request(n)).await.unwrap());
    }
    replies
}

#[tokio::test]
async fn a_resumed_run_pays_for_nothing_again() {
    let bench = Bench::new();
    let first = ask(&bench.open().unwrap(), 0..3).await;
    let resumed = bench.open().unwrap();
    assert_eq!((resumed.recorded(), resumed.torn()), (3, 0));
    assert_eq!(ask(&resumed, 0..3).await, first);
    assert_eq!(bench.server.count(), 3, "replies were paid again");
    ask(&resumed, 3..5).await;
    drop(resumed);
    assert_eq!(ask(&bench.open().unwrap(), 0..5).await.len(), 5);
    assert_eq!(bench.server.count(), 5);
}

#[tokio::test]
async fn a_reply_is_on_disk_before_it_is_used() {
    let bench = Bench::new();
    let journal = bench.open().unwrap();
    for n in 0..3 {
        let reply = journal.complete(&request(n)).await.unwrap();
        let text = fs::read_to_string(bench.path()).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!((last["n"].as_u64(), &last["reply"]["message"]), (Some(n as u64 + 1), &reply.message));
        assert!(text.ends_with('\n') && text.lines().count() == n + 1);
        assert!(!text.contains(CANARY) && !text.contains("authorization"));
    }
}

#[tokio::test]
async fn killed_at_any_byte_of_a_line_only_that_line_is_lost() {
    let bench = Bench::new();
    let replies = ask(&bench.open().unwrap(), 0..3).await;
    let whole = fs::read(bench.path()).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|n| whole[*n] == b'\n').map(|n| n + 1).collect();
    // Every byte near a line's end, and some between.
    let near = |cut: &usize| cut.is_multiple_of(29) || ends.iter().any(|end| cut.abs_diff(*end) < 3);
    for cut in (0..=whole.len()).filter(near) {
        fs::write(bench.path(), &whole[..cut]).unwrap();
        let kept = ends.iter().filter(|end| **end <= cut).count();
        let journal = Journaled::open(&bench.path(), Replay::new("m", vec![], vec![])).unwrap();
        let torn = cut - ends[..kept].last().copied().unwrap_or(0);
        assert_eq!((journal.recorded(), journal.torn()), (kept as u64, torn as u64), "cut at {cut}");
        assert_eq!(ask(&journal, 0..kept).await, replies[..kept]);
        assert_eq!(fs::read(bench.path()).unwrap().len(), cut - torn);
    }
    fs::write(bench.path(), &whole[..whole.len() - 1]).unwrap();
    let before = bench.server.count();
    assert_eq!(ask(&bench.open().unwrap(), 0..3).await.len(), 3);
    assert_eq!(bench.server.count() - before, 1);
    assert_eq!(bench.open().unwrap().recorded(), 3);
}

#[tokio::test]
async fn another_question_than_the_recorded_one_is_named() {
    let bench = Bench::new();
    ask(&bench.open().unwrap(), 0..2).await;
    let other = [
        request(9),
        Request { seed: Some(1), ..request(1) },
        Request { tools: vec![json!({})], ..request(1) },
        Request { params: json!({"top_p": 1}).as_object().unwrap().clone(), ..request(1) },
    ];
    for other in other {
        let journal = bench.open().unwrap();
        ask(&journal, 0..1).await;
        let error = journal.complete(&other).await.unwrap_err();
        assert!(matches!(&error, LlmError::Diverged { number: 2, .. }), "{error}");
        assert!(
            error.to_string().contains("calls.jsonl: the run has diverged, start a new attempt"),
            "{error}"
        );
    }
    let renamed = Replay::new("other", vec![], vec![]);
    let journal = Journaled::open(&bench.path(), renamed).unwrap();
    assert!(matches!(journal.complete(&request(0)).await, Err(LlmError::Diverged { number: 1, .. })));
    assert_eq!(bench.server.count(), 2);
}

#[test]
fn the_order_of_keys_does_not_matter_to_the_digest() {
    let asked = |text: &str| Request { messages: vec![serde_json::from_str(text).unwrap()], ..request(0) };
    let digest = |model: &str, request: &Request| Asked::default().digest(model, request);
    let one = digest("m", &asked(r#"{"role": "user", "content": [{"a": 1, "b": 2}]}"#));
    assert_eq!(one, digest("m", &asked(r#"{"content": [{"b": 2, "a": 1}], "role": "user"}"#)));
    assert_ne!(one, digest("m", &asked(r#"{"content": [{"b": 1, "a": 2}], "role": "user"}"#)));
    assert_eq!(one.len(), 64);
}

#[test]
fn a_conversation_that_grew_has_the_digest_of_the_whole() {
    let mut asked = Asked::default();
    let message = |n: usize| json!({"role": "user", "content": n.to_string()});
    let conversation =
        |ns: &[usize]| Request { messages: ns.iter().copied().map(message).collect(), ..request(0) };
    for request in [
        conversation(&[1]),
        conversation(&[1, 2, 3]),
        conversation(&[1, 2, 3]),
        // What was shown before is not there any more.
        conversation(&[1, 3]),
        conversation(&[1]),
        Request { seed: Some(9), ..conversation(&[1, 2]) },
        Request { api: Api::Responses, seed: Some(9), ..conversation(&[1, 2]) },
    ] {
        assert_eq!(asked.digest("m", &request), Asked::default().digest("m", &request));
    }
    let other = Request { api: Api::Responses, ..conversation(&[1]) };
    assert_ne!(Asked::default().digest("m", &conversation(&[1])), Asked::default().digest("m", &other));
    // Where one message ends and the next begins is part of it.
    let joined = Request { messages: vec![json!([1, 2])], ..request(0) };
    let apart = Request { messages: vec![json!(1), json!(2)], ..request(0) };
    assert_ne!(Asked::default().digest("m", &joined), Asked::default().digest("m", &apart));
}

#[tokio::test]
async fn failed_and_abandoned_calls_leave_no_line() {
    let bench = Bench::new();
    let journal = bench.open().unwrap();
    bench
        .server
        .script([Act::status(401, "no"), Act::Stall(Duration::from_secs(60), Box::new(Act::say("late")))]);
    assert!(journal.complete(&request(0)).await.is_err());
    let asked = request(0);
    let arrived = async {
        while bench.server.count() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        reply = journal.complete(&asked) => panic!("{reply:?}"),
        () = arrived => {}
    }
    assert_eq!(fs::read(bench.path()).unwrap(), b"");
    ask(&journal, 0..1).await;
    assert_eq!(fs::read_to_string(bench.path()).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn a_reply_written_while_its_caller_went_away_is_not_asked_for_again() {
    let bench = Bench::new();
    let journal = bench.open().unwrap();
    let reply = ask(&journal, 0..1).await.remove(0);
    let entry = Entry::answered(Asked::default().digest("m", &request(1)), reply);
    lock(&journal.shelf).append(entry).unwrap();
    ask(&journal, 1..3).await;
    assert_eq!(bench.server.count(), 2);
    drop(journal);
    assert_eq!(bench.open().unwrap().recorded(), 3);
}

#[tokio::test]
async fn damage_and_what_is_in_the_way_are_named() {
    let bench = Bench::new();
    ask(&bench.open().unwrap(), 0..2).await;
    let text = fs::read_to_string(bench.path()).unwrap();
    let refused = |bench: &Bench| bench.open().unwrap_err().to_string();
    fs::write(bench.path(), format!("{{}}\n{text}")).unwrap();
    let error = refused(&bench);
    assert!(error.contains("calls.jsonl: line 1: missing field"), "{error}");
    let second = text.lines().nth(1).unwrap();
    fs::write(bench.path(), format!("{second}\n")).unwrap();
    assert!(refused(&bench).contains("line 1 holds call 2"));
    fs::write(bench.path(), &text).unwrap();
    let open = bench.open().unwrap();
    assert!(refused(&bench).contains("another process is writing it"));
    drop(open);
    let nowhere = bench.folder.path().join("missing/calls.jsonl");
    let error = Journaled::open(&nowhere, Replay::new("m", vec![], vec![])).unwrap_err().to_string();
    assert!(error.starts_with("call journal ") && error.contains("missing/calls.jsonl"), "{error}");
}

#[test]
fn the_lock_ends_with_the_journal_even_if_a_child_has_the_file() {
    let bench = Bench::new();
    let journal = bench.open().unwrap();
    // What a process forked at this moment holds until it replaces itself.
    let in_a_child = lock(&journal.shelf).log.file.file().try_clone().unwrap();
    drop(journal);
    assert!(bench.open().is_ok());
    drop(in_a_child);
}

#[test]
fn a_full_disk_is_an_error_and_no_reply() {
    let file = fs::OpenOptions::new().append(true).open("/dev/full").unwrap();
    let mut log = Shelf { log: Log { file, lines: 0 }, pending: VecDeque::new() };
    let reply = Reply {
        message: json!({}),
        finish_reason: None,
        response: Value::Null,
        cost: crate::llm::Cost::ZERO,
    };
    let error = log.append(Entry::answered(String::new(), reply)).unwrap_err();
    assert!(error.to_string().to_lowercase().contains("no space left"), "{error}");
    assert!(log.pending.is_empty());
}

/// Where `MEMTRIAL_DATA` names the folder of real data: real runs, asked over the wire again, interrupted half-way.
#[tokio::test]
async fn real_runs_come_back_word_for_word_and_are_paid_once() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA").map(PathBuf::from) else { return };
    let folder = data.join("trajectories/swebench-verified_gemini3pro_mini-1.15");
    let mut runs: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    runs.sort();
    let mut calls = 0;
    for run in runs.iter().filter(|path| path.is_dir()).step_by(20) {
        let file = run.join(format!("{}.traj.json", run.file_name().unwrap().display()));
        let trajectory: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let mut messages = trajectory["messages"].as_array().unwrap().clone();
        messages.iter_mut().for_each(|message| drop(message.as_object_mut().unwrap().remove("extra")));
        let turns: Vec<usize> = (0..messages.len()).filter(|n| messages[*n]["role"] == "assistant").collect();
        let recorded = messages.clone();
        let server = FakeServer::start(move |request: &Value| {
            Act::message(recorded[request["messages"].as_array().unwrap().len()].clone(), "stop")
        })
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        for limit in [turns.len() / 2, turns.len()] {
            let stream = limit < turns.len();
            let endpoint = Endpoint { stream, ..Endpoint::new(server.url(), "m") };
            let path = folder.path().join("calls.jsonl");
            let journal = Journaled::open(&path, Client::new(endpoint).unwrap()).unwrap();
            for turn in &turns[..limit] {
                let asked = Request { messages: messages[..*turn].to_vec(), ..request(0) };
                assert_eq!(journal.complete(&asked).await.unwrap().message, messages[*turn]);
            }
        }
        assert_eq!((server.count(), server.violations()), (turns.len(), vec![]));
        calls += turns.len();
    }
    assert!(calls > 500, "{calls}");
}
