"""Plays the same scenarios through mini-swe-agent and through memtrial and compares every message and request.

Usage: agent_vs_mini.py PLAYER [FOLDER]   (PLAYER: the built example `agent_scenario`; run under a Python that has
mini-swe-agent, of version 1 or 2. FOLDER keeps memtrial's trajectories.)

mini-swe-agent runs as it is: its agent, its litellm model classes, its environments. Both agents ask the same fake
endpoint over HTTP and run their commands under the same shell. Three things stand aside: times, ids, and the words of
failures of the endpoint and of templates, whose class alone is compared.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

PRICES = Path(tempfile.mkdtemp()) / "prices.json"
os.environ |= {
    "MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2",
    "MSWEA_GLOBAL_CONFIG_DIR": str(PRICES.parent), "LITELLM_MODEL_REGISTRY_PATH": str(PRICES), "OPENAI_API_KEY": "none",
}
MODEL = "openai/fake-model"
price = {"input_cost_per_token": 2**-20, "output_cost_per_token": 2**-19, "litellm_provider": "openai", "mode": "chat"}
PRICES.write_text(json.dumps({MODEL: price, "fake-model": price}))

import litellm  # noqa: E402
import minisweagent  # noqa: E402
import minisweagent.config as mini_config  # noqa: E402
import yaml  # noqa: E402
from minisweagent.agents.default import DefaultAgent  # noqa: E402
from minisweagent.environments.docker import DockerEnvironment  # noqa: E402
from minisweagent.environments.local import LocalEnvironment  # noqa: E402
from minisweagent.models import get_model_class  # noqa: E402

import agent_cases  # noqa: E402
from fake_endpoint import FakeEndpoint  # noqa: E402

litellm.suppress_debug_info = True
litellm.register_model(json.loads(PRICES.read_text()))
VERSION_1 = minisweagent.__version__.startswith("1.")
UNAME = {key: getattr(platform.uname(), key) for key in ("system", "node", "release", "version", "machine")}
TASK = "the ‘task’ with {{braces}} & 😀"
CLASSES = {"tools": "litellm", "text": "litellm_textbased", "responses": "litellm_response", "v1": "litellm"}

# Does what `docker run` and `docker exec` do to a command's folder, variables and exit code.
DOCKER = """#!/usr/bin/env -S python3 -IS
import os, subprocess, sys
words = sys.argv[1:]
if words[0] != "exec":
    print("box")
    sys.exit()
words, folder = words[1:], None
while words[0] in ("-w", "-e"):
    if words[0] == "-w":
        folder = words[1]
    else:
        name, _, value = words[1].partition("=")
        os.environ[name] = value
    words = words[2:]
