use super::*;
use crate::memory::{Target, conformance};

fn run(number: u64, issue: &str, added: &str) -> Experience {
    let patch = format!("--- a/src/m.py\n+++ b/src/m.py\n@@ -1 +1,2 @@\n import os\n+{added}\n");
    Experience {
        instance_id: InstanceId::parse(&format!("acme__widget-{number}")).unwrap(),
        issue: issue.into(),
        patch: Some(patch),
        exit_status: Some("Submitted".into()),
        outcome: None,
        events: Vec::new(),
    }
}

async fn frozen(settings: Bm25Settings, runs: &[Experience]) -> Bm25 {
    let mut system = Bm25::new(settings);
    for run in runs {
        system.ingest(run).await.unwrap();
    }
    system.freeze().await.unwrap();
    system
}

fn query(text: &str) -> Query {
    let instance_id = InstanceId::parse("acme__widget-99").unwrap();
    let repo = "acme/widget".into();
    Query::at_start(Target { instance_id, repo, problem_statement: text.into(), language: None })
}

async fn ask(system: &mut Bm25, text: &str, records: usize) -> Retrieval {
    system.retrieve(&query(text), Budget { records, tokens: 1000 }).await.unwrap().value
}

fn sources(answer: &Retrieval) -> Vec<u64> {
    match answer {
        Retrieval::Delivery(delivery) => delivery.records.iter().map(|r| r.source.number()).collect(),
        Retrieval::Abstain { .. } => Vec::new(),
    }
}

fn reason(answer: Retrieval) -> String {
    match answer {
        Retrieval::Abstain { reason } => reason,
        Retrieval::Delivery(delivery) => panic!("{delivery:?}"),
    }
}

#[tokio::test]
async fn conforms() {
    assert_eq!(conformance::check(&|| Box::new(Bm25::default()), true).await, Vec::<String>::new());
}

#[tokio::test]
async fn finds_by_issue_and_by_changed_identifiers() {
    let runs = [
        run(1, "Reader fails on blank lines", "skip_blank = True"),
        run(2, "Writer doubles quotes", "escapeQuotes(cell)"),
        run(3, "Docs are stale", "nothing"),
    ];
    let mut system = frozen(Bm25Settings::default(), &runs).await;
    assert_eq!(sources(&ask(&mut system, "a blank line breaks the Reader", 1).await), [1]);
    assert_eq!(sources(&ask(&mut system, "escape_quotes raises", 5).await), [2]);
    assert_eq!(reason(ask(&mut system, "zebra", 5).await), "no earlier run shares a word with the query");
    assert_eq!(
        reason(ask(&mut system, "the of and", 5).await),
        "no earlier run shares a word with the query"
    );
}

#[tokio::test]
async fn equal_scores_go_by_id() {
    let runs = [run(2, "same words", "x = 1"), run(1, "same words", "x = 1")];
    let mut system = frozen(Bm25Settings::default(), &runs).await;
    assert_eq!(sources(&ask(&mut system, "same words", 2).await), [1, 2]);
}

#[tokio::test]
async fn abstains_below_the_gate() {
    let runs = [run(1, "Reader fails on blank lines", "a"), run(2, "Reader is slow", "b")];
    let gate = Bm25Settings { min_score: Some(1e6), ..Bm25Settings::default() };
    let answer = ask(&mut frozen(gate, &runs).await, "blank", 5).await;
    assert!(reason(answer).ends_with("is below min-score 1000000"));
    let mut open = frozen(Bm25Settings::default(), &runs).await;
    let Retrieval::Delivery(all) = ask(&mut open, "reader blank", 5).await else { panic!("abstained") };
    let between = (all.records[0].score.unwrap() + all.records[1].score.unwrap()) / 2.0;
    let gate = Bm25Settings { min_score: Some(between), ..Bm25Settings::default() };
    assert_eq!(sources(&ask(&mut frozen(gate, &runs).await, "reader blank", 5).await), [1]);
}

#[tokio::test]
async fn a_longer_query_is_cut_at_its_cap() {
    let runs = [run(1, "alpha", "a"), run(2, "omega", "b")];
    let settings = Bm25Settings { query_terms: 1, ..Bm25Settings::default() };
    assert_eq!(sources(&ask(&mut frozen(settings, &runs).await, "alpha alpha omega", 5).await), [1]);
}

#[tokio::test]
async fn refuses_calls_out_of_order() {
    let one = run(1, "a reader", "b");
    let mut system = Bm25::default();
    let early = system.retrieve(&query("reader"), Budget::default()).await.unwrap_err();
    assert_eq!(early.to_string(), r#"memory system "bm25": retrieve must not be called before freeze"#);
    system.freeze().await.unwrap();
    let late = system.ingest(&one).await.unwrap_err();
    assert_eq!(late.to_string(), r#"memory system "bm25": ingest must not be called after freeze"#);
}
