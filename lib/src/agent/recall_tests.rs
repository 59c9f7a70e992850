use serde_json::json;

use super::*;
use crate::task::InstanceId;

fn injection(records: &[&str], block: &str) -> Injection {
    let record = |text: &&str| crate::memory::Record {
        id: None,
        why: None,
        source: InstanceId::parse("acme__widget-3").unwrap(),
        score: None,
        text: (*text).to_owned(),
        tokens: 1,
    };
    Injection {
        block: block.into(),
        injected_tokens: 1,
        files: Vec::new(),
        tools: Vec::new(),
        records: records.iter().map(record).collect(),
        sources: Vec::new(),
    }
}

#[test]
fn a_phase_shows_what_is_new_and_a_tool_shows_all() {
    let (phase, tool) = (Question::Phase(Phase::FirstEdit), Question::Tool("x".into()));
    let mut delivered = Delivered::default();
    delivered.add(&injection(&["a"], "start"));
    let mut see = |question: &Question, records: &[&str], block: &str| {
        shown(question, &Outcome::Injected(injection(records, block)), &mut delivered)
    };
    assert_eq!(see(&phase, &["a"], "A"), None);
    assert_eq!(see(&tool, &["a"], "A").as_deref(), Some("A"));
    assert_eq!(see(&phase, &["a", "b"], "AB").as_deref(), Some("AB"));
    assert_eq!(see(&phase, &["b"], "B"), None);
    assert_eq!(see(&phase, &[], "own words").as_deref(), Some("own words"));
    assert_eq!(see(&phase, &[], "own words"), None);
    let nothing = Outcome::Abstained { reason: "empty".into() };
    assert_eq!(shown(&tool, &nothing, &mut delivered), None);
}

#[test]
fn a_query_shows_the_latest_of_the_run_without_its_head_and_what_memory_said() {
    let mut log = vec![json!({"role": "system", "content": "s"}), json!({"role": "user", "content": "task"})];
    log.push(json!({"role": "assistant", "content": "Look.", "extra": {"actions": [{"command": "ls"}]}}));
    log.push(json!({"role": "tool", "content": "o".repeat(9000)}));
    log.push(json!({"role": "tool", "content": "old", "extra": {RECALL: "tool"}}));
    log.push(json!({"type": "function_call_output", "output": "seen"}));
    let turns = recent(&log);
    let roles: Vec<&str> = turns.iter().map(|turn| turn.role.as_str()).collect();
    assert_eq!(roles, ["assistant", "tool", "tool"]);
    assert_eq!((turns[0].text.as_str(), turns[2].text.as_str()), ("Look.\nls", "seen"));
    assert_eq!(turns[1].text.chars().count(), RECENT_CHARACTERS + 5);
    log.extend((0..9).map(|n| json!({"role": "user", "content": n.to_string()})));
    assert_eq!(recent(&log).iter().map(|turn| turn.text.as_str()).collect::<String>(), "345678");
}
