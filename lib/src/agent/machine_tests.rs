use super::super::Layer;
use super::super::asking::NOTHING_FOUND;
use super::super::fakes::{calling, reply};
use super::super::trajectory_value;
use super::*;
use crate::context::Full;
use crate::llm::Api;
use crate::task::InstanceId;
use proptest::prelude::*;
use serde_json::{Map, json};

const YAML: &str = "
agent: {system_template: 'You fix.', instance_template: 'Fix: {{task}} ({{system}}, {{n_model_calls}})'}
model: {format_error_template: '{{error}} [{{finish_reason}}]'}
";

fn state(more: &str, memory: Option<&str>) -> State {
    let layers = [Layer::from_yaml("a", YAML).unwrap(), Layer::from_yaml("b", more).unwrap()];
    let config = Config::from_layers(&layers).unwrap().config;
    State::new(Setup {
        config,
        task: "it".into(),
        memory: memory.map(str::to_owned),
        uname: Uname::default(),
        asking: Asking::default(),
    })
}

fn at(seconds: f64) -> Moment {
    Moment { unix: 1_000.0 + seconds, elapsed: seconds }
}

fn replied(message: Value) -> Event {
    Event::Replied { reply: Box::new(reply(message, "stop", Some(0.25))), at: at(1.0) }
}

fn ran(output: &str, returncode: i64) -> Event {
    let observation = Observation { output: output.into(), returncode, ..Observation::default() };
    Event::Ran { observation, at: at(2.0) }
}

/// Feeds events and returns the effects of the last.
fn play(state: &mut State, events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
    let mut effects = state.step(Event::Started { at: at(0.0) }, &Full::default()).unwrap();
    for event in events {
        effects = state.step(event, &Full::default()).unwrap();
    }
    effects
}

fn ended(state: &State) -> (&str, &str) {
    state.finished().expect("the run has not ended")
}

fn contents(state: &State) -> Vec<String> {
    let of = |message: &Value| {
        let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("role"), text("content"))
    };
    state.log().iter().map(of).collect()
}

