//! OpenHands' `output.jsonl`: a run a line, its events in `history`: those of the SDK (`kind`) and the older ones
//! (`action`, `observation`).

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::read::Sink;
use super::run::{RunCost, RunFormat, RunHead};
use super::teller::{Teller, arguments_of, text_of};
use crate::trajectory::Usage;
use crate::trajectory::skim::Keep;

/// What is read of a row; `instance` holds the task's row with its patches.
pub(super) const ROW: Keep = Keep::Only(&[
    ("instance_id", Keep::All),
    ("instruction", Keep::All),
    ("test_result", Keep::Only(&[("git_patch", Keep::All)])),
    ("git_patch", Keep::All),
    (
        "metadata",
        Keep::Only(&[
            ("llm", Keep::Only(&[("model", Keep::All)])),
            ("llm_config", Keep::Only(&[("model", Keep::All)])),
        ]),
    ),
    (
        "metrics",
        Keep::Only(&[
            ("model_name", Keep::All),
            (
                "accumulated_token_usage",
                Keep::Only(&[
                    ("prompt_tokens", Keep::All),
                    ("completion_tokens", Keep::All),
                    ("cache_read_tokens", Keep::All),
                ]),
            ),
        ]),
    ),
    ("report", Keep::Only(&[("resolved", Keep::All)])),
    ("error", Keep::All),
    ("history", Keep::All),
]);

