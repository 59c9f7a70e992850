"""The scenarios that both agents play: what the model answers, and the configuration."""

import json

DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
# A price of 2**-20 dollars a prompt token: this many cost a quarter of a dollar, exactly.
QUARTER = {"prompt_tokens": 262144, "completion_tokens": 0}

BASE = {
    "agent": {"system_template": "S {{system}}", "instance_template": "Do {{task}} in {{machine}}.", "cost_limit": 0},
    "environment": {"timeout": 6, "env": {"GREETING": "h\u00e9"}},
    "model": {"format_error_template": "{{error}}|{{finish_reason}}|{{actions|length}}"},
}
BASE_V1 = {
    "agent": {
        "system_template": "S {{system}}", "instance_template": "Do {{task}} in {{machine}}.", "cost_limit": 0,
        "action_observation_template": "{{output.returncode}}|{{n_model_calls}}|{{model_cost}}\n{{output.output}}",
        "format_error_template": "{{actions|length}} {{actions}} of {{task}}",
        "timeout_template": "{{action['action']}} of {{action.content}}: {{output}}",
    },
    "environment": {"timeout": 6, "env": {"GREETING": "h\u00e9"}},
    "model": {},
}


def say(content, finish_reason="stop", **more):
    return {"message": {"role": "assistant", "content": content}, "finish_reason": finish_reason, **more}


def raw_call(*calls, content="Next.", finish_reason="tool_calls", **more):
    """calls: (name, arguments as text)"""
    tool_calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, "tool_calls": tool_calls}
    return {"message": message, "finish_reason": finish_reason, **more}


def call(*commands, **more):
    return raw_call(*[("bash", json.dumps({"command": command})) for command in commands], **more)


def block(*commands, fence="mswea_bash_command", **more):
    fenced = "\n".join(f"```{fence}\n{command}\n```" for command in commands)
    return say(f"Next.\n{fenced}", **more)


def bash(*commands, **more):
    return block(*commands, fence="bash", **more)


def items(*output, **more):
    return {"output": list(output), **more}


