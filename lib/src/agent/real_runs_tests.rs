//! Real runs of mini-swe-agent, regenerated message by message (where `MEMTRIAL_DATA` names the folder of data).
//!
//! The recorded answers and observations are fed to the machine under the recorded configuration; every message that
//! it makes is compared with the recorded one.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::event::{Effect, Event, Exception, Moment, Observation, Uname};
use super::machine::{Setup, State};
use super::{Config, Dialect, Layer, SENTINEL};
use crate::context::Full;
use crate::llm::{Cost, Reply};
use crate::trajectory::{Trajectory, recorded_replies};

fn runs(folder: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.to_string_lossy().ends_with(".traj.json") {
                found.push(path);
            }
        }
    }
    let Ok(data) = std::env::var("MEMTRIAL_DATA") else { return Vec::new() };
    let mut found = Vec::new();
    walk(&Path::new(&data).join("trajectories").join(folder), &mut found);
    found.sort();
    found
}

/// A recorded run: its messages, its configuration, and the value of `task` that its second message was made from.
struct Recorded {
    messages: Vec<Value>,
    setup: Setup,
    replies: Vec<Reply>,
}

impl Recorded {
    fn read(path: &Path) -> Option<Self> {
        let run = Trajectory::read(path).unwrap();
        let sections = run.info()?.get("config")?.clone();
        let text = json!({"agent": sections["agent"], "environment": sections["environment"],
                          "model": sections["model"]});
        let layer = Layer::from_yaml(&path.display().to_string(), &text.to_string()).unwrap();
        let mut config = Config::from_layers(&[layer]).unwrap().config;
        config.limits.wall_seconds = 0;
        let messages: Vec<Value> =
            run.messages().iter().map(|message| Value::Object(message.raw().clone())).collect();
        let (before, after) = config.templates.instance.split_once("{{task}}")?;
        let task = messages[1]["content"].as_str()?.strip_prefix(before)?.to_owned();
        // The text after the task may hold other variables; it begins with text, though.
        let plain = after.split("{{").next().unwrap_or_default();
        let plain = plain.split("{%").next().unwrap_or_default().trim_end();
        let task = task.split_once(plain).map_or(task.clone(), |(task, _)| task.to_owned());
        let replies = recorded_replies(&run)
            .unwrap()
            .into_iter()
            .map(|reply| Reply {
                message: Value::Object(reply.message),
                finish_reason: Some("stop".into()),
                response: reply.response.unwrap_or(Value::Null),
                cost: Cost { list_usd: Some(reply.cost.unwrap_or(0.0)), ..Cost::ZERO },
            })
            .collect();
        Some(Self {
            messages,
            setup: Setup {
                config,
                task,
                memory: None,
                uname: Uname::default(),
                asking: super::Asking::default(),
            },
            replies,
        })
    }

    /// Plays the recorded answers; `observe` gives the recorded result of the command whose answer would be the
    /// message with this number. Ends where the record ends.
    fn play(&self, observe: impl Fn(usize, &str) -> Option<(Observation, f64)>) -> State {
        let mut state = State::new(self.setup.clone());
        let mut replies = self.replies.iter();
        let mut event = Some(Event::Started { at: Moment::default() });
        let mut seen = 0;
        while let Some(now) = event.take() {
            for effect in state.step(now, &Full::default()).unwrap() {
                let (at, unix) = (state.log().len(), 0.0);
                match effect {
                    Effect::CallModel(_) => {
                        seen = 0;
                        let stamp =
                            &self.messages.get(at).map(|message| message["extra"]["timestamp"].clone());
                        let unix = stamp.as_ref().and_then(Value::as_f64).unwrap_or(unix);
                        event = replies.next().map(|reply| Event::Replied {
                            reply: Box::new(reply.clone()),
                            at: Moment { unix, elapsed: 0.0 },
                        });
                    }
                    Effect::Run { command, .. } => {
                        event = observe(at + seen, &command).map(|(observation, unix)| Event::Ran {
                            observation,
                            at: Moment { unix, elapsed: 0.0 },
                        });
                        seen += 1;
                    }
                    _ => {}
                }
            }
        }
        state
    }
}

/// Without what is ours alone, and without an absent response.
fn comparable(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(extra) = message.get_mut("extra").and_then(Value::as_object_mut) {
        extra.shift_remove("memtrial_cost");
        if extra.get("response") == Some(&Value::Null) {
            extra.shift_remove("response");
        }
    }
    message
}

