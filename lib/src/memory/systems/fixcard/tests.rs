use serde_json::json;

use super::*;
use crate::memory::conformance;
use crate::memory::tests::{Scripted, ask, deliver, run, sources};

#[tokio::test]
async fn conforms() {
    let open = || Ok(open(&json!({}), &Resources::default()).unwrap());
    assert_eq!(conformance::check(&open, true).await, Vec::<String>::new());
}

#[tokio::test]
async fn cards_by_rules_abstain_where_nothing_is_alike() {
    let runs = [
        run(1, "Reader fails on blank lines", "skip_blank = True"),
        run(2, "Writer doubles quotes", "escapeQuotes(cell)"),
        run(3, "Docs are stale", "nothing"),
    ];
    let opened = || open(&json!({}), &Resources::default()).unwrap();
    let answer = ask(opened(), &runs, "a blank line breaks the Reader", 1).await;
    assert_eq!(sources(&answer), [1]);
    let unlike = "zebra quokka wombat giraffe ocelot tapir okapi lemur dugong narwhal reader";
    assert_eq!(sources(&ask(opened(), &runs, unlike, 1).await), Vec::<u64>::new());
    let ungated = open(&json!({"gate": false}), &Resources::default()).unwrap();
    assert_eq!(sources(&ask(ungated, &runs, unlike, 1).await), [1]);
}

#[tokio::test]
async fn a_model_writes_cards_and_rules_stand_in_for_it() {
    let good = json!({"bug_class": "parsing of blank input", "root_cause": "r", "fix_pattern": "f", "lesson": "l", "anchors": ["src/m.py"]});
    for (replies, text, unusable, calls) in [
        (vec![good.to_string()], "Bug class: parsing of blank input\n", 0, 1),
        (
            vec!["I will not.".into(), format!("```json\n{good}\n```")],
            "Bug class: parsing of blank input\n",
            0,
            2,
        ),
        (vec!["no".into(), r#"{"bug_class": "x"#.into()], "Bug class: fault: Reader\n", 1, 2),
        (
            vec![
                "no".into(),
                r#"{"bug_class": "", "root_cause": "", "fix_pattern": "", "lesson": ""}"#.into(),
            ],
            "Bug class: fault: Reader\n",
            1,
            2,
        ),
        (vec!["{}".into(), "ab".repeat(1 << 20)], "Bug class: fault: Reader\n", 1, 2),
    ] {
        let model = Scripted::new(replies);
        let resources = Resources { model: Some(model.clone()), ..Resources::default() };
        let system = open(&json!({"gate": false}), &resources).unwrap();
        let (answer, store) = deliver(system, &[run(1, "Reader", "x")], "reader", 1).await;
        let records = answer.records;
        assert!(records[0].text.starts_with(text), "{}", records[0].text);
        assert_eq!((store.unusable, model.asked()), (unusable, calls));
    }
}

#[tokio::test]
async fn a_model_that_does_not_answer_is_a_failure_of_the_harness() {
    let resources = Resources { model: Some(Scripted::new(vec![])), ..Resources::default() };
    let mut system = open(&json!({}), &resources).unwrap();
    let error = system.ingest(&run(1, "Reader", "x")).await.unwrap_err().to_string();
    assert!(error.starts_with(r#"memory system "fixcard": ingest failed: "#), "{error}");
}

#[tokio::test]
async fn failed_runs_are_left_out_where_asked() {
    let mut failed = run(1, "Reader fails", "x");
    failed.outcome = Some(false);
    let settings = json!({"only-resolved": true, "gate": false});
    let system = open(&settings, &Resources::default()).unwrap();
    let answer = ask(system, &[failed, run(2, "Reader fails again", "y")], "reader fails", 5).await;
    assert_eq!(sources(&answer), [2]);
}
