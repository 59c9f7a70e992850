//! A run as an ATIF document (Agent Trajectory Interchange Format, version 1.8), for tools that read no other.
//!
//! | of the run | in the document |
//! |---|---|
//! | system, task and human messages | steps of `system` and `user` |
//! | a turn of the model | a step of `agent`: text, reasoning, tool calls, tokens and dollars |
//! | what its commands printed | the `observation` of that step, each result with its call's id |
//! | a command in text | a tool call of `bash`; its id is made here |
//! | a reply that could not be parsed | a step of `agent` without calls, its `observation` the format error |
//! | how the run ended | `extra.mini.exit` |
//!
//! What the format has no place for stands under `extra.mini` of the step, the result or the document: the raw message
//! without the text that the step holds already. So no field of the run is lost. Steps are written while the run is
//! read: a file of any size costs the memory of its largest turn.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::error::TrajectoryError;
use super::format::ActionPattern;
use super::message::{Message, Role, Usage};
use super::stream::{Limits, Part, StreamReport, stream};
use super::whole::write_atomic_with;

/// The version that is written.
pub const ATIF_VERSION: &str = "ATIF-v1.8";

/// Nothing is cut: a document must hold what the run holds.
const EVERYTHING: Limits = Limits { file_bytes: u64::MAX, text_chars: usize::MAX };

/// Converts a trajectory file of any format that memtrial reads, and returns the number of steps. The document appears
/// whole or not at all.
///
/// # Errors
/// When the file cannot be read or is no trajectory, or the document cannot be written.
pub fn convert_to_atif(from: &Path, to: &Path) -> Result<u64, TrajectoryError> {
    let file =
        std::fs::File::open(from).map_err(|cause| TrajectoryError::Read { path: from.to_owned(), cause })?;
    let reader = io::BufReader::with_capacity(1 << 16, file);
    let failed = |cause| TrajectoryError::Write { path: to.to_owned(), cause };
    write_atomic_with(to, failed, |out| write_atif(reader, from, out))
}

/// Converts from a reader to a writer, and returns the number of steps; `name` is what errors call the run.
///
/// # Errors
/// As [`convert_to_atif`].
pub fn write_atif(reader: impl BufRead, name: &Path, out: impl Write) -> Result<u64, TrajectoryError> {
    let mut writer = Writer::new(out);
    let broken = |cause| TrajectoryError::Write { path: name.to_owned(), cause };
    let mut failure = writer.begin().err();
    let report = stream(reader, name, &EVERYTHING, &mut |part| {
        let taken = match (&failure, part) {
            (Some(_), _) => return ControlFlow::Break(()),
            (None, Part::Field { key, value }) => {
                writer.field(key, value);
                Ok(())
            }
            (None, Part::Message { message, .. }) => writer.message(&message),
        };
        failure = taken.err();
        ControlFlow::Continue(())
    })?;
    if let Some(cause) = failure {
        return Err(broken(cause));
    }
    writer.finish(&report, name).map_err(broken)
}

/// The step that still takes observations.
struct Step {
    fields: Map<String, Value>,
    results: Vec<Value>,
    /// Calls by their ids, and whether one has its result.
    answered: BTreeMap<String, bool>,
    /// The last plain message of a person that went into it: format 1 ends a run with one.
    last_plain: Option<Value>,
}

struct Writer<W> {
    out: W,
    steps: u64,
    open: Option<Step>,
    top: Map<String, Value>,
    pattern: Option<ActionPattern>,
    usage: Option<Usage>,
    cost: Option<f64>,
    exit: Option<Value>,
}