code = subprocess.run(words[1:], cwd=folder).returncode
sys.exit(code if code >= 0 else 128 - code)
"""


def merge(*layers):
    """Objects are merged, anything else replaced."""
    merged = {}
    for layer in layers:
        for key, value in layer.items():
            old = merged.get(key)
            merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def merged(layers):
    return merge(*[yaml.safe_load(Path(layer).read_text()) if isinstance(layer, str) else layer for layer in layers])


def environment(case, config):
    settings = {k: v for k, v in config.get("environment", {}).items() if k in ("env", "timeout")}
    if case["environment"] == "local":
        return LocalEnvironment(cwd=case["folder"], **settings)
    docker = Path(case["folder"]).parent / "docker"
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    return DockerEnvironment(image="none", cwd=case["folder"], executable=str(docker), **settings)


def by_mini(case, address):
    config = merged(case["config"])
    model = {k: v for k, v in config.get("model", {}).items() if k not in ("model_class", "model_kwargs")}
    for key in ("action_regex",) if case["kind"] != "text" else ():
        model.pop(key, None)
    if VERSION_1:
        model = {k: v for k, v in model.items() if k in ("cost_tracking",)}
    kwargs = {"api_base": address, "api_key": "none", "max_retries": 0}
    model = get_model_class(MODEL, CLASSES[case["kind"]])(**model | {"model_name": MODEL, "model_kwargs": kwargs})
    known = DefaultAgent.__init__.__kwdefaults__["config_class"]
    fields = known.__dataclass_fields__ if VERSION_1 else known.model_fields
    settings = {k: v for k, v in config["agent"].items() if k in fields}
    if VERSION_1:
        settings = {k: int(v) if k == "step_limit" else v for k, v in settings.items()}
    agent = DefaultAgent(model, environment(case, config), **settings)
    if not VERSION_1:
        try:
            agent.run(TASK)
        except Exception:  # noqa: BLE001  (it is in the messages)
            pass
        return json.loads(json.dumps(agent.serialize()))
    from minisweagent.run.utils.save import save_traj

    more = {}
    try:
        status, result = agent.run(TASK)
    except Exception as error:  # noqa: BLE001  (as the batch command does)
        status, result, more = type(error).__name__, str(error), {"traceback": traceback.format_exc()}
    path = Path(case["folder"]).parent / "mini.json"
    save_traj(agent, path, exit_status=status, result=result, extra_info=more, print_path=False)
    return json.loads(path.read_text())


def without_nulls(value):
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


LOCAL = ("timestamp", "response", "traceback")
# What litellm adds to what the endpoint said, and what a response says of its settings.
ADDED = ("provider_specific_fields", "annotations", "images", "thinking_blocks", "function_call")
RESPONSE = ("object", "output", "status", "incomplete_details", "extra")


def comparable(message):
    extra = {k: v for k, v in message.get("extra", {}).items() if k not in LOCAL and not k.startswith("memtrial_")}
    if "exception_str" in extra:
        message, extra = {"role": "exit"}, {"exit_status": extra["exit_status"]}
    kept = {k: v for k, v in message.items() if k not in ADDED and k != "timestamp"}
    if message.get("object") == "response":
        kept = {k: v for k, v in message.items() if k in RESPONSE}
    for item in kept.get("output", []) if isinstance(kept.get("output"), list) else []:
        for part in item.get("content") or []:
            part.pop("logprobs", None)
    if kept.get("role") == "assistant" and not kept.get("content"):
        # null and nothing are the same words
        kept.pop("content", None)
    return without_nulls({**kept, "extra": extra})


def facts(run, case):
    """What a run says of itself, beside its messages."""
    info = run["info"]
    failed = "traceback" in info or "exception_str" in info or any(
        "exception_str" in message.get("extra", {}) for message in run["messages"][-1:])
    return {
        "exit_status": info["exit_status"], "submission": None if failed else info["submission"],
        "api_calls": info["model_stats"]["api_calls"], "cost": info["model_stats"]["instance_cost"],
        "format": run["trajectory_format"], "keys": sorted(info["config"].keys() - {"memtrial"}),
    }


def sent(request):
    """The conversation of a request, without what either client adds to it."""
    messages = request.get("messages", request.get("input"))
    kept = ("role", "content", "tool_calls", "tool_call_id", "type", "call_id", "name", "arguments", "output", "id", "summary")
    tidy = lambda m: {k: v for k, v in m.items() if k in kept and not (k == "content" and not v)}
    return without_nulls({"tools": request.get("tools", []), "messages": [tidy(message) for message in messages]})


def first_difference(mini, ours):
    for i, (a, b) in enumerate(zip(mini, ours)):
        if a != b:
            return i
    return None if len(mini) == len(ours) else min(len(mini), len(ours))


def differences(case, mini, ours, asked):
    pairs = {"messages": ([comparable(m) for m in mini["messages"]], [comparable(m) for m in ours["messages"]]),
             "run": ([facts(mini, case)], [facts(ours, case)])}
    if not any("error" in reply for reply in case["replies"]):
        pairs["requests"] = [[sent(request) for request in side] for side in asked]
    for what, (theirs, own) in pairs.items():
        at = first_difference(theirs, own)
        if at is not None:
            yield what, at, *[side[at] if at < len(side) else None for side in (theirs, own)]


def main():
    folder = Path(mini_config.builtin_config_dir)
    kinds = [agent_cases.version_1()] if VERSION_1 else [agent_cases.rules(), agent_cases.text(), agent_cases.responses()]
    cases = [case for kind in kinds for case in kind] + list(agent_cases.shipped(folder))
    if only := os.environ.get("ONLY"):
        cases = [case for case in cases if only in case["name"]]
    work, endpoint = Path(tempfile.mkdtemp(prefix="memtrial-peers-")), FakeEndpoint()
    runs = {}
    for number, case in enumerate(cases):
        # The same path on both sides: commands may print it.
        case["folder"] = str(work / str(number) / "box")
    for side in ("mini", "memtrial"):
        inputs = []
        for number, case in enumerate(cases):
            shutil.rmtree(case["folder"], ignore_errors=True)
            Path(case["folder"]).mkdir(parents=True)
            address = endpoint.script(f"{side}/{number}", case["replies"])
            if side == "mini":
                runs.setdefault(side, []).append(by_mini(case, address))
                continue
            shell = ["/bin/sh", "-c"] if case["environment"] == "local" else ["bash", "-lc"]
            more = {"environment": {"interpreter": shell}, "model": {"model_class": CLASSES[case["kind"]]}}
            inputs.append({"folder": case["folder"], "config": [*case["config"], more], "task": TASK, "uname": UNAME,
                           "address": address, "model": MODEL, "price": {"input": 2**-20 * 1e6, "output": 2**-19 * 1e6}})
        if side == "memtrial":
            (work / "scenarios.json").write_text(json.dumps(inputs))
            out = Path(sys.argv[2]) if len(sys.argv) > 2 else work / "out"
            shutil.rmtree(out, ignore_errors=True)
            subprocess.run([sys.argv[1], work / "scenarios.json", out], check=True)
            runs[side] = [json.loads(path.read_text()) for path in
                          (out / str(number) / "acme__widget-7.traj.json" for number in range(len(cases)))]
    failures = messages = equal = 0
    for number, (case, mini, ours) in enumerate(zip(cases, runs["mini"], runs["memtrial"])):
        messages += len(mini["messages"])
        asked = [endpoint.requests(f"{side}/{number}") for side in ("mini", "memtrial")]
        found = list(differences(case, mini, ours, asked))
        equal += not found
        if not found:
            failures += bool(case["known"])
            print(("stale   " if case["known"] else "equal   ") + f"{case['name']} ({len(mini['messages'])} messages)")
            continue
        failures += not case["known"]
        print(("known   " if case["known"] else "DIFFERS ") + f"{case['name']}: {case['known'] or ''}")
        for what, at, theirs, own in found if not case["known"] else []:
            for name, value in (("mini", theirs), ("ours", own)):
                print(f"  {what}[{at}] {name}: {json.dumps(value, ensure_ascii=False)[:1500]}")
    shutil.rmtree(work)
    print(f"mini-swe-agent {minisweagent.__version__}: {len(cases)} scenarios, {messages} messages; {equal} equal, "
          f"{failures} unexplained")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
