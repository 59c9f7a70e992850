use super::*;
use crate::memory::Phase;

fn condition(text: &str) -> Result<Condition, String> {
    toml::from_str::<Condition>(&format!("memory = 'bm25'\n{text}")).map_err(|error| error.to_string())
}

#[test]
fn the_ways_of_a_condition_are_one_name_or_several() {
    let start = condition("").unwrap();
    assert!(start.asking().is_never() && start.inject.has(Way::Start));
    let tool = condition("inject = 'tool'").unwrap();
    assert_eq!(tool.asking(), Asking { tool_calls: Some(8), phases: false });
    assert!(!tool.inject.has(Way::Start));
    let all = condition("inject = ['phases', 'start', 'tool']\ntool-calls = 2").unwrap();
    assert_eq!(all.asking(), Asking { tool_calls: Some(2), phases: true });
    // what the start alone says is said as before
    assert_eq!(serde_json::to_value(&start).unwrap().get("inject"), None);
    assert_eq!(serde_json::to_value(&tool).unwrap()["inject"], "tool");
    for (text, word) in [
        ("inject = 'end'", "expected \"start\", \"tool\" or \"phases\""),
        ("inject = []", "inject: name at least one"),
        ("tool-calls = 3", "tool-calls: it is for"),
        ("inject = 'tool'\ntool-calls = 0", "tool-calls: at least 1"),
    ] {
        let error = condition(text).and_then(|condition| condition.check_ways(false)).unwrap_err();
        assert!(error.contains(word), "{text}: {error}");
    }
    assert!(tool.check_ways(true).unwrap_err().contains("agent.command"));
    assert_eq!(start.check_ways(true), Ok(()));
    let off = Condition { memory: "off".into(), ..tool };
    assert!(off.check_ways(false).unwrap_err().contains("nothing to ask"));
}

#[test]
fn the_lock_names_what_each_way_shows() {
    let difference = |text: &str| condition(text).unwrap().difference(Api::Chat);
    assert_eq!(difference(""), context::memory_section(Some(memory::DEFAULT_TEMPLATE)));
    let (tool, phases) = (difference("inject = 'tool'"), difference("inject = 'phases'"));
    assert!(tool.contains("\"name\":\"memory\"") && tool.contains(agent::NOTHING_FOUND), "{tool}");
    assert!(phases.contains("first edit") && phases.contains(agent::WITHHELD), "{phases}");
    let both = difference("inject = ['phases', 'start']");
    assert!(both.starts_with(&difference("")) && both.ends_with(&phases));
}

fn recalled(question: Question, shown: bool, tokens: u64, source: &str) -> Recalled {
    let source = InstanceId::parse(source).unwrap();
    let injection = Injection {
        block: "b".into(),
        injected_tokens: tokens,
        files: Vec::new(),
        tools: Vec::new(),
        records: Vec::new(),
        sources: vec![source],
    };
    let retrieved = Retrieved {
        outcome: Outcome::Injected(injection),
        ..Retrieved::abstained("the study names no history".into())
    };
    Recalled { question, step: 2, text: shown.then(|| "b".into()), retrieved }
}

#[test]
fn a_trials_note_keeps_the_ways_apart() {
    let remembered = |asking| Remembered {
        start: Arc::new(Retrieved::abstained("the study names no history".into())),
        asked_at_start: false,
        asking,
        live: None,
    };
    let during = [
        recalled(Question::Tool("a".into()), true, 10, "acme__widget-3"),
        recalled(Question::Phase(Phase::FirstEdit), true, 5, "acme__widget-1"),
        recalled(Question::Phase(Phase::BeforeSubmission), false, 7, "acme__widget-2"),
    ];
    let note = remembered(Asking { tool_calls: Some(8), phases: true }).note(&during);
    assert_eq!(note.tool, Some(Asks { asked: 1, delivered: 1, tokens: 10 }));
    assert_eq!(note.phases, Some(Asks { asked: 2, delivered: 1, tokens: 5 }));
    assert_eq!(note.sources.iter().map(InstanceId::number).collect::<Vec<_>>(), [1, 3]);
    assert_eq!((note.injected_tokens, note.abstained), (0, None));
    let never = remembered(Asking::default()).note(&[]);
    assert_eq!((never.tool, never.phases), (None, None));
}
