//! Rollouts of NeMo Gym: a line holds what was asked, the items of the answer and the verdict. It also holds the
//! task's answer, in fields that are not named here.

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::read::Sink;
use super::responses;
use super::run::{RunCost, RunFormat, RunHead};
use super::teller::{Teller, text_of};
use crate::trajectory::Usage;
use crate::trajectory::skim::Keep;

/// What is read of a row. `metadata` of the request and of the row hold the task's row with its patches.
pub(super) const ROW: Keep = Keep::Only(&[
    (
        "responses_create_params",
        Keep::Only(&[
            ("input", Keep::All),
            ("model", Keep::All),
            ("metadata", Keep::Only(&[("instance_id", Keep::All), ("problem_statement", Keep::All)])),
        ]),
    ),
    (
        "response",
        Keep::Only(&[
            ("id", Keep::All),
            ("created_at", Keep::All),
            ("model", Keep::All),
            ("output", Keep::All),
            ("usage", Keep::All),
        ]),
    ),
    ("instance_id", Keep::All),
    ("metadata", Keep::Only(&[("instance_id", Keep::All), ("model_patch", Keep::All)])),
    ("model_patch", Keep::All),
    ("resolved", Keep::All),
]);

pub(super) fn row(line: Option<usize>, row: &Map<String, Value>, sink: &mut Sink<'_>) -> ControlFlow<()> {
    let row = Value::Object(row.clone());
    let text = |at: &str| row.pointer(at).and_then(Value::as_str).filter(|text| !text.is_empty());
    let id = text("/instance_id")
        .or_else(|| text("/metadata/instance_id"))
        .or_else(|| text("/responses_create_params/metadata/instance_id"));
    let mut head = RunHead::new(RunFormat::NemoGym).of_task(id);
    head.session = text("/response/id").map(str::to_owned);
    head.model =
        text("/response/model").or_else(|| text("/responses_create_params/model")).map(str::to_owned);
    head.started = match row.pointer("/response/created_at") {
        Some(Value::String(time)) => Some(time.clone()),
        Some(seconds) => seconds.as_f64().filter(|at| *at > 0.0).and_then(super::time::iso),
        None => None,
    };
    head.line = line;
    sink.head(&head)?;

    let mut teller = Teller::default();
    match text("/responses_create_params/metadata/problem_statement") {
        Some(problem) => teller.asked(problem),
        None => asked(&row["responses_create_params"]["input"], &mut teller),
    }
    let items = row["response"]["output"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut steps = 0;
    let mut answered = true;
    for item in items {
        let is_answer = item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
        if answered && !is_answer {
            steps += 1;
            teller.settle();
        }
        answered = is_answer;
        responses::item(item, &mut teller);
        sink.events(&mut teller)?;
    }
    // where the agent did nothing, the patch is not its own
    let patch = text("/model_patch").or_else(|| text("/metadata/model_patch")).filter(|_| !items.is_empty());
    teller.ended(patch, None, row["resolved"].as_bool().filter(|_| !items.is_empty()));
    sink.events(&mut teller)?;
    let usage = Usage::read(&row["response"]["usage"]).filter(|usage| *usage != Usage::default());
    sink.end(RunCost { steps, usage })
}

/// What a person asked in the request: the first text of the user.
fn asked(input: &Value, teller: &mut Teller) {
    match input {
        Value::String(text) => teller.asked(text),
        Value::Array(items) => {
            if let Some(first) = items.iter().find(|item| item["role"] == "user") {
                teller.asked(&text_of(&first["content"]));
            }
        }
        _ => {}
    }
}