#[test]
fn a_turn_with_two_calls_runs_them_in_order_and_answers_together() {
    let mut state = state("", None);
    let first = play(&mut state, [replied(calling(&["a", "b"]))]);
    assert!(matches!(&first[1], Effect::Run { command, .. } if command == "a"), "{first:?}");
    let second = state.step(ran("A", 0), &Full::default()).unwrap();
    assert!(matches!(&second[..], [Effect::Run { command, .. }] if command == "b"), "{second:?}");
    let closed = state.step(ran("B\n", 2), &Full::default()).unwrap();
    assert!(matches!(&closed[..], [Effect::Append(_), Effect::Append(_), Effect::CallModel(_)]));
    insta::assert_snapshot!(contents(&state).join("\n"), @r"
    system: You fix.
    user: Fix: it (Linux, 0)
    assistant: Next.
    tool: <returncode>0</returncode>
    <output>
    A</output>
    tool: <returncode>2</returncode>
    <output>
    B
    </output>
    ");
    assert_eq!(state.log()[3]["tool_call_id"], "call_0");
    assert_eq!(
        state.log()[2]["extra"]["actions"],
        json!([{"command": "a", "tool_call_id": "call_0"}, {"command": "b", "tool_call_id": "call_1"}])
    );
}

#[test]
fn a_submission_in_the_middle_of_a_turn_loses_its_earlier_observations() {
    let mut state = state("", None);
    let done = format!(" {SENTINEL}\ndiff\r\nx");
    let last = play(&mut state, [replied(calling(&["a", "b", "c"])), ran("A", 0), ran(&done, 0)]);
    assert!(matches!(&last[..], [Effect::Append(_), Effect::Finish { .. }]));
    assert_eq!(ended(&state), (exit::SUBMITTED, "diff\r\nx"));
    assert_eq!(contents(&state)[3..], ["exit: diff\r\nx"]);
    assert_eq!(state.log()[3]["extra"], json!({"exit_status": "Submitted", "submission": "diff\r\nx"}));
}

#[test]
fn a_failed_sentinel_is_an_ordinary_observation() {
    let mut state = state("", None);
    let last = play(&mut state, [replied(calling(&["a"])), ran(&format!("{SENTINEL}\n"), 1)]);
    assert!(matches!(&last[..], [Effect::Append(_), Effect::CallModel(_)]));
}

#[test]
fn a_submission_that_was_cut_is_an_observation_that_says_so() {
    let mut state = state("", None);
    let output = format!("{SENTINEL}\ndiff\n[900 bytes elided]\nend\n");
    let cut = Observation { output: output.clone(), elided: 900, ..Observation::default() };
    let last = play(&mut state, [replied(calling(&["a"])), Event::Ran { observation: cut, at: at(2.0) }]);
    assert!(matches!(&last[..], [Effect::Append(_), Effect::CallModel(_)]), "{last:?}");
    insta::assert_snapshot!(contents(&state)[3], @r"
    tool: <returncode>0</returncode>
    <output>
    Nothing was submitted: the output is too long, 900 bytes of it were not kept. Leave generated and binary files out of the patch and submit again.
    COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT
    diff
    [900 bytes elided]
    end
    </output>
    ");
    for event in [replied(calling(&["b"])), ran(&format!("{SENTINEL}\ndiff\n"), 0)] {
        state.step(event, &Full::default()).unwrap();
    }
    assert_eq!(ended(&state), (exit::SUBMITTED, "diff\n"));
}

#[test]
fn one_malformed_call_spoils_the_turn_and_the_reply_is_kept_aside() {
    let mut state = state("", None);
    let mut message = calling(&["a", "b"]);
    message["tool_calls"][1]["function"]["arguments"] = json!("{'command': 'b'}");
    let last = play(&mut state, [replied(message.clone())]);
    assert!(matches!(&last[..], [Effect::Append(_), Effect::CallModel(_)]));
    let error = &state.log()[2];
    assert_eq!(
        error["content"],
        "Error parsing tool call arguments: Expecting property name enclosed in double quotes: line 1 column 2 \
         (char 1).Missing 'command' argument in bash tool call. [stop]"
    );
    assert_eq!(error["extra"]["interrupt_type"], "FormatError");
    assert_eq!(error["extra"]["response"]["choices"][0]["message"], message);
    assert_eq!((state.usd(), state.calls(), state.cost().calls), (0.25, 2, 1));
}

#[test]
fn format_errors_in_a_row_end_the_run_and_a_clean_turn_resets_them() {
    let bad = || replied(json!({"role": "assistant", "content": "hm"}));
    let mut run = state("", None);
    play(&mut run, [bad(), bad(), replied(calling(&["a"])), ran("", 0), bad(), bad()]);
    assert_eq!(run.finished(), None);
    run.step(bad(), &Full::default()).unwrap();
    assert_eq!(ended(&run), (exit::REPEATED_FORMAT_ERROR, ""));
    assert_eq!(contents(&run).last().unwrap(), "exit: RepeatedFormatError");
    let mut patient = state("agent: {max_consecutive_format_errors: 0}", None);
    play(&mut patient, (0..10).map(|_| bad()));
    assert_eq!(patient.finished(), None);
}

#[test]
fn limits_are_checked_before_each_call() {
    let turn = || [replied(calling(&["a"])), ran("", 0)];
    let end = |more: &str, turns: usize| {
        let mut state = state(more, None);
        play(&mut state, (0..turns).flat_map(|_| turn()));
        (state.finished().map(|(status, _)| status.to_owned()), state.calls())
    };
    let limits = Some(exit::LIMITS_EXCEEDED.to_owned());
    assert_eq!(end("agent: {step_limit: 2}", 1), (None, 2));
    assert_eq!(end("agent: {step_limit: 2}", 2), (limits.clone(), 2));
    // 0.25 a call: the limit is reached, not passed.
    assert_eq!(end("agent: {cost_limit: 0.5}", 1).0, None);
    assert_eq!(end("agent: {cost_limit: 0.5}", 2), (limits.clone(), 2));
    assert_eq!(end("agent: {cost_limit: 0}", 20).0, None);
    assert_eq!(end("agent: {wall_time_limit_seconds: 2}", 1), (Some(exit::TIME_EXCEEDED.into()), 1));
    assert_eq!(end("agent: {wall_time_limit_seconds: 3}", 1).0, None);

    let mut tokens = state("", None);
    tokens.setup.config.limits.tokens = 220;
    play(&mut tokens, turn().into_iter().chain(turn()));
    assert_eq!((ended(&tokens).0, tokens.calls()), (exit::LIMITS_EXCEEDED, 2));
}

#[test]
fn an_unknown_price_is_free_and_known_to_be_unknown() {
    let mut state = state("agent: {cost_limit: 0.1}", None);
    let event = Event::Replied { reply: Box::new(reply(calling(&["a"]), "stop", None)), at: at(1.0) };
    play(&mut state, [event, ran("", 0)]);
    assert_eq!((state.finished(), state.usd(), state.cost().list_usd), (None, 0.0, None));
    assert_eq!(state.log()[2]["extra"]["memtrial_cost"]["list_usd"], Value::Null);
}

#[test]
fn the_context_limit_ends_the_run_and_no_call_is_counted() {
    let mut state = state("", None);
    let policy = Full { context_limit: Some(10) };
    let effects = state.step(Event::Started { at: at(0.0) }, &policy).unwrap();
    assert!(matches!(effects.last(), Some(Effect::Finish { .. })));
    assert_eq!((ended(&state).0, state.calls()), (exit::CONTEXT_WINDOW_EXCEEDED, 0));
    assert!(contents(&state)[2].contains("the context limit of 10 tokens is exceeded"));
}

#[test]
fn failures_end_the_run_with_their_class() {
    let mut state = state("", None);
    let exception = Exception { class: "AuthenticationError".into(), text: "no key".into() };
    play(&mut state, [Event::Failed { exception }]);
    assert_eq!(ended(&state), ("AuthenticationError", ""));
    assert_eq!(
        state.log()[2]["extra"],
        json!({"exit_status": "AuthenticationError", "submission": "", "exception_str": "no key",
               "traceback": "AuthenticationError: no key"})
    );
    let error = state.step(ran("", 0), &Full::default()).unwrap_err().to_string();
    assert_eq!(error, "the agent cannot take the event `ran` now: it is finished");
}

#[test]
fn a_command_that_ran_out_of_time_is_told_so() {
    let mut state = state("", None);
    let text = "Command 'sleep 9' timed out after 3 seconds".to_owned();
    let observation = Observation {
        output: "part".into(),
        returncode: -1,
        exception: Some(Exception { class: "TimeoutExpired".into(), text: text.clone() }),
        out_of_memory: true,
        ..Observation::default()
    };
    play(&mut state, [replied(calling(&["sleep 9"])), Event::Ran { observation, at: at(4.5) }]);
    let message = &state.log()[3];
    assert_eq!(
        message["content"],
        format!(
            "<exception>An error occurred while executing the command: {text}</exception>\n\
             <returncode>-1</returncode>\n<output>\npart</output>"
        )
    );
    assert_eq!(
        message["extra"],
        json!({"raw_output": "part", "returncode": -1, "timestamp": 1004.5,
               "exception_info": format!("An error occurred while executing the command: {text}"),
               "exception_type": "TimeoutExpired", "exception": text, "memtrial_out_of_memory": true})
    );
}

#[test]
fn a_command_that_is_no_text_is_refused_without_running() {
    let mut state = state("", None);
    let mut message = calling(&["a", "b"]);
    message["tool_calls"][0]["function"]["arguments"] = json!("{\"command\": 5}");
    let effects = play(&mut state, [replied(message)]);
    assert!(matches!(&effects[1], Effect::Run { command, .. } if command == "b"), "{effects:?}");
    state.step(ran("B", 0), &Full::default()).unwrap();
    assert_eq!(state.log()[3]["extra"]["exception_type"], "TypeError");
    assert_eq!(state.log()[4]["extra"]["raw_output"], "B");
}

#[test]
fn text_mode_answers_as_the_user() {
    let mut state = state("model: {model_class: litellm_textbased}", None);
    let say = |text: &str| replied(json!({"role": "assistant", "content": text}));
    play(&mut state, [say("```mswea_bash_command\nls\n```"), ran("a\n", 0), say("nothing")]);
    assert_eq!(state.log()[3]["role"], "user");
    assert_eq!(state.log()[3].get("tool_call_id"), None);
    assert_eq!(state.log()[4]["content"], "Expected exactly 1 action, found 0. [stop]");
    assert_eq!(state.log()[4]["extra"]["n_actions"], 0);
    assert_eq!(state.log()[4]["extra"]["model_response"], "nothing");
    assert!(state.tools().is_empty());
}

#[test]
fn old_configurations_see_all_variables() {
    let old = "
agent:
  action_observation_template: '{{output.action}} -> {{output.output}} after {{n_model_calls}}'
  format_error_template: '{{actions|length}} in {{task}}'
  timeout_template: '{{action.action}} was slow: {{output}}'
";
    let mut state = state(old, None);
    let say = |text: &str| replied(json!({"role": "assistant", "content": text}));
    let exception = Some(Exception { class: "TimeoutExpired".into(), text: String::new() });
    let slow = Observation { output: "x".into(), returncode: -1, exception, ..Observation::default() };
    play(
        &mut state,
        [
            say("```bash\nls\n```"),
            ran("a", 0),
            say("```bash\nfind\n```"),
            Event::Ran { observation: slow, at: at(2.0) },
            say("hm"),
            say("```bash\nend\n```"),
            ran("MINI_SWE_AGENT_FINAL_OUTPUT\nok", 0),
        ],
    );
    let contents = contents(&state);
    assert_eq!(contents[3], "user: ls -> a after 1");
    assert_eq!(contents[5], "user: find was slow: x");
    assert_eq!(contents[6..8], ["assistant: hm", "user: 0 in it"]);
    assert_eq!(contents[9..], ["user: ok"]);
    assert_eq!(ended(&state), ("Submitted", "ok"));
    let last = state.log().last().unwrap();
    assert_eq!(*last, json!({"role": "user", "content": "ok", "timestamp": 1_002.0}));
}

#[test]
fn the_older_version_submits_whatever_the_exit_code_and_has_no_message_for_a_failure() {
    let old = "agent: {action_observation_template: '{{output.output}}', format_error_template: 'No.'}";
    let say = |text: &str| replied(json!({"role": "assistant", "content": text}));
    let mut submitted = state(old, None);
    play(&mut submitted, [say("```bash\nend\n```"), ran(&format!("{SENTINEL}\nok"), 1)]);
    assert_eq!(ended(&submitted), ("Submitted", "ok"));
    let mut failed = state(old, None);
    let exception = Exception { class: "AuthenticationError".into(), text: "no key".into() };
    play(&mut failed, [Event::Failed { exception }]);
    assert_eq!((failed.log().len(), failed.calls(), ended(&failed)), (2, 0, ("AuthenticationError", "")));
    let info = trajectory_value(&failed, &InstanceId::parse("a__b-1").unwrap(), &Map::new())["info"].take();
    assert_eq!(
        (&info["submission"], &info["exit_status"]),
        (&json!("no key"), &json!("AuthenticationError"))
    );
    let mut limited = state(&format!("{old}\nmodel: {{}}"), None);
    limited.setup.config.limits.steps = 1;
    play(&mut limited, [say("hm")]);
    assert_eq!(contents(&limited)[2..], ["assistant: hm", "user: No.", "user: "]);
}

#[test]
fn a_turn_through_the_responses_api_is_the_response_itself() {
    let mut state = state("model: {model_class: litellm_response}", None);
    let call = json!({"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{\"command\": \"ls\"}"});
    let response = |items: Value| json!({"object": "response", "status": "completed", "output": items});
    play(&mut state, [replied(response(json!([call]))), ran("a", 0), replied(response(json!([])))]);
    assert_eq!(state.tools(), [parse::bash_tool(Api::Responses)]);
    let log = state.log();
    assert_eq!((&log[2]["object"], log[2].get("role")), (&json!("response"), None));
    assert_eq!(log[2]["extra"]["actions"], json!([{"command": "ls", "tool_call_id": "c"}]));
    let output = "<returncode>0</returncode>\n<output>\na</output>";
    assert_eq!((&log[3]["type"], &log[3]["call_id"]), (&json!("function_call_output"), &json!("c")));
    assert_eq!(log[3]["output"], output);
    assert_eq!(
        (&log[4]["type"], &log[4]["extra"]["interrupt_type"]),
        (&json!("message"), &json!("FormatError"))
    );
    let view = Full::default().view(log, &[]).unwrap();
    assert_eq!(
        view.messages[2..4],
        [call, json!({"type": "function_call_output", "call_id": "c", "output": output})]
    );
}

#[test]
fn a_command_with_a_null_byte_is_refused_and_carriage_returns_are_newlines_to_the_model() {
    let mut state = state("", None);
    play(&mut state, [replied(calling(&["a\0b", "c"])), ran("x\r\ny\rz", 0)]);
    assert_eq!(state.log()[3]["extra"]["exception_type"], "ValueError");
    assert_eq!(state.log()[4]["extra"]["raw_output"], "x\ny\nz");
    assert!(contents(&state)[4].ends_with("x\ny\nz</output>"));
}

#[test]
fn a_failing_template_is_an_error_and_its_call_is_counted() {
    let mut state = state("model: {observation_template: '{{nothing}}'}", None);
    play(&mut state, [replied(calling(&["a"]))]);
    let error = state.step(ran("", 0), &Full::default()).unwrap_err();
    assert!(matches!(&error, StepError::Template(error) if error.class == "UndefinedError"), "{error}");
    assert_eq!((state.log().len(), state.usd()), (3, 0.25));
}

#[test]
fn arms_differ_in_the_memory_block_alone() {
    let view = |memory| match play(&mut state("", memory), []).pop() {
        Some(Effect::CallModel(view)) => view.messages,
        other => panic!("{other:?}"),
    };
    let (off, empty, on) = (view(None), view(Some("")), view(Some("- remember")));
    assert_eq!(serde_json::to_string(&off).unwrap(), serde_json::to_string(&empty).unwrap());
    assert_eq!((off.len(), &off[0]), (on.len(), &on[0]));
    let (off, on) = (off[1]["content"].as_str().unwrap(), on[1]["content"].as_str().unwrap());
    assert_eq!(on.strip_prefix(off), Some(context::memory_section(Some("- remember")).as_str()));
}

#[test]
fn views_can_be_recomputed_from_the_log_alone() {
    let mut state = state("", Some("- remember"));
    let policy = Full { context_limit: Some(100_000) };
    let events = [
        Event::Started { at: at(0.0) },
        replied(calling(&["a", "b"])),
        ran("A", 0),
        ran("B", 1),
        replied(json!({"role": "assistant", "content": "hm"})),
        replied(calling(&["c"])),
        ran(SENTINEL, 0),
    ];
    let mut seen = Vec::new();
    for event in events {
        for effect in state.step(event, &policy).unwrap() {
            if let Effect::CallModel(view) = effect {
                seen.push(view);
            }
        }
    }
    let text = serde_json::to_string(state.log()).unwrap();
    let log: Vec<Value> = serde_json::from_str(&text).unwrap();
    let recomputed: Vec<View> = context::asked_at(&log)
        .into_iter()
        .map(|end| policy.view(&log[..end], &state.tools()).unwrap())
        .collect();
    assert_eq!(recomputed, seen);
    assert_eq!(seen.len(), 3);
}

fn any_reply() -> impl Strategy<Value = Event> {
    let commands = proptest::collection::vec("[a-z ]{0,6}", 0..4);
    (commands, any::<bool>(), "\\PC{0,20}", 0.0..9.0f64).prop_map(|(commands, spoil, content, seconds)| {
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let mut message = calling(&commands);
        message["content"] = json!(content);
        if spoil && !commands.is_empty() {
            message["tool_calls"][0]["function"]["arguments"] = json!(content);
        }
        Event::Replied { reply: Box::new(reply(message, "stop", Some(seconds / 100.0))), at: at(seconds) }
    })
}

fn any_observation() -> impl Strategy<Value = Event> {
    (prop_oneof![8 => "\\PC{0,30}", 1 => Just(format!("{SENTINEL}\npatch"))], 0..2i64, 0.0..9.0f64).prop_map(
        |(output, returncode, seconds)| {
            let observation = Observation { output, returncode, ..Observation::default() };
            Event::Ran { observation, at: at(seconds) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Written down and read back before every event, a run goes on as if nothing had happened; and every call in
    /// its log that ran has exactly one answer, in order.
    #[test]
    fn a_state_survives_being_written_down(
        replies in proptest::collection::vec(any_reply(), 1..8),
        observations in proptest::collection::vec(any_observation(), 24),
    ) {
        let policy = Full { context_limit: Some(2_000) };
        let mut plain = state("agent: {step_limit: 6}", Some("- remember"));
        let mut written = plain.clone();
        let (mut replies, mut observations) = (replies.into_iter(), observations.into_iter());
        let mut event = Event::Started { at: at(0.0) };
        loop {
            let text = serde_json::to_string(&written).unwrap();
            written = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&written, &plain);
            let effects = plain.step(event.clone(), &policy).unwrap();
            prop_assert_eq!(&written.step(event, &policy).unwrap(), &effects);
            let next = match effects.last() {
                Some(Effect::CallModel(_)) => replies.next(),
                Some(Effect::Run { .. }) => observations.next(),
                _ => None,
            };
            match next {
                Some(next) => event = next,
                None => break,
            }
        }
        let log = plain.log();
        for (index, message) in log.iter().enumerate() {
            let calls = message["extra"]["actions"].as_array().map_or(0, Vec::len);
            let answers = log[index + 1..].iter().take_while(|next| next["role"] == "tool").count();
            if message["role"] == "assistant" && index + 1 < log.len() {
                prop_assert!(answers == calls || (answers == 0 && log[index + 1]["role"] == "exit"));
            }
        }
    }
}

fn asking(more: &str, asking: Asking) -> State {
    let mut state = state(more, None);
    state.setup.asking = asking;
    state
}

const TOOL: Asking = Asking { tool_calls: Some(2), phases: false };
const PHASES: Asking = Asking { tool_calls: None, phases: true };

fn recalled(text: Option<&str>) -> Event {
    Event::Recalled { text: text.map(str::to_owned), at: at(3.0) }
}

/// A call of the memory tool beside commands.
fn looking_up(query: &str, commands: &[&str]) -> Value {
    let mut message = calling(commands);
    let call = json!({"id": "m", "type": "function",
        "function": {"name": "memory", "arguments": json!({"query": query}).to_string()}});
    message["tool_calls"].as_array_mut().unwrap().insert(0, call);
    message
}

fn question(effects: &[Effect]) -> Option<&Question> {
    effects.iter().find_map(|effect| match effect {
        Effect::Recall(question) => Some(question),
        _ => None,
    })
}

#[test]
fn the_memory_tool_is_answered_in_its_turn_and_no_more_often_than_allowed() {
    let mut state = asking("", TOOL);
    assert_eq!(state.tools().len(), 2);
    let first = play(&mut state, [replied(looking_up("flaky", &["a"]))]);
    assert_eq!(question(&first), Some(&Question::Tool("flaky".into())));
    let next = state.step(recalled(Some("earlier work")), &Full::default()).unwrap();
    assert!(matches!(&next[..], [Effect::Run { command, .. }] if command == "a"), "{next:?}");
    state.step(ran("A", 0), &Full::default()).unwrap();
    assert_eq!(state.log()[3]["content"], "earlier work");
    assert_eq!((&state.log()[3]["tool_call_id"], &state.log()[3]["role"]), (&json!("m"), &json!("tool")));
    assert_eq!(state.log()[3]["extra"]["memtrial_recall"], "tool");
    assert_eq!(state.log()[4]["tool_call_id"], "call_0");
    for (answer, content) in [(true, NOTHING_FOUND), (false, "Memory was not asked: all 2 calls")] {
        let effects = state.step(replied(looking_up("other", &[])), &Full::default()).unwrap();
        assert_eq!(question(&effects).is_some(), answer);
        if answer {
            state.step(recalled(None), &Full::default()).unwrap();
        }
        let last = state.log().last().unwrap()["content"].as_str().unwrap();
        assert!(last.starts_with(content), "{last}");
    }
    assert_eq!(state.calls(), 4);
}

#[test]
fn phases_are_reached_once_each_and_speak_in_rounds_of_their_own() {
    let mut state = asking("", PHASES);
    assert_eq!(state.tools().len(), 1);
    let mut reached = Vec::new();
    let mut turn = |state: &mut State, commands: &[&str]| {
        let mut effects = state.step(replied(calling(commands)), &Full::default()).unwrap();
        loop {
            effects = if let Some(found) = question(&effects) {
                reached.push(found.name());
                state.step(recalled(Some("note")), &Full::default()).unwrap()
            } else if effects.iter().any(|effect| matches!(effect, Effect::Run { .. })) {
                state.step(ran("out", 0), &Full::default()).unwrap()
            } else {
                break;
            };
        }
    };
    state.step(Event::Started { at: at(0.0) }, &Full::default()).unwrap();
    // tests before any edit say nothing
    turn(&mut state, &["pytest -x"]);
    turn(&mut state, &["sed -i s/a/b/ w.py", "ls"]);
    turn(&mut state, &["sed -i s/b/c/ w.py && pytest -x"]);
    turn(&mut state, &[&format!("echo {SENTINEL} && cat patch.txt"), "ls"]);
    turn(&mut state, &[&format!("echo {SENTINEL} && cat patch.txt")]);
    assert_eq!(reached, ["first-edit", "first-test-after-edit", "before-submission"]);
    insta::assert_snapshot!(contents(&state)[4..].join("\n"), @r"
    assistant: Next.
    tool: <returncode>0</returncode>
    <output>
    out</output>
    tool: <returncode>0</returncode>
    <output>
    out</output>
    user: note
    assistant: Next.
    tool: <returncode>0</returncode>
    <output>
    out</output>
    user: note
    assistant: Next.
    tool: <returncode>-1</returncode>
    <output>
    This command was not run yet: read the note below first, then go on as you see fit.</output>
    tool: <returncode>-1</returncode>
    <output>
    This command was not run yet: read the note below first, then go on as you see fit.</output>
    user: note
    assistant: Next.
    tool: <returncode>0</returncode>
    <output>
    out</output>
    ");
}

#[test]
fn a_phase_at_which_memory_is_silent_leaves_no_trace() {
    let end = format!("echo {SENTINEL}");
    let events =
        [replied(calling(&["echo 1 > w.py"])), ran("", 0), recalled(None), replied(calling(&[&end]))];
    let mut silent = asking("", PHASES);
    let last = play(&mut silent, events.clone());
    assert_eq!(question(&last).map(Question::name), Some("before-submission"));
    let last = silent.step(recalled(None), &Full::default()).unwrap();
    assert!(matches!(&last[..], [Effect::Run { command, .. }] if *command == end), "{last:?}");
    silent.step(ran(&format!("{SENTINEL}\nd"), 0), &Full::default()).unwrap();
    assert_eq!(ended(&silent), (exit::SUBMITTED, "d"));

    let mut never = state("", None);
    let asked = |event: &Event| matches!(event, Event::Recalled { .. });
    play(&mut never, events.into_iter().filter(|event| !asked(event)));
    never.step(ran(&format!("{SENTINEL}\nd"), 0), &Full::default()).unwrap();
    assert_eq!(contents(&silent), contents(&never));
}

#[test]
fn memory_answers_only_where_it_was_asked_and_a_state_survives_being_written_down() {
    let mut state = asking("", TOOL);
    play(&mut state, []);
    let error = state.step(recalled(None), &Full::default()).unwrap_err().to_string();
    assert!(error.contains("`recalled`") && error.contains("waiting for the model"), "{error}");
    state.step(replied(looking_up("q", &["a"])), &Full::default()).unwrap();
    let mut copy: State = serde_json::from_value(serde_json::to_value(&state).unwrap()).unwrap();
    assert!(state.step(ran("", 0), &Full::default()).is_err());
    for state in [&mut state, &mut copy] {
        state.step(recalled(Some("r")), &Full::default()).unwrap();
        state.step(ran("A", 0), &Full::default()).unwrap();
    }
    assert_eq!(state.log(), copy.log());
    assert!(TOOL.check(&state.setup().config).is_ok());
}