pub(super) fn row(line: Option<usize>, row: &Map<String, Value>, sink: &mut Sink<'_>) -> ControlFlow<()> {
    let row = Value::Object(row.clone());
    let text = |at: &str| row.pointer(at).and_then(Value::as_str).filter(|text| !text.is_empty());
    let events = row["history"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut head = RunHead::new(RunFormat::OpenHands).of_task(text("/instance_id"));
    let models = ["/metrics/model_name", "/metadata/llm/model", "/metadata/llm_config/model"];
    head.model = models.iter().find_map(|at| text(at)).map(str::to_owned);
    head.started = first(events)["timestamp"].as_str().map(str::to_owned);
    head.line = line;
    sink.head(&head)?;

    let mut run = Run { teller: Teller::default(), reply: String::new(), steps: 0, finished: false };
    if !events.iter().any(is_request)
        && let Some(instruction) = text("/instruction")
    {
        run.teller.asked(instruction);
    }
    for event in events {
        match event {
            // the oldest files pair an action with its observation
            Value::Array(pair) => pair.iter().for_each(|event| run.event(event)),
            event => run.event(event),
        }
        sink.events(&mut run.teller)?;
    }
    let status = match (text("/error"), run.finished) {
        (Some(_), _) => Some("error".to_owned()),
        (None, true) => Some("finished".to_owned()),
        (None, false) => None,
    };
    let patch = text("/test_result/git_patch").or_else(|| text("/git_patch"));
    run.teller.ended(patch, status, row["report"]["resolved"].as_bool());
    sink.events(&mut run.teller)?;
    let tokens = &row["metrics"]["accumulated_token_usage"];
    let usage = tokens["prompt_tokens"].as_u64().map(|prompt_tokens| Usage {
        prompt_tokens,
        cached_tokens: tokens["cache_read_tokens"].as_u64().unwrap_or_default(),
        completion_tokens: tokens["completion_tokens"].as_u64().unwrap_or_default(),
    });
    sink.end(RunCost { steps: run.steps, usage })
}

fn first(events: &[Value]) -> &Value {
    match events.first() {
        Some(Value::Array(pair)) => pair.first().unwrap_or(&Value::Null),
        Some(event) => event,
        None => &Value::Null,
    }
}

/// Whether an event is a person's message.
fn is_request(event: &Value) -> bool {
    let event = event.get(0).unwrap_or(event);
    event["source"] == "user" && (event["kind"] == "MessageEvent" || event["action"] == "message")
}

struct Run {
    teller: Teller,
    /// The reply that parallel calls share.
    reply: String,
    steps: u64,
    finished: bool,
}

impl Run {
    fn event(&mut self, event: &Value) {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        if event.get("kind").is_some() {
            self.sdk_event(event, text("kind"));
        } else if event["action"].is_string() {
            self.old_action(event, text("action"));
        } else if event["observation"].is_string() {
            self.old_observation(event);
        }
    }

    /// A new reply of the model ends the turn before it.
    fn replied(&mut self, reply: &str) {
        if reply.is_empty() || reply != self.reply {
            self.teller.settle();
            self.steps += 1;
            reply.clone_into(&mut self.reply);
        }
    }

    fn sdk_event(&mut self, event: &Value, kind: &str) {
        let text = |key: &str| event[key].as_str();
        let id = text("tool_call_id");
        match kind {
            "MessageEvent" => {
                let message = &event["llm_message"];
                let said = text_of(&message["content"]);
                match text("source") {
                    Some("user") => self.teller.asked(&said),
                    Some("agent") => {
                        self.replied(text("llm_response_id").unwrap_or_default());
                        self.teller
                            .thought(&[message["reasoning_content"].as_str().unwrap_or_default(), &said]);
                    }
                    _ => {}
                }
            }
            "ActionEvent" => {
                self.replied(text("llm_response_id").unwrap_or_default());
                let reasoning = text("reasoning_content").unwrap_or_default();
                self.teller.thought(&[reasoning, &text_of(&event["thought"])]);
                let action = &event["action"];
                let name = text("tool_name").or(action["kind"].as_str()).unwrap_or("tool");
                if name == "think" {
                    let thought = action["thought"].as_str().unwrap_or_default();
                    self.teller.thought(&[thought]);
                    return;
                }
                self.finished |= name == "finish";
                match (action["kind"].as_str(), action["command"].as_str()) {
                    (Some("TerminalAction" | "ExecuteBashAction"), Some(line)) => {
                        self.teller.shell(id, line.to_owned())
                    }
                    _ => {
                        let arguments = match event["tool_call"].get("arguments") {
                            Some(arguments) => arguments_of(Some(arguments)),
                            None => action.clone(),
                        };
                        self.teller.call(id, name, &arguments, None);
                    }
                }
            }
            "ObservationEvent" => {
                let seen = &event["observation"];
                let said = [&seen["content"], &seen["output"], &seen["text"]];
                let said = said.iter().map(|part| text_of(part)).find(|text| !text.is_empty());
                let code = seen["exit_code"].as_i64().or_else(|| seen["metadata"]["exit_code"].as_i64());
                // −1: it still ran
                self.teller.observed(id, said.unwrap_or_default(), code.filter(|code| *code >= 0));
            }
            "AgentErrorEvent" => self.teller.observed(id, text("error").unwrap_or_default().to_owned(), None),
            "UserRejectObservation" => {
                self.teller.observed(id, text("rejection_reason").unwrap_or_default().to_owned(), None);
            }
            _ => {}
        }
    }

    fn old_action(&mut self, event: &Value, action: &str) {
        let arguments = &event["args"];
        let argument = |key: &str| arguments[key].as_str().unwrap_or_default();
        let id = event["id"].as_i64().map(|id| id.to_string());
        if event["source"] == "user" {
            if action == "message" {
                self.teller.asked(argument("content"));
            }
            return;
        }
        if matches!(action, "system" | "recall" | "change_agent_state" | "null" | "condensation") {
            return;
        }
        let reply = event["tool_call_metadata"]["model_response"]["id"].as_str().unwrap_or_default();
        self.replied(reply);
        match action {
            "message" | "think" => {
                self.teller.thought(&[argument("thought"), argument("content")]);
                return;
            }
            _ => self.teller.thought(&[argument("thought")]),
        }
        self.finished |= action == "finish";
        match action {
            "run" => self.teller.shell(id.as_deref(), argument("command").to_owned()),
            "run_ipython" => self.teller.call(id.as_deref(), "ipython", arguments, None),
            "edit" if argument("command") == "view" => {
                self.teller.call(id.as_deref(), "view", arguments, None)
            }
            name => {
                let mut own = arguments.clone();
                if let Value::Object(own) = &mut own {
                    own.retain(|key, value| key != "thought" && !value.is_null());
                }
                self.teller.call(id.as_deref(), name, &own, None);
            }
        }
    }

    fn old_observation(&mut self, event: &Value) {
        if matches!(event["observation"].as_str(), Some("agent_state_changed" | "null" | "recall" | "think"))
        {
            return;
        }
        let cause = event["cause"].as_i64().map(|id| id.to_string());
        let code = ["/extras/metadata/exit_code", "/extras/exit_code"]
            .iter()
            .find_map(|at| event.pointer(at)?.as_i64());
        self.teller.observed(cause.as_deref(), text_of(&event["content"]), code.filter(|code| *code >= 0));
    }
}
