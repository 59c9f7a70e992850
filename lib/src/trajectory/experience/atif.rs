//! ATIF documents, versions 1.x: steps with their tool calls and observations.

use serde_json::{Map, Value};

use super::mini::unframed;
use super::read::{Sink, elements};
use super::run::{RunCost, RunFormat, RunHead};
use super::source::Source;
use super::teller::{Teller, arguments_of, text_of};
use crate::trajectory::json::Counts;
use crate::trajectory::skim::Keep;
use crate::trajectory::{TrajectoryError, Usage};

pub(super) fn read(
    source: &Source<'_>,
    top: &Map<String, Value>,
    sink: &mut Sink<'_>,
) -> Result<Counts, TrajectoryError> {
    let whole = Value::Object(top.clone());
    let text = |at: &str| whole.pointer(at).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut head = RunHead::new(RunFormat::Atif).of_task(text("/extra/mini/instance_id").or(task_of(source)));
    head.session = text("/session_id").map(str::to_owned);
    head.model = text("/agent/model_name").map(str::to_owned);
    if sink.head(&head).is_break() {
        return Ok(Counts::default());
    }
    let mut teller = Teller::default();
    if let Some(folder) = text("/extra/mini/info/config/environment/cwd") {
        teller.place.work_in(folder);
    }
    let (mut steps, mut usage) = (0, None);
    let counts = elements(source, "steps", &Keep::All, &mut |step| {
        steps += u64::from(step["source"] == "agent");
        usage = match (usage, metrics(&step["metrics"])) {
            (Some(sum), Some(more)) => Some(Usage::plus(sum, more)),
            (sum, more) => sum.or(more),
        };
        tell(&step, &mut teller);
        sink.events(&mut teller)
    })?;
    let status = text("/extra/mini/exit/extra/exit_status");
    let submitted = status == Some("Submitted");
    teller.ended(
        text("/extra/mini/exit/extra/submission").filter(|_| submitted),
        status.map(str::to_owned),
        None,
    );
    if sink.events(&mut teller).is_continue() {
        let total = |key: &str| whole.pointer(&format!("/final_metrics/{key}")).and_then(Value::as_u64);
        let stated = total("total_prompt_tokens").map(|prompt_tokens| Usage {
            prompt_tokens,
            cached_tokens: total("total_cached_tokens").unwrap_or_default(),
            completion_tokens: total("total_completion_tokens").unwrap_or_default(),
        });
        let _ = sink.end(RunCost { steps, usage: stated.or(usage) });
    }
    Ok(counts)
}

/// The task that the file is named after: `<id>.atif.json`.
fn task_of<'s>(source: &'s Source<'_>) -> Option<&'s str> {
    let stem = source.path.file_name()?.to_str()?.strip_suffix(".atif.json")?;
    crate::task::InstanceId::parse(stem).is_ok().then_some(stem)
}

fn metrics(metrics: &Value) -> Option<Usage> {
    let count = |key: &str| metrics.get(key).and_then(Value::as_u64);
    if count("prompt_tokens").is_none() && count("completion_tokens").is_none() {
        return None;
    }
    Some(Usage {
        prompt_tokens: count("prompt_tokens").unwrap_or_default(),
        cached_tokens: count("cached_tokens").unwrap_or_default(),
        completion_tokens: count("completion_tokens").unwrap_or_default(),
    })
}

fn tell(step: &Value, teller: &mut Teller) {
    let message = text_of(&step["message"]);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match step["source"].as_str() {
        // context that an earlier document holds
        _ if step["is_copied_context"] == true => return,
        Some("user") if step["extra"]["mini"]["extra"]["interrupt_type"].is_null() => teller.asked(&message),
        Some("agent") => {
            teller.settle();
            let reasoning = step["reasoning_content"].as_str().unwrap_or_default();
            // other converters give the text twice
            let said = if reasoning.trim() == message.trim() { "" } else { &message };
            let calls = list(&step["tool_calls"]);
            let is_text = calls.iter().any(|call| call["extra"]["mini"]["from_text"] == true);
            let said = if is_text { beside(said) } else { said.to_owned() };
            teller.thought(&[reasoning, &said]);
            for call in calls {
                let name = call["function_name"].as_str().unwrap_or("tool");
                let id = call["tool_call_id"].as_str();
                teller.call(id, name, &arguments_of(call.get("arguments")), None);
            }
        }
        _ => {}
    }
    for result in list(&step["observation"]["results"]) {
        let own = &result["extra"]["mini"]["extra"];
        let (text, code) = match own["raw_output"].as_str() {
            Some(raw) => (raw.to_owned(), own["returncode"].as_i64()),
            None => unframed(&text_of(&result["content"])),
        };
        teller.observed(result["source_call_id"].as_str(), text, code);
    }
}

/// What a reply says beside the command in it.
fn beside(said: &str) -> String {
    match crate::trajectory::ActionPattern::of(None) {
        Ok(pattern) => pattern.beside(said),
        Err(_) => said.to_owned(),
    }
}
