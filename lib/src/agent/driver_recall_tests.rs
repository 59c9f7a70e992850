//! A run that asks memory while it goes on, interrupted anywhere.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::super::fakes::calling;
use super::super::{Asking, Recall, SENTINEL, recalled};
use super::tests::{World, repository, script};
use super::*;
use crate::memory::host::{Injection, Retrieved};
use crate::memory::{MemoryError, Phase, Query, Record};
use crate::task::InstanceId;

/// Delivers a record for words and for the first edit, the same again before the submission, and nothing else.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<Query>>,
    broken: bool,
}

#[async_trait::async_trait]
impl Recall for Fake {
    async fn recall(&self, query: &Query) -> Result<Retrieved, MemoryError> {
        self.asked.lock().unwrap().push(query.clone());
        if self.broken {
            let reason = "gone".into();
            return Err(MemoryError::System { system: "fake".into(), call: "retrieve", reason });
        }
        let text = match (query.text.as_deref(), query.phase) {
            (Some("nothing"), _) | (_, Phase::FirstTestAfterEdit) => None,
            (Some(text), _) => Some(format!("on {text}")),
            _ => Some("on edits".into()),
        };
        let none = Retrieved::abstained("the study names no history".into());
        let Some(text) = text else { return Ok(none) };
        let source = InstanceId::parse("acme__widget-3").unwrap();
        let record = Record {
            id: None,
            why: None,
            source: source.clone(),
            score: None,
            text: text.clone(),
            tokens: 2,
        };
        let injection = Injection {
            block: format!("> {text}"),
            injected_tokens: 3,
            files: Vec::new(),
            tools: Vec::new(),
            records: vec![record],
            sources: vec![source],
        };
        let retrieve = Cost { calls: 1, ..Cost::ZERO };
        Ok(Retrieved { outcome: Outcome::Injected(injection), retrieve, ..none })
    }
}

const ASKING: Asking = Asking { tool_calls: Some(8), phases: true };

fn memory_call(query: &str) -> Value {
    let arguments = json!({"query": query}).to_string();
    let call = json!({"id": "m", "type": "function", "function": {"name": "memory", "arguments": arguments}});
    json!({"role": "assistant", "content": "I look it up.", "tool_calls": [call]})
}

fn turns() -> Vec<Value> {
    vec![
        memory_call("flaky"),
        memory_call("nothing"),
        calling(&["sed -i s/1/2/ w.py", "cat w.py"]),
        calling(&["pytest -x > /dev/null 2>&1 || true"]),
        calling(&["git diff -- w.py > patch.txt"]),
        calling(&[&format!("echo {SENTINEL} && cat patch.txt")]),
    ]
}

