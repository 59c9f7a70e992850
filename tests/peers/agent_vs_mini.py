"""Plays the same scripted model answers through mini-swe-agent and through memtrial and compares every message.

Usage: agent_vs_mini.py PLAYER    (the built example `agent_scenario`; run under a Python that has mini-swe-agent)

mini-swe-agent runs as it is: DefaultAgent, LitellmModel or LitellmTextbasedModel (only the HTTP call and the price
are replaced by the script), LocalEnvironment. Two kinds of scenario: hand-written ones for the rules, and one for each
YAML file that mini-swe-agent ships, which renders each of its templates in many contexts.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["MSWEA_SILENT_STARTUP"] = "1"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["MSWEA_GLOBAL_CONFIG_DIR"] = tempfile.mkdtemp()

import litellm  # noqa: E402
import minisweagent.config as mini_config  # noqa: E402
from minisweagent.agents.default import DefaultAgent  # noqa: E402
from minisweagent.environments.local import LocalEnvironment  # noqa: E402
from minisweagent.models.litellm_model import LitellmModel  # noqa: E402
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel  # noqa: E402
from minisweagent.utils.serialize import recursive_merge  # noqa: E402

DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
UNAME = {key: getattr(platform.uname(), key) for key in ("system", "node", "release", "version", "machine")}
BASE = {
    "agent": {"system_template": "S {{system}}", "instance_template": "Do {{task}} in {{machine}}.", "cost_limit": 0},
    "environment": {"timeout": 2, "env": {"GREETING": "h\u00e9"}},
    "model": {"model_name": "script", "format_error_template": "{{error}}|{{finish_reason}}|{{actions|length}}"},
}


def say(content, finish_reason="stop", cost=0.01):
    message = {"role": "assistant", "content": content}
    return {"message": message, "finish_reason": finish_reason, "cost": cost}


def raw_call(*calls, content="Next.", finish_reason="tool_calls", cost=0.01):
    """calls: (name, arguments as text)"""
    tool_calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, "tool_calls": tool_calls}
    return {"message": message, "finish_reason": finish_reason, "cost": cost}


def call(*commands, **more):
    return raw_call(*[("bash", json.dumps({"command": command})) for command in commands], **more)


def block(*commands, **more):
    fenced = "\n".join(f"```mswea_bash_command\n{command}\n```" for command in commands)
    return say(f"Next.\n{fenced}", **more)


SUBMIT = call(f"echo {DONE} && echo patch")
PRINT = "python3 -c 'import sys; sys.stdout.write({})'"


def scenario(name, *replies, text=False, known=None, config=None):
    layers = [BASE, {"model": {"model_class": "litellm_textbased"}}] if text else [BASE]
    return {
        "name": name,
        "config": [*layers, config or {}],
        "text": text,
        "replies": list(replies),
        "known": known,
    }


def rules():
    yield scenario("plain", call("ls"), call("echo one > a; cat a"), SUBMIT)
    yield scenario("parallel calls", call("echo a", "echo b >&2", "false"), SUBMIT)
    yield scenario("submission in the middle of a turn", call("echo a", f"echo {DONE}; echo p", "echo c"))
    yield scenario("empty submission", call(f"echo {DONE}"))
    yield scenario("failed sentinel", call(f"echo {DONE}; false"), SUBMIT)
    yield scenario("sentinel after blanks", call(f"printf ' \\n\\t{DONE} \\n  x\\n\\n'"))
    yield scenario("sentinel on the second line", call(f"echo x; echo {DONE}"), SUBMIT)
    yield scenario("sentinel with more on its line", call(f"echo {DONE} now"), SUBMIT)
    for code in ("0b", "0c", "1c", "1d", "1e", "c285", "e280a8", "e280a9", "1f"):
        escaped = "".join(f"\\x{code[i:i + 2]}" for i in range(0, len(code), 2))
        yield scenario(f"sentinel before {code}", call(f"bash -c \"printf '{DONE}{escaped}x'\""), SUBMIT)
    yield scenario("no call, then none again, then a call", say("hm"), say("hm"), call("ls"), say("hm"), SUBMIT)
    yield scenario("repeated format errors", say("a"), say(None), say(""), SUBMIT)
    yield scenario("bad calls", *[
        raw_call(*calls)
        for calls in (
            [("bash", "ls")],
            [("bash", '{"command": "ls')],
            [("bash", "{'command': 1}")],
            [("bash", '{"command": "a\nb"}')],
            [("bash", '{"command": "\\d"}')],
            [("bash", '{"cmd": "ls"}')],
            [("bash", "[]")],
            [("bash", "")],
            [("python", '{"command": "ls"}')],
            [("python", "{}")],
            [("bash", '{"command": "touch x"}'), ("sh", "nul")],
            [("bash", '{"command": "ls"} {"command": "pwd"}')],
        )
    ], SUBMIT, config={"agent": {"max_consecutive_format_errors": 0}})
    yield scenario("step limit", call("ls"), call("ls"), call("ls"), config={"agent": {"step_limit": 2}})
    yield scenario("cost limit", call("ls", cost=0.5), call("ls", cost=0.5), call("ls"), config={"agent": {"cost_limit": 1}})
    yield scenario("cost limit reached by a format error", say("hm", cost=2), config={"agent": {"cost_limit": 1}})
    yield scenario("wall-clock limit", call("sleep 1.2"), call("ls"), config={"agent": {"wall_time_limit_seconds": 1}})
    yield scenario("time-out", call("echo before; sleep 9", "echo after"), SUBMIT)
    yield scenario("unicode", call("echo $GREETING; printf '\\360\\237\\230\\200 \\377\\303 e\\314\\201'"), SUBMIT)
    yield scenario("no output, no newline", call("true", "printf x"), SUBMIT)
    yield scenario("exit codes", call("exit 3", "no-such-program-at-all", "(exit 255)"), SUBMIT)
    yield scenario("text mode", block("ls"), say("none"), block("a", "b"), block("\n\n echo x \n\n"), block(f"echo {DONE}"), text=True)
    yield scenario(
        "text mode, own pattern",
        say("<c>echo a\necho b</c>"), say("<c>a</c><c>b</c>", finish_reason="length"), say(f"<c>echo {DONE}; echo é</c>"),
        text=True, config={"model": {"action_regex": "<c>(.*?)</c>"}},
    )
    yield scenario(
        "variables in templates", call("ls"), SUBMIT,
        config={"model": {"observation_template":
            "{{n_model_calls}} {{model_cost}} {{step_limit}} {{output_path}} {{env}} {{output | tojson}} "
            "{{output.output.strip().upper()}} {{ timeout is defined }} {{ [1, none, true, 'a'] }}"}},
    )
    yield scenario("a shell ended by a signal", call("kill -9 $$"), SUBMIT,
        known="the shell's return code is 128 + signal (mini's docker environment: the same; its local one: -signal)")
    yield scenario("carriage returns", call("printf 'a\\r\\nb\\rc'"), SUBMIT,
        known="output is passed on unchanged (mini turns \\r\\n and \\r into \\n, which spoils CRLF patches)")
    yield scenario("a command that is a number", raw_call(("bash", '{"command": 5}')), SUBMIT,
        known="the local environment lets the shell complain; the wording of mini's docker environment is used")


def shipped():
    """One scenario for each YAML file of the package: all of its templates, in many contexts."""
    folder = mini_config.builtin_config_dir
    for path in sorted(folder.rglob("*.yaml")):
        name = path.relative_to(folder).as_posix()
        files = [folder / "benchmarks/swebench.yaml", path] if "modal" in name else [path]
        text = "textbased" in name or "backticks" in name or name == "default.yaml"
        do = block if text else call
        contexts = [
            do("echo short"), do("printf 'é 😀 <&> no newline'"), do("false"), do("true"),
            do(PRINT.format('"é" * 9999')), do(PRINT.format('"x" * 10000')), do(PRINT.format('"😀\\n" * 6000')),
            do("printf '%s' \"it's a \\\\ \" \"\\\"<b>\\\"\""), do("echo before; sleep 9"),
            *[say("nothing", finish_reason=reason) for reason in ("stop", "length", "tool_calls")],
            *([block("a", "b")] if text else [raw_call(("bash", "{")), raw_call(("sh", "{}"), finish_reason="length")]),
            do(f"echo {DONE} && echo é"),
        ]
        more = {
            "agent": {"max_consecutive_format_errors": 0},
            "environment": {"timeout": 1, "cwd": None},
            "model": {"model_name": "script"} | ({"model_class": "litellm_textbased"} if text else {}),
        }
        layers = [str(file) for file in files] + [more]
        yield {"name": name, "config": layers, "text": text, "replies": contexts, "known": None}


def merged(layers):
    return recursive_merge(*[mini_config.get_config_from_spec(l) if isinstance(l, str) else l for l in layers])


class Scripted:
    """Replaces the HTTP call and the price of a litellm model class."""

    def script(self, replies):
        self.replies = iter(replies)
        return self

    def _query(self, messages, **kwargs):
        self.reply = next(self.replies, None)
        if self.reply is None:
            raise litellm.exceptions.NotFoundError("the script has ended", "script", "script")
        message, reason = self.reply["message"], self.reply["finish_reason"]
        response = litellm.ModelResponse(choices=[{"index": 0, "message": message, "finish_reason": reason}])
        # litellm rewrites some values; the script's are what counts.
        response.choices[0].finish_reason = reason
        return response

    def _calculate_cost(self, response):
        return {"cost": self.reply["cost"]}


class ToolModel(Scripted, LitellmModel):
    pass


class TextModel(Scripted, LitellmTextbasedModel):
    pass


def by_mini(case):
    config = merged(case["config"])
    environment = {k: v for k, v in config.get("environment", {}).items() if k in ("env", "timeout")}
    model = {k: v for k, v in config["model"].items() if k != "model_class"}
    agent = {k: v for k, v in config["agent"].items() if k != "agent_class"}
    model = (TextModel if case["text"] else ToolModel)(**model).script(case["replies"])
    agent = DefaultAgent(model, LocalEnvironment(cwd=case["folder"], **environment), **agent)
    try:
        agent.run(case["task"])
    except litellm.exceptions.NotFoundError:
        pass
    return agent.messages


def comparable(messages):
    """Without times, raw responses and what litellm adds to a message; crashes by the script's end left out."""
    seen = []
    for message in messages:
        message = {k: v for k, v in message.items() if v is not None or k == "content"}
        extra = {
            k: v
            for k, v in message.get("extra", {}).items()
            if k not in ("timestamp", "response", "traceback") and not k.startswith("memtrial_")
        }
        if extra.get("exit_status") in ("NotFoundError", "ReplayExhausted"):
            message, extra = {"role": "exit", "content": "the script has ended"}, {}
        seen.append({**message, "extra": extra})
    return seen