def text_item(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": [part]}


def call_items(*calls, text="Next.", **more):
    """calls: (name, arguments as text)"""
    made = [
        {"type": "function_call", "id": f"fc_{i}", "call_id": f"call_{i}", "name": name, "arguments": arguments,
         "status": "completed"}
        for i, (name, arguments) in enumerate(calls)
    ]
    return items(*([text_item(text)] if text else []), *made, **more)


def respond(*commands, **more):
    return call_items(*[("bash", json.dumps({"command": command})) for command in commands], **more)


def refusal(status, message, **more):
    return {"status": status, "error": {"message": message, "type": "invalid_request_error", "code": None, **more}}


TOO_LONG = refusal(
    400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    code="context_length_exceeded",
)
SUBMIT = call(f"echo {DONE} && echo patch")
BAD_ARGUMENTS = (
    [("bash", "ls")], [("bash", '{"command": "ls')], [("bash", "{'command': 1}")], [("bash", '{"command": "a\nb"}')],
    [("bash", '{"command": "\\d"}')], [("bash", '{"cmd": "ls"}')], [("bash", "[]")], [("bash", "")],
    [("python", '{"command": "ls"}')], [("python", "{}")],
    [("bash", '{"command": "touch x"}'), ("sh", "nul")], [("bash", '{"command": "ls"} {"command": "pwd"}')],
)
CRLF = ("a submission is kept as the command wrote it (there every \\r\\n becomes \\n, which spoils patches of files "
        "with such lines)")
START = "a run whose first templates fail has no message but the one that says so (there an exit status is missing)"
SEPARATORS = ("0b", "0c", "1c", "1d", "1e", "c285", "e280a8", "e280a9", "1f")


def escaped(code):
    return "".join(f"\\x{code[i:i + 2]}" for i in range(0, len(code), 2))


def repeat(text, count):
    """A command that prints a text so often, without line breaks."""
    return f"yes '{text}' | head -n {count} | tr -d '\\n'"


def case(name, *replies, known=None, config=None, base=BASE, kind="tools", environment="local"):
    """kind: tools, text or responses. known: why the two differ."""
    return {
        "name": name, "config": [base, config or {}], "replies": list(replies), "known": known, "kind": kind,
        "environment": environment,
    }


def endings():
    """How runs end, with any kind of agent: (name, replies made of commands, configuration)."""
    yield "step limit", (["ls"], ["ls"], ["ls"]), {"agent": {"step_limit": 2}}
    yield "submission", (["ls"], [f"echo {DONE}; echo p; printf é"]), {}
    yield "empty submission", ([f"echo {DONE}"],), {}
    yield "sentinel after blanks", ([f"printf ' \\n\\t{DONE} \\n  x\\n\\n'"],), {}
    yield "sentinel on the second line", ([f"echo x; echo {DONE}"], [f"echo {DONE}"]), {}
    yield "sentinel with more on its line", ([f"echo {DONE} now"], [f"echo {DONE}"]), {}
    yield "failed sentinel", ([f"echo {DONE}; echo p; false"], [f"echo {DONE}"]), {}


def rules():
    """mini-swe-agent 2.x, tool calls."""
    yield case("plain", call("ls"), call("echo one > a; cat a"), SUBMIT)
    yield case("parallel calls", call("echo a", "echo b >&2", "false"), SUBMIT)
    yield case("submission in the middle of a turn", call("echo a", f"echo {DONE}; echo p", "echo c"))
    for name, commands, config in endings():
        yield case(name, *[call(*turn) for turn in commands], config=config)
    for code in SEPARATORS:
        yield case(f"sentinel before {code}", call(f"bash -c \"printf '{DONE}{escaped(code)}x'\""), SUBMIT)
    yield case("no call, then none again, then a call", say("hm"), say("hm"), call("ls"), say("hm"), SUBMIT)
    yield case("repeated format errors", say("a"), say(None), say(""), SUBMIT)
    yield case("format errors without limit", *[say("a")] * 5, SUBMIT,
               config={"agent": {"max_consecutive_format_errors": 0}})
    yield case("bad calls", *[raw_call(*calls) for calls in BAD_ARGUMENTS], SUBMIT,
               config={"agent": {"max_consecutive_format_errors": 0}})
    yield case("cost limit", *[call("ls", usage=QUARTER)] * 3, config={"agent": {"cost_limit": 0.5}})
    yield case("cost limit reached by a format error", say("hm", usage=QUARTER), config={"agent": {"cost_limit": 0.2}})
    yield case("wall-clock limit", call("sleep 1.2"), call("ls"), config={"agent": {"wall_time_limit_seconds": 1}})
    yield case("time-out", call("echo before; sleep 60", "echo after"), SUBMIT)
    yield case("unicode", call("echo $GREETING; printf '\\360\\237\\230\\200 \\377\\303 e\\314\\201'"), SUBMIT)
    yield case("binary output", call("head -c 700 /dev/zero; printf '\\001\\002\\033[0m\\200\\376'"), SUBMIT)
    yield case("no output, no newline", call("true", "printf x"), SUBMIT)
    yield case("several lines", call("cat <<'X'\na\n\n  b $HOME\nX\nfor i in 1 2; do\n  echo $i\ndone"), SUBMIT)
    yield case("exit codes", call("exit 3", "no-such-program-at-all", "(exit 255)"), SUBMIT)
    yield case("a syntax error of the shell", call("if then", "echo 'open"), SUBMIT)
    yield case("a command with a null byte", call("echo a\0b", "echo after"), SUBMIT)
    yield case("an empty command", call("", "   "), SUBMIT)
    yield case("nothing stays between commands", call("cd /; export A=1; B=2", "pwd | wc -l; echo $A$B"), SUBMIT)
    yield case("carriage returns", call("printf 'a\\r\\nb\\rc'", "printf 'x\\r'"), SUBMIT)
    yield case("truncation", call(*[repeat("é", n) for n in (9_999, 10_000, 10_001, 30_000)]), SUBMIT,
               config={"model": {"observation_template":
                   "{% if output.output|length < 10000 %}{{output.output}}{% else %}{{output.output[:5000]}}"
                   "[{{output.output|length - 10000}}]{{output.output[-5000:]}}{% endif %}"}})
    yield case("variables in templates", call("ls"), SUBMIT, config={"model": {"observation_template":
        "{{n_model_calls}} {{model_cost}} {{step_limit}} {{output_path}} {{env}} {{output | tojson}} "
        "{{output.output.strip().upper()}} {{ timeout is defined }} {{ [1, none, true, 'a'] }}"}})
    yield case("a template that fails at the start", call("ls"), config={"agent": {"instance_template": "{{nothing}}"}},
               known=START)
    yield case("a template that fails at an observation", call("ls"),
               config={"model": {"observation_template": "{{output.nothing}}"}})
    yield case("a template that fails at a format error", say("hm"),
               config={"model": {"format_error_template": "{{nothing}}"}},
               known="every call is counted (there not the one whose answer the template failed on)")
    yield case("reasoning is kept", call("ls") | {"message": call("ls")["message"] | {"reasoning_content": "hm"}}, SUBMIT)
    yield from failures(call, SUBMIT, BASE)
    yield case("docker: a shell ended by a signal", call("kill -9 $$"), SUBMIT, environment="docker")
    yield case("docker: a command that is no text", raw_call(("bash", '{"command": 5}')),
               raw_call(("bash", '{"command": ["ls"]}'), ("bash", '{"command": null}')), SUBMIT, environment="docker")
    yield case("docker: variables", call("echo $GREETING$A", "pwd"), SUBMIT, environment="docker",
               config={"environment": {"env": {"A": "a b"}}})
    yield case("docker: carriage returns", call("printf 'a\\r\\nb\\rc'"), SUBMIT, environment="docker")
    yield case("a patch with carriage returns", call(f"printf '{DONE}\\na\\r\\n'"), known=CRLF)


def failures(call, submit, base, kind="tools"):
    """What endpoints do wrong. Refusals that pass are given often enough for every client to give up."""
    fails = lambda name, *replies: case(name, *replies, base=base, kind=kind)
    yield fails("model: context window exceeded", call("ls"), TOO_LONG)
    yield fails("model: wrong key", call("ls"), refusal(401, "Incorrect API key provided", code="invalid_api_key"))
    yield case("model: no permission", refusal(403, "You are not allowed to sample from this model"), base=base,
               kind=kind, known="HTTP 403 is PermissionDeniedError (litellm calls it NotFoundError or APIError)")
    yield fails("model: not found", refusal(404, "The model does not exist", code="model_not_found"))
    yield fails("model: one rate limit", call("ls"), refusal(429, "Rate limit reached"), submit)
    yield fails("model: rate limit for good", call("ls"), *[refusal(429, "Rate limit reached")] * 20)
    yield fails("model: server error for good", *[refusal(500, "The server had an error")] * 20)


def text():
    """mini-swe-agent 2.x, commands in text."""
    made = lambda name, *replies, **more: case(name, *replies, kind="text", **more)
    yield made("text mode", block("ls"), say("none"), block("a", "b"), block("\n\n echo x \n\n"), block(f"echo {DONE}"))
    yield made("text mode, own pattern", say("<c>echo a\necho b</c>"), say("<c>a</c><c>b</c>", finish_reason="length"),
               say(f"<c>echo {DONE}; echo é</c>"), config={"model": {"action_regex": "<c>(.*?)</c>"}})
    yield made("text mode, time-out", block("echo before; sleep 60"), block(f"echo {DONE}"))


def responses():
    """mini-swe-agent 2.x, Responses API."""
    made = lambda name, *replies, **more: case(f"responses: {name}", *replies, kind="responses", **more)
    done = respond(f"echo {DONE} && echo patch")
    thought = {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": "hm"}]}
    yield made("plain", respond("ls"), respond("echo one > a; cat a"), done)
    yield made("parallel calls", respond("echo a", "false"), done)
    yield made("reasoning items", items(thought, *respond("ls")["output"]), done)
    yield made("calls alone", respond("ls", text=None), done)
    yield made("submission in the middle of a turn", respond("echo a", f"echo {DONE}; echo p", "echo c"))
    yield made("no call", items(text_item("hm")), done)
    yield made("an empty output", items(), done)
    yield made("cut at the limit of tokens", items(text_item("hm"), status="incomplete",
               incomplete_details={"reason": "max_output_tokens"}), done)
    yield made("repeated format errors", *[items(text_item("hm"))] * 3)
    yield made("bad calls", *[call_items(*calls) for calls in BAD_ARGUMENTS], done,
               config={"agent": {"max_consecutive_format_errors": 0}})
    yield made("step limit", respond("ls"), respond("ls"), config={"agent": {"step_limit": 1}})
    yield made("cost limit", *[respond("ls", usage=QUARTER)] * 3, config={"agent": {"cost_limit": 0.5}})
    yield made("time-out", respond("echo before; sleep 60", "echo after"), done)
    yield made("unicode", respond("echo $GREETING; printf '\\360\\237\\230\\200 \\377'"), done)
    yield made("context window exceeded", respond("ls"), TOO_LONG)
    yield made("wrong key", refusal(401, "Incorrect API key provided", code="invalid_api_key"))


def version_1():
    """mini-swe-agent 1.x."""
    made = lambda name, *replies, **more: case(name, *replies, kind="v1", base=BASE_V1, **more)
    done = bash(f"echo {DONE} && echo patch")
    yield made("plain", bash("ls"), bash("echo one > a; cat a"), done)
    for name, commands, config in endings():
        yield made(name, *[bash(*turn) for turn in commands], config=config)
    yield made("the older sentinel", bash("echo MINI_SWE_AGENT_FINAL_OUTPUT; echo p"))
    for code in SEPARATORS[:3]:
        yield made(f"sentinel before {code}", bash(f"bash -c \"printf '{DONE}{escaped(code)}x'\""), done)
    yield made("no command, several, another fence", say("hm"), bash("a", " b "), block("ls"), say(None), say(""), done)
    yield made("format errors without limit", *[say("hm")] * 6, done)
    yield made("blanks around a command", bash("\n\n echo x \n\n"), done)
    yield made("cost limit", *[bash("ls", usage=QUARTER)] * 3, config={"agent": {"cost_limit": 0.5}})
    yield made("time-out", bash("echo before é; exec sleep 60"), bash("printf 'a\\r\\n'; exec sleep 60"), done)
    yield made("unicode", bash("echo $GREETING; printf '\\360\\237\\230\\200 \\377\\303'"), done)
    yield made("binary output", bash("head -c 700 /dev/zero; printf '\\001\\033[0m\\200'"), done)
    yield made("several lines", bash("cat <<'X'\na\n\n  b $HOME\nX\nfor i in 1 2; do\n  echo $i\ndone"), done)
    yield made("exit codes", bash("exit 3"), bash("no-such-program-at-all"), done)
    yield made("nothing stays between commands", bash("cd /; export A=1"), bash("echo $A"), done)
    yield made("carriage returns", bash("printf 'a\\r\\nb\\rc'"), done)
    yield made("a command with a null byte", bash("echo a\0b"), done)
    yield made("the whole output in a template", bash("echo \"it's\"; false"), done,
               config={"agent": {"action_observation_template": "Observation: {{output}}"}})
    yield made("variables in templates", bash("ls"), done, config={"agent": {"action_observation_template":
        "{{n_model_calls}} {{model_cost}} {{step_limit}} {{env}} {{output | tojson}} {{task}} {{ nothing is defined }}"}})
    yield made("a template that fails at an observation", bash("ls"),
               config={"agent": {"action_observation_template": "{{output.nothing}}"}})
    yield made("a template that fails at a format error", say("hm"),
               config={"agent": {"format_error_template": "{{nothing}}"}})
    yield from failures(bash, done, BASE_V1, kind="v1")
    # Its docker environment knows no `uname`.
    plain = {"agent": {"system_template": "S", "instance_template": "Do {{task}}."}}
    yield made("docker: a shell ended by a signal", bash("kill -9 $$"), done, environment="docker", config=plain)
    yield made("docker: variables", bash("echo $GREETING; pwd"), done, environment="docker", config=plain)
    yield made("docker: carriage returns", bash("printf 'a\\r\\nb\\rc'"), done, environment="docker", config=plain)
    yield made("a template that fails at the start", config={"agent": {"instance_template": "{{nothing}}"}}, known=START)
    yield made("a patch with carriage returns", bash(f"printf '{DONE}\\na\\r\\n'"), known=CRLF)


def shipped(folder):
    """One scenario for each YAML file of a release: all of its templates, in many contexts."""
    for path in sorted(folder.rglob("*.yaml")):
        name = path.relative_to(folder).as_posix()
        files = [folder / "benchmarks/swebench.yaml", path] if "modal" in name else [path]
        v1 = "action_observation_template" in path.read_text()
        text = v1 or "textbased" in name or "backticks" in name or name == "default.yaml"
        do = bash if v1 else block if text else call
        slow = [] if v1 else [do("echo before; sleep 60")]
        contexts = [
            do("echo short"), do("printf 'é 😀 <&> no newline'"), do("false"), do("true"),
            do(repeat("é", 9_999)), do(repeat("x", 10_000)), do("yes 😀 | head -n 6000"),
            do("printf '%s' \"it's a \\\\ \" \"\\\"<b>\\\"\""), *slow,
            *[say("nothing", finish_reason=reason) for reason in ("stop", "length", "tool_calls")],
            *([do("a", "b")] if text else [raw_call(("bash", "{")), raw_call(("sh", "{}"), finish_reason="length")]),
            do(f"echo {DONE} && echo é"),
        ]
        more = {} if v1 else {"agent": {"max_consecutive_format_errors": 0}}
        kind = "v1" if v1 else "text" if text else "tools"
        layers = [str(file) for file in files] + [more | {"environment": {"timeout": 30 if v1 else 5, "cwd": None}}]
        # One file names a variable that nothing defines: no run of it starts, there or here.
        known = START if "roulette" in name else None
        yield {"name": name, "config": layers, "replies": contexts, "known": known, "kind": kind, "environment": "local"}