#[tokio::test]
async fn a_run_that_asks_memory_and_is_interrupted_anywhere_asks_nothing_twice() {
    let turns = turns();
    let (undisturbed, memory) = (World::new(""), Fake::default());
    let whole = undisturbed.asking(&memory, ASKING, &script(&turns), &mut repository().await).await.unwrap();
    assert_eq!((whole.exit_status.as_str(), whole.calls), ("Submitted", 6));
    let asked = memory.asked.into_inner().unwrap();
    let phases: Vec<_> = asked.iter().map(|query| (query.text.as_deref(), query.phase)).collect();
    assert_eq!(
        phases,
        [
            (Some("flaky"), Phase::Start),
            (Some("nothing"), Phase::Start),
            (None, Phase::FirstEdit),
            (None, Phase::FirstTestAfterEdit),
            (None, Phase::BeforeSubmission)
        ]
    );
    assert!(asked.iter().all(|query| query.target.instance_id.number() == 7 && !query.recent.is_empty()));
    let kept = recalled(undisturbed.folder.path()).unwrap();
    let texts: Vec<_> = kept.iter().map(|one| (one.step, one.text.as_deref())).collect();
    // what the submission would be told has been told at the first edit
    assert_eq!(texts, [(1, Some("> on flaky")), (2, None), (3, Some("> on edits")), (4, None), (6, None)]);
    assert_eq!(kept.iter().map(|one| one.retrieved.retrieve.calls).sum::<u64>(), 3);

    let execs = 2 * whole.commands as usize;
    let stops = (1..=turns.len()).map(|call| (call, None)).chain((1..=execs).map(|exec| (0, Some(exec))));
    for (call, exec) in stops {
        let (world, memory) = (World::new(""), Fake::default());
        let (model, mut sandbox) = (script(&turns), repository().await);
        model.fails_at.store(call, Ordering::Relaxed);
        sandbox.lost_at = exec;
        world.asking(&memory, ASKING, &model, &mut sandbox).await.unwrap_err();
        world.asking(&memory, ASKING, &script(&turns), &mut repository().await).await.unwrap();
        assert_eq!(world.trajectory(), undisturbed.trajectory(), "stopped at call {call}, exec {exec:?}");
        assert_eq!(*memory.asked.lock().unwrap(), asked, "stopped at call {call}, exec {exec:?}");
    }

    // a process killed after any event
    let events = std::fs::read_to_string(undisturbed.folder.path().join("events.jsonl")).unwrap();
    for lines in 1..events.lines().count() {
        let (world, memory) = (World::new(""), Fake::default());
        let before: String = events.split_inclusive('\n').take(lines).collect();
        std::fs::write(world.folder.path().join("events.jsonl"), &before).unwrap();
        world.asking(&memory, ASKING, &script(&turns), &mut repository().await).await.unwrap();
        assert_eq!(world.trajectory(), undisturbed.trajectory(), "killed after {lines} events");
        let answered = before.lines().filter(|line| line.starts_with("{\"recalled\"")).count();
        assert_eq!(*memory.asked.lock().unwrap(), asked[answered..], "killed after {lines} events");
    }
}

#[tokio::test]
async fn what_the_start_delivered_is_not_delivered_at_a_phase() {
    let (world, memory) = (World::new(""), Fake::default());
    let query = Query { phase: Phase::FirstEdit, ..Query::at_start((&world.task).into()) };
    let Outcome::Injected(start) = memory.recall(&query).await.unwrap().outcome else { panic!("nothing") };
    let recall = OnDemand { asking: ASKING, memory: &memory, start: Some(&start) };
    world.run_with(Some(recall), &script(&turns()), &mut repository().await).await.unwrap();
    let texts: Vec<_> = recalled(world.folder.path()).unwrap().into_iter().map(|one| one.text).collect();
    assert_eq!(texts.iter().flatten().collect::<Vec<_>>(), ["> on flaky"]);
}

#[tokio::test]
async fn a_memory_that_fails_is_no_empty_answer_and_the_run_goes_on_where_it_failed() {
    let world = World::new("");
    let broken = Fake { broken: true, ..Fake::default() };
    let error = world.asking(&broken, ASKING, &script(&turns()), &mut repository().await).await.unwrap_err();
    assert!(matches!(&error, AgentError::Memory(_)) && error.to_string().contains("gone"), "{error}");
    assert_eq!(world.trajectory()["info"]["exit_status"], "MemoryError");
    let memory = Fake::default();
    let finished = world.asking(&memory, ASKING, &script(&turns()), &mut repository().await).await.unwrap();
    assert_eq!(finished.exit_status, "Submitted");
}

#[tokio::test]
async fn other_ways_of_asking_are_another_run_and_text_actions_have_no_tool() {
    let (world, memory) = (World::new(""), Fake::default());
    let model = script(&turns());
    model.fails_at.store(2, Ordering::Relaxed);
    world.asking(&memory, ASKING, &model, &mut repository().await).await.unwrap_err();
    let other = Asking { phases: false, ..ASKING };
    let error = world.asking(&memory, other, &script(&turns()), &mut repository().await).await.unwrap_err();
    assert!(matches!(error, AgentError::Journal(JournalError::OtherRun { .. })), "{error}");

    let text = World::new("model: {model_class: litellm_textbased}");
    let error = text.asking(&memory, ASKING, &script(&[]), &mut repository().await).await.unwrap_err();
    assert!(error.to_string().contains("an agent that calls tools"), "{error}");
}