def main():
    cases = [*rules(), *shipped()]
    work = Path(tempfile.mkdtemp(prefix="memtrial-peers-"))
    for case in cases:
        case["task"] = "the ‘task’ with {{braces}} & 😀"
        case["uname"] = UNAME
    logs = {}
    for side in ("mini", "memtrial"):
        for number, case in enumerate(cases):
            # The same path on both sides: commands may print it.
            case["folder"] = str(work / str(number))
            subprocess.run(["rm", "-rf", case["folder"]], check=True)
            Path(case["folder"]).mkdir(parents=True)
        if side == "mini":
            logs[side] = [by_mini(case) for case in cases]
            continue
        # The local environment runs commands under `/bin/sh -c`.
        shell = {"environment": {"interpreter": ["/bin/sh", "-c"]}}
        inputs = [{**case, "config": [*case["config"], shell]} for case in cases]
        file = work / "scenarios.json"
        file.write_text(json.dumps(inputs))
        logs[side] = json.loads(subprocess.run([sys.argv[1], file], check=True, capture_output=True).stdout)
    failures = messages = 0
    for case, mini, ours in zip(cases, logs["mini"], logs["memtrial"]):
        mini, ours = comparable(mini), comparable(ours)
        messages += len(mini)
        at = next((i for i, pair in enumerate(zip(mini, ours)) if pair[0] != pair[1]), None)
        at = min(len(mini), len(ours)) if at is None and len(mini) != len(ours) else at
        if at is None:
            failures += bool(case["known"])
            print(("stale  " if case["known"] else "equal  ") + f"{case['name']} ({len(mini)} messages)")
            continue
        failures += not case["known"]
        print(("known  " if case["known"] else "DIFFERS ") + f"{case['name']}: {case['known'] or ''}")
        if not case["known"]:
            for side, log in (("mini", mini), ("ours", ours)):
                print(f"  {side} [{at}]: {json.dumps(log[at] if at < len(log) else None, ensure_ascii=False)[:1500]}")
    subprocess.run(["rm", "-rf", str(work)], check=True)
    print(f"{len(cases)} scenarios, {messages} messages, {failures} unexplained")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