#[test]
fn runs_of_2_4_6_are_regenerated_byte_for_byte() {
    let (mut compared, mut whole) = (0, 0);
    for path in runs("scripted_mini-2.4.6") {
        let Some(recorded) = Recorded::read(&path) else { continue };
        let submission = recorded.messages.last().unwrap()["content"].as_str().unwrap().to_owned();
        let state = recorded.play(|number, _| {
            let message = recorded.messages.get(number).filter(|message| message["role"] != "exit");
            let Some(message) = message else {
                // The result of the command that submitted is not in the record: the submission is.
                let output = format!("{SENTINEL}\n{submission}");
                return Some((Observation { output, ..Observation::default() }, 0.0));
            };
            let extra = &message["extra"];
            let text = |key: &str| extra[key].as_str().map(str::to_owned);
            let exception = text("exception_type").zip(text("exception"));
            Some((
                Observation {
                    output: text("raw_output").unwrap(),
                    returncode: extra["returncode"].as_i64().unwrap(),
                    exception: exception.map(|(class, text)| Exception { class, text }),
                    ..Observation::default()
                },
                extra["timestamp"].as_f64().unwrap(),
            ))
        });
        let ours: Vec<Value> = state.log().iter().map(comparable).collect();
        for (number, (ours, theirs)) in ours.iter().zip(&recorded.messages).enumerate() {
            assert_eq!(ours, theirs, "{} message {number}", path.display());
            compared += 1;
        }
        assert_eq!(ours.len(), recorded.messages.len(), "{}", path.display());
        whole += 1;
    }
    report("2.4.6", whole, compared, 0);
    assert!(std::env::var("MEMTRIAL_DATA").is_err() || whole >= 50);
}

#[test]
fn runs_of_1_15_are_regenerated_as_far_as_their_records_go() {
    let (mut compared, mut runs_seen, mut opaque) = (0, 0, 0);
    for path in runs("swebench-verified_gemini3pro_mini-1.15") {
        let Some(recorded) = Recorded::read(&path) else { continue };
        assert_eq!(recorded.setup.config.dialect, Dialect::V1);
        // 1.x keeps the answer that it could not parse before the format error; 1.1 does not. So: turn by turn.
        for (number, message) in recorded.messages.iter().enumerate().skip(2) {
            if message["role"] != "assistant" {
                continue;
            }
            let Some(next) = recorded.messages.get(number + 1) else { continue };
            let reply = Reply {
                message: json!({"role": "assistant", "content": message["content"]}),
                finish_reason: None,
                response: Value::Null,
                cost: Cost::ZERO,
            };
            let mut state = State::new(recorded.setup.clone());
            state.step(Event::Started { at: Moment::default() }, &Full::default()).unwrap();
            let at = Moment::default();
            let effects =
                state.step(Event::Replied { reply: Box::new(reply), at }, &Full::default()).unwrap();
            let content = next["content"].as_str().unwrap_or_default();
            let ran = effects.iter().any(|effect| matches!(effect, Effect::Run { .. }));
            let Some((returncode, output)) = recorded_result(content) else {
                // A format error is ours as well; cut output, time-outs and submissions cannot be taken back.
                if !ran {
                    let told = state.log().last().map(|message| &message["content"]);
                    assert_eq!(told, Some(&next["content"]), "{} message {number}", path.display());
                    compared += 1;
                } else {
                    opaque += 1;
                }
                continue;
            };
            assert!(ran, "{} message {number}: {effects:?}", path.display());
            let observation = Observation { output, returncode, ..Observation::default() };
            state.step(Event::Ran { observation, at }, &Full::default()).unwrap();
            assert_eq!(state.log()[3]["content"], content, "{} message {number}", path.display());
            compared += 1;
        }
        let mut state = State::new(recorded.setup.clone());
        state.step(Event::Started { at: Moment::default() }, &Full::default()).unwrap();
        for (ours, theirs) in state.log().iter().zip(&recorded.messages[..2]) {
            assert_eq!(ours["content"], theirs["content"], "{}", path.display());
        }
        compared += 2;
        runs_seen += 1;
    }
    report("1.15", runs_seen, compared, opaque);
    assert!(std::env::var("MEMTRIAL_DATA").is_err() || runs_seen >= 400);
}

/// Return code and output of an observation that shows them whole.
fn recorded_result(content: &str) -> Option<(i64, String)> {
    let (code, rest) = content.strip_prefix("<returncode>")?.split_once("</returncode>\n<output>\n")?;
    Some((code.parse().ok()?, rest.strip_suffix("</output>")?.to_owned()))
}

#[expect(clippy::print_stderr, reason = "the figures of an extended test")]
fn report(version: &str, runs: usize, messages: usize, opaque: usize) {
    let facts = Map::from_iter([
        ("runs".to_owned(), json!(runs)),
        ("messages_equal".to_owned(), json!(messages)),
        ("not_comparable".to_owned(), json!(opaque)),
    ]);
    eprintln!("mini-swe-agent {version}: {}", Value::Object(facts));
}