impl<W: Write> Writer<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            steps: 0,
            open: None,
            top: Map::new(),
            pattern: None,
            usage: None,
            cost: None,
            exit: None,
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        write!(self.out, "{{\"schema_version\":\"{ATIF_VERSION}\",\"steps\":[")
    }

    fn field(&mut self, key: &str, value: &Value) {
        if key == "info" {
            self.pattern = ActionPattern::of(Some(value)).ok();
        }
        self.top.insert(key.to_owned(), value.clone());
    }

    fn message(&mut self, message: &Message) -> io::Result<()> {
        match message.role() {
            Role::System => self.say("system", message),
            Role::Assistant => self.turn(message),
            Role::Exit => {
                self.exit = Some(Value::Object(message.raw().clone()));
                Ok(())
            }
            Role::Tool => self.observe(message),
            Role::User if message.is_format_error() => self.malformed(message),
            Role::User if message.extra("raw_output").is_some() => self.observe(message),
            Role::User => {
                let after_a_turn = self.open.as_ref().is_some_and(|step| step.fields["source"] == "agent");
                let is_persons =
                    message.extra("interrupt_type").is_some() || message.extra("actions").is_some();
                if after_a_turn && !is_persons { self.observe(message) } else { self.say("user", message) }
            }
        }
    }

    /// A step without a model.
    fn say(&mut self, source: &str, message: &Message) -> io::Result<()> {
        let mut step = self.step(source, message);
        step.fields.insert("message".into(), spoken(message));
        step.fields.insert("extra".into(), json!({"mini": rest(message)}));
        step.last_plain = Some(Value::Object(message.raw().clone()));
        self.open(step)
    }

    /// A turn of the model.
    fn turn(&mut self, message: &Message) -> io::Result<()> {
        let mut step = self.step("agent", message);
        let calls = self.calls(message);
        self.spent(message);
        step.answered = calls.iter().map(|call| (id_of(&call["tool_call_id"]), false)).collect();
        let model =
            message.response().unwrap_or(&Value::Null).get("model").or_else(|| message.raw().get("model"));
        let reasoning = message.reasoning().map(str::to_owned).or_else(|| summaries(message));
        let fields = [
            ("model_name", model.filter(|model| model.is_string()).cloned()),
            ("message", Some(json!(message.text()))),
            ("reasoning_content", reasoning.map(Value::String)),
            ("tool_calls", (!calls.is_empty()).then_some(Value::Array(calls))),
            ("metrics", metrics(message)),
            ("llm_call_count", Some(json!(1))),
            ("extra", Some(json!({"mini": rest(message)}))),
        ];
        step.fields.extend(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        self.open(step)
    }

    /// A reply that could not be parsed, and what the agent answered.
    fn malformed(&mut self, message: &Message) -> io::Result<()> {
        let mut step = self.step("agent", message);
        self.spent(message);
        let reply = message.response().and_then(|response| {
            let chat = response.pointer("/choices/0/message").cloned();
            let raw = chat.or_else(|| (response["object"] == "response").then(|| response.clone()))?;
            Message::from_value(raw).ok()
        });
        let said = reply.as_ref().map_or_else(
            || message.extra("model_response").and_then(Value::as_str).unwrap_or_default().to_owned(),
            |reply| reply.text().into_owned(),
        );
        let fields = [
            ("message", Some(Value::String(said))),
            ("metrics", metrics(message)),
            ("llm_call_count", Some(json!(1))),
        ];
        step.fields.extend(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        step.results.push(json!({"content": message.text(), "extra": {"mini": rest(message)}}));
        self.open(step)
    }

    /// What a command printed, or what the agent answered to a reply without a command.
    fn observe(&mut self, message: &Message) -> io::Result<()> {
        let Some(step) = &mut self.open else { return self.say("user", message) };
        let raw = message.raw();
        let named = ["tool_call_id", "call_id"].iter().find_map(|key| raw.get(*key)?.as_str());
        // In text the one command has no id that the result could name.
        let only = step.answered.iter().find(|(_, answered)| !**answered).map(|(id, _)| id.clone());
        let id = match named {
            Some(id) => Some(id.to_owned()).filter(|id| step.answered.contains_key(id)),
            None => only.filter(|_| step.answered.len() == 1),
        };
        let mut result = Map::new();
        if let Some(id) = id {
            result.insert("source_call_id".into(), json!(id));
            step.answered.insert(id, true);
        }
        result.insert("content".into(), spoken(message));
        result.insert("extra".into(), json!({"mini": rest(message)}));
        step.results.push(Value::Object(result));
        step.last_plain = (!raw.contains_key("extra")).then(|| Value::Object(raw.clone()));
        Ok(())
    }

    fn calls(&self, message: &Message) -> Vec<Value> {
        let made =
            |index: usize| format!("call_{}_{}", self.steps + 1 + u64::from(self.open.is_some()), index + 1);
        let raw = message.tool_calls();
        if !raw.is_empty() {
            let call = |(index, call): (usize, &&Value)| {
                let function = call.get("function").unwrap_or(call);
                let id = ["call_id", "id"].iter().find_map(|key| call.get(*key)?.as_str());
                json!({
                    "tool_call_id": id.filter(|id| !id.is_empty()).map_or_else(|| made(index), str::to_owned),
                    "function_name": function.get("name").and_then(Value::as_str).unwrap_or_default(),
                    "arguments": arguments(function.get("arguments")),
                })
            };
            return raw.iter().enumerate().map(call).collect();
        }
        let fallback = ActionPattern::of(None).ok();
        let Some(pattern) = self.pattern.as_ref().or(fallback.as_ref()) else { return Vec::new() };
        let call = |(index, action): (usize, super::Action)| {
            json!({
                "tool_call_id": made(index),
                "function_name": "bash",
                "arguments": {"command": action.command},
                "extra": {"from_text": true},
            })
        };
        message.actions(pattern).into_iter().enumerate().map(call).collect()
    }

    fn spent(&mut self, message: &Message) {
        self.usage = match (self.usage, message.usage()) {
            (Some(sum), Some(more)) => Some(sum.plus(more)),
            (sum, more) => sum.or(more),
        };
        self.cost = match (self.cost, message.cost()) {
            (Some(sum), Some(more)) => Some(sum + more),
            (sum, more) => sum.or(more),
        };
    }

    /// An empty step; its number is set when it is written.
    fn step(&self, source: &str, message: &Message) -> Step {
        let mut fields = Map::from_iter([("step_id".to_owned(), Value::Null)]);
        if let Some(time) = timestamp(message) {
            fields.insert("timestamp".into(), Value::String(time));
        }
        fields.insert("source".into(), json!(source));
        Step { fields, results: Vec::new(), answered: BTreeMap::new(), last_plain: None }
    }

    fn open(&mut self, step: Step) -> io::Result<()> {
        self.close()?;
        self.open = Some(step);
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(mut step) = self.open.take() else { return Ok(()) };
        if !step.results.is_empty() {
            step.fields.insert("observation".into(), json!({"results": step.results}));
        }
        if self.steps > 0 {
            self.out.write_all(b",")?;
        }
        self.steps += 1;
        step.fields.insert("step_id".into(), json!(self.steps));
        self.out.write_all(b"\n")?;
        serde_json::to_writer(&mut self.out, &step.fields)?;
        Ok(())
    }

    fn finish(mut self, report: &StreamReport, name: &Path) -> io::Result<u64> {
        let info = self.top.get("info").cloned().unwrap_or_default();
        if report.format.is_some_and(super::Format::is_v1) {
            self.take_exit(&info);
        }
        self.close()?;
        if self.steps == 0 {
            // A document has one step at least.
            let message = "the run ended before its first message";
            self.open(Step {
                fields: Map::from_iter([
                    ("step_id".to_owned(), Value::Null),
                    ("source".to_owned(), json!("system")),
                    ("message".to_owned(), json!(message)),
                ]),
                results: Vec::new(),
                answered: BTreeMap::new(),
                last_plain: None,
            })?;
            self.close()?;
        }
        let stem = name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = stem.split('.').next().unwrap_or_default();
        let mut mini = std::mem::take(&mut self.top);
        mini.extend(self.exit.take().map(|exit| ("exit".to_owned(), exit)));
        let session = mini.get("instance_id").and_then(Value::as_str).unwrap_or(stem).to_owned();
        let rest = [
            ("session_id", json!(session)),
            ("agent", agent(&info)),
            ("final_metrics", self.totals(&info)),
            ("extra", json!({ "mini": mini })),
        ];
        self.out.write_all(b"\n]")?;
        for (key, value) in rest {
            write!(self.out, ",\n\"{key}\":")?;
            serde_json::to_writer(&mut self.out, &value)?;
        }
        self.out.write_all(b"}\n")?;
        Ok(self.steps)
    }

    /// Format 1 ends a run with a message of a person: the submission, or nothing at a limit.
    fn take_exit(&mut self, info: &Value) {
        let ended = info["exit_status"]
            .as_str()
            .is_some_and(|status| ["Submitted", "LimitsExceeded"].contains(&status));
        let Some(step) = self.open.as_mut().filter(|_| ended) else { return };
        self.exit = step.last_plain.take();
        if self.exit.is_some() && step.results.pop().is_none() {
            self.open = None;
        }
    }

    fn totals(&self, info: &Value) -> Value {
        let mut totals = Map::new();
        if let Some(usage) = self.usage {
            totals.insert("total_prompt_tokens".into(), json!(usage.prompt_tokens));
            totals.insert("total_completion_tokens".into(), json!(usage.completion_tokens));
            totals.insert("total_cached_tokens".into(), json!(usage.cached_tokens));
        }
        let counted = info.pointer("/model_stats/instance_cost").and_then(Value::as_f64);
        if let Some(usd) = counted.or(self.cost) {
            totals.insert("total_cost_usd".into(), json!(usd));
        }
        totals.insert("total_steps".into(), json!(self.steps));
        Value::Object(totals)
    }
}

/// Who ran: memtrial's agent, or mini-swe-agent.
fn agent(info: &Value) -> Value {
    let text = |path: &str| info.pointer(path).and_then(Value::as_str);
    let ours = text("/config/agent_type") == Some("memtrial.agent");
    let version = text("/mini_version").unwrap_or("unknown");
    let (name, version) = match text("/config/memtrial/version") {
        Some(own) if ours => ("memtrial", own),
        _ => ("mini-swe-agent", version),
    };
    let mut agent = json!({"name": name, "version": version});
    if let Some(model) = text("/config/model/model_name").filter(|model| !model.is_empty()) {
        agent["model_name"] = json!(model);
    }
    agent
}

/// The words of a message: a text, or its parts where it holds an image that the format can name.
fn spoken(message: &Message) -> Value {
    let parts = message.raw().get("content").and_then(Value::as_array);
    let converted: Option<Vec<Value>> = parts.and_then(|parts| parts.iter().map(part).collect());
    match converted {
        Some(parts) if parts.iter().any(|part| part["type"] == "image") => Value::Array(parts),
        _ => json!(message.text()),
    }
}

fn part(part: &Value) -> Option<Value> {
    if let Some(text) = part["text"].as_str() {
        return Some(json!({"type": "text", "text": text}));
    }
    let url = part.pointer("/image_url/url")?.as_str()?;
    let kinds = ["jpeg", "png", "gif", "webp"];
    let kind = kinds
        .into_iter()
        .find(|kind| url.starts_with(&format!("data:image/{kind}")) || url.ends_with(&format!(".{kind}")))?;
    Some(json!({"type": "image", "source": {"media_type": format!("image/{kind}"), "path": url}}))
}

/// The raw message without the text that its step or result holds.
fn rest(message: &Message) -> Map<String, Value> {
    let is_held = |key: &str, value: &Value| {
        value.is_string() && (key == "content" || key == "output" && !message.raw().contains_key("content"))
    };
    let rest = message.raw().iter().filter(|(key, value)| !is_held(key, value));
    rest.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn id_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Arguments as the object that the format wants; anything else under a key of its own.
fn arguments(raw: Option<&Value>) -> Value {
    let parsed = match raw {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Some(other) => other.clone(),
        None => return json!({}),
    };
    if parsed.is_object() { parsed } else { json!({ "arguments": parsed }) }
}

/// What the Responses API shows of a model's reasoning.
fn summaries(message: &Message) -> Option<String> {
    let items = message.raw().get("output")?.as_array()?;
    let reasoning = items.iter().filter(|item| item["type"] == "reasoning");
    let parts = reasoning.flat_map(|item| ["summary", "content"].map(|key| &item[key]));
    let texts: Vec<&str> =
        parts.filter_map(Value::as_array).flatten().filter_map(|part| part["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn metrics(message: &Message) -> Option<Value> {
    let (usage, cost) = (message.usage(), message.cost());
    let mut metrics = Map::new();
    if let Some(usage) = usage {
        metrics.insert("prompt_tokens".into(), json!(usage.prompt_tokens));
        metrics.insert("completion_tokens".into(), json!(usage.completion_tokens));
        metrics.insert("cached_tokens".into(), json!(usage.cached_tokens));
    }
    metrics.extend(cost.map(|usd| ("cost_usd".to_owned(), json!(usd))));
    (!metrics.is_empty()).then_some(Value::Object(metrics))
}

/// When it was said, in ISO 8601; `None` where the run does not tell.
fn timestamp(message: &Message) -> Option<String> {
    let raw = message.raw();
    let seconds =
        message.extra("timestamp").or_else(|| raw.get("timestamp")).or_else(|| raw.get("created_at"))?;
    // Up to the end of the year 9999.
    let seconds = seconds.as_f64().filter(|seconds| (0.0..253_402_300_800.0).contains(seconds))?;
    let micros = (seconds * 1e6) as u64;
    let (days, of_day) = (micros / 86_400_000_000, micros % 86_400_000_000);
    let (year, month, day) = date(days);
    let (hour, minute) = (of_day / 3_600_000_000, of_day / 60_000_000 % 60);
    let (second, micro) = (of_day / 1_000_000 % 60, of_day % 1_000_000);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z"))
}

/// The day so many days after 1970-01-01 in the Gregorian calendar. Counts from 0000-03-01, so that leap days end
/// their years.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
#[path = "atif_tests.rs"]
mod tests;
