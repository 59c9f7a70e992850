use serde_json::{Value, json};

use super::*;
use crate::memory::tests::{ask, query, reason, run, sources};
use crate::memory::{Budget, Query, Retrieval, conformance};

fn bm25(settings: Value) -> Box<dyn MemorySystem> {
    open(&settings, &Resources::default()).unwrap()
}

#[tokio::test]
async fn conforms() {
    assert_eq!(conformance::check(&|| Ok(bm25(json!({}))), true).await, Vec::<String>::new());
}

#[tokio::test]
async fn finds_by_issue_and_by_changed_identifiers() {
    let runs = [
        run(1, "Reader fails on blank lines", "skip_blank = True"),
        run(2, "Writer doubles quotes", "escapeQuotes(cell)"),
        run(3, "Docs are stale", "nothing"),
    ];
    let asked = async |text, records| ask(bm25(json!({})), &runs, text, records).await;
    assert_eq!(sources(&asked("a blank line breaks the Reader", 1).await), [1]);
    assert_eq!(sources(&asked("escape_quotes raises", 5).await), [2]);
    assert_eq!(reason(asked("zebra", 5).await), "no earlier run shares a word with the query");
    assert_eq!(reason(asked("the of and", 5).await), "no earlier run shares a word with the query");
}

#[tokio::test]
async fn equal_scores_go_by_id() {
    let runs = [run(2, "same words", "x = 1"), run(1, "same words", "x = 1")];
    assert_eq!(sources(&ask(bm25(json!({})), &runs, "same words", 2).await), [1, 2]);
}

#[tokio::test]
async fn abstains_below_the_gate() {
    let runs = [run(1, "Reader fails on blank lines", "a"), run(2, "Reader is slow", "b")];
    let answer = ask(bm25(json!({"min-score": 1e6})), &runs, "blank", 5).await;
    assert!(reason(answer).ends_with("is below min-score 1000000"));
    let answer = ask(bm25(json!({"min-score": 1e6, "gate": false})), &runs, "blank", 5).await;
    assert_eq!(sources(&answer), [1]);
    let Retrieval::Delivery(all) = ask(bm25(json!({})), &runs, "reader blank", 5).await else {
        panic!("abstained")
    };
    let between = (all.records[0].score.unwrap() + all.records[1].score.unwrap()) / 2.0;
    assert_eq!(sources(&ask(bm25(json!({"min-score": between})), &runs, "reader blank", 5).await), [1]);
    let answer = ask(bm25(json!({"min-coverage": 0.9})), &runs, "blank zebra", 5).await;
    assert!(reason(answer).ends_with("of the query, below min-coverage 0.9"));
}

#[tokio::test]
async fn a_longer_query_is_cut_at_its_cap() {
    let runs = [run(1, "alpha", "a"), run(2, "omega", "b")];
    let answer = ask(bm25(json!({"query-terms": 1})), &runs, "alpha alpha omega", 5).await;
    assert_eq!(sources(&answer), [1]);
}

#[tokio::test]
async fn refuses_calls_out_of_order() {
    let one = run(1, "a reader", "b");
    let mut system = bm25(json!({}));
    let early = system.retrieve(&query("reader"), Budget::default()).await.unwrap_err();
    assert_eq!(early.to_string(), r#"memory system "bm25": retrieve must not be called before freeze"#);
    system.freeze().await.unwrap();
    let late = system.ingest(&one).await.unwrap_err();
    assert_eq!(late.to_string(), r#"memory system "bm25": ingest must not be called after freeze"#);
}

#[tokio::test]
async fn what_was_saved_is_taken_back() {
    let runs = [run(1, "Reader fails on blank lines", "a"), run(2, "Reader is slow", "b")];
    let (mut first, mut second) = (bm25(json!({})), bm25(json!({})));
    for run in &runs {
        first.ingest(run).await.unwrap();
        let saved = first.saved(&run.instance_id).unwrap().unwrap();
        second.load(&run.instance_id, saved).unwrap();
    }
    assert_eq!(first.freeze().await.unwrap().value, second.freeze().await.unwrap().value);
    let asked = [&mut first, &mut second].map(|system| system.store().unwrap().records);
    assert_eq!(asked, [2, 2]);
    assert!(bm25(json!({})).load(&runs[0].instance_id, json!({"records": 3})).is_err());
}

#[tokio::test]
async fn one_index_serves_every_target() {
    let runs =
        [run(1, "Reader fails on blank lines", "a"), run(2, "Reader blank", "b"), run(3, "blank", "c")];
    let mut part = Query { as_of: Some(vec![runs[0].instance_id.clone()]), ..query("reader blank") };
    let mut all = bm25(json!({}));
    for run in &runs {
        all.ingest(run).await.unwrap();
    }
    all.freeze().await.unwrap();
    let budget = Budget { records: 5, tokens: 1000 };
    let shared = all.retrieve(&part, budget).await.unwrap().value;
    let rebuilt = ask(bm25(json!({})), &runs[..1], "reader blank", 5).await;
    assert_eq!(shared, rebuilt);
    part.as_of = Some(Vec::new());
    assert_eq!(reason(all.retrieve(&part, budget).await.unwrap().value), "the history is empty");
}
